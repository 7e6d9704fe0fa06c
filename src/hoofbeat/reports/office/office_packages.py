"""Which package each office format needs, and the check that it is installed, made before any work begins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec

from hoofbeat.errors import UsageError

OFFICE_FORMATS = {"xlsx": "xlsxwriter", "docx": "docx", "summary": "reportlab"}
"""Formats that need a package of the extra `office`, each with the module it needs."""

WRITTEN = datetime(2000, 1, 1, tzinfo=UTC)
"""The date that every document has, so that the same report gives the same bytes."""


def check_packages(formats: Sequence[str]) -> None:
    """Refuse a format whose package is not installed."""
    missing = [name for name in formats if name in OFFICE_FORMATS and find_spec(OFFICE_FORMATS[name]) is None]
    if missing:
        raise UsageError(
            f"a report as {', '.join(missing)} needs a package that is not installed",
            fix="install it: pip install 'hoofbeat[office]'",
        )
