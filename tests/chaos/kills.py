"""Chaos: a command that is killed (-9) again and again ends with the bytes of an undisturbed run, and pays once.

The commands are those of the golden set (`tools/golden.py`) and a few more, with its scripted model. Each runs
undisturbed once, then in trials: a trial has a folder with what the command reads, and an empty cache. The command is
killed there one to four times, at points that the seed decides (`kill_points`), and is run again until it ends; in one
trial of five its result is there already and is made anew. Compared are all files, the keys in the ledger, the exit
code, and the requests that the model has received: at most those that were under way at a kill come twice. Nothing may
be left behind: no half-made file, no process.

    python -m tests.chaos.kills                                      1,000 kills of all commands, and a table
    python -m tests.chaos.kills --kills 50 --only 'audit*' --seed 7  fewer
    python -m tests.chaos.kills --only answer --seed 0 --trial 31    one trial again, and its folder stays
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import hashlib
import json
import os
import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.chaos.kill_points import KillPoint, arm
from tests.cli.forking import vocabularies
from tools import golden
from tools.golden import Main, Step


def _citations(folder: Path) -> None:
    """Two newer case reports that cite the first case."""
    rows = "citing,cited,year\nPMC901,hbt-case-01,2025\nPMC902,hbt-case-01,2025\n"
    (folder / "given" / "citations.csv").write_text(rows, "utf-8")


EXTRA = [
    Step("corpus-import-workers", ("corpus", "import", "given/cases", "-o", "cases-2", "--workers", "2")),
    Step("corpus-aging", (
        "corpus", "aging", "bench", "--citations", "given/citations.csv", "-o", "aging.tsv",
    ), before=_citations),
    Step("benchmark-import", ("benchmark", "import", "export-jsonl", "-o", "imported")),
    Step("benchmark-stats", ("benchmark", "stats", "bench", "-o", "set-stats")),
    Step("benchmark-shorten", (
        "benchmark", "shorten", "bench", "--answers", "judged", "--questions", "3", "-o", "short",
    )),
    Step("retrieve-again", ("retrieve", "bench", "--with", "bm25", "--with", golden.DENSE, "-o", "rank-two")),
    Step("run-paper", ("run", "clinbench", "clinbench", *golden.SCRIPTED, "--limit", "4", "-o", "paper")),
    Step("audit-cases-json", ("audit", "cases", "audit", "-o", "worklist.json")),
    Step("audit-cases-csv", ("audit", "cases", "audit", "-o", "worklist.csv")),
    Step("audit-gate", (
        "audit", "gate", "audit-merged", "audit-merged", "--fail-if", "new_disagreements > 0", "-o", "gate",
    )),
    Step("report-small", ("report", "cases", "bench", "rank-lines", "judged", "-o", "report-small")),
    Step("demo-recorded", ("demo", "-o", "demo-recorded")),
]  # fmt: skip
SUITE = ("corpus-import", "build-sourceqa", "retrieve-lines", "answer", "judge", "audit", "report-small")
"""What the suite kills: one command of each kind, all of them quick."""
LEFT_OUT = ("weights-list",)
"""The list of weights is about the machine."""
MAX_KILLS = 4
MAX_LATER = 0.05
MAX_RUNS = 12
IN_FLIGHT = 16
"""How many calls a command has under way at most (`max_in_flight`, as set below)."""
FAILURES = Path("build", "chaos.jsonl")
_UNFINISHED = re.compile(r"\..+\.\d+\.(draft|old|part)")
Files = dict[str, str]


class Undisturbed(NamedTuple):
    """A command's undisturbed run: its exit code, its events, the folder after it, ledger keys and requests.

    `events_again` are those of a second run, which finds the replies in the ledger and replaces the result.
    """

    code: int
    events: int
    events_again: int
    files: Files
    keys: frozenset[str]
    requests: Counter[str]


class Trial(NamedTuple):
    """What the kills of one trial did. `twice` are calls made again, `wasted` those that no kill had cut off."""

    number: int
    command: str
    points: tuple[str, ...]
    kills: int
    twice: int
    wasted: int
    troubles: tuple[str, ...]

    @property
    def right(self) -> bool:
        return not self.troubles and not self.wasted


def commands() -> list[Step]:
    """All commands that can be killed: those that serve pages or add something each time they are run are not."""
    steps = [*golden.STEPS, *EXTRA]
    return [step for step in steps if step.visit is None and not {step.name, step.words[0]} & _UNFIT]


_UNFIT = {*golden.CHANGING, *LEFT_OUT}


class Chaos:
    """The undisturbed runs, and the trials after them."""

    def __init__(self, root: Path, steps: Sequence[Step], seed: int) -> None:
        self._root, self._seed = root, seed
        self._all = [*golden.STEPS, *EXTRA]
        self._steps = golden.plan(self._all, [step.name for step in steps])
        self._wanted = list(steps)
        self._base = root / "base"
        self._undisturbed: dict[str, Undisturbed] = {}
        self._main: Main = lambda _: None

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """Run everything undisturbed; the model answers until the end of the block."""
        self._base.mkdir()
        golden.prepare(self._base)
        self._main = golden.load({step.words[0] for step in self._steps})
        if any(step.words[0] in ("build", "check") for step in self._steps):
            vocabularies()  # five seconds, once here instead of in every fork
        with golden.model(self._base, "local"):
            settings = self._base / "hoofbeat.toml"
            settings.write_text(f"{settings.read_text('utf-8')}max_in_flight = {IN_FLIGHT}\n", "utf-8")
            self._address = re.findall(r"http://[\d.:]+", settings.read_text("utf-8"))[0]
            for step in self._steps:
                self._run_undisturbed(step)
            yield

    def _run_undisturbed(self, step: Step) -> None:
        if step.before is not None:
            step.before(self._base)
        before, received = _files(self._base), self._received()
        code, events = self._run(step, self._base, self._root / "cache", KillPoint(0))
        if code != step.code:
            raise SystemExit(f"{step.name} ends with exit code {code} undisturbed:\n{_told(self._base, step)}")
        after, keys = _files(self._base), _keys(self._base, step)
        requests = self._received() - received
        again = self._run(step, self._base, self._root / "cache", KillPoint(0))[1] if step in self._wanted else 0
        self._undisturbed[step.name] = Undisturbed(
            code=code,
            events=events,
            events_again=again,
            files={name: value for name, value in after.items() if before.get(name) != value},
            keys=keys,
            requests=requests,
        )

    def _received(self) -> Counter[str]:
        """How often each request has reached the model."""
        with urllib.request.urlopen(f"{self._address}/received") as answer:
            return Counter(json.load(answer))

    def _settled(self) -> Counter[str]:
        """The same, once nothing more arrives: what a killed command had sent may still be on its way."""
        before, now = None, self._received()
        while now != before:
            time.sleep(0.03)
            before, now = now, self._received()
        return now

    def _run(self, step: Step, folder: Path, cache: Path, point: KillPoint) -> tuple[int, int]:
        """The command's exit code (-9 where it was killed) and its number of events (0 where it was killed)."""
        counted = folder / "outputs" / f"{step.name}.events.out"
        counted.unlink(missing_ok=True)

        def main(words: list[str]) -> None:
            arm(point, counted)
            self._main(words)

        code, _, _ = golden.run(main, step, folder, cache, loud=False)
        written = counted.read_text("ascii") if counted.exists() else ""
        return code, int(written or 0)  # empty where the kill came while it was written

    def trial(self, number: int, at_most: int, *, keep: bool = False) -> Trial:
        """One trial, with the kills that the seed and its number decide."""
        rng = random.Random(f"{self._seed} {number}")
        step = self._wanted[number % len(self._wanted)]
        expected = self._undisturbed[step.name]
        folder = self._root / f"trial-{number}"
        self._give(step, folder)
        cache, given, received = self._root / f"cache-{number}", _files(folder), self._received()
        points, troubles, events = [], [], expected.events
        if rng.random() < 0.2:
            self._run(step, folder, cache, KillPoint(0))
            points.append("made anew")
            events = expected.events_again
        wanted = min(rng.randint(1, MAX_KILLS), at_most)
        kills = twice = wasted = 0
        for _ in range(MAX_RUNS):
            point = KillPoint(0)
            if kills < wanted:
                later = rng.uniform(0.0, MAX_LATER) if rng.random() < 0.4 else 0.0
                point = KillPoint(rng.randint(1, max(1, events)), later)
            arrived = self._received() - received
            lost = _first_times(arrived, expected) - len(_keys(folder, step))
            code, _ = self._run(step, folder, cache, point)
            points.append(str(point))
            troubles += _still_running(folder)
            now = self._settled() - received
            again = now.total() - arrived.total() - (_first_times(now, expected) - _first_times(arrived, expected))
            twice += again
            wasted += max(0, again - max(0, lost))
            if code != -9:
                break
            kills += 1
            events = expected.events_again  # what was done before is not done again, so there are fewer events
            under_way = _first_times(now, expected) - len(_keys(folder, step))
            if under_way > IN_FLIGHT:
                troubles.append(f"{under_way} calls were under way at a kill, more than {IN_FLIGHT}")
        if code != expected.code:
            troubles.append(f"exit code {code} instead of {expected.code}: {_told(folder, step)[-400:]}")
        troubles += _differences({**given, **expected.files}, _files(folder))
        troubles += [f"left in the cache: {name}" for name in _files(cache) if _UNFINISHED.search(name)]
        if _keys(folder, step) != expected.keys:
            troubles.append("the ledger's keys differ")
        if not troubles and not keep:
            shutil.rmtree(folder)
        shutil.rmtree(cache, ignore_errors=True)
        return Trial(number, step.name, tuple(points), kills, twice - wasted, wasted, tuple(troubles))

    def _give(self, step: Step, folder: Path) -> None:
        """A folder with what the command reads: the inputs, and the output of the commands before it."""
        needed = [each for each in golden.plan(self._all, [step.name]) if each.name != step.name]
        names = [name for each in needed for name in self._undisturbed[each.name].files]
        given = [str(path.relative_to(self._base)) for path in (self._base / "given").rglob("*") if path.is_file()]
        for name in {*names, *given, "hoofbeat.toml"}:
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(self._base / name, place)
        (folder / "outputs").mkdir(exist_ok=True)


def _first_times(received: Counter[str], expected: Undisturbed) -> int:
    """How many of these requests an undisturbed run makes as well: each as often as there, samples more than once."""
    return (received & expected.requests).total()


def _told(folder: Path, step: Step) -> str:
    return (folder / "outputs" / f"{step.name}.err").read_text("utf-8")


def _files(folder: Path) -> Files:
    """The hash of every file of a folder, without the ledgers and what commands print."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(golden.LEFT_OUT)
    }


def _differences(expected: Files, found: Files) -> list[str]:
    added = [f"left behind: {name}" for name in sorted(found.keys() - expected.keys())]
    missing = [f"missing: {name}" for name in sorted(expected.keys() - found.keys())]
    return (
        added
        + missing
        + [f"differs: {name}" for name in sorted(found) if expected.get(name, found[name]) != found[name]]
    )


def _keys(folder: Path, step: Step) -> frozenset[str]:
    """The keys in a command's ledger; of a copy, so that the command itself has to recover what a kill left."""
    ledger = folder / _ledger(folder, step)
    with tempfile.TemporaryDirectory() as scratch:
        for path in ledger.parent.glob(f"{ledger.name}*"):
            shutil.copyfile(path, Path(scratch, path.name))
        copied = Path(scratch, ledger.name)
        if not copied.exists():
            return frozenset()
        with contextlib.closing(sqlite3.connect(copied)) as opened, contextlib.suppress(sqlite3.OperationalError):
            return frozenset(row[0] for row in opened.execute("SELECT lower(hex(key)) FROM calls"))
    return frozenset()  # killed before there was a table


def _ledger(folder: Path, step: Step) -> str:
    """Where a command keeps its calls; a demo keeps them with its results."""
    if step.words[0] == "demo":
        return f"{step.outputs[0]}/ledger.sqlite"
    return golden.environment(folder, step)["HOOFBEAT_LEDGER"]


def _still_running(folder: Path) -> list[str]:
    """Processes that work in this folder five seconds after the command has ended."""
    found: list[str] = []
    for _ in range(100):
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if (process / "cwd").readlink() == folder:
                    found.append(f"process {process.name} still runs: {(process / 'cmdline').read_bytes()[:80]!r}")
        if not found:
            break
        time.sleep(0.05)
    return found


def table(trials: Sequence[Trial]) -> str:
    """By command: trials, kills, identical results, calls made twice that were under way, and others."""
    lines = ["| command | trials | kills | identical | calls twice, under way at a kill | calls twice, others |"]
    lines.append("|---|---|---|---|---|---|")
    names = list(dict.fromkeys(trial.command for trial in trials))
    for name in [*names, "all"]:
        rows = [trial for trial in trials if name in (trial.command, "all")]
        same = f"{sum(not row.troubles for row in rows)} of {len(rows)}"
        sums = [sum(getattr(row, field) for row in rows) for field in ("kills", "twice", "wasted")]
        lines.append(f"| {name} | {len(rows)} | {sums[0]} | {same} | {sums[1]} | {sums[2]} |")
    return "\n".join(lines)


def write_failures(trials: Sequence[Trial], seed: int, only: Sequence[str]) -> None:
    """Write down what failed, with the command that repeats it."""
    FAILURES.parent.mkdir(exist_ok=True)
    words = "".join(f" --only '{pattern}'" for pattern in only)
    with FAILURES.open("w", encoding="utf-8") as stream:
        for trial in trials:
            if not trial.right:
                again = f"python -m tests.chaos.kills --seed {seed} --trial {trial.number}{words}"
                print(json.dumps({**trial._asdict(), "again": again}, ensure_ascii=False), file=stream)


def _run(given: argparse.Namespace, root: Path, steps: Sequence[Step]) -> list[Trial]:
    chaos = Chaos(root, steps, given.seed)
    trials: list[Trial] = []
    with chaos.prepared():
        if given.trial is not None:
            return [chaos.trial(given.trial, MAX_KILLS, keep=True)]
        killed = 0
        while killed < given.kills:
            trials.append(chaos.trial(len(trials), given.kills - killed))
            killed += trials[-1].kills
            if not trials[-1].right:
                print(trials[-1], file=sys.stderr, flush=True)
    return trials


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="how many kills in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only commands of this name")
    parser.add_argument("--suite", action="store_true", help="only the commands that the test suite kills")
    parser.add_argument("--trial", type=int, help="repeat this trial of the same seed and commands")
    given = parser.parse_args()
    only = given.only or (list(SUITE) if given.suite else ["*"])
    steps = [step for step in commands() if any(fnmatch.fnmatch(step.name, pattern) for pattern in only)]
    if not steps:
        parser.error(f"no command fits {' or '.join(only)}")
    root = Path(tempfile.mkdtemp(prefix="hoofbeat-chaos-")).resolve()
    trials: list[Trial] = []
    try:
        trials = _run(given, root, steps)
    finally:
        if trials and all(trial.right for trial in trials) and given.trial is None:
            shutil.rmtree(root, ignore_errors=True)
        else:
            print(f"the folders stay in {root}", file=sys.stderr)
    print(table(trials))
    write_failures(trials, given.seed, only)
    wrong = [trial for trial in trials if not trial.right]
    print(f"\n{len(trials) - len(wrong)} of {len(trials)} trials ended as they should")
    if wrong:
        print(f"the others are in {FAILURES}, with how to repeat them")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
