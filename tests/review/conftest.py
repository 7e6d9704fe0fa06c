"""The reviews' tests take review stores of both kinds of database."""

from __future__ import annotations

from tests.review.stores import store_urls  # noqa: F401 - a fixture
