"""Kills of commands that work on a store: the ledger, the review store, and the pages that are served from folders.

Their files hold clock times, so bytes can't be compared (`kills` does that for all others). A command is killed at a
few of its events and run again; then the store must hold what it would hold without the kill, each thing once, and
nothing half-made may lie beside it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from hoofbeat.benchmarks.benchmark import write_benchmark
from hoofbeat.records import Question
from hoofbeat.review.new_study import StudyOptions, plan_study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Counts, Ledger
from hoofbeat.store.artefact import open_artefact
from tests.cli.support import environment
from tests.store.test_call_ledger import entry

KILLS = 3
CALLS = 400
COMMAND = """
import sys
from pathlib import Path
from hoofbeat.cli import main
from tests.chaos.kill_points import KillPoint, arm
arm(KillPoint(int(sys.argv[1])), Path(sys.argv[2]))
main(sys.argv[3:])
"""
_UNFINISHED = re.compile(r"\..+\.\d+\.(draft|old|part)")


def started(folder: Path, words: tuple[str, ...], event: int) -> subprocess.Popen[str]:
    """The command in its folder, to be killed at this event; its number of events is written beside the folder."""
    root = Path(__file__).parents[2]
    env = {**environment(), "PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}
    counted = folder.with_suffix(".events")
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(event), str(counted), *words],
        cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def ended(folder: Path, words: tuple[str, ...], event: int = 0) -> int:
    process = started(folder, words, event)
    told, _ = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), told
    return process.returncode


def a_ledger(folder: Path) -> None:
    with Ledger(folder / "from.sqlite") as ledger:
        ledger.add_all(entry(str(number)) for number in range(CALLS))


def a_bench(folder: Path) -> None:
    questions = [Question(id=f"q{n}", text=f"Invented question {n}?", answer=f"Answer {n}.") for n in range(30)]
    write_benchmark(folder / "bench", questions, title="invented", inputs=[], counts=Counts(kept=len(questions)))


def calls_in(path: Path) -> dict[str, bytes]:
    """The replies by key, each once."""
    with Ledger(path) as ledger:
        rows = [(each.key, bytes(each.reply)) for each in ledger.entries()]
    assert len(rows) == len({key for key, _ in rows})
    return dict(rows)


def copied(folder: Path) -> None:
    assert calls_in(folder / "to.sqlite") == calls_in(folder / "from.sqlite")
    assert len(calls_in(folder / "to.sqlite")) == CALLS


def pruned(folder: Path) -> None:
    assert calls_in(folder / "from.sqlite") == {}


def exported(folder: Path) -> None:
    with Ledger(folder / "from.sqlite") as ledger:
        assert len((folder / "calls.jsonl").read_bytes().splitlines()) == len(list(ledger.entries())) == CALLS


def one_study(folder: Path) -> None:
    study, items = plan_study(folder / "bench", StudyOptions(form="likert"))
    with ReviewStore.open(str(folder / "review.db")) as store:
        assert [each.id for each in store.studies()] == [study.id]
        assert store.items(study.id) == items
        assert [each.what for each in store.trail(study=study.id)] == ["study created"]


COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[Path], None], Callable[[Path], None]]] = {
    "ledger copy": (("ledger", "copy", "from.sqlite", "to.sqlite"), a_ledger, copied),
    "ledger prune": (("ledger", "prune", "--model", "m", "--ledger", "from.sqlite"), a_ledger, pruned),
    "ledger export": (("ledger", "export", "calls.jsonl", "--ledger", "from.sqlite"), a_ledger, exported),
    "review": (("review", "bench", "--form", "likert", "--no-serve", "--db", "review.db"), a_bench, one_study),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_store_is_whole_after_the_same_command(tmp_path: Path, name: str) -> None:
    words, prepare, check = COMMANDS[name]
    whole = tmp_path / "whole"
    whole.mkdir()
    prepare(whole)
    assert ended(whole, words) == 0
    check(whole)
    events = int(whole.with_suffix(".events").read_text())
    rng = random.Random(name)
    for number, event in enumerate(sorted(rng.sample(range(2, events), KILLS))):
        folder = tmp_path / f"killed-{number}"
        folder.mkdir()
        prepare(folder)
        assert ended(folder, words, event) == -signal.SIGKILL, f"event {event} of {events}"
        assert ended(folder, words) == 0, f"after a kill at event {event}"
        check(folder)
        left = [path.name for path in folder.iterdir() if _UNFINISHED.fullmatch(path.name)]
        assert not left, f"after a kill at event {event}"


@pytest.mark.slow
def test_a_killed_server_leaves_the_folders_as_they_were(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    a_bench(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for _ in range(2):
        process = started(folder, ("serve", "bench", "--port", "0"), 0)
        assert process.stdout is not None
        try:
            address = next(found[0] for line in process.stdout if (found := re.findall(r"http://[\d.:]+", line)))
            with urllib.request.urlopen(f"{address}/", timeout=60) as page:
                assert page.status == 200
        finally:
            process.kill()
            process.wait()
        assert process.returncode == -signal.SIGKILL
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert open_artefact(folder / "bench").verify() == []
