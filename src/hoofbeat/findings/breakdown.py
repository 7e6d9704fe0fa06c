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

from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.intervals import (
    LEVEL,
    SAMPLES,
    Interval,
    bootstrap_mean,
    cluster_labels,
    cluster_of,
    cluster_sums,
    newcombe,
    percentiles,
    resampled_sums,
    sums_and_sizes,
    wilson,
)
from hoofbeat.findings.outcomes import Outcome, by_system, sensitivity_range
from hoofbeat.records import Facets

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
        interval = percentiles(means, LEVEL, "bootstrap" if labels is None else "cluster bootstrap")
        groups.append(FacetGroup(value=name, n=len(numbers), mean=float(numbers.mean()), interval=interval))
    macro = FacetGroup(
        value="average",
        n=sum(group.n for group in groups),
        mean=math.fsum(group.mean for group in groups) / len(groups),
        interval=percentiles(replicates, LEVEL, "stratified bootstrap"),
    )
    return SetTable(sets=tuple(groups), macro=macro)


def _numbers(values: Mapping[str, float], questions: Sequence[str]) -> list[float]:
    for question in questions:
        if not math.isfinite(values[question]):
            raise InputError(f"the value of question {question!r} is not a number", fix="leave unscored questions out")
    return [float(values[question]) for question in questions]


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
        span = percentiles(deltas, LEVEL, "cluster bootstrap") if both.any() else None
        one, two = _group(first), _group(second)
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
                interval=span
                if span and span.low < span.high
                else newcombe((one.correct, one.planned), (two.correct, two.planned)),
                sensitivity=sensitivity_range(low, high, sum(missing) / (one.planned + two.planned)),
            )
        )
    return table


def _group(rows: list[Outcome]) -> GroupAccuracy:
    correct = sum(row.correct is True for row in rows)
    return GroupAccuracy(
        questions=len({row.question for row in rows}),
        planned=len(rows),
        correct=correct,
        unscored=dict(sorted(Counter(row.unscored for row in rows if row.correct is None).items())),
        accuracy=correct / len(rows),
        wilson=wilson(correct, len(rows)),
    )
