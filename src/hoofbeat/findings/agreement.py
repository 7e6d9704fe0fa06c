"""How far two labellings of the same items agree: a judge with planted or human labels, two annotators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import SAMPLES, Interval, percentiles

__all__ = ["Agreement", "agreement"]


class Agreement(Struct, frozen=True, kw_only=True):
    """Agreement of a labelling with a reference.

    `n` items have a reference label; `unscored` of them got no label, stay in `accuracy`'s denominator and are left
    out of the rest. `confusion[i][j]` counts items of reference `labels[i]` that were labelled `labels[j]`. `kappa`
    is Cohen's κ; it and its bootstrap interval are None where chance agreement is complete and κ has no value.
    """

    n: int
    unscored: int
    accuracy: float
    kappa: float | None
    kappa_interval: Interval | None
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]


def agreement(
    pairs: Iterable[tuple[str | None, str]],
    labels: Sequence[str],
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Agreement:
    """Agreement over (label or None where there is none, reference label); `labels` fixes the confusion's order."""
    numbers = {label: number for number, label in enumerate(labels)}
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    unscored = 0
    for given, reference in pairs:
        for label in (given, reference):
            if label is not None and label not in numbers:
                raise InputError(f"unknown label {label!r}", fix=f"the labels are {', '.join(labels)}")
        if given is None:
            unscored += 1
        else:
            confusion[numbers[reference], numbers[given]] += 1
    scored = int(confusion.sum())
    n = scored + unscored
    kappa = float(_kappas(confusion[None])[0]) if scored else float("nan")
    interval = None
    if not np.isnan(kappa):
        drawn = np.random.default_rng(seed).multinomial(scored, confusion.ravel() / scored, size=samples)
        replicates = _kappas(drawn.reshape(samples, *confusion.shape))
        interval = percentiles(replicates[~np.isnan(replicates)], level, "bootstrap")
    return Agreement(
        n=n,
        unscored=unscored,
        accuracy=int(np.trace(confusion)) / n if n else 0.0,
        kappa=None if interval is None else kappa,
        kappa_interval=interval,
        labels=tuple(labels),
        confusion=tuple(tuple(int(count) for count in row) for row in confusion),
    )


def _kappas(confusions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cohen's κ of each of a stack of confusion matrices; not a number where chance agreement is complete."""
    totals = confusions.sum(axis=(1, 2)).astype(np.float64)
    observed = np.trace(confusions, axis1=1, axis2=2) / totals
    chance = (confusions.sum(axis=1) * confusions.sum(axis=2)).sum(axis=1) / totals**2
    return np.where(chance < 1, (observed - chance) / np.where(chance < 1, 1 - chance, 1), np.nan)
