"""What tests of several stages share."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hoofbeat.errors import WeightsError
from hoofbeat.models import weight_files

__all__ = ["made_once", "needs_weights", "run_folder", "shared_data"]

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


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of this run of the tests, which its workers share."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that all workers of a run read: the first that needs it makes it, the others wait."""
    made = run_folder(factory) / name
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(made)
    return made
