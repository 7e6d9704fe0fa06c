"""A verb's help loads few of the package's modules: an import at the top of a shared module is paid by every verb."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cli.support import environment

# One process imports other packages and forks for each verb: the fork counts the modules of this package.
_COUNT = """
import contextlib, importlib, io, json, os, sys
for name in ("aiohttp", "click", "msgspec", "numpy", "polars", "rapidfuzz", "rich.console"):
    importlib.import_module(name)
assert not [name for name in sys.modules if name.split(".")[0] == "hoofbeat"]

def count(verb):
    from hoofbeat.cli import main
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main([verb, "--help"])
        except SystemExit as ended:
            return ended.code, sum(name.split(".")[0] == "hoofbeat" for name in sys.modules)

for verb in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        print(json.dumps([verb, *count(verb)]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""

# Measured, and 5% more. A higher bound needs a reason; `python -m bench.starts` prints the counts. Verbs that load
# models have three more modules than before: bounds on what endpoints say, redaction of secrets, trust in files. Then:
# results in the terminal, folders of folders, what an open study hides, instructions found in texts, encoding on GPUs.
_BOUNDS = {
    "demo": 12,
    "check": 12,
    "weights": 16,
    "verify": 15,
    "answer": 21,
    "plan": 11,
    "serve": 40,
    "ledger": 39,  # secrets taken out of messages, names resolved in one place
    "export": 33,
    "review": 48,  # decisions on the cases of audits
    "predictions": 41,  # what is said of answers that were cut off
    "show": 69,
    "judge": 92,  # where work runs; probes by instructions, the canary
    "leakage": 94,  # where work runs
    "corpus": 76,
    "ask": 119,  # names, lines and silence of sources; votes of judges
    "compare": 152,  # what is said of runs over a part of the questions
    "build": 133,  # the check of the moment
    "audit": 156,  # names of sources, votes of judges, the estimate by the ledger, text that was cut
    "run": 190,  # probes by instructions, the order of judged pairs
    "retrieve": 125,  # shards, and where they are kept
    "report": 235,  # five more sections; the agreement of judges; what was decided; cut texts and part runs
}


def test_help_loads_few_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, *_BOUNDS], env=environment(), capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [verb for verb, _, _ in found] == list(_BOUNDS)
    assert all(code == 0 for _, code, _ in found)
    assert not {verb: count for verb, _, count in found if count > _BOUNDS[verb]}
