"""A measure broken down: by a facet of the questions, over the sets of a benchmark, between two groups of questions.

Two groups (rare diseases and others, say) are different questions, so nothing is paired. Clusters of all questions are
resampled together, and each group's accuracy is computed anew, so that the interval of the difference accounts for
clusters that lie in both groups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.intervals import (
    CLUSTERED,
    LEVEL,
    SAMPLES,
    Interval,
    bootstrap_mean,
    cluster_labels,
    cluster_of,
    cluster_sums,
    mean_interval,
    newcombe,
    percentiles,
    resampled_sums,
    sums_and_sizes,
)
from hoofbeat.findings.outcomes import Outcome, by_system, sensitivity_range
from hoofbeat.records import Facets

_RESAMPLED = ("bootstrap", CLUSTERED)

NONE = "(none)"
"""The group of questions that have no value of the facet."""


class FacetGroup(Struct, frozen=True, kw_only=True):
    """Questions that share a value: how many they are, their mean and its bootstrap interval."""

    value: str
    n: int
    mean: float
    interval: Interval


class FacetTable(Struct, frozen=True, kw_only=True):
    """A measure by the values of one facet, largest group first and `(none)` last.

    `n` counts questions; one with several values counts in each, so groups may add up to more. `overall` is everything.
    """

    facet: str
    n: int
    groups: tuple[FacetGroup, ...]
    overall: FacetGroup


class SetTable(Struct, frozen=True, kw_only=True):
    """A measure for each set of a benchmark, and `macro`, the mean over sets of their means, all weighing the same.

    The interval of `macro` comes from resampling clusters of questions within each set; its `n` counts questions.
    """

    sets: tuple[FacetGroup, ...]
    macro: FacetGroup


def values_of(per_question: Mapping[str, Mapping[str, float]], measure: str) -> dict[str, float]:
    """Question to value of one measure, from question to measure to value."""
    return {question: row[measure] for question, row in per_question.items() if measure in row}


def by_facet(
    values: Mapping[str, float],
    facets: Mapping[str, Facets],
    facet: str,
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> FacetTable:
    """The mean of `values` (question to value) for each value of a facet of the questions (question to its facets)."""
    if not values:
        raise UsageError("there are no values to break down", fix="measure at least one question")
    members: dict[str, list[str]] = {}
    for question in values:
        for value in facet_values(facets.get(question, {}), facet) or [NONE]:
            members.setdefault(value or NONE, []).append(question)
    order = sorted(members, key=lambda value: (value == NONE, -len(members[value]), value))

    def group(name: str, questions: Sequence[str]) -> FacetGroup:
        labels = cluster_labels(questions, clusters)
        numbers = _numbers(values, questions)
        interval = bootstrap_mean(numbers, clusters=labels, samples=samples, seed=seed)
        return FacetGroup(value=name, n=len(questions), mean=math.fsum(numbers) / len(questions), interval=interval)

    return FacetTable(
        facet=facet,
        n=len(values),
        groups=tuple(group(value, members[value]) for value in order),
        overall=group("all", list(values)),
    )


def over_sets(
    sets: Mapping[str, Mapping[str, float]],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> SetTable:
    """The mean of each set (set to question to value), and the mean of the sets' means."""
    empty = [name for name, values in sets.items() if not values]
    if empty or not sets:
        raise UsageError(f"the set {empty[0]!r} has no values" if empty else "there are no sets", fix="leave it out")
    rng = np.random.default_rng(seed)
    groups: list[FacetGroup] = []
    replicates = np.zeros(samples)
    for name, values in sets.items():
        numbers = np.array(_numbers(values, list(values)))
        labels = cluster_labels(list(values), clusters)
        sums, sizes = sums_and_sizes(numbers, labels)
        draws = (rng.integers(len(sums), size=len(sums)) for _ in range(samples))
        means = np.array([sums[drawn].sum() / sizes[drawn].sum() for drawn in draws])
        replicates += means / len(sets)
        interval = mean_interval(sums, sizes, means, "bootstrap" if labels is None else CLUSTERED)
        groups.append(FacetGroup(value=name, n=len(numbers), mean=float(numbers.mean()), interval=interval))
    macro = FacetGroup(
        value="average",
        n=sum(group.n for group in groups),
        mean=math.fsum(group.mean for group in groups) / len(groups),
        interval=_macro_interval(groups, replicates),
    )
    return SetTable(sets=tuple(groups), macro=macro)


def _macro_interval(groups: Sequence[FacetGroup], replicates: NDArray[np.float64]) -> Interval:
    """The interval of the mean of sets' means; where a set's is a score interval, the sets' widths are combined.

    Sets are independent, so squared distances add up, as in Newcombe's interval for a difference.
    """
    if all(group.interval.method in _RESAMPLED for group in groups):
        return percentiles(replicates, LEVEL, "stratified bootstrap")
    mean = math.fsum(group.mean for group in groups) / len(groups)
    below = math.hypot(*(group.mean - group.interval.low for group in groups)) / len(groups)
    above = math.hypot(*(group.interval.high - group.mean for group in groups)) / len(groups)
    few = min((group.interval.few for group in groups if group.interval.few), default=0)
    return Interval(low=mean - below, high=mean + above, level=LEVEL, method="sets' intervals combined", few=few)


def _numbers(values: Mapping[str, float], questions: Sequence[str]) -> list[float]:
    for question in questions:
        if not math.isfinite(values[question]):
            raise InputError(f"the value of question {question!r} is not a number", fix="leave out unscored questions")
    return [float(values[question]) for question in questions]


class GroupAccuracy(Struct, frozen=True, kw_only=True):
    """One group's `correct` of `planned` answers to `questions` questions; unscored answers stay in `planned`.

    `interval` keeps the answers of a question, and the questions of a document, together.
    """

    questions: int
    planned: int
    correct: int
    unscored: dict[str, int]
    accuracy: float
    interval: Interval


class GroupDifference(Struct, frozen=True, kw_only=True):
    """Accuracy on the questions of group `a` minus that on group `b`, for one system.

    `interval` is from resampling clusters of questions. Where a group has few questions or shows no spread (all its
    answers fare alike), it is Newcombe's score interval over as many questions as there are clusters.
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
        one, two = (_group(half, clusters, (samples, seed)) for half in (first, second))
        resampled = both.any() and all(half.interval.method == CLUSTERED for half in (one, two))
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
                interval=percentiles(deltas, LEVEL, CLUSTERED)
                if resampled
                else newcombe(_units(first, clusters), _units(second, clusters)),
                sensitivity=sensitivity_range(low, high, sum(missing) / (one.planned + two.planned)),
            )
        )
    return table


def _units(rows: list[Outcome], clusters: Mapping[str, str] | None) -> tuple[float, float]:
    """The share right as one of as many observations as there are clusters."""
    units = len({cluster_of(row.question, clusters) for row in rows})
    return units * sum(row.correct is True for row in rows) / len(rows), units


def _group(rows: list[Outcome], clusters: Mapping[str, str] | None, how: tuple[int, int]) -> GroupAccuracy:
    correct = sum(row.correct is True for row in rows)
    hits = [float(row.correct is True) for row in rows]
    labels = [cluster_of(row.question, clusters) for row in rows]
    return GroupAccuracy(
        questions=len({row.question for row in rows}),
        planned=len(rows),
        correct=correct,
        unscored=dict(sorted(Counter(row.unscored for row in rows if row.correct is None).items())),
        accuracy=correct / len(rows),
        interval=bootstrap_mean(hits, clusters=labels, samples=how[0], seed=how[1]),
    )
