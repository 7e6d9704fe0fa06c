"""Two labellings of the same pairs: economy against full judging, one judge against another, an order and its swap.

Pairs of one question are not independent of each other, so intervals that resample take whole questions; Wilson's
interval, which takes every pair for itself, stands beside them because it is what a share is usually given with.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, lazy
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.audit.findings.table_join import JoinedPairs, join
from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import SAMPLES, Interval, percentiles, resampled_sums, wilson


class TableAgreement(Struct, frozen=True, kw_only=True):
    """How far two tables agree on the `n` pairs that both label and that are not absent in both.

    `agree` of them have the same label: `share`, with Wilson's interval and one from resampling questions. `same_side`
    have labels on the same side of the line between what diverges and what does not. `kappa` is Cohen's κ with an
    interval from resampling questions; None where it has no value. `confusion[i][j]` counts pairs of label i in the
    first table and j in the second. `absent_in_both`, `unlabelled` (in one or both) and `only_one` are left out.
    `by_basis` gives (agreeing, pairs) by how the first table came to its label.
    """

    n: int
    agree: int
    share: float | None
    interval: Interval
    cluster_interval: Interval | None
    same_side: int
    kappa: float | None
    kappa_interval: Interval | None
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    absent_in_both: int
    unlabelled: int
    only_one: int
    by_basis: dict[str, tuple[int, int]]


class LabelFlips(Struct, frozen=True, kw_only=True):
    """The probed pairs that had one label at first: how many, how many flipped, and to which labels."""

    label: str
    n: int
    flips: int
    rate: float | None
    interval: Interval
    to: dict[str, int]


class FlipRate(Struct, frozen=True, kw_only=True):
    """How often a judge says something else when the two answers are swapped.

    `flips` of `n` pairs that have both labels; `crossing` of them cross the line between what diverges and what does
    not, which alone moves R_div. `unscored` pairs lack a label.
    """

    n: int
    flips: int
    rate: float | None
    interval: Interval
    crossing: int
    crossing_rate: float | None
    crossing_interval: Interval
    unscored: int
    by_label: tuple[LabelFlips, ...]


def agreement_of_tables(
    first: Frame,
    second: Frame,
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> TableAgreement:
    """Agreement of two tables on the same pairs, for example of an audit in economy mode (first) with a full one."""
    joined = join(first, second, domain)
    basis = _basis(first, joined)
    return joined_agreement(joined, basis, samples=samples, level=level, seed=seed)


def joined_agreement(
    joined: JoinedPairs,
    basis: polars.Series | None = None,
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> TableAgreement:
    """The same of tables already joined; `basis` is that of the first table's shared pairs, if it is wanted."""
    pairs: AuditPairs = joined.before
    order = pairs.domain.order
    first, second = joined.labels
    labelled = (first >= 0) & (second >= 0)
    silent = (first == pairs.absent) & (second == pairs.absent)
    used = labelled & ~silent
    one, two = first[used].astype(np.int64), second[used].astype(np.int64)
    size = len(order)
    cells = (joined.question[used].astype(np.int64) * size + one) * size + two
    tables = np.bincount(cells, minlength=len(pairs.questions) * size * size).reshape(-1, size * size)
    tables = tables[tables.any(axis=1)]
    confusion = tables.sum(axis=0).reshape(size, size)
    n, agree = int(confusion.sum()), int(np.trace(confusion))
    drawn = resampled_sums(tables.astype(np.float64), samples=samples, seed=seed) if n else np.zeros((0, size * size))
    drawn = drawn.reshape(-1, size, size)
    kappa = _kappas(confusion[None].astype(np.float64))[0] if n else np.nan
    kappas = _kappas(drawn)
    sided = np.isin(np.arange(size), [order.index(label) for label in pairs.domain.diverging])
    shares = np.trace(drawn, axis1=1, axis2=2) / drawn.sum(axis=(1, 2))
    kappas = kappas[~np.isnan(kappas)]
    return TableAgreement(
        n=n,
        agree=agree,
        share=agree / n if n else None,
        interval=wilson(agree, n, level),
        cluster_interval=percentiles(shares, level, "cluster bootstrap") if n else None,
        same_side=int((sided[one] == sided[two]).sum()),
        kappa=None if np.isnan(kappa) else float(kappa),
        kappa_interval=None if np.isnan(kappa) or not len(kappas) else percentiles(kappas, level, "cluster bootstrap"),
        labels=order,
        confusion=tuple(tuple(line) for line in confusion.tolist()),
        absent_in_both=int(silent.sum()),
        unlabelled=int((~labelled).sum()),
        only_one=len(pairs.label) + len(joined.after.label) - 2 * len(first),
        by_basis={} if basis is None else _by_basis(basis, used, one == two),
    )


def flip_rates(
    probes: Iterable[tuple[str | None, str | None]], domain: RelationLabels = FIVE_RELATIONS, *, level: float = 0.95
) -> FlipRate:
    """Flips over (label of A and B, label of B and A), None where a call gave no label."""
    scored: list[tuple[str, str]] = []
    unscored = 0
    for before, after in probes:
        for label in (before, after):
            if label and label not in domain.order:
                raise InputError(f"unknown label {label!r}", fix=f"the labels are {', '.join(domain.order)}")
        if before and after:
            scored.append((before, after))
        else:
            unscored += 1
    n = len(scored)
    flips = sum(before != after for before, after in scored)
    crossing = sum((before in domain.diverging) != (after in domain.diverging) for before, after in scored)
    return FlipRate(
        n=n,
        flips=flips,
        rate=flips / n if n else None,
        interval=wilson(flips, n, level),
        crossing=crossing,
        crossing_rate=crossing / n if n else None,
        crossing_interval=wilson(crossing, n, level),
        unscored=unscored,
        by_label=tuple(
            _flips(label, [after for before, after in scored if before == label], domain, level)
            for label in domain.order
            if any(before == label for before, _ in scored)
        ),
    )


def _flips(label: str, after: list[str], domain: RelationLabels, level: float) -> LabelFlips:
    changed = [other for other in after if other != label]
    return LabelFlips(
        label=label,
        n=len(after),
        flips=len(changed),
        rate=len(changed) / len(after),
        interval=wilson(len(changed), len(after), level),
        to={other: changed.count(other) for other in domain.order if other in changed},
    )


def _basis(table: Frame, joined: JoinedPairs) -> polars.Series | None:
    rows = lazy(table)
    if "basis" not in rows.collect_schema().names():
        return None
    return (
        rows.select(polars.col("basis").cast(polars.String).fill_null("").gather(joined.rows[0])).collect().to_series()
    )


def _by_basis(basis: polars.Series, used: NDArray[np.bool_], same: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    table = polars.DataFrame({"basis": basis.filter(polars.Series(used)), "same": same})
    counted = table.group_by("basis").agg(polars.col("same").sum(), polars.len()).sort("basis")
    return {name: (int(agree), int(n)) for name, agree, n in counted.iter_rows()}


def _kappas(confusions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's κ of each of a stack of confusion matrices; not a number where chance leaves no disagreement."""
    totals = confusions.sum(axis=(1, 2))
    seen = np.trace(confusions, axis1=1, axis2=2) / totals
    chance = (confusions.sum(axis=1) * confusions.sum(axis=2)).sum(axis=1) / totals**2
    return np.where(chance < 1, (seen - chance) / np.where(chance < 1, 1 - chance, 1), np.nan)
