"""What tests of several stages share."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import WeightsError
from hoofbeat.models import weight_files

__all__ = ["needs_weights", "shared_data"]

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str) -> Path:
    """A file or folder of the data beside the project; the test is skipped where it is absent."""
    path = _DATA / name
    if not path.exists():
        pytest.skip(f"needs ../shared/data/{name}, which is not here")
    return path


def needs_weights(name: str) -> None:
    """Skip the test where weights (or a group of them) are not on this machine."""
    try:
        for each in weight_files.weight_names(name):
            weight_files.find_weight(each)
    except WeightsError as err:
        pytest.skip(f"needs the weights {name}: {err.fix}")
