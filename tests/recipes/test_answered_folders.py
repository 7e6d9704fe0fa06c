"""Judged free text beside choices: the judge decides, or people where no judge did; the rest is left aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.recipes.answered_folders import read_answered
from hoofbeat.records import Judgment
from hoofbeat.store import Manifest, create
from hoofbeat.store.tables import write_jsonl
from tests.judging.folders import QUESTIONS, a_run, chose, said


def label(model: str, judge: str, word: str) -> Judgment:
    return Judgment(question="bath", model=model, condition="closed", judge=judge, label=word)


def test_folders_are_read_together(tmp_path: Path) -> None:
    answers = [said("Wait.", model=name) for name in ("judged", "labelled", "nobody")]
    labels = [
        label("judged", "j", "equivalent"),
        label("judged", "human:a", "mismatch"),
        label("labelled", "human:a", "mismatch"),
    ]
    with create(tmp_path / "judged") as draft:
        write_jsonl(draft.path / "questions.jsonl", QUESTIONS)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "judgments.jsonl", labels)
        draft.finish(Manifest(kind="judgments"))
    a_run(tmp_path / "run", [chose("Aspirin", model="chooser")])
    found = read_answered([tmp_path / "judged", tmp_path / "run"], QUESTIONS)
    assert {row.model: row.correct for row in found.outcomes} == {"judged": True, "labelled": False, "chooser": False}
    assert found.unjudged == 1
    assert [each.name for each in found.inputs] == ["judged", "run"]
    a_run(tmp_path / "free", answers)
    with pytest.raises(UsageError, match="without judgments"):
        read_answered([tmp_path / "free"], QUESTIONS)
