"""A command that is told to end cleans up as after Ctrl-C, and one without standard output works."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hoofbeat.store.call_ledger import Ledger
from tests.cli.support import environment, invented_benchmark
from tests.models.fault_server import FaultServer

_COMMAND = [sys.executable, "-m", "hoofbeat"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_as_ctrl_c_does(tmp_path: Path, number: signal.Signals) -> None:
    invented_benchmark(tmp_path / "bench", 200)
    with FaultServer(delay=0.2) as server:
        words = [*_COMMAND, "answer", "bench", "--model", server.spec(), "-o", "out", "--json"]
        before = signal.signal(number, signal.SIG_DFL)  # a suite under nohup ignores SIGHUP, and so would its commands
        running = subprocess.Popen(
            words,
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(number, before)
        deadline = time.monotonic() + 300
        while not _kept(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(number)
        out, err = running.communicate(timeout=300)
    assert running.returncode == 128 + number
    assert f"stopped by {number.name}" in json.loads(out)["error"]
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hoofbeat", "bench"]  # no draft is left
    assert _kept(tmp_path) >= 1


def _kept(folder: Path) -> int:
    """How many calls are in the ledger: an answer that was sent may still be under way to it."""
    place = folder / ".hoofbeat" / "ledger.sqlite"
    if not place.exists():
        return 0
    with Ledger(place) as ledger:
        return ledger.stats().calls


@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_error(tmp_path: Path, streams: str) -> None:
    invented_benchmark(tmp_path / "bench", 2)
    before = {path.name: path.read_bytes() for path in (tmp_path / "bench").iterdir()}
    command = f"{shlex.join([*_COMMAND, 'verify', 'bench', '--json'])} {streams}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "bench").iterdir()} == before
