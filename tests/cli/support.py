"""Running the real command in a process of its own: a new one, or a fork of one that has it imported already."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hoofbeat.benchmarks import write_benchmark
from hoofbeat.records import Question
from hoofbeat.registry import PLUGINS_VARIABLE
from hoofbeat.store import Counts

__all__ = [
    "RunningCommand",
    "environment",
    "hoofbeat",
    "invented_benchmark",
    "json_of",
    "printed",
    "run_module",
    "start",
]

_LONGEST = 840
"""Seconds for one command on a busy machine; a test has a limit for all that it does, which ends it earlier."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's environment without anything that would change what the command does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "HOOFBEAT_LEDGER"))}
    return {**kept, "COLUMNS": "120", **(extra or {})}


def start(words: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start the command in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "hoofbeat", *words],
        cwd=folder,
        env=environment(extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def hoofbeat(
    *words: str, folder: Path, extra: Mapping[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder and check its exit code; no traceback may ever show."""
    if any(name.startswith("PYTHON") or name.endswith("_THREADS") for name in extra or {}):  # read by an interpreter
        process = start(words, folder, extra)
        out, err = process.communicate(timeout=_LONGEST)
        returned = process.returncode
    else:
        returned, out, err = _forks().run(words, folder, environment(extra))
    assert "Traceback" not in err, err
    assert returned == code, f"exit {returned}\n{out}\n{err}"
    return subprocess.CompletedProcess(words, returned, out, err)


def printed(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """The exit code of the command, and what a terminal would show: messages and output together."""
    code, shown, _ = _forks().run(words, folder, environment, together=True)
    return code, shown


def run_module(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """What `python -m` does in the project's folder, in a fork that has the package and the vocabularies loaded."""
    root = Path(__file__).parents[2]
    return subprocess.CompletedProcess(words, *_forks().run(words, root, environment(), module=name))


class _Forks:
    """The process that forks, started when the first command is run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.forking"],
            cwd=Path(__file__).parents[2],
            env=environment({PLUGINS_VARIABLE: ""}),  # the forks of later tests must not know a plugin of this one
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.kill)

    def run(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        started: Callable[[int], None] = lambda _: None,
        *,
        together: bool = False,
        module: str = "",
    ) -> tuple[int, str, str]:
        """Exit code, output and messages of one command; one that takes too long is killed.

        `started` is told the id of its process. With `together`, messages are among the output, as in a terminal.
        With `module`, the words are for the `main` of this module.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as kept, self._lock:
            out, err = Path(kept, "out"), Path(kept, "out" if together else "err")
            request = {"words": words, "folder": str(folder), "environment": environment, "module": module}
            print(json.dumps({**request, "out": str(out), "err": str(err)}), file=self._process.stdin, flush=True)
            child = json.loads(self._process.stdout.readline())["pid"]
            started(child)
            watch = threading.Timer(_LONGEST, os.kill, (child, signal.SIGKILL))
            watch.start()
            code = json.loads(self._process.stdout.readline())["code"]
            watch.cancel()
            return code, out.read_text("utf-8"), err.read_text("utf-8")


@cache
def _forks() -> _Forks:
    return _Forks()


class RunningCommand:
    """A command in a fork that is killed at some moment. No other command can run until then."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(words, folder), daemon=True)
        self._thread.start()
        assert self._begun.wait(60)

    def _run(self, words: Sequence[str], folder: Path) -> None:
        self.code, _, _ = _forks().run(words, folder, environment(), self._start)

    def _start(self, process: int) -> None:
        self._process = process
        self._begun.set()

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether it has ended by itself, now or within this time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def kill(self) -> None:
        """End it with SIGKILL, if it has not ended."""
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        assert self.ended(30)


def json_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON object on standard output."""
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def invented_benchmark(target: Path, count: int) -> Path:
    """A benchmark of so many invented questions without documents."""
    questions = [
        Question(id=f"q-{number:03d}", text=f"Invented question {number}: what comes next?", answer=f"Step {number}.")
        for number in range(count)
    ]
    write_benchmark(target, questions, title="invented", inputs=[], counts=Counts(kept=count))
    return target
