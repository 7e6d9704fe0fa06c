"""Several judges over a folder: votes and costs of each, who answered as well, and batches in one round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.judging import AnswerFolder, JudgingJob, JudgmentFolder, choose_aspects, judge_folder, own_judges
from hoofbeat.models import ChatRequest, load_model
from hoofbeat.records import AcceptedAnswer, Answer, Failure
from hoofbeat.store import Ledger
from hoofbeat.store.tables import read_jsonl, write_jsonl
from tests.judging.folders import QUESTIONS, a_judge, a_run, by_words, judged_by, said, user_text
from tests.models.support import ledger_in

LATE = Failure(kind="timeout", message="late", attempts=2)
SAYS = by_words(right="equivalent", wrong="mismatch")
ANSWERS = [
    said("right: wait a month"),
    said("wrong: go ahead", sample=1),
    said("right: wait", condition="oracle"),
    said("wrong: now", condition="oracle", sample=1),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def three(ledger: Ledger) -> tuple[Any, ...]:
    labels = ("equivalent", "mismatch", "equivalent"), ("mismatch", "equivalent", "mismatch")
    models = []
    for number in range(3):
        says = by_words(right=labels[0][number], wrong=labels[1][number])
        models.append(a_judge(ledger, says, f"judge {number}")[0])
    return tuple(models)


def test_three_judges_vote_and_every_vote_is_kept(tmp_path: Path, ledger: Ledger) -> None:
    judged = judged_by(
        a_run(tmp_path / "run", ANSWERS), tmp_path / "judged", aspects=("equivalence",), judges=three(ledger)
    )
    first = judged.judgments[0]
    assert (first.judge, first.label) == ("majority of 3", "equivalent")
    assert [(vote.judge, vote.label) for vote in first.votes] == [
        ("judge 0", "equivalent"),
        ("judge 1", "mismatch"),
        ("judge 2", "equivalent"),
    ]
    assert first.reasoning == "3 of 3 judges voted, 2 of them for equivalent"
    assert all(vote.calls for vote in first.votes)
    manifest = judged.artefact.manifest
    assert {role: name for role, name in manifest.models.items() if role != "answer"} == {
        f"judge: judge {number}": f"judge {number}" for number in range(3)
    }
    assert {name: cost.calls for name, cost in manifest.costs.items()} == {f"judge {number}": 4 for number in range(3)}
    assert manifest.cost.calls == 12
    assert "missing_votes" not in manifest.metrics


def test_verdicts_that_lack_votes_are_counted(tmp_path: Path, ledger: Ledger) -> None:
    """Where two of three judges fail there is no majority of three; missing votes are counted in the metrics."""

    def fails_on(*words: str) -> Callable[[str, ChatRequest], object]:
        def says(prompt: str, request: ChatRequest) -> object:
            return "no object" if any(word in user_text(request) for word in words) else SAYS(prompt, request)

        return says

    judges = [a_judge(ledger, fails_on(*words), f"j{n}")[0] for n, words in enumerate([(), ("now",), ("now", "month")])]
    failed = Answer(question="bath", model="m", condition="closed", sample=9, failure=LATE)
    run = a_run(tmp_path / "run", [*ANSWERS, failed])
    judged = judged_by(run, tmp_path / "judged", aspects=("equivalence",), judges=tuple(judges))
    said_of = {(each.condition, each.sample): each for each in judged.judgments}
    assert said_of["closed", 0].label == "equivalent"
    failure = said_of["oracle", 1].failure
    assert failure is not None
    assert failure.kind == "no-majority"
    metrics = judged.artefact.manifest.metrics
    assert metrics["missing_votes"] == {"equivalence": {"1 of 3": 1, "2 of 3": 1}}
    assert metrics["labels"] == {"equivalence": {"equivalent": 2, "mismatch": 1, "unscored": 2}}
    judged_by(AnswerFolder.open(tmp_path / "judged"), tmp_path / "more", aspects=("exact",))
    assert JudgmentFolder.open(tmp_path / "more").artefact.manifest.metrics["missing_votes"] == metrics["missing_votes"]


def test_two_judges_that_differ_leave_it_unscored(tmp_path: Path, ledger: Ledger) -> None:
    judged = judged_by(
        a_run(tmp_path / "run", ANSWERS[:2]), tmp_path / "judged", aspects=("equivalence",), judges=three(ledger)[:2]
    )
    assert [each.failure.kind if each.failure else "" for each in judged.judgments] == ["no-majority"] * 2
    assert all(len(each.votes) == 2 for each in judged.judgments)


def test_passages_are_graded_by_every_judge(tmp_path: Path, ledger: Ledger) -> None:
    judges = tuple(
        a_judge(ledger, lambda prompt, request, grade=grade: {"reason": "r", "grade": grade}, f"judge {grade}")[0]  # type: ignore[misc]
        for grade in (3, 8, 9)
    )
    folder = a_run(tmp_path / "run", ANSWERS)
    judged = judged_by(folder, tmp_path / "judged", aspects=choose_aspects(folder, ("relevance",)), judges=judges)
    assert [(each.condition, each.sample, each.passage) for each in judged.judgments] == [
        ("oracle", 0, "d#0"),
        ("oracle", 1, "d#0"),
    ]
    first = judged.judgments[0]
    assert (first.score, first.label) == (8.0, "relevant")
    assert [vote.score for vote in first.votes] == [3.0, 8.0, 9.0]


def test_judges_that_answered_are_named(tmp_path: Path, ledger: Ledger) -> None:
    folder = a_run(
        tmp_path / "run",
        [said("x", model="served[temperature=0.6]")],
        models={"answer: served": "weights-1", "agent": "z"},
    )
    same, other, named = (a_judge(ledger, SAYS, name)[0] for name in ("weights-1", "weights-2", "served"))
    same.spec = "an alias"
    assert own_judges(folder, (other, same, named)) == ["an alias", "served"]
    assert own_judges(folder, (a_judge(ledger, SAYS, "z")[0],)) == []


def test_batches_of_all_judges_are_written_in_one_round(tmp_path: Path, ledger: Ledger) -> None:
    folder = a_run(tmp_path / "run", [said(f"Advice {n}.", sample=n) for n in range(5)])
    judges = tuple(load_model(f"batch:{tmp_path / name}#{name}", ledger=ledger) for name in ("one", "two"))
    probing = JudgingJob(aspects=("equivalence",), judges=judges, probes=("order",), probe_size=2)
    with pytest.raises(BatchPending, match="14 requests were written"):
        judge_folder(folder, probing, tmp_path / "judged")
    for name in ("one", "two"):
        (tmp_path / name / "requests-001.jsonl").unlink()
    job = JudgingJob(aspects=("equivalence",), judges=judges)
    with pytest.raises(BatchPending, match="10 requests were written"):
        judge_folder(folder, job, tmp_path / "judged")
    assert not (tmp_path / "judged").exists()
    for name in ("one", "two"):
        requests = list(read_jsonl(tmp_path / name / "requests-001.jsonl", dict))
        assert len(requests) == 5
        body = {
            "choices": [
                {
                    "message": {"role": "assistant", "content": '{"reason": "r", "label": "equivalent"}'},
                    "finish_reason": "stop",
                }
            ]
        }
        answered = [
            {"custom_id": each["custom_id"], "response": {"status_code": 200, "body": body}} for each in requests
        ]
        write_jsonl(tmp_path / name / "answers.jsonl", answered)
    judges = tuple(load_model(f"batch:{tmp_path / name}#{name}", ledger=ledger) for name in ("one", "two"))
    judge_folder(folder, JudgingJob(aspects=("equivalence",), judges=judges), tmp_path / "judged")
    judgments = JudgmentFolder.open(tmp_path / "judged").judgments
    assert [each.label for each in judgments] == ["equivalent"] * 5
    assert [len(each.votes) for each in judgments] == [2] * 5


def test_judges_see_every_accepted_answer_and_a_later_version_of_the_questions_decides(
    tmp_path: Path, ledger: Ledger
) -> None:
    folder = a_run(tmp_path / "run", ANSWERS[:1])
    later = [replace(each, accepted=(AcceptedAnswer(text="A month", by=("human:a",)),)) for each in QUESTIONS]
    folder.take_answers([*later, replace(later[0], id="new")])
    assert folder.renewed == 2
    judge, seen = a_judge(ledger, SAYS, "judge")
    made = judge_folder(folder, JudgingJob(aspects=("equivalence",), judges=(judge,)), tmp_path / "judged")
    assert "Any one of these answers is right:\n1. Not for four weeks.\n2. A month" in user_text(seen.requests[0][1])
    assert JudgmentFolder(made).questions[0].accepted == later[0].accepted
    with pytest.raises(UsageError, match="name the run"):
        AnswerFolder.open(made.path).take_answers(later)
