"""Tables of how far labellers agree: every two of them, and α of all."""

from __future__ import annotations

from hoofbeat.findings.agreement import Annotators
from hoofbeat.reports.sections.scores.shown import triple
from hoofbeat.reports.tables import Cell, Column, Table

__all__ = ["WEIGHTED", "alphas_table", "labellers_table"]

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
