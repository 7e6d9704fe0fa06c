"""Outcomes of one system after the other, and question by question: what every figure over answers starts from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.findings.scoring import Outcome

__all__ = [
    "SENSITIVITY_THRESHOLD",
    "Shares",
    "SystemKey",
    "by_system",
    "per_question",
    "sensitivity_range",
]

SENSITIVITY_THRESHOLD = 0.01
"""The share of unscored answers above which a sensitivity range is given."""

SystemKey = tuple[str, str]
"""A model and the condition it answered under."""


class Shares(Struct, frozen=True, kw_only=True):
    """One system question by question, questions sorted: the share right with unscored as wrong (`low`) and as right.

    `answers` and `unscored` count planned answers of each question.
    """

    questions: tuple[str, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    answers: NDArray[np.int64]
    unscored: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> Shares:
        """Only some questions."""
        return Shares(
            questions=tuple(self.questions[place] for place in places),
            low=self.low[places],
            high=self.high[places],
            answers=self.answers[places],
            unscored=self.unscored[places],
        )


def per_question(rows: Iterable[Outcome]) -> Shares:
    """The rows of one system, question by question."""
    counts: dict[str, list[int]] = {}
    for row in rows:
        count = counts.setdefault(row.question, [0, 0, 0])
        count[0] += row.correct is True
        count[1] += row.correct is None
        count[2] += 1
    questions = tuple(sorted(counts))
    right, unscored, answers = np.array([counts[question] for question in questions], np.int64).reshape(-1, 3).T
    return Shares(
        questions=questions,
        low=right / answers,
        high=(right + unscored) / answers,
        answers=answers,
        unscored=unscored,
    )


def by_system(results: Iterable[Outcome]) -> dict[SystemKey, list[Outcome]]:
    """The outcomes of each model under each condition, in the order they first came."""
    systems: dict[SystemKey, list[Outcome]] = {}
    for row in results:
        systems.setdefault((row.model, row.condition), []).append(row)
    return systems


def sensitivity_range(low: float, high: float, share_unscored: float) -> tuple[float, float] | None:
    """The range if so many are unscored that it must be given."""
    return (low, high) if share_unscored > SENSITIVITY_THRESHOLD else None
