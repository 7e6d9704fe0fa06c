"""Imports of the tests read files in one process, unless a test says how many: most are of a few small files.

The second process took as long to start as the first took for all files. `tests/corpus/test_parallel_import.py` imports
with several.
"""

from __future__ import annotations

import pytest

from hoofbeat.corpus import corpus_import


def read_in_one_process(patch: pytest.MonkeyPatch) -> None:
    """From now on an import without a number of workers has one."""
    patch.setattr(corpus_import, "available_cores", lambda: 1)
