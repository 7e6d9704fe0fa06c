"""A few kills in every run of the suite (`make chaos` does a thousand), and that the harness finds what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from hoofbeat.cli import cli
from tests.chaos import kills
from tests.chaos.kill_points import KillPoint
from tests.cli.support import run_module
from tests.helpers import needs_weights

KILLED = """
import os, sys, sqlite3
from pathlib import Path
from tests.chaos.kill_points import KillPoint, arm
arm(KillPoint(int(sys.argv[1]), float(sys.argv[2])), Path("events"))
Path("one").write_text("1")
ledger = sqlite3.connect("two.sqlite", isolation_level=None)
ledger.execute("CREATE TABLE rows (value)")
os.rename("one", "three")
print("over")
for number in range(10**10 if float(sys.argv[2]) else 0): pass
"""


def killed(folder: Path, event: int, later: float = 0.0) -> tuple[int, set[str]]:
    words = [sys.executable, "-c", KILLED, str(event), str(later)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        words, cwd=folder, env={"PYTHONPATH": str(root)}, capture_output=True, timeout=60, check=False
    )
    return done.returncode, {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_killed_commands_end_with_the_same_bytes_and_pay_once() -> None:
    needs_weights("minilm")  # its tokens measure the passages of lexical search
    done = run_module("tests.chaos.kills", "--suite", "--kills", "20")
    assert done.returncode == 0, done.stdout + done.stderr
    total = next(line for line in done.stdout.splitlines() if line.startswith("| all |"))
    assert int(total.split("|")[3]) == 20


def test_a_kill_comes_at_its_event(tmp_path: Path) -> None:
    found = []
    for event in (1, 2, 3, 0):
        folder = tmp_path / str(event)
        folder.mkdir()
        found.append(killed(folder, event))
    assert found == [
        (-9, set()),
        (-9, {"one", "two.sqlite"}),  # before the table is made
        (-9, {"one", "two.sqlite"}),
        (0, {"three", "two.sqlite", "events"}),
    ]
    assert (tmp_path / "0" / "events").read_text() == "3", "a file opened, a statement, a file renamed"
    assert str(KillPoint(7, 0.0121)) == "7+12ms"


def test_a_kill_may_come_after_its_event_in_the_middle_of_work(tmp_path: Path) -> None:
    code, names = killed(tmp_path, 3, 0.2)
    assert code == -9
    assert names == {"three", "two.sqlite"}


def test_what_differs_is_told() -> None:
    expected = {"a": "1", "b": "2", "c": "3"}
    found = {"b": "2", "c": "4", ".d.17.part": "5"}
    assert kills._differences(expected, found) == ["left behind: .d.17.part", "missing: a", "differs: c"]


def test_a_trial_that_paid_twice_or_differs_is_a_failure_that_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "FAILURES", tmp_path / "build" / "chaos.jsonl")
    right = kills.Trial(0, "answer", ("3", "0"), kills=1, twice=2, wasted=0, troubles=())
    wrong = [right._replace(number=1, wasted=1), right._replace(number=2, troubles=("missing: a",))]
    assert [trial.right for trial in (right, *wrong)] == [True, False, False]
    kills.write_failures([right, *wrong], 7, ["answer"])
    lines = kills.FAILURES.read_text().splitlines()
    assert len(lines) == 2
    assert "--seed 7 --trial 1 --only 'answer'" in lines[0]
    assert "| answer | 3 | 3 | 2 of 3 | 6 | 1 |" in kills.table([right, *wrong])


def writing_commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that takes `-o`, as it is typed."""
    if any(parameter.name == "output" for parameter in command.params):
        yield " ".join(words)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from writing_commands(inner, (*words, name))


def test_every_command_that_writes_is_killed() -> None:
    killed = {" ".join(step.words[:length]) for step in kills.commands() for length in (1, 2)}
    missing = [words for words in writing_commands(cli) if words not in killed]
    assert missing == ["corpus fetch"], "it needs a server; test_fetch_resume.py cuts it off"
    assert set(kills.SUITE) <= {step.name for step in kills.commands()}
