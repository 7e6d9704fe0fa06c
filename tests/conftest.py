"""Tests keep indexes and vectors in a folder of the run, never in the cache of whoever runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    before = os.environ.get("HOOFBEAT_CACHE")
    os.environ["HOOFBEAT_CACHE"] = str(shared / "hoofbeat-cache")
    yield
    if before is None:
        del os.environ["HOOFBEAT_CACHE"]
    else:
        os.environ["HOOFBEAT_CACHE"] = before
