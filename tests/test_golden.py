"""The golden set works: a small part of it is compared here, and a difference is said; `make golden` compares all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.helpers import needs_weights

_TOOLS = Path(__file__).parents[1] / "tools"
_PART = ("--only", "retrieve-bm25", "--only", "answer-samples")


def golden(*words: str, tools: Path = _TOOLS) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(tools / "golden.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_small_part_is_as_it_was() -> None:
    needs_weights("minilm")  # its tokens measure the passages of lexical search
    done = golden(*_PART)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "4 commands wrote what they should\n", "with the import and the build that they need"


def test_a_difference_is_said_and_can_be_accepted(tmp_path: Path) -> None:
    for name in ("golden.py", "golden_model.py", "golden.json"):
        shutil.copy(_TOOLS / name, tmp_path)
    expected = json.loads((tmp_path / "golden.json").read_text("utf-8"))
    expected["build-teaching"] |= {"bench/questions.jsonl": "another hash", "bench/more.jsonl": "a hash"}
    del expected["build-teaching"]["bench/manifest.json"]
    (tmp_path / "golden.json").write_text(json.dumps(expected), "utf-8")
    done = golden("--only", "build-teaching", tools=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "build-teaching: bench/manifest.json: added",
        "build-teaching: bench/more.jsonl: removed",
        "build-teaching: bench/questions.jsonl: changed",
    ]
    assert golden("--only", "build-teaching", "--write", tools=tmp_path).returncode == 0
    assert (tmp_path / "golden.json").read_bytes() == (_TOOLS / "golden.json").read_bytes()


def test_a_pattern_without_a_command_is_refused() -> None:
    assert golden("--only", "nothing").returncode == 2
