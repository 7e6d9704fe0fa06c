"""A run folder: it opens again as it was written, and says how its answers came out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoofbeat.answering import Run, answer_all, draft_run, plan_answers
from hoofbeat.errors import ArtefactError, InputError
from hoofbeat.records import Question
from hoofbeat.store import Artefact, InputRef
from hoofbeat.store.artefact import TRUST_CHANGED, count_outcomes
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

QUESTIONS = [
    Question(id=f"q{n}", text=f"Why {n}? fault={fault}") for n, fault in enumerate(["ok", "400", "refusal", "ok"])
]


def a_run(server: FaultServer, target: Path) -> Artefact:
    with ledger_in(target.parent) as ledger:
        model = a_model(server.spec(), ledger)
        answers = answer_all(model, plan_answers(QUESTIONS, "closed", {}, window=None))
        with draft_run(target, QUESTIONS) as run:
            run.add(answers)
            run.finish(
                models={model.spec: model},
                inputs=[InputRef(name="bench", sha256="0" * 64)],
                prompts={"answer": "answer-closed@0"},
                settings={"samples": 1},
                seeds={"sampling": 3},
                command=["hoofbeat", "answer"],
            )
    return Run.open(target).artefact


def test_a_run_opens_as_it_was_written(tmp_path: Path) -> None:
    with FaultServer() as server:
        artefact = a_run(server, tmp_path / "run")
    assert artefact.verify() == []
    run = Run.open(tmp_path / "run")
    assert run.questions == QUESTIONS
    assert [answer.question for answer in run.answers] == ["q0", "q1", "q2", "q3"]
    manifest = run.artefact.manifest
    counts = manifest.counts
    assert (counts.kept, counts.failed, counts.failures) == (2, 2, {"bad-request": 1, "refusal": 1})
    assert (manifest.seeds, manifest.settings, manifest.command) == (
        {"sampling": 3},
        {"samples": 1},
        ["hoofbeat", "answer"],
    )
    assert set(manifest.models) == {"answer"}
    assert manifest.cost.calls == 3  # a refusal is a reply, too
    assert manifest.inputs[0].name == "bench"


def test_the_same_answers_give_the_same_bytes(tmp_path: Path) -> None:
    with FaultServer() as server:
        written = [a_run(server, tmp_path / name).path for name in ("one", "two")]
    for name in ("questions.jsonl", "answers.jsonl", "manifest.json"):
        assert (written[0] / name).read_bytes() == (written[1] / name).read_bytes()


def test_a_changed_answer_shows(tmp_path: Path) -> None:
    with FaultServer() as server:
        artefact = a_run(server, tmp_path / "run")
    path = artefact.file("answers.jsonl")
    path.write_bytes(path.read_bytes().replace(b"refusal", b"timeout"))
    assert artefact.verify() == ["answers.jsonl has changed since it was written"]


def test_answers_are_read_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST_CHANGED, "1")
    with FaultServer() as server:
        artefact = a_run(server, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    each = run.each_answer()
    assert next(each).question == "q0"
    each.close()  # type: ignore[attr-defined]
    artefact.file("answers.jsonl").write_bytes(b"{")
    assert len(run.questions) == 4
    with pytest.raises(InputError, match=r"answers\.jsonl can't be read"):
        _ = run.answers


def test_the_page_s_python_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[2] / "docs" / "answering.md"
    [code] = re.findall(r"^```py\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    with FaultServer() as server:
        a_run(server, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_another_kind_of_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtefactError):
        Run.open(tmp_path / "empty")


def test_outcomes_are_counted_by_kind() -> None:
    counts = count_outcomes([None, "timeout", "schema", None, "timeout"])
    assert (counts.kept, counts.failed) == (2, 3)
    assert list(counts.failures.items()) == [("schema", 1), ("timeout", 2)]
