from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("set_before", "found"), [(None, "4"), ("20", "20")])
def test_threads_of_products_are_told_how_to_wait_before_numpy_is_there(set_before: str | None, found: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    if set_before is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = set_before
    told = "import sys, os, hoofbeat; print('numpy' in sys.modules, os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    done = subprocess.run([sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", found]
