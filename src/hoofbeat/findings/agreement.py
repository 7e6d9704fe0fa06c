"""How far labellings of the same items agree: a judge with planted or human labels, annotators with each other.

Krippendorff's α takes any number of annotators, whoever labelled which items: one less the disagreement seen within
items over that expected if the labels were dealt out by chance. Disagreement is the squared distance of two labels: 0
or 1 for names (nominal), the difference of their ranks for an order (ordinal), the difference itself for numbers
(interval). An item with fewer than two labels says nothing and is left out.

Items that share a question are resampled together. Where resampling sees too little (fewer than ten questions, or no
disagreement at all), the interval comes from Wilson's for the share of items that agree: κ and α are one less the
disagreement seen over that expected, and the disagreement moves with that share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import (
    CLUSTERED,
    LEVEL,
    SAMPLES,
    Interval,
    cluster_labels,
    cluster_sums,
    percentiles,
    resampled_sums,
    share_interval,
    wilson,
)
from hoofbeat.findings.outcomes import HUMAN, AnswerKey
from hoofbeat.records import Failure, Judgment

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
    clusters: Sequence[str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Alpha:
    """α of items, each the labels it got, None where an annotator gave none.

    `order` is the order of labels that are words, lowest first; the ordinal scale needs it for words. `clusters` names
    what each item is resampled with (its question).
    """
    if scale not in {"nominal", "ordinal", "interval"}:
        raise UsageError(f"there is no scale {scale!r}", fix="use nominal, ordinal or interval")
    given = [[value for value in item if value is not None] for item in items]
    kept = [item for item in given if len(item) > 1]
    shared = None if clusters is None else [name for name, item in zip(clusters, given, strict=True) if len(item) > 1]
    names, numbers = _values([value for item in kept for value in item], scale, order)
    sizes = np.array([len(item) for item in kept], np.int64)
    table = _Table(scale, names, numbers, np.repeat(np.arange(len(kept)), sizes), sizes)
    value = table.alpha(np.ones(len(kept)))
    interval = None
    if not math.isnan(value):
        found = np.array([table.alpha(times) for times in _times(len(kept), shared, samples, seed)])
        alike = share_interval([len(set(item)) == 1 for item in kept], shared)
        agreed = sum(len(set(item)) == 1 for item in kept) / len(kept)
        chance = 1.0 - table.expected_agreement()
        interval = chance_corrected(value, found, agreed, alike, chance, "bootstrap" if shared is None else CLUSTERED)
    return Alpha(
        scale=scale,
        items=len(kept),
        values=int(sizes.sum()),
        left_out=len(given) - len(kept),
        value=None if math.isnan(value) else value,
        interval=interval,
    )


def _times(n: int, clusters: Sequence[str] | None, samples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """How often each of `n` items is in each resample; items of a cluster are drawn together."""
    rng = np.random.default_rng(seed)
    places = np.arange(n) if clusters is None else np.unique(np.array(clusters, np.str_), return_inverse=True)[1]
    size = int(places.max()) + 1
    for _ in range(samples):
        yield np.bincount(rng.integers(size, size=size), minlength=size)[places].astype(np.float64)


def chance_corrected(
    value: float,
    replicates: NDArray[np.float64],
    agreed: float,
    agreement: Interval,
    chance: float,
    method: str,
) -> Interval:
    """The interval of κ or α: the bootstrap's, or where that sees too little, the one that the agreement's implies.

    `agreed` is the share of items that agree, `agreement` its interval, and `chance` the share that would disagree by
    chance. κ and α are one less the disagreement over that by chance, so they move with the share that disagrees.
    """
    valued = replicates[~np.isnan(replicates)]
    found = percentiles(valued, LEVEL, method) if len(valued) else None
    if found and found.has_width and not agreement.few:
        return found
    unit = (1 - value) / (1 - agreed) if agreed < 1 else 1 / chance
    low, high = (1 - unit * (1 - end) for end in (agreement.low, agreement.high))
    return Interval(
        low=max(-1.0, min(low, value)),
        high=min(1.0, max(high, value)),
        level=agreement.level,
        method="from Wilson's interval of the agreement",
        few=agreement.few,
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
        raise UsageError(
            f"labels that are words need an order for the {scale} scale", fix="give the order of the labels"
        )
    numbers = np.array(values, np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("a label is not a number", fix="leave out items without a label")
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
        """α with every item counted with its weight; not a number where no disagreement can be expected."""
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

    def expected_agreement(self) -> float:
        """The chance that two labels of all, drawn without replacement, are the same."""
        counts = np.bincount(self.names).astype(np.float64)
        n = float(counts.sum())
        return float((counts * (counts - 1)).sum() / (n * (n - 1)))

    def _ranked(self, counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Labels as their middle ranks, whose difference is the ordinal distance."""
        x = (np.cumsum(counts) - counts / 2 - counts.sum() / 2)[self.names]
        return x, self._within(x)

    def _within(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared distances over all ordered pairs of each item, over its labels less one."""
        squares, sums = np.bincount(self.of, weights=x * x), np.bincount(self.of, weights=x)
        return np.maximum(2 * (self.sizes * squares - sums**2) / (self.sizes - 1), 0.0)


Weights = Literal["none", "linear", "quadratic"]
"""How a disagreement counts: all the same, by the steps between the labels, or by the square of the steps."""


class Agreement(Struct, frozen=True, kw_only=True):
    """Agreement of a labelling with a reference.

    `n` items have a reference label; `unscored` of them got no label, stay in `accuracy`'s denominator (Wilson's
    interval beside it) and are left out of the rest. `confusion[i][j]` counts items of reference `labels[i]` that were
    labelled `labels[j]`. `kappa` is Cohen's κ; it and its interval (whole questions are resampled) are None where
    chance agreement is complete and κ has no value.
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

    `value` and its bootstrap `interval` (resampling questions) are None where κ has no value: no items, or no
    disagreement to be expected by chance.
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
    clusters: Sequence[str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Agreement:
    """Agreement over (label or None where there is none, reference label); `labels` fixes the confusion's order.

    `clusters` names what each pair is resampled with (its question); without, every pair counts alone.
    """
    rows = list(pairs)
    confusion, unscored = _confusion(rows, labels)
    n, right = int(confusion.sum()) + unscored, int(np.trace(confusion))
    kappa, interval = _kappa((rows, labels, clusters), confusion, "none", (samples, seed))
    hits = [given == reference for given, reference in rows]
    return Agreement(
        n=n,
        unscored=unscored,
        accuracy=right / n if n else 0.0,
        accuracy_interval=share_interval(hits, clusters) if n else wilson(0, 0),
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
    clusters: Sequence[str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Kappa:
    """Cohen's κ over pairs of labels, disagreement weighted by how far apart `labels` (in order) puts them.

    An item that one of the two did not label (None) is counted as missing and says nothing. `clusters` as in
    `agreement`.
    """
    if weights not in {"none", "linear", "quadratic"}:
        raise UsageError(f"there are no weights {weights!r}", fix="use none, linear or quadratic")
    rows = list(pairs)
    confusion, missing = _confusion(rows, labels)
    value, interval = _kappa((rows, labels, clusters), confusion, weights, (samples, seed))
    return Kappa(weights=weights, n=int(confusion.sum()), missing=missing, value=value, interval=interval)


def agreement_with_intervals(
    ratings: Mapping[str, Mapping[str, str]],
    labels: Sequence[str],
    *,
    ordered: bool = False,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Annotators:
    """How far annotators (name to item to label) agree, every two of them and all together.

    `clusters` maps an item to what it is resampled with (its question).
    """
    items = sorted({item for rows in ratings.values() for item in rows})
    pairs = []
    for a, b in combinations(sorted(ratings), 2):
        shared = [item for item in items if item in ratings[a] and item in ratings[b]]
        both = [(ratings[a][item], ratings[b][item]) for item in shared]
        agree = sum(first == second for first, second in both)
        together = cluster_labels(shared, clusters)

        def kappa(
            weights: Weights, both: Sequence[tuple[str, str]] = both, together: Sequence[str] | None = together
        ) -> Kappa:
            return weighted_kappa(both, labels, weights, clusters=together, samples=samples, seed=seed)

        pairs.append(
            PairAgreement(
                a=a,
                b=b,
                n=len(both),
                agree=agree,
                agreement=agree / len(both) if both else None,
                agreement_interval=share_interval([one == two for one, two in both], together)
                if both
                else wilson(0, 0),
                kappa=kappa("none"),
                linear=kappa("linear") if ordered else None,
                quadratic=kappa("quadratic") if ordered else None,
            )
        )
    rows = [[rows.get(item) for rows in ratings.values()] for item in items]

    def alpha(scale: Scale) -> Alpha:
        together = cluster_labels(items, clusters)
        return krippendorff_alpha(rows, scale, order=labels, clusters=together, samples=samples, seed=seed)

    return Annotators(
        labels=tuple(labels),
        items=len(items),
        pairs=tuple(pairs),
        nominal=alpha("nominal"),
        ordinal=alpha("ordinal") if ordered else None,
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
    given: tuple[Sequence[tuple[str | None, str | None]], Sequence[str], Sequence[str] | None],
    confusion: NDArray[np.int64],
    weights: Weights,
    how: tuple[int, int],
) -> tuple[float | None, Interval | None]:
    pairs, labels, clusters = given
    samples, seed = how
    n = int(confusion.sum())
    kappa = float(_kappas(confusion[None], weights)[0]) if n else float("nan")
    if np.isnan(kappa):
        return None, None
    kept = [place for place, (one, other) in enumerate(pairs) if one is not None and other is not None]
    together = None if clusters is None else [clusters[place] for place in kept]
    drawn: NDArray[np.float64] | NDArray[np.int64]
    if together is None:
        drawn = np.random.default_rng(seed).multinomial(n, confusion.ravel() / n, size=samples)
    else:
        drawn = resampled_tables([pairs[place] for place in kept], labels, together, samples=samples, seed=seed)
    replicates = _kappas(drawn.reshape(samples, *confusion.shape), weights)
    agree = share_interval([pairs[place][0] == pairs[place][1] for place in kept], together)
    chance = 1 - float((confusion.sum(axis=0) @ confusion.sum(axis=1)) / n**2)
    method = "bootstrap" if together is None else CLUSTERED
    return kappa, chance_corrected(kappa, replicates, int(np.trace(confusion)) / n, agree, chance, method)


def resampled_tables(
    pairs: Sequence[tuple[str | None, str | None]],
    labels: Sequence[str],
    clusters: Sequence[str],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Confusion counts (one row per resample) with whole clusters of (label, reference label) drawn again."""
    places = {label: place for place, label in enumerate(labels)}
    cells = np.zeros((len(pairs), len(labels) ** 2))
    for row, (given, reference) in enumerate(pairs):
        cells[row, places[str(reference)] * len(labels) + places[str(given)]] = 1.0
    return resampled_sums(cluster_sums(cells, clusters), samples=samples, seed=seed)


def _kappas(confusions: NDArray[np.int64] | NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
    """Cohen's κ of each of a stack of confusion matrices; not a number where chance leaves no disagreement."""
    steps = np.abs(np.subtract.outer(np.arange(confusions.shape[1]), np.arange(confusions.shape[1]))).astype(np.float64)
    distance = {"none": (steps > 0).astype(np.float64), "linear": steps, "quadratic": steps**2}[weights]
    totals = confusions.sum(axis=(1, 2)).astype(np.float64)
    seen = (confusions * distance).sum(axis=(1, 2)) / totals
    chance = np.einsum("si,ij,sj->s", confusions.sum(axis=2), distance, confusions.sum(axis=1)) / totals**2
    return np.where(chance > 0, 1 - seen / np.where(chance > 0, chance, 1), np.nan)


def people_majority(judgments: Iterable[Judgment], aspect: str = "equivalence") -> list[Judgment]:
    """One judgment of each answer that people labelled, by the label of more than half of them.

    Its judge is `labels by NAME, NAME`: all who labelled that answer. Where no label has more than half of theirs the
    answer is contested: the judgment is a failure (`no-majority`), and the answer unscored.
    """
    given: dict[AnswerKey, dict[str, str]] = {}
    for each in judgments:
        if each.aspect == aspect and each.judge.startswith(HUMAN) and each.label and not each.failure:
            key = (each.question, each.model, each.condition, each.sample)
            given.setdefault(key, {})[each.judge.removeprefix(HUMAN)] = each.label
    found = []
    for (question, model, condition, sample), labels in given.items():
        label, count = Counter(labels.values()).most_common(1)[0]
        contested = 2 * count <= len(labels)
        failure = Failure(kind="no-majority", message="the annotators do not agree", attempts=0)
        found.append(
            Judgment(
                question=question,
                model=model,
                condition=condition,
                sample=sample,
                judge=f"labels by {', '.join(sorted(labels))}",
                aspect=aspect,
                label="" if contested else label,
                failure=failure if contested else None,
            )
        )
    return found
