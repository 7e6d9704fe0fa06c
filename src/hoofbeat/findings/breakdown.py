"""A measure broken down: by a facet of the questions, and over the sets of a benchmark with the mean of their means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.clusters import cluster_labels
from hoofbeat.findings.intervals import SAMPLES, Interval, bootstrap_mean, percentiles, sums_and_sizes
from hoofbeat.records import Facets

__all__ = ["NONE", "FacetGroup", "FacetTable", "SetTable", "by_facet", "over_sets", "values_of"]

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
    level: float = 0.95,
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
        interval = bootstrap_mean(numbers, clusters=labels, samples=samples, level=level, seed=seed)
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
    level: float = 0.95,
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
        interval = percentiles(means, level, "bootstrap" if labels is None else "cluster bootstrap")
        groups.append(FacetGroup(value=name, n=len(numbers), mean=float(numbers.mean()), interval=interval))
    macro = FacetGroup(
        value="average",
        n=sum(group.n for group in groups),
        mean=math.fsum(group.mean for group in groups) / len(groups),
        interval=percentiles(replicates, level, "stratified bootstrap"),
    )
    return SetTable(sets=tuple(groups), macro=macro)


def _numbers(values: Mapping[str, float], questions: Sequence[str]) -> list[float]:
    for question in questions:
        if not math.isfinite(values[question]):
            raise InputError(f"the value of question {question!r} is not a number", fix="leave unscored questions out")
    return [float(values[question]) for question in questions]
