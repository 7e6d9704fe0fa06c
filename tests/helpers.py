"""What tests of several stages share."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["shared_data"]

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """A file or folder of the data beside the project; the test is skipped where it is absent."""
    path = _DATA / name
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name}, which is not here")
    return path
