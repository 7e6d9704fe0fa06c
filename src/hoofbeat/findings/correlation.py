"""How far two figures go together: correlation over systems, and right answers against what was retrieved for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import SAMPLES, Interval, bootstrap_mean, cluster_labels, percentiles

_MIN_COUNT = 3
_RESAMPLED = 5
"""Fewer points than this have no interval: most resamples would repeat two or three of them."""


class Correlation(Struct, frozen=True, kw_only=True):
    """Pearson's and Spearman's coefficient over `n` points with bootstrap intervals, and the least-squares line.

    All are None where they have no value: fewer than three points, or all the same on one axis.
    """

    n: int
    pearson: float | None = None
    pearson_interval: Interval | None = None
    spearman: float | None = None
    spearman_interval: Interval | None = None
    slope: float | None = None
    intercept: float | None = None


class AnswersAndRetrieval(Struct, frozen=True, kw_only=True):
    """One model: the share of right answers among `n` questions and the mean retrieval score of the same questions.

    `when_right` and `when_wrong` are the mean scores of the questions answered right and wrong (None where there are
    none). `unscored` questions have no verdict or no score and are left out.
    """

    model: str
    n: int
    unscored: int
    accuracy: float
    accuracy_interval: Interval
    score: float
    score_interval: Interval
    when_right: float | None
    when_wrong: float | None


def correlation(
    xs: Sequence[float], ys: Sequence[float], *, samples: int = SAMPLES, level: float = 0.95, seed: int = 0
) -> Correlation:
    """Correlate two figures of the same things; intervals from resampling the things."""
    if len(xs) != len(ys):
        raise UsageError(f"{len(xs)} and {len(ys)} values can't be paired")
    points = np.array([xs, ys], np.float64)
    if not np.isfinite(points).all():
        raise InputError("a value to correlate is not a number", fix="leave out what has no score")
    n = points.shape[1]
    if n < _MIN_COUNT:
        return Correlation(n=n)
    pearson, spearman = _pearson(points), _pearson(_ranked(points))
    if math.isnan(pearson):
        return Correlation(n=n)
    intervals: list[Interval | None] = [None, None]
    if n >= _RESAMPLED:
        rng = np.random.default_rng(seed)
        drawn = [points[:, rng.integers(n, size=n)] for _ in range(samples)]
        for place, replicates in enumerate(([_pearson(d) for d in drawn], [_pearson(_ranked(d)) for d in drawn])):
            known = np.array([value for value in replicates if not math.isnan(value)])
            intervals[place] = percentiles(known, level, "bootstrap") if len(known) else None
    slope = pearson * float(points[1].std() / points[0].std())
    return Correlation(
        n=n,
        pearson=pearson,
        pearson_interval=intervals[0],
        spearman=spearman,
        spearman_interval=intervals[1],
        slope=slope,
        intercept=float(points[1].mean() - slope * points[0].mean()),
    )


def answers_and_retrieval(
    correct: Mapping[str, Mapping[str, bool | None]],
    scores: Mapping[str, Mapping[str, float]],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> list[AnswersAndRetrieval]:
    """For each model that has both: right or wrong (None: unscored) by question, and the retrieval score by question.

    A model's score is that of the ranking its answers or queries led to, so that models can be set side by side.
    `clusters` maps a question to what it shares with others: clusters are resampled as a whole.
    """
    table = []
    for model, verdicts in correct.items():
        mine = scores.get(model)
        if mine is None:
            continue
        both = {q: (bool(right), mine[q]) for q, right in verdicts.items() if right is not None and q in mine}
        pairs = list(both.values())
        labels = cluster_labels(list(both), clusters)
        if not pairs:
            raise UsageError(
                f"no question of {model} has both a verdict and a retrieval score",
                fix="give answers and rankings of the same benchmark",
            )
        rights = np.array([float(right) for right, _ in pairs])
        values = np.array([value for _, value in pairs], np.float64)
        table.append(
            AnswersAndRetrieval(
                model=model,
                n=len(pairs),
                unscored=len({*verdicts, *mine}) - len(pairs),
                accuracy=float(rights.mean()),
                accuracy_interval=bootstrap_mean(rights, clusters=labels, samples=samples, level=level, seed=seed),
                score=float(values.mean()),
                score_interval=bootstrap_mean(values, clusters=labels, samples=samples, level=level, seed=seed),
                when_right=float(values[rights == 1].mean()) if rights.any() else None,
                when_wrong=float(values[rights == 0].mean()) if not rights.all() else None,
            )
        )
    return table


def _pearson(points: NDArray[np.float64]) -> float:
    centred = points - points.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred**2).sum(axis=1))
    if (sizes <= 1e-12 * (1 + np.abs(points).max())).any():
        return math.nan
    return float(np.clip((centred[0] / sizes[0]) @ (centred[1] / sizes[1]), -1, 1))


def _ranked(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each value on its axis; equal values share the mean of their places."""
    ranks = np.empty_like(points)
    for axis, values in enumerate(points):
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks[axis] = (ends - (counts - 1) / 2)[inverse]
    return ranks
