"""`hoofbeat show RUN ID`: one question of a run, of judgments or of rankings, with its answers, verdicts or hits."""

from __future__ import annotations

from typing import TypeVar

from hoofbeat.cli.console import Screen
from hoofbeat.errors import InputError, UsageError, did_you_mean
from hoofbeat.records import Answer, Hit, Judgment, Question
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl

_HITS = 10
T = TypeVar("T", Answer, Judgment, Hit)


def show_question(artefact: Artefact, id: str, *, as_json: bool) -> None:
    """One question of a folder of answers or of rankings."""
    if not artefact.has("questions.jsonl") or not (artefact.has("answers.jsonl") or artefact.has("hits.jsonl")):
        raise UsageError(
            f"a folder of the kind {artefact.manifest.kind} has no items to show by ID",
            where=str(artefact.path),
            fix="leave out ID",
        )
    questions = {each.id: each for each in read_jsonl(artefact.file("questions.jsonl"), Question)}
    if id not in questions:
        raise InputError(
            f"no question {id} in this folder",
            where=str(artefact.path),
            fix=f"{did_you_mean(id, questions)}name one of its {len(questions):,} questions",
        )
    screen = Screen(as_json=as_json, on_stdout=True)
    answers = _rows(artefact, "answers.jsonl", Answer, id)
    judgments = _rows(artefact, "judgments.jsonl", Judgment, id)
    hits = _rows(artefact, "hits.jsonl", Hit, id)
    if as_json:
        told = {"question": questions[id], "answers": answers, "judgments": judgments, "hits": hits}
        screen.emit({"artefact": str(artefact.path), "kind": artefact.manifest.kind, **told})
        return
    _show_text(screen, questions[id])
    for answer in answers:
        _show_answer(screen, answer, [each for each in judgments if _is_of(each, answer)])
    for hit in hits[:_HITS]:
        mark = "*" if hit.document in questions[id].documents else " "
        screen.say(f"{mark}{hit.rank:>3}. {hit.document}  {hit.score:.4f}")
    if hits and any(hit.document in questions[id].documents for hit in hits[:_HITS]):
        screen.say("* a source of this question")
    if len(hits) > _HITS:
        screen.say(f"and {len(hits) - _HITS:,} more hits, in hits.jsonl")


def _rows(artefact: Artefact, name: str, kind: type[T], id: str) -> list[T]:
    if not artefact.has(name):
        return []
    return [each for each in read_jsonl(artefact.file(name), kind) if each.question == id]


def _show_text(screen: Screen, question: Question) -> None:
    screen.title(question.id)
    screen.say(question.full_text)
    for option in question.options:
        screen.say(f"- {option}", indent=2)
    if question.right_answers:
        screen.say(f"right answer: {'; or: '.join(question.right_answers)}")


def _is_of(judgment: Judgment, answer: Answer) -> bool:
    return (judgment.model, judgment.condition, judgment.sample) == (answer.model, answer.condition, answer.sample)


def _show_answer(screen: Screen, answer: Answer, judgments: list[Judgment]) -> None:
    screen.title(f"{answer.model} · {answer.condition}" + (f" · sample {answer.sample + 1}" if answer.sample else ""))
    if answer.failure is not None:
        screen.say(f"failed: {answer.failure.kind}: {answer.failure.message}")
    else:
        screen.say(answer.text)
    for each in judgments:
        verdict = f"failed: {each.failure.kind}" if each.failure else each.label or f"{each.score:.3f}"
        screen.say(f"{each.aspect}, by {each.judge}: {verdict}", indent=2)
