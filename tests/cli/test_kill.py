"""kill -9 at random moments: the same command ends with the same bytes, and what was kept is never asked again."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat import teaching
from hoofbeat.corpus import import_corpus
from hoofbeat.store import Ledger
from tests.cli.support import RunningCommand, hoofbeat, invented_benchmark
from tests.models.fault_server import FaultServer


def kept_requests(ledger: Path) -> set[str]:
    """All calls in the ledger, by what the user says in them."""
    if not ledger.exists():
        return set()
    with Ledger(ledger) as opened:
        requests = [msgspec.json.decode(entry.request)["request"] for entry in opened.entries(operation="chat")]
    return {_user_words(request["messages"]) for request in requests}


def _user_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What tells a call from others: a second ask begins with the words of the first."""
    return "\n".join(each["content"] for each in messages if each["role"] == "user")


def asked_calls(server: FaultServer) -> Counter[str]:
    """How often each call reached the server."""
    return Counter(_user_words(seen.body["messages"]) for seen in [*server.seen])


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def kill_until(command: Sequence[str], folder: Path, server: FaultServer, kills: int) -> int:
    """Kill the command so many times at random moments; returns how many calls were lost in flight."""
    moments = random.Random(11)
    ledger = folder / ".hoofbeat" / "ledger.sqlite"
    lost = 0
    quiet: dict[str, int] = {}
    for _ in range(kills):
        before = asked_calls(server)
        process = RunningCommand(command, folder)
        while len(server.seen) == before.total() and not process.ended():
            time.sleep(0.005)
        assert not process.ended(moments.uniform(0.0, 0.35))
        process.kill()
        while server.in_flight:
            time.sleep(0.005)
        kept = kept_requests(ledger)
        now = asked_calls(server)
        asked_now = set(now - before)
        lost += len(asked_now - kept)
        for text, count in quiet.items():
            assert now[text] == count, "a call that was in the ledger was made again"
        quiet = {text: now[text] for text in kept}
    hoofbeat(*command, folder=folder)
    now = asked_calls(server)
    for text, count in quiet.items():
        assert now[text] == count, "a call that was in the ledger was made again"
    return lost


@pytest.mark.slow
def test_a_run_killed_twenty_times_ends_with_the_same_bytes(tmp_path: Path) -> None:
    with FaultServer(delay=0.15) as server:
        command = ["answer", "bench", "--model", server.spec(), "-o", "out"]
        for name in ("killed", "quiet"):
            invented_benchmark(tmp_path / name / "bench", 400)
        lost = kill_until(command, tmp_path / "killed", server, kills=20)
        asked = asked_calls(server)
        hoofbeat(*command, folder=tmp_path / "quiet")
        assert folder_bytes(tmp_path / "killed" / "out") == folder_bytes(tmp_path / "quiet" / "out")
        assert len(asked) == 400
        assert asked.total() == 400 + lost
        assert not [path for path in (tmp_path / "killed").iterdir() if path.name.endswith((".draft", ".old"))]


@pytest.mark.slow
def test_an_audit_with_calls_that_follow_calls_survives_too(tmp_path: Path) -> None:
    books = [path for path in teaching.handbook_files() if "kidney" in path.stem and path.suffix == ".md"]
    with FaultServer(delay=0.1) as server:
        command = ["audit", "books", "teaching", "--with", "bm25", "--whole-up-to", "0", "--model", server.spec()]
        import_corpus(books, tmp_path / "killed" / "books")
        shutil.copytree(tmp_path / "killed", tmp_path / "quiet")
        lost = kill_until([*command, "-o", "out"], tmp_path / "killed", server, kills=6)
        asked = asked_calls(server)
        hoofbeat(*command, "-o", "out", folder=tmp_path / "quiet")
        assert folder_bytes(tmp_path / "killed" / "out") == folder_bytes(tmp_path / "quiet" / "out")
        assert asked.total() == len(asked) + lost
