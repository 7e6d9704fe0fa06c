"""Classical item analysis: how hard each question is, whether it tells good systems from poor ones, and who chose what.

Systems are the examinees. A question's difficulty is the mean share of right answers over systems; its discrimination
is the corrected item-rest correlation: Pearson's correlation, over systems, of the score on the question with the mean
score on all other questions. With few systems both are rough: below `CORRELATED` systems no correlation is given, below
`ENOUGH` no interval.

Unscored answers (failures, refusals, unreadable output) are missing values here, not wrong answers. A system that has
a score for fewer than half of the questions is left out: its mean would be of other questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.findings.intervals import LEVEL, Interval, wilson
from hoofbeat.findings.outcomes import Outcome, SystemKey
from hoofbeat.records import Answer, Question

CORRELATED = 5
"""Fewer systems than this give no correlation: with three or four, any sign is as likely as the other."""

ENOUGH = 10
"""Fewer systems than this give no interval."""

NOBODY = "no system is right"
"""And the systems do not agree on another option either."""

NEGATIVE = "better systems fail"
SECOND = "better systems prefer another option"
AGREED = "systems agree on another option"
EVERYBODY = "every system is right"
ITEM_FLAGS = (SECOND, AGREED, NOBODY, NEGATIVE, EVERYBODY)
"""What may be noticed about a question, the gravest first."""

_CLEARLY_NEGATIVE = -0.5
_CLEARLY_POSITIVE = 0.3
_SAME = 1e-9


class ScoreMatrix(Struct, frozen=True, kw_only=True):
    """Systems × questions: the share of right answers among the scored ones, NaN where none was scored.

    `left_out` are systems that have a score for fewer than half of the questions.
    """

    systems: tuple[SystemKey, ...]
    questions: tuple[str, ...]
    values: NDArray[np.float64]
    left_out: tuple[SystemKey, ...] = ()

    def rest(self) -> NDArray[np.float64]:
        """For each question, each system's mean over all other questions; NaN where it has no other score."""
        known = ~np.isnan(self.values)
        scores = np.where(known, self.values, 0.0)
        sums = scores.sum(axis=1, keepdims=True) - scores
        counts = known.sum(axis=1, keepdims=True) - known
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def score_matrix(results: Iterable[Outcome]) -> ScoreMatrix:
    """The scores of every system on every question, in the order they first came."""
    counts: dict[SystemKey, dict[str, list[int]]] = {}
    questions: dict[str, int] = {}
    for row in results:
        questions.setdefault(row.question, len(questions))
        count = counts.setdefault((row.model, row.condition), {}).setdefault(row.question, [0, 0])
        count[0] += row.correct is True
        count[1] += row.correct is not None
    values = np.full((len(counts), len(questions)), np.nan)
    for number, rows in enumerate(counts.values()):
        for question, (right, scored) in rows.items():
            if scored:
                values[number, questions[question]] = right / scored
    full = (~np.isnan(values)).sum(axis=1) * 2 >= max(1, len(questions))
    names = list(counts)
    return ScoreMatrix(
        systems=tuple(name for name, kept in zip(names, full, strict=True) if kept),
        questions=tuple(questions),
        values=values[full],
        left_out=tuple(name for name, kept in zip(names, full, strict=True) if not kept),
    )


class OptionStatistics(Struct, frozen=True, kw_only=True):
    """One option of a question: how many answers chose it, of how many systems, and how good those systems are.

    `rest_score` is the mean score of the choosers on all other questions, weighted by how often each chose the option.
    `correlation` is that of choosing it with this score, over systems.
    """

    option: str
    right: bool
    answers: int
    systems: int
    rest_score: float | None = None
    correlation: float | None = None


class ItemStatistics(Struct, frozen=True, kw_only=True):
    """One question: its difficulty (share right, mean over `systems`), discrimination, options, and what to look at.

    `difficulty` is None where no system has a score. `suspect` is the option that better systems
    prefer or, where no system is right, that more than half of the answers agree on: perhaps a second right answer.
    """

    question: str
    systems: int
    difficulty: float | None = None
    difficulty_interval: Interval | None = None
    discrimination: float | None = None
    discrimination_interval: Interval | None = None
    options: tuple[OptionStatistics, ...] = ()
    suspect: str = ""
    flags: tuple[str, ...] = ()

    @property
    def unused(self) -> int:
        """How many wrong options no answer chose; 0 where no choice is known."""
        return sum(not each.right and not each.answers for each in self.options)


def item_statistics(
    matrix: ScoreMatrix, questions: Mapping[str, Question], answers: Iterable[Answer] = ()
) -> list[ItemStatistics]:
    """Difficulty, discrimination and options of every question; `answers` are those that chose an option."""
    chosen, rest = _choices(matrix, answers), matrix.rest()
    discrimination = item_rest_correlations(matrix.values, rest)
    return [
        _item(
            name,
            matrix.values[:, place],
            rest[:, place],
            discrimination[place],
            _options(questions[name], chosen[name], rest[:, place]) if name in questions and name in chosen else (),
        )
        for place, name in enumerate(matrix.questions)
    ]


def _choices(matrix: ScoreMatrix, answers: Iterable[Answer]) -> dict[str, dict[str, NDArray[np.int64]]]:
    """Question to option to how often each system chose it."""
    numbers = {system: number for number, system in enumerate(matrix.systems)}
    chosen: dict[str, dict[str, NDArray[np.int64]]] = {}
    for answer in answers:
        number = numbers.get((answer.model, answer.condition))
        if number is not None and answer.choice is not None and not answer.failure:
            options = chosen.setdefault(answer.question, {})
            options.setdefault(answer.choice, np.zeros(len(numbers), np.int64))[number] += 1
    return chosen


def _item(
    question: str,
    scores: NDArray[np.float64],
    rest: NDArray[np.float64],
    discrimination: float,
    options: tuple[OptionStatistics, ...],
) -> ItemStatistics:
    known = ~np.isnan(scores)
    n = int(known.sum())
    difficulty = float(scores[known].mean()) if n else None
    whole = bool(np.isin(scores[known], (0.0, 1.0)).all())
    r = None if math.isnan(discrimination) else float(discrimination)
    interval = fisher_interval(r, int((known & ~np.isnan(rest)).sum())) if r is not None else None
    suspect = _suspect(options)
    found = {
        NOBODY: difficulty == 0 and not suspect,
        EVERYBODY: difficulty == 1,
        NEGATIVE: r is not None and (interval.high < 0 if interval else r <= _CLEARLY_NEGATIVE),
        SECOND: bool(suspect) and bool(difficulty),
        AGREED: bool(suspect) and not difficulty,
    }
    return ItemStatistics(
        question=question,
        systems=n,
        difficulty=difficulty,
        difficulty_interval=wilson(int(scores[known].sum()), n) if whole and n >= ENOUGH else None,
        discrimination=r,
        discrimination_interval=interval,
        options=options,
        suspect=suspect,
        flags=tuple(flag for flag in ITEM_FLAGS if found[flag]),
    )


def _options(
    question: Question, chosen: Mapping[str, NDArray[np.int64]], rest: NDArray[np.float64]
) -> tuple[OptionStatistics, ...]:
    """Every option of a question, the unused ones as well."""
    none = np.zeros(len(rest), np.int64)
    totals = sum(chosen.values(), none)
    found = []
    for option in dict.fromkeys((*question.options, *chosen)):
        times = chosen.get(option, none)
        shares = np.where(totals > 0, times / np.maximum(totals, 1), np.nan)
        usable = ~np.isnan(shares) & ~np.isnan(rest)
        weight = float(shares[usable].sum())
        r = float(item_rest_correlations(shares[:, None], rest[:, None])[0])
        found.append(
            OptionStatistics(
                option=option,
                right=option in question.right_answers,
                answers=int(times.sum()),
                systems=int((times > 0).sum()),
                rest_score=float((shares[usable] * rest[usable]).sum()) / weight if weight else None,
                correlation=None if math.isnan(r) else r,
            )
        )
    return tuple(found)


def _suspect(options: Sequence[OptionStatistics]) -> str:
    """The wrong option that may be right as well; at least two systems chose it, and more answers than the right one.

    Better systems chose it, by a clear correlation and a higher score. Where nobody chose the right one, more than half
    of the answers agree on it.
    """
    right = next((each for each in options if each.right), None)
    if right is None:
        return ""
    wrong = sorted((each for each in options if not each.right and each.systems > 1), key=lambda each: -each.answers)
    total = sum(each.answers for each in options)
    for each in wrong:
        if right.rest_score is None:
            if each.answers * 2 > total:
                return each.option
        elif (
            each.answers > right.answers
            and (each.correlation or 0) >= _CLEARLY_POSITIVE
            and each.rest_score is not None
            and each.rest_score > right.rest_score
        ):
            return each.option
    return ""


def item_rest_correlations(values: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's correlation of every column with its rest scores, over the systems that have both.

    NaN with fewer than `CORRELATED` systems, and where one of the two does not vary.
    """
    both = ~np.isnan(values) & ~np.isnan(rest)
    n = both.sum(axis=0)
    a, b = (np.where(both, each, 0.0) for each in (values, rest))
    a, b = (np.where(both, each - each.sum(axis=0) / np.maximum(n, 1), 0.0) for each in (a, b))
    size = np.sqrt((a * a).sum(axis=0) * (b * b).sum(axis=0))
    usable = (n >= CORRELATED) & (size > _SAME)
    return np.where(usable, np.clip((a * b).sum(axis=0) / np.where(usable, size, 1.0), -1, 1), np.nan)


def fisher_interval(r: float, n: int, level: float = LEVEL) -> Interval | None:
    """Fisher's interval of a correlation over `n` systems; None where there are fewer than `ENOUGH`."""
    if n < ENOUGH:
        return None
    z = NormalDist().inv_cdf(0.5 + level / 2) / math.sqrt(n - 3)
    middle = math.atanh(max(-1 + _SAME, min(1 - _SAME, r)))
    return Interval(low=math.tanh(middle - z), high=math.tanh(middle + z), level=level, method="Fisher's z")


def cronbach_alpha(matrix: ScoreMatrix) -> float | None:
    """Cronbach's alpha over the questions that every system has a score for; for right or wrong it is KR-20.

    None with fewer than `CORRELATED` systems, fewer than two such questions, or systems that all score the same.
    """
    complete = matrix.values[:, ~np.isnan(matrix.values).any(axis=0)]
    systems, items = complete.shape
    if systems < CORRELATED or items < 2:
        return None
    total = float(complete.sum(axis=1).var(ddof=1))
    if total < _SAME:
        return None
    return float(items / (items - 1)) * (1 - float(complete.var(axis=0, ddof=1).sum()) / total)
