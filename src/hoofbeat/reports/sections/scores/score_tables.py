"""What the sections on scores share: blocks with their figures, and tables of figures, unscored answers, labellers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from hoofbeat.findings.accuracy import Accuracy
from hoofbeat.findings.agreement import Annotators
from hoofbeat.findings.intervals import Interval
from hoofbeat.reports.model import Block, Details
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.text import some_of

_NAMED = 6

UNSCORED = Column("unscored", "count")

SENSITIVITY_NOTE = (
    "An answer without a score stays in the denominator. Where such answers exceed 1%, sensitivity is the figure had "
    "all of them been wrong and had all been right."
)


class ScoreBlocks(Struct, frozen=True, kw_only=True):
    """What a section shows, and its figures that papers publish, too."""

    blocks: tuple[Block, ...] = ()
    ours: tuple[OwnFigure, ...] = ()


def folded(table: Table, most: int = 20) -> Block:
    """The table, behind a line where it is long."""
    if len(table.rows) <= most:
        return table
    return Details(f"{table.caption}: a table of {len(table.rows)} rows", (table,))


def missing(unscored: Mapping[str, int]) -> int:
    """How many answers have no score."""
    return sum(unscored.values())


def triple(value: float | None, interval: Interval | None) -> Cell:
    """A figure with its interval as a cell."""
    if value is None or interval is None:
        return value
    return value, interval.low, interval.high


def interval_of(row: Accuracy) -> tuple[float, float]:
    """The bootstrap interval, or Wilson's where resampling shows no spread; `method_of` names which."""
    chosen = row.wilson if _no_spread(row) else row.bootstrap
    return chosen.low, chosen.high


def method_of(row: Accuracy) -> str:
    """Which of its intervals `interval_of` gives."""
    return "Wilson" if _no_spread(row) else "bootstrap"


def wilson_note(rows: Iterable[Accuracy]) -> str:
    """A sentence that names the systems for which Wilson's interval stands in place of the bootstrap's; or nothing."""
    found = list(dict.fromkeys(f"{row.model} · {row.condition}" for row in rows if _no_spread(row)))
    if not found:
        return ""
    return f" Where resampling shows no spread, Wilson's interval stands instead: {some_of(found, _NAMED)}."


def _no_spread(row: Accuracy) -> bool:
    return row.bootstrap.low == row.bootstrap.high


WEIGHTED = (Column("linear κ, 95% bootstrap", "number"), Column("quadratic κ, 95% bootstrap", "number"))
"""The columns of labels that stand in an order."""


def labellers_table(found: Annotators, *, name: str, caption: str, unit: str, note: str = "") -> Table:
    """Every two labellers; weighted κ where the labels stand in an order."""
    weighted = any(row.linear or row.quadratic for row in found.pairs)
    rows: list[tuple[Cell, ...]] = []
    for row in found.pairs:
        kappas = (row.kappa, *((row.linear, row.quadratic) if weighted else ()))
        shown = (triple(kappa.value, kappa.interval) if kappa else None for kappa in kappas)
        rows.append((row.a, row.b, row.n, triple(row.agreement, row.agreement_interval), *shown))
    return Table(
        name=name,
        caption=caption,
        n=found.items,
        unit=unit,
        columns=(
            Column("one"),
            Column("other"),
            Column("both labelled", "count"),
            Column("agreement, 95% Wilson", "share"),
            Column("κ, 95% bootstrap", "number"),
            *(WEIGHTED if weighted else ()),
        ),
        rows=tuple(rows),
        note=note if weighted else "",
    )


def alphas_table(found: Annotators, *, name: str, caption: str, unit: str) -> Table:
    """Krippendorff's α of all labellers, on each scale that makes sense."""
    scales = [found.nominal, *([found.ordinal] if found.ordinal else [])]
    return Table(
        name=name,
        caption=caption,
        n=found.items,
        unit=unit,
        columns=(
            Column("scale"),
            Column(f"{unit} of two labels or more", "count"),
            Column("labels", "count"),
            Column("α, 95% bootstrap", "number"),
        ),
        rows=tuple((each.scale, each.items, each.values, triple(each.value, each.interval)) for each in scales),
    )
