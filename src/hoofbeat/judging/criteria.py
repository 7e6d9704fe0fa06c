"""What an answer is judged by: the base of aspects, which a model judges, and of scorers, which need none.

A criterion never scores what it can't judge: an answer that failed, an empty one, or a question without gold gives a
`Failure` that took no call, and an answer that the criterion is not about gives no judgment.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from hoofbeat.records import Answer, Failure, Judgment, Question

Key = tuple[str, str, str, int]
"""What identifies an answer: question, model, condition, sample."""

Takes = Literal["any", "text", "choice", "passages"]
"""The answers that a criterion is about: all, those in free text, choices of an option, or those shown passages."""


class Criterion(Struct, frozen=True, kw_only=True):
    """What every aspect and scorer says of itself.

    `summary` is its line in the help, `title` its heading in a report. `labels` are all labels it gives, none where it
    gives a score; `scale` is the range of that score. `positive` is the label of a right answer: a criterion that has
    one tells right from wrong. Lower `order` is judged and listed first. `default` criteria are judged where the user
    names none and there are answers for them.
    """

    name: str
    summary: str
    title: str = ""
    labels: tuple[str, ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    positive: str = ""
    takes: Takes = "any"
    default: bool = False
    order: int = 100

    @property
    def heading(self) -> str:
        """What a report calls it."""
        return self.title or self.name.replace("-", " ").capitalize()

    def suits(self, answer: Answer) -> bool:
        """Whether the criterion is about this kind of answer."""
        if self.takes == "choice":
            return bool(answer.protocol)
        return self.takes != "text" or not answer.protocol


def answer_key(record: Answer | Judgment) -> Key:
    """What identifies the answer."""
    return (record.question, record.model, record.condition, record.sample)


def answer_text(answer: Answer) -> str:
    """What is compared with the gold answer: the chosen option where one was to be chosen, else the text."""
    return (answer.choice or "") if answer.protocol else answer.text


def no_answer_failure(question: Question | None, answer: Answer) -> Failure | None:
    """Why an answer can't be compared with the gold answer; None where it can."""
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


def empty_judgment(answer: Answer, aspect: str, judge: str, *, passage: str = "") -> Judgment:
    """A judgment of an answer without a label or score."""
    return Judgment(
        question=answer.question,
        model=answer.model,
        condition=answer.condition,
        sample=answer.sample,
        judge=judge,
        aspect=aspect,
        passage=passage,
    )
