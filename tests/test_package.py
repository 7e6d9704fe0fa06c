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


def test_the_number_of_threads_behind_products_changes_no_bit_of_a_search() -> None:
    """Tests that run side by side have one such thread each (`tests/conftest.py`); people have one a core."""
    search = (
        "import hashlib, numpy as np; from hoofbeat.retrieval.index.dense_search import DenseSearcher\n"
        "rows = np.random.default_rng(5).normal(size=(6041, 100)).astype(np.float32)\n"
        "rows /= np.linalg.norm(rows, axis=1, keepdims=True); rows[1000:1100] = rows[17]  # ties\n"
        "for store in ('float32', 'float16', 'int8'):\n"
        "    for found in DenseSearcher(rows[:6000], store).search(rows[6000:], 300):\n"
        "        print(hashlib.sha256(found.indices.tobytes() + found.scores.tobytes()).hexdigest())"
    )
    one, two = (
        subprocess.run(
            [sys.executable, "-c", search],
            env={**os.environ, "OPENBLAS_NUM_THREADS": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for number in ("1", "2")
    )
    assert len(one) == 3 * 41
    assert one == two
