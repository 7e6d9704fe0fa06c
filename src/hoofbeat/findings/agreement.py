"""How far labellings of the same items agree: a judge with planted or human labels, annotators with each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.alpha import Alpha, krippendorff_alpha
from hoofbeat.findings.intervals import SAMPLES, Interval, percentiles, wilson

__all__ = [
    "Agreement",
    "Annotators",
    "Kappa",
    "PairAgreement",
    "Weights",
    "agreement",
    "agreement_with_intervals",
    "weighted_kappa",
]

Weights = Literal["none", "linear", "quadratic"]
"""How a disagreement counts: all the same, by the steps between the labels, or by the square of the steps."""


class Agreement(Struct, frozen=True, kw_only=True):
    """Agreement of a labelling with a reference.

    `n` items have a reference label; `unscored` of them got no label, stay in `accuracy`'s denominator (Wilson's
    interval beside it) and are left out of the rest. `confusion[i][j]` counts items of reference `labels[i]` that were
    labelled `labels[j]`. `kappa` is Cohen's κ; it and its bootstrap interval are None where chance agreement is
    complete and κ has no value.
    """

    n: int
    unscored: int
    accuracy: float
    accuracy_interval: Interval
    kappa: float | None
    kappa_interval: Interval | None
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]


class Kappa(Struct, frozen=True, kw_only=True):
    """Cohen's κ of two labellings over the `n` items both labelled; `missing` items lack one of the two.

    `value` and its bootstrap `interval` (resampling items) are None where κ has no value: no items, or no disagreement
    to be expected by chance.
    """

    weights: Weights
    n: int
    missing: int
    value: float | None
    interval: Interval | None


class PairAgreement(Struct, frozen=True, kw_only=True):
    """Two annotators: on how many of the `n` items both labelled they agree, and κ, weighted where labels are ordered.

    `agreement` is None where they share no item.
    """

    a: str
    b: str
    n: int
    agree: int
    agreement: float | None
    agreement_interval: Interval
    kappa: Kappa
    linear: Kappa | None
    quadratic: Kappa | None


class Annotators(Struct, frozen=True, kw_only=True):
    """Every two annotators, and Krippendorff's α of all of them together (ordinal too where labels are ordered)."""

    labels: tuple[str, ...]
    items: int
    pairs: tuple[PairAgreement, ...]
    nominal: Alpha
    ordinal: Alpha | None


def agreement(
    pairs: Iterable[tuple[str | None, str]],
    labels: Sequence[str],
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """Agreement over (label or None where there is none, reference label); `labels` fixes the confusion's order."""
    confusion, unscored = _confusion(pairs, labels)
    n, right = int(confusion.sum()) + unscored, int(np.trace(confusion))
    kappa, interval = _kappa(confusion, "none", samples, level, seed)
    return Agreement(
        n=n,
        unscored=unscored,
        accuracy=right / n if n else 0.0,
        accuracy_interval=wilson(right, n, level),
        kappa=kappa,
        kappa_interval=interval,
        labels=tuple(labels),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
    )


def weighted_kappa(
    pairs: Iterable[tuple[str | None, str | None]],
    labels: Sequence[str],
    weights: Weights = "linear",
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Kappa:
    """Cohen's κ over pairs of labels, disagreement weighted by how far apart `labels` (in order) puts them.

    An item that one of the two did not label (None) is counted as missing and says nothing.
    """
    if weights not in {"none", "linear", "quadratic"}:
        raise UsageError(f"there are no weights {weights!r}", fix="none, linear or quadratic")
    confusion, missing = _confusion(pairs, labels)
    value, interval = _kappa(confusion, weights, samples, level, seed)
    return Kappa(weights=weights, n=int(confusion.sum()), missing=missing, value=value, interval=interval)


def agreement_with_intervals(
    ratings: Mapping[str, Mapping[str, str]],
    labels: Sequence[str],
    *,
    ordered: bool = False,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Annotators:
    """How far annotators (name to item to label) agree, every two of them and all together."""
    items = sorted({item for rows in ratings.values() for item in rows})
    pairs = []
    for a, b in combinations(sorted(ratings), 2):
        both = [(ratings[a][item], ratings[b][item]) for item in items if item in ratings[a] and item in ratings[b]]
        agree = sum(first == second for first, second in both)

        def kappa(weights: Weights, both: Sequence[tuple[str, str]] = both) -> Kappa:
            return weighted_kappa(both, labels, weights, samples=samples, level=level, seed=seed)

        pairs.append(
            PairAgreement(
                a=a,
                b=b,
                n=len(both),
                agree=agree,
                agreement=agree / len(both) if both else None,
                agreement_interval=wilson(agree, len(both), level),
                kappa=kappa("none"),
                linear=kappa("linear") if ordered else None,
                quadratic=kappa("quadratic") if ordered else None,
            )
        )
    rows = [[rows.get(item) for rows in ratings.values()] for item in items]
    return Annotators(
        labels=tuple(labels),
        items=len(items),
        pairs=tuple(pairs),
        nominal=krippendorff_alpha(rows, "nominal", order=labels, samples=samples, level=level, seed=seed),
        ordinal=krippendorff_alpha(rows, "ordinal", order=labels, samples=samples, level=level, seed=seed)
        if ordered
        else None,
    )


def _confusion(pairs: Iterable[tuple[str | None, str | None]], labels: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """Counts by second label (row) and first label (column), and how many pairs lack one."""
    numbers = {label: number for number, label in enumerate(labels)}
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    missing = 0
    for given, reference in pairs:
        for label in (given, reference):
            if label is not None and label not in numbers:
                raise InputError(f"unknown label {label!r}", fix=f"the labels are {', '.join(labels)}")
        if given is None or reference is None:
            missing += 1
        else:
            confusion[numbers[reference], numbers[given]] += 1
    return confusion, missing


def _kappa(
    confusion: NDArray[np.int64], weights: Weights, samples: int, level: float, seed: int
) -> tuple[float | None, Interval | None]:
    n = int(confusion.sum())
    kappa = float(_kappas(confusion[None], weights)[0]) if n else float("nan")
    if np.isnan(kappa):
        return None, None
    drawn = np.random.default_rng(seed).multinomial(n, confusion.ravel() / n, size=samples)
    replicates = _kappas(drawn.reshape(samples, *confusion.shape), weights)
    valued = replicates[~np.isnan(replicates)]
    return kappa, percentiles(valued, level, "bootstrap") if len(valued) else None


def _kappas(confusions: NDArray[np.int64], weights: Weights) -> NDArray[np.float64]:
    """Cohen's κ of each of a stack of confusion matrices; not a number where chance leaves no disagreement."""
    steps = np.abs(np.subtract.outer(np.arange(confusions.shape[1]), np.arange(confusions.shape[1]))).astype(np.float64)
    distance = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    totals = confusions.sum(axis=(1, 2)).astype(np.float64)
    seen = (confusions * distance).sum(axis=(1, 2)) / totals
    chance = np.einsum("si,ij,sj->s", confusions.sum(axis=2), distance, confusions.sum(axis=1)) / totals**2
    return np.where(chance > 0, 1 - seen / np.where(chance > 0, chance, 1), np.nan)
