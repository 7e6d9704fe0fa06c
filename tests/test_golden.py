"""The golden set works: a small part of it is compared here, and a difference is said; `make golden` compares all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.support import run_module
from tests.helpers import needs_weights
from tools import golden


def test_a_small_part_is_as_it_was() -> None:
    needs_weights("minilm")  # its tokens measure the passages of lexical search
    done = run_module("tools.golden", "--only", "retrieve-bm25", "--only", "answer-samples")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "4 commands wrote what they should\n", "with the import and the build that they need"


def test_what_a_command_reads_is_made_first() -> None:
    names = [step.name for step in golden.plan(golden.STEPS, ["review-apply", "audit-m*"])]
    assert names[:2] == ["corpus-import", "corpus-import-handbooks"]
    assert {"audit-shard-1", "audit-shard-2", "audit-merge", "build-clinbench", "review-serve"} < set(names)
    assert names[-1] == "review-apply"


def test_a_difference_is_said_and_can_be_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"verify": {"exit code": "0", "new.tsv": "ab", "same.tsv": "cd"}}
    expected = {"verify": {"exit code": "1", "old.tsv": "ab", "same.tsv": "cd"}, "serve": {"exit code": "0"}}
    monkeypatch.setattr(golden, "STEPS", [golden.Step("verify", ("verify", "cases"))])
    monkeypatch.setattr(golden, "EXPECTED", tmp_path / "golden.json")
    monkeypatch.setattr(golden, "run_all", lambda *_, **__: found)
    golden.EXPECTED.write_text(json.dumps(expected), "utf-8")

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["golden.py", *words])
        return golden.main()

    assert run() == 1
    lines = ["verify: exit code: changed (1 → 0)", "verify: new.tsv: added", "verify: old.tsv: removed"]
    assert capsys.readouterr().out.splitlines() == [*lines, "serve: removed"]
    assert run("--only", "verify", "--write") == 0
    assert json.loads(golden.EXPECTED.read_text("utf-8")) == {**found, "serve": {"exit code": "0"}}
    assert run("--write") == 0
    assert json.loads(golden.EXPECTED.read_text("utf-8")) == found
    with pytest.raises(SystemExit):
        run("--only", "nothing")
    found["verify"]["exit code"] = "70"
    assert run("--write") == 1, "a command that fails is not accepted"
    assert json.loads(golden.EXPECTED.read_text("utf-8"))["verify"]["exit code"] == "0"
