"""A verb's help loads few of the package's modules: an import at the top of a shared module is paid by every verb."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.support import environment

_COUNT = """
import contextlib, io, sys
with contextlib.redirect_stdout(io.StringIO()):
    from hoofbeat.cli import main
    try:
        main([sys.argv[1], "--help"])
    except SystemExit as ended:
        code = ended.code
print(code, sum(name.split(".")[0] == "hoofbeat" for name in sys.modules))
"""

# Measured, and 5% more. A higher bound needs a reason; `python -m bench.starts` prints the counts.
_SMALL = {
    "demo": 12,
    "check": 12,
    "weights": 16,
    "verify": 15,
    "answer": 21,
    "serve": 29,
    "ledger": 34,
    "export": 33,
    "review": 38,
}
_MIDDLE = {"predictions": 38, "show": 61, "judge": 74, "leakage": 80, "corpus": 68, "ask": 90}
_LARGE = {"compare": 125, "build": 117, "audit": 128, "run": 165, "retrieve": 104, "report": 174}


@pytest.mark.parametrize("bounds", [_SMALL, _MIDDLE, _LARGE], ids=["small", "middle", "large"])
def test_help_loads_few_modules(bounds: dict[str, int]) -> None:
    counts = {}
    for verb in bounds:
        done = subprocess.run(
            [sys.executable, "-c", _COUNT, verb], env=environment(), capture_output=True, text=True, check=True
        )
        code, count = map(int, done.stdout.split())
        assert code == 0
        counts[verb] = count
    assert not {verb: count for verb, count in counts.items() if count > bounds[verb]}
