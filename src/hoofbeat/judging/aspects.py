"""What can be asked of a judge: an aspect is a prompt, what it is asked of, and how the judge's object is read.

An aspect never scores what it can't ask: an answer that failed, an empty one, or a question without gold gives a
`Failure` that took no call, and an answer the aspect is not about gives nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from hoofbeat.models import ChatRequest
from hoofbeat.records import Answer, Failure, Judgment, Question

__all__ = ["Asked", "Aspect", "Key", "Said", "answer_key", "answer_text", "blank", "unanswered"]

Key = tuple[str, str, str, int]
"""What identifies an answer: question, model, condition, sample."""


class Asked(Struct, frozen=True, kw_only=True):
    """One call to a judge, or why there is nothing to call it with; `passage` is what is judged where it is one."""

    request: ChatRequest | None = None
    failure: Failure | None = None
    passage: str = ""


class Said(Struct, frozen=True, kw_only=True):
    """What a judge's object says."""

    label: str
    reasoning: str
    secondary: str = ""
    score: float | None = None


class Aspect(Struct, frozen=True, kw_only=True):
    """One aspect that a model judges.

    `ask` makes the calls for an answer within a window of so many tokens (None: not known). `explains` says that only
    wrong answers are judged; `graded` that judges give a score, of which the median counts and `label_of` makes the
    label.
    """

    name: str
    labels: tuple[str, ...]
    prompt: str
    ask: Callable[[Question | None, Answer, int | None], list[Asked]]
    read: Callable[[Mapping[str, Any]], Said]
    explains: bool = False
    graded: bool = False
    label_of: Callable[[float], str] = str


def answer_key(record: Answer | Judgment) -> Key:
    """What identifies the answer."""
    return (record.question, record.model, record.condition, record.sample)


def answer_text(answer: Answer) -> str:
    """What is compared with the gold answer: the chosen option where one was to be chosen, else the text."""
    return (answer.choice or "") if answer.protocol else answer.text


def unanswered(question: Question | None, answer: Answer) -> Failure | None:
    """Why an answer can't be set against the gold answer; None where it can."""
    if answer.failure is not None:
        return Failure(kind=answer.failure.kind, message=f"no answer: {answer.failure.message}", attempts=0)
    if question is None or not question.answer.strip():
        return Failure(kind="input", message="the question has no gold answer", attempts=0)
    if answer.protocol and answer.choice is None:
        why = answer.reading or "no option could be read"
        return Failure(kind="unreadable", message=f"no choice: {why}", attempts=0)
    if not answer_text(answer).strip():
        return Failure(kind="input", message="the answer is empty", attempts=0)
    return None


def blank(answer: Answer, aspect: str, judge: str, *, passage: str = "") -> Judgment:
    """A judgment of an answer that says nothing yet."""
    return Judgment(
        question=answer.question,
        model=answer.model,
        condition=answer.condition,
        sample=answer.sample,
        judge=judge,
        aspect=aspect,
        passage=passage,
    )
