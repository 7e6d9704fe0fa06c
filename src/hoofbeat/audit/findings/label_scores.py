"""A labelling against a reference, label by label: precision, recall, F1, and which borders errors cross.

Counts may be weighted: the same figures are then those of the population that the sample represents. An item that the
labelling left without a label is a miss of its reference label, and no label's find.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.findings.intervals import (
    LEVEL,
    SAMPLES,
    Interval,
    cluster_sums,
    few_of,
    percentiles,
    resampled_sums,
    wilson,
)

ConfusionCounts = NDArray[np.float64]
"""Counts by reference label (row) and label given (column); one column more than rows: the last is no label."""


class LabelScore(Struct, frozen=True, kw_only=True):
    """One label: `n` items have it by reference, `given` by the labelling, `right` by both.

    `precision` is None where the labelling never gives the label, `recall` where the reference never does, `f1` where
    neither does. The interval of F1 is from resampling questions, or a score interval where these are few or all alike.
    """

    label: str
    n: float
    given: float
    right: float
    precision: float | None
    recall: float | None
    f1: float | None
    f1_interval: Interval | None = None


class F1Scores(Struct, frozen=True, kw_only=True):
    """F1 of every label, their plain mean over labels that occur (macro), and their mean by reference items."""

    labels: tuple[LabelScore, ...]
    macro: float | None
    macro_interval: Interval | None
    weighted: float | None
    weighted_interval: Interval | None


class Border(Struct, frozen=True, kw_only=True):
    """Errors between two labels, `lower` before `upper` in order, `steps` apart.

    `over` errors say the upper for the lower, `under` the lower for the upper; `share` is theirs of all errors.
    `crosses` says whether the border is the one between labels that diverge and labels that do not.
    """

    lower: str
    upper: str
    steps: int
    over: int
    under: int
    share: float
    crosses: bool


class Borders(Struct, frozen=True, kw_only=True):
    """Where errors lie: `adjacent` ones between neighbours, `distant` ones further apart, and by border, most first.

    `crossing` errors change whether a pair counts as diverging. `touching` counts, label by label, the errors that have
    the label on either side.
    """

    errors: int
    adjacent: int
    distant: int
    crossing: int
    borders: tuple[Border, ...]
    touching: dict[str, int]


def label_table(pairs: Iterable[tuple[str | None, str]], labels: Sequence[str]) -> ConfusionCounts:
    """Counts of (label given or None, reference label)."""
    places = {label: place for place, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels) + 1))
    for given, reference in pairs:
        counts[places[reference], len(labels) if given is None else places[given]] += 1
    return counts


def f1_scores(
    counts: ConfusionCounts,
    labels: Sequence[str],
    *,
    replicates: NDArray[np.float64] | None = None,
    units: int | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> F1Scores:
    """F1 from counts. `replicates` (a stack of such counts) give the intervals; without, items are drawn again.

    `units` is how many independent observations the counts are of, where they are fewer (questions) or weighted.
    """
    if replicates is None:
        total = round(float(counts.sum()))
        chances = counts.ravel() / counts.sum() if total else counts.ravel()
        drawn = np.random.default_rng(seed).multinomial(total, chances, size=samples) if total else np.zeros((0, 1))
        replicates = drawn.reshape(-1, *counts.shape).astype(np.float64) if total else np.zeros((0, *counts.shape))
    f1, macro, weighted = (array[0] for array in f1_arrays(counts[None]))
    again, macros, weighteds = f1_arrays(replicates)
    right, n, given = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)[:-1]
    scale = min(1.0, units / float(counts.sum())) if units and counts.sum() else 1.0
    scores = [_from_overlap(*each) for each in zip(right * scale, (n + given - right) * scale, strict=True)]
    spans = [_interval(f1[place], again[:, place], scores[place]) for place in range(len(labels))]
    seen = np.flatnonzero(~np.isnan(f1))
    return F1Scores(
        labels=tuple(
            LabelScore(
                label=label,
                n=float(n[place]),
                given=float(given[place]),
                right=float(right[place]),
                precision=float(right[place] / given[place]) if given[place] else None,
                recall=float(right[place] / n[place]) if n[place] else None,
                f1=_value(f1[place]),
                f1_interval=spans[place],
            )
            for place, label in enumerate(labels)
        ),
        macro=_value(macro),
        macro_interval=_interval(macro, macros, _mean_of(scores, seen, np.ones(len(labels)))),
        weighted=_value(weighted),
        weighted_interval=_interval(weighted, weighteds, _mean_of(scores, seen[n[seen] > 0], n)),
    )


def f1_arrays(
    counts: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """F1 by label, macro and weighted F1 of each of a stack of counts; not a number where there is none."""
    size = counts.shape[1]
    right = counts[:, np.arange(size), np.arange(size)]
    n, given = counts.sum(axis=2), counts.sum(axis=1)[:, :size]
    f1 = np.where(n + given > 0, 2 * right / np.where(n + given > 0, n + given, 1), np.nan)
    present = (n + given > 0).sum(axis=1)
    macro = np.where(present > 0, np.nansum(f1, axis=1) / np.maximum(present, 1), np.nan)
    total = n.sum(axis=1)
    weighted = np.where(total > 0, np.nansum(f1 * n, axis=1) / np.where(total > 0, total, 1), np.nan)
    return f1, macro, weighted


def _value(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(value: float, replicates: NDArray[np.float64], score: Interval) -> Interval | None:
    """The bootstrap interval, or `score` where resampling sees too little."""
    kept = replicates[~np.isnan(replicates)]
    if not len(kept) or np.isnan(value):
        return None
    found = percentiles(kept, LEVEL, "bootstrap")
    return found if found.has_width and not score.few else score


def _from_overlap(both: float, either: float) -> Interval:
    """F1's interval from Wilson's for the share of items with a label on both sides among those with it on either.

    F1 is 2 J / (1 + J) of that share J, and rises with it.
    """
    found = wilson(both, either)
    low, high = (2 * end / (1 + end) for end in (found.low, found.high))
    return replace(found, low=low, high=high, method="from Wilson's interval for the overlap")


def _mean_of(scores: Sequence[Interval], places: NDArray[np.int64], weights: NDArray[np.float64]) -> Interval:
    """The bounds of a mean of F1s: the mean of their bounds, as errors of labels go together."""
    total = float(weights[places].sum())
    if not total:
        return wilson(0, 0)
    low, high = (
        float(sum(weights[place] * getattr(scores[place], end) for place in places)) / total for end in ("low", "high")
    )
    few = sum(scores[place].few for place in places) if all(scores[place].few for place in places) else 0
    return Interval(low=low, high=high, level=LEVEL, method=scores[places[0]].method, few=few_of(few) if few else 0)


def label_replicates(
    pairs: Sequence[tuple[str | None, str]],
    labels: Sequence[str],
    clusters: Sequence[str],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Counts as of `label_table` for `f1_scores`, with whole clusters (questions) of pairs drawn again."""
    cells = np.stack([label_table([pair], labels).ravel() for pair in pairs])
    drawn = resampled_sums(cluster_sums(cells, clusters), samples=samples, seed=seed)
    return drawn.reshape(samples, len(labels), len(labels) + 1)


def borders(counts: ConfusionCounts, labels: Sequence[str], diverging: Sequence[str]) -> Borders:
    """Which borders between labels the errors cross; items without a label are no error of this kind."""
    size = len(labels)
    square = counts[:, :size]
    errors = int(square.sum() - np.trace(square))
    found = []
    touching = dict.fromkeys(labels, 0)
    for low in range(size):
        for high in range(low + 1, size):
            over, under = int(square[low, high]), int(square[high, low])
            if not over + under:
                continue
            touching[labels[low]] += over + under
            touching[labels[high]] += over + under
            found.append(
                Border(
                    lower=labels[low],
                    upper=labels[high],
                    steps=high - low,
                    over=over,
                    under=under,
                    share=(over + under) / errors,
                    crosses=(labels[low] in diverging) != (labels[high] in diverging),
                )
            )
    found.sort(key=lambda row: (-row.over - row.under, row.steps, labels.index(row.lower)))
    adjacent = sum(row.over + row.under for row in found if row.steps == 1)
    return Borders(
        errors=errors,
        adjacent=adjacent,
        distant=errors - adjacent,
        crossing=sum(row.over + row.under for row in found if row.crosses),
        borders=tuple(found),
        touching=touching,
    )
