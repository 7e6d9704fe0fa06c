"""Questions with their answers, to be read one by one: what was asked, shown, said and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.findings.accuracy import Outcome
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.reports.model import AnswerView, Entry, Verdict, Viewer
from hoofbeat.reports.sections.common import PAGE_CHARACTERS, failure_text, passage_views, question_view, sized
from hoofbeat.reports.words import cut

__all__ = ["AnswerKey", "answer_key", "answers_viewer", "system_name"]

AnswerKey = tuple[str, str, str, int]
"""Question, model, condition and sample: what identifies an answer."""

_WORDS: dict[Verdict, str] = {"right": "✓ right", "wrong": "✗ wrong", "unscored": "– unscored", "plain": "answered"}
_LONG = 6000


def answer_key(item: Answer | Judgment | Outcome) -> AnswerKey:
    """What identifies the answer that a record belongs to."""
    return item.question, item.model, item.condition, item.sample


def system_name(model: str, condition: str, models: int) -> str:
    """A model under a condition; the model goes without saying where there is only one."""
    return f"{model} · {condition}" if models > 1 else condition


def answers_viewer(
    prefix: str,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    outcomes: Mapping[AnswerKey, Outcome],
    judgments: Mapping[AnswerKey, Judgment],
    *,
    budget: int = PAGE_CHARACTERS,
) -> Viewer:
    """Every question with all its answers, as many as the page holds."""
    models = len({answer.model for answer in answers})
    by_question: dict[str, list[Answer]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer)
    entries: list[Entry] = []
    for number, question in enumerate(questions, start=1):
        mine = by_question.get(question.id, [])
        budget -= sized(question, mine)
        if budget < 0 and entries:
            break
        views = [_view(answer, outcomes, judgments, models) for answer in mine]
        entries.append(
            Entry(
                id=f"{prefix}-q{number}",
                name=question.id,
                title=cut(question.text, 160),
                marks=tuple((f"{view.system}: {view.verdict_text}", view.verdict) for view in views),
                states=tuple(dict.fromkeys(_state(view) for view in views)),
                blocks=(question_view(question), *views),
            )
        )
    return Viewer(
        id=f"{prefix}-viewer", noun="questions", entries=tuple(entries), left_out=len(questions) - len(entries)
    )


def _state(view: AnswerView) -> str:
    words = {"plain": "answered", "unscored": "unscored"}
    return words.get(view.verdict, f"{view.verdict}: {view.system}")


def _view(
    answer: Answer, outcomes: Mapping[AnswerKey, Outcome], judgments: Mapping[AnswerKey, Judgment], models: int
) -> AnswerView:
    outcome, judgment = outcomes.get(answer_key(answer)), judgments.get(answer_key(answer))
    verdict: Verdict = "unscored" if answer.failure else "plain"
    if outcome is not None:
        verdict = "unscored" if outcome.correct is None else "right" if outcome.correct else "wrong"
    system = system_name(answer.model, answer.condition, models)
    failure = answer.failure or (judgment.failure if judgment else None)
    return AnswerView(
        system=f"{system}, sample {answer.sample + 1}" if answer.sample else system,
        verdict=verdict,
        verdict_text=_WORDS[verdict] + (f" ({failure.kind})" if failure and verdict == "unscored" else ""),
        text=_kept(answer.text) + (f"\nOption read: {answer.choice}" if answer.choice else ""),
        reasoning=_kept(answer.reasoning),
        judge=f"Judge {judgment.judge}, {judgment.label or 'no label'}" if judgment else "",
        judge_reasoning=_kept(judgment.reasoning) if judgment else "",
        passages=passage_views(answer.evidence),
        failure=failure_text(failure) if failure else "",
    )


def _kept(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}… (the first {_LONG:,} of {len(text):,} characters)"
