"""Krippendorff's α: how far any number of annotators agree, whoever labelled which items.

α is one less the disagreement seen within items over that expected if the labels were dealt out by chance. Disagreement
is the squared distance of two labels: 0 or 1 for names (nominal), the difference of their ranks for an order (ordinal),
the difference itself for numbers (interval). An item with fewer than two labels says nothing and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import SAMPLES, Interval, percentiles

__all__ = ["Alpha", "Scale", "krippendorff_alpha"]

Scale = Literal["nominal", "ordinal", "interval"]


class Alpha(Struct, frozen=True, kw_only=True):
    """α over `items` items with `values` labels; `left_out` items have fewer than two.

    `value` is None where α has none: nothing to compare, or all labels the same. `interval` is from resampling items.
    """

    scale: Scale
    items: int
    values: int
    left_out: int
    value: float | None
    interval: Interval | None


def krippendorff_alpha(
    items: Iterable[Sequence[str | float | None]],
    scale: Scale = "nominal",
    *,
    order: Sequence[str] = (),
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Alpha:
    """α of items, each the labels it got, None where an annotator gave none.

    `order` is the order of labels that are words, lowest first; the ordinal scale needs it for words.
    """
    if scale not in {"nominal", "ordinal", "interval"}:
        raise UsageError(f"there is no scale {scale!r}", fix="nominal, ordinal or interval")
    given = [[value for value in item if value is not None] for item in items]
    kept = [item for item in given if len(item) > 1]
    names, numbers = _values([value for item in kept for value in item], scale, order)
    sizes = np.array([len(item) for item in kept], np.int64)
    table = _Table(scale, names, numbers, np.repeat(np.arange(len(kept)), sizes), sizes)
    value = table.alpha(np.ones(len(kept)))
    interval = None
    if not math.isnan(value):
        rng = np.random.default_rng(seed)
        drawn = (np.bincount(rng.integers(len(kept), size=len(kept)), minlength=len(kept)) for _ in range(samples))
        found = np.array([table.alpha(times.astype(np.float64)) for times in drawn])
        valued = found[~np.isnan(found)]
        interval = percentiles(valued, level, "bootstrap") if len(valued) else None
    return Alpha(
        scale=scale,
        items=len(kept),
        values=int(sizes.sum()),
        left_out=len(given) - len(kept),
        value=None if math.isnan(value) else value,
        interval=interval,
    )


def _values(
    values: Sequence[str | float], scale: Scale, order: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Each value as the place of its label in the order of labels, and as a number (its place, if it is a word)."""
    if order:
        places = {label: place for place, label in enumerate(order)}
        unknown = next((value for value in values if value not in places), None)
        if unknown is not None:
            raise InputError(f"unknown label {unknown!r}", fix=f"the labels are {', '.join(order)}")
        found = np.array([places[str(value)] for value in values], np.int64)
        return found, found.astype(np.float64)
    if scale == "nominal":
        seen: dict[str | float, int] = {}
        found = np.array([seen.setdefault(value, len(seen)) for value in values], np.int64)
        return found, found.astype(np.float64)
    if any(isinstance(value, str) for value in values):
        raise UsageError(f"words have no {scale} scale by themselves", fix="give the order of the labels")
    numbers = np.array(values, np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("a label is not a number", fix="leave out what was not labelled")
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64), numbers


class _Table:
    """The labels of all items: one entry a label, with the item it belongs to."""

    def __init__(
        self,
        scale: Scale,
        names: NDArray[np.int64],
        numbers: NDArray[np.float64],
        of: NDArray[np.int64],
        sizes: NDArray[np.int64],
    ) -> None:
        self.scale, self.names, self.numbers, self.of, self.sizes = scale, names, numbers, of, sizes
        if scale == "nominal" and len(names):
            width = int(names.max()) + 1
            cells, counts = np.unique(of * width + names, return_counts=True)
            alike = np.bincount(cells // width, weights=counts**2)
            self.within = (sizes**2 - alike) / (sizes - 1)
        elif scale == "interval" and len(names):
            self.numbers = numbers - numbers.mean()
            self.within = self._within(self.numbers)

    def alpha(self, times: NDArray[np.float64]) -> float:
        """α with every item counted so many times; not a number where no disagreement can be expected."""
        if not len(self.names):
            return math.nan
        weights = times[self.of]
        counts = np.bincount(self.names, weights=weights).astype(np.float64)
        if np.count_nonzero(counts) < 2:
            return math.nan
        n = float(counts.sum())
        if self.scale == "nominal":
            return 1.0 - (n - 1) * float(times @ self.within) / (n * n - float((counts**2).sum()))
        x, within = (self.numbers, self.within) if self.scale == "interval" else self._ranked(counts)
        expected = 2 * (n * float(weights @ (x * x)) - float(weights @ x) ** 2)
        return 1.0 - (n - 1) * float(times @ within) / expected

    def _ranked(self, counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Labels as their middle ranks, whose difference is the ordinal distance."""
        x = (np.cumsum(counts) - counts / 2 - counts.sum() / 2)[self.names]
        return x, self._within(x)

    def _within(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared distances over all ordered pairs of each item, over its labels less one."""
        squares, sums = np.bincount(self.of, weights=x * x), np.bincount(self.of, weights=x)
        return np.maximum(2 * (self.sizes * squares - sums**2) / (self.sizes - 1), 0.0)
