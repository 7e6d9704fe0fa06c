"""Where the truth was planted: how far the judge's relations are the ones that were written into the sources."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.audit.findings.relations import RelationLabels, judge_agreement
from hoofbeat.records import Comparison
from hoofbeat.reports.charts import number_matrix
from hoofbeat.reports.model import Block, Card, Chart, Heading
from hoofbeat.reports.section import PlantedLabels
from hoofbeat.reports.sections.common import spread
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import written

__all__ = ["planted_blocks"]


"""The label planted between two sources (the lesser first) on a question."""


def planted_blocks(
    comparisons: Sequence[Comparison], planted: PlantedLabels, domain: RelationLabels, prefix: str
) -> tuple[tuple[Card, ...], list[Block]]:
    """Agreement, κ and confusion, with their key figure; nothing where nothing is planted."""
    if not planted:
        return (), []
    reference = [Comparison(question=q, a=a, b=b, label=label) for (q, a, b), label in sorted(planted.items())]
    found = judge_agreement(comparisons, reference, domain)
    interval = (found.kappa_interval.low, found.kappa_interval.high) if found.kappa_interval else None
    chart = Chart(
        name=f"{prefix}-confusion",
        caption="Pairs by planted label and by the judge's label; the diagonal is agreement.",
        wide=_confusion(found.labels, found.confusion, 700),
        narrow=_confusion(found.labels, found.confusion, 350),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, *line, sum(line), line[place] / sum(line) if sum(line) else None)
        for place, (label, line) in enumerate(zip(found.labels, found.confusion, strict=True))
    )
    confusion = Table(
        name=f"{prefix}-confusion",
        caption="Planted label (rows) against the judge's label (columns)",
        n=found.n,
        unit="planted pairs",
        columns=(
            Column("planted"),
            *(Column(label, "count") for label in found.labels),
            Column("labelled", "count"),
            Column("recovered", "share"),
        ),
        rows=rows,
        note=f"{found.unscored:,} planted pairs got no label; they count against agreement and are left out of κ.",
    )
    summary = Table(
        name=f"{prefix}-agreement",
        caption="Agreement of the judge with the planted labels",
        n=found.n,
        unit="planted pairs",
        columns=(Column("figure"), Column("value"), Column("95% interval", "number")),
        rows=(
            ("agreement", written(found.accuracy, "share"), None),
            ("Cohen's κ", "no value" if found.kappa is None else written(found.kappa, "number"), interval),
            ("without a label", written(found.unscored, "count"), None),
        ),
    )
    card = Card(
        label="Judge's agreement with planted labels",
        value=written(found.accuracy, "share"),
        detail=("κ has no value, " if found.kappa is None else f"κ {written(found.kappa, 'number')}, ")
        + spread(None, "share", f"{found.n:,} pairs"),
    )
    return (card,), [Heading("Against the planted labels", f"{prefix}-planted", 3), summary, chart, confusion]


def _confusion(labels: Sequence[str], counts: Sequence[Sequence[int]], width: int) -> str:
    return number_matrix(
        labels, labels, counts, title="Planted and judged labels", across="judge", down="planted", width=width
    )
