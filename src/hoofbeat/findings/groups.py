"""Two groups of questions under one system: is it worse on rare diseases than on others, and how sure is that?

The groups are different questions, so nothing is paired. Clusters of all questions are resampled together, and each
group's accuracy is taken anew, so that the difference's interval knows of clusters that lie in both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np
from msgspec import Struct

from hoofbeat.findings.clusters import cluster_of
from hoofbeat.findings.intervals import SAMPLES, Interval, cluster_sums, newcombe, percentiles, resampled_sums, wilson
from hoofbeat.findings.scoring import Outcome
from hoofbeat.findings.shares import by_system, sensitivity_range

__all__ = ["GroupAccuracy", "GroupDifference", "group_differences"]


class GroupAccuracy(Struct, frozen=True, kw_only=True):
    """One group's `correct` of `planned` answers to `questions` questions; unscored answers stay in `planned`."""

    questions: int
    planned: int
    correct: int
    unscored: dict[str, int]
    accuracy: float
    wilson: Interval


class GroupDifference(Struct, frozen=True, kw_only=True):
    """Accuracy on the questions of group `a` minus that on group `b`, for one system.

    `interval` is from resampling clusters of questions. Where that shows no spread (in each group all answers fare
    alike), or no resample has questions of both groups, it is Newcombe's score interval.
    `sensitivity` spans what unscored answers could make of the difference, where they exceed 1%.
    """

    model: str
    condition: str
    a: GroupAccuracy
    b: GroupAccuracy
    difference: float
    interval: Interval
    sensitivity: tuple[float, float] | None


def group_differences(
    results: Iterable[Outcome],
    a: Collection[str],
    b: Collection[str],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> list[GroupDifference]:
    """The difference between questions `a` and questions `b` for each system asked both, sorted by name."""
    table = []
    for (model, condition), rows in sorted(by_system(results).items()):
        first = [row for row in rows if row.question in a]
        second = [row for row in rows if row.question in b]
        if not first or not second:
            continue
        counts = [[row.correct is True, 1.0, 0.0, 0.0] for row in first]
        counts += [[0.0, 0.0, row.correct is True, 1.0] for row in second]
        labels = [cluster_of(row.question, clusters) for row in (*first, *second)]
        drawn = resampled_sums(cluster_sums(np.array(counts, np.float64), labels), samples=samples, seed=seed)
        both = (drawn[:, 1] > 0) & (drawn[:, 3] > 0)
        deltas = drawn[both, 0] / drawn[both, 1] - drawn[both, 2] / drawn[both, 3]
        span = percentiles(deltas, level, "cluster bootstrap") if both.any() else None
        one, two = _group(first, level), _group(second, level)
        missing = sum(one.unscored.values()), sum(two.unscored.values())
        low = one.accuracy - (two.correct + missing[1]) / two.planned
        high = (one.correct + missing[0]) / one.planned - two.accuracy
        table.append(
            GroupDifference(
                model=model,
                condition=condition,
                a=one,
                b=two,
                difference=one.accuracy - two.accuracy,
                interval=span if span and span.low < span.high else _score(one, two, level),
                sensitivity=sensitivity_range(low, high, sum(missing) / (one.planned + two.planned)),
            )
        )
    return table


def _score(one: GroupAccuracy, two: GroupAccuracy, level: float) -> Interval:
    return newcombe((one.correct, one.planned), (two.correct, two.planned), level)


def _group(rows: list[Outcome], level: float) -> GroupAccuracy:
    correct = sum(row.correct is True for row in rows)
    return GroupAccuracy(
        questions=len({row.question for row in rows}),
        planned=len(rows),
        correct=correct,
        unscored=dict(sorted(Counter(row.unscored for row in rows if row.correct is None).items())),
        accuracy=correct / len(rows),
        wilson=wilson(correct, len(rows), level),
    )
