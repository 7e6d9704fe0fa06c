"""Outcomes and answers written short."""

from __future__ import annotations

from hoofbeat.findings.outcomes import Outcome
from hoofbeat.records import Answer, Failure, FailureKind, Question

MEANING = {"1": True, "0": False, "?": None}


def outcome_row(
    question: str, mark: str, *, model: str = "m", condition: str = "c", sample: int = 0, why: str = "answer:timeout"
) -> Outcome:
    """1 right, 0 wrong, ? unscored."""
    correct = MEANING[mark]
    return Outcome(
        question=question,
        model=model,
        condition=condition,
        sample=sample,
        correct=correct,
        unscored=why if correct is None else "",
    )


def sampled(patterns: dict[str, str], model: str = "m", condition: str = "c") -> list[Outcome]:
    """Outcomes of questions with several samples each: question to a mark a sample."""
    return [
        outcome_row(question, mark, model=model, condition=condition, sample=sample)
        for question, marks in patterns.items()
        for sample, mark in enumerate(marks)
    ]


def single(pattern: str, model: str = "m", condition: str = "c") -> list[Outcome]:
    """Outcomes of questions q0, q1, ... with one sample each."""
    return sampled({f"q{number:04}": mark for number, mark in enumerate(pattern)}, model, condition)


def options_question(number: int, options: int = 4, specialty: str | list[str] = "") -> Question:
    """An invented question with options o0 (right), o1, ..."""
    return Question(
        id=f"q{number}",
        text="Which?",
        answer="o0",
        options=tuple(f"o{option}" for option in range(options)),
        facets={"specialty": specialty} if specialty else {},
    )


def chosen(
    question: str,
    choice: str | None,
    *,
    model: str = "m",
    condition: str = "closed, letter",
    sample: int = 0,
    reading: str = "",
    failure: FailureKind | None = None,
) -> Answer:
    """An answer by letter."""
    return Answer(
        question=question,
        model=model,
        condition=condition,
        sample=sample,
        protocol="letter",
        choice=choice,
        reading=reading,
        failure=Failure(kind=failure, message="x") if failure else None,
    )
