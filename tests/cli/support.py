"""Running the real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hoofbeat.benchmarks import write_benchmark
from hoofbeat.records import Question
from hoofbeat.store import Counts

__all__ = ["environment", "hoofbeat", "invented_benchmark", "json_of", "start"]


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
    process = start(words, folder, extra)
    out, err = process.communicate(timeout=240)
    assert "Traceback" not in err, err
    assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
    return subprocess.CompletedProcess(words, process.returncode, out, err)


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
