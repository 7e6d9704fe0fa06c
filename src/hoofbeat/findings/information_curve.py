"""How much of the case a model needs: scores over the first x% of it, and what the first part alone retains.

The curve of one model is made of its conditions `first 20%`, `first 40%`, …; the whole case is `first 100%` or, where
that was not run, the closed book, which shows the whole case too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.findings.intervals import (
    CLUSTERED,
    FEW,
    LEVEL,
    SAMPLES,
    Interval,
    cluster_of,
    cluster_sums,
    mean_interval,
    percentiles,
    resampled_sums,
)
from hoofbeat.findings.outcomes import Outcome, SystemKey, sensitivity_range
from hoofbeat.findings.repeated_answers import scores_by_system
from hoofbeat.records import Answer, Judgment

_FIRST = re.compile(r"first (\d+(?:\.\d+)?)%(?: of (\w+))?(?:, (.+))?")
_CLOSED = ("closed", "closed-book")

Sums = dict[str, tuple[float, float, int, int]]
"""Question to the sum of its scores with unscored as 0, with unscored as 1, its answers, and how many are unscored."""


class InformationPoint(Struct, frozen=True, kw_only=True):
    """One point of a curve: the score with the first `fraction` of the case, over `planned` answers.

    `unscored` answers count 0; `sensitivity` is (all of them 0, all of them 1) where they exceed 1%.
    """

    fraction: float
    condition: str
    planned: int
    unscored: int
    score: float
    interval: Interval
    sensitivity: tuple[float, float] | None


class InformationCurve(Struct, frozen=True, kw_only=True):
    """The curve of one model under one protocol: `points` by fraction, `unit` what the fractions count.

    `retained_at_first` is the score at the first fraction as a share of the score of the whole case, over the `n`
    questions asked with both, with a paired bootstrap interval. It is None where the whole case was not asked (`full`
    is then empty), was the only fraction, or scored 0. `interval` is None where fewer than ten documents are behind
    it, or where all of them retain the same.
    """

    model: str
    protocol: str
    unit: str
    points: tuple[InformationPoint, ...]
    full: str
    n: int
    retained_at_first: float | None
    interval: Interval | None

    @property
    def fractions(self) -> tuple[float, ...]:
        """The fractions, rising."""
        return tuple(point.fraction for point in self.points)

    @property
    def accuracies(self) -> tuple[float, ...]:
        """The score at each fraction."""
        return tuple(point.score for point in self.points)


def information_curves(
    results: Iterable[Outcome],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[InformationCurve]:
    """The curve of accuracies of each model and protocol that has `first x%` conditions, sorted."""
    sums: dict[SystemKey, Sums] = {}
    for row in results:
        mine = sums.setdefault((row.model, row.condition), {})
        score = None if row.correct is None else float(row.correct)
        mine[row.question] = _added(mine.get(row.question), score)
    return _curves(sums, clusters, (samples, seed))


def retained_scores(
    judgments: Iterable[Judgment],
    aspect: str,
    *,
    answers: Iterable[Answer] = (),
    judge: str | None = None,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[InformationCurve]:
    """The curve of mean scores of one aspect (BERTScore, ...), as `information_curves` makes it of accuracies."""
    found, _ = scores_by_system(judgments, aspect, answers=answers, judge=judge)
    sums: dict[SystemKey, Sums] = {}
    for system, rows in found.items():
        mine = sums.setdefault(system, {})
        for key, value in rows.items():
            mine[key[0]] = _added(mine.get(key[0]), None if isinstance(value, str) else value)
    return _curves(sums, clusters, (samples, seed))


def _added(sums: tuple[float, float, int, int] | None, score: float | None) -> tuple[float, float, int, int]:
    low, high, answers, missing = sums or (0.0, 0.0, 0, 0)
    if score is None:
        return low, high + 1.0, answers + 1, missing + 1
    return low + score, high + score, answers + 1, missing


def _curves(
    sums: Mapping[SystemKey, Sums], clusters: Mapping[str, str] | None, how: tuple[int, int]
) -> list[InformationCurve]:
    curves: dict[tuple[str, str, str], dict[float, str]] = {}
    for model, condition in sums:
        named = _FIRST.fullmatch(condition)
        if named:
            unit, protocol = named[2] or "tokens", named[3] or ""
            curves.setdefault((model, protocol, unit), {})[float(named[1]) / 100] = condition
    table = []
    for (model, protocol, unit), conditions in sorted(curves.items()):
        order = sorted(conditions)
        points = tuple(
            _point(fraction, conditions[fraction], sums[model, conditions[fraction]], clusters, how)
            for fraction in order
        )
        ends = [f"{name}, {protocol}" if protocol else name for name in _CLOSED]
        full = conditions.get(1.0) or next((name for name in ends if (model, name) in sums), "")
        kept: tuple[int, float | None, Interval | None] = (0, None, None)
        if full and conditions[order[0]] != full:
            kept = _kept(sums[model, conditions[order[0]]], sums[model, full], clusters, how)
        table.append(
            InformationCurve(
                model=model,
                protocol=protocol,
                unit=unit,
                points=points,
                full=full,
                n=kept[0],
                retained_at_first=kept[1],
                interval=kept[2],
            )
        )
    return table


def _point(
    fraction: float, condition: str, sums: Sums, clusters: Mapping[str, str] | None, how: tuple[int, int]
) -> InformationPoint:
    samples, seed = how
    names = sorted(sums)
    rows = np.array([sums[name] for name in names], np.float64)
    planned, unscored = int(rows[:, 2].sum()), int(rows[:, 3].sum())
    sums_by_cluster = _clustered(rows, names, clusters)
    drawn = resampled_sums(sums_by_cluster, samples=samples, seed=seed)
    low, high = math.fsum(rows[:, 0]) / planned, math.fsum(rows[:, 1]) / planned
    return InformationPoint(
        fraction=fraction,
        condition=condition,
        planned=planned,
        unscored=unscored,
        score=low,
        interval=mean_interval(sums_by_cluster[:, 0], sums_by_cluster[:, 2], drawn[:, 0] / drawn[:, 2], CLUSTERED),
        sensitivity=sensitivity_range(low, high, unscored / planned),
    )


def _kept(
    first: Sums, full: Sums, clusters: Mapping[str, str] | None, how: tuple[int, int]
) -> tuple[int, float | None, Interval | None]:
    samples, seed = how
    names = sorted(first.keys() & full.keys())
    if not names:
        return 0, None, None
    rows = np.array([[first[name][0] / first[name][2], full[name][0] / full[name][2]] for name in names])
    part, whole = math.fsum(rows[:, 0]), math.fsum(rows[:, 1])
    if whole <= 0:
        return len(names), None, None
    together = _clustered(rows, names, clusters)
    drawn = resampled_sums(together, samples=samples, seed=seed)
    some = drawn[:, 1] > 0
    interval = percentiles(drawn[some, 0] / drawn[some, 1], LEVEL, "paired cluster bootstrap")
    enough = len(together) >= FEW and interval.has_width
    return len(names), part / whole, interval if enough else None


def _clustered(rows: NDArray[np.float64], names: list[str], clusters: Mapping[str, str] | None) -> NDArray[np.float64]:
    return cluster_sums(rows, [cluster_of(name, clusters) for name in names])
