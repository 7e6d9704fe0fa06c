"""Why answers are wrong: failure modes and error types, a share of each system's explained answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoofbeat.findings.modes import ModeShare, mode_shares
from hoofbeat.findings.scoring import HUMAN
from hoofbeat.findings.shares import System
from hoofbeat.reports.charts import Shade, heatmap
from hoofbeat.reports.model import Block, Heading
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.sections.scores.facets import FEW
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import ScoreBlocks, folded, triple
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import written

__all__ = ["modes_section"]


_ASPECTS = {
    "failure-mode": (
        "Failure modes",
        ("grounding", "objective", "qualifier", "granularity", "stage", "other"),
    ),
    "error-type": ("Error types", ("omission", "context", "knowledge", "priority", "sequence")),
}


def modes_section(group: Scored) -> ScoreBlocks:
    """A heatmap and a table for each of the two aspects that was judged."""
    blocks: list[Block] = []
    ours: list[OwnFigure] = []
    mine = [each for each in group.judgments if not each.judge.startswith(HUMAN)]
    for aspect, (title, labels) in _ASPECTS.items():
        found = mode_shares(mine, aspect, labels)
        if not found:
            continue
        systems = [system for system in group.tallies if any((row.model, row.condition) == system for row in found)]
        blocks += [
            Heading(title, f"{group.prefix}-{aspect}", 3),
            _heat(group, aspect, title, labels, systems, found),
            folded(_table(group, aspect, title, systems, found)),
        ]
        ours += [
            OwnFigure(
                measure=f"{aspect}: {row.label}",
                model=row.model,
                condition=row.condition,
                value=triple(row.share, row.interval),
                n=row.n,
                unscored=row.unscored,
            )
            for row in found
        ]
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(ours))


def _heat(
    group: Scored,
    aspect: str,
    title: str,
    labels: Sequence[str],
    systems: Sequence[System],
    found: Sequence[ModeShare],
) -> Block:
    by_key = {(row.model, row.condition, row.label): row for row in found}
    rows = []
    cells = []
    for system in systems:
        mine = [by_key[(*system, label)] for label in labels]
        rows.append(f"{group.name(system)} ({mine[0].n:,})")
        cells.append(
            [
                Shade(
                    value=row.share,
                    tip=f"{written((row.share, row.interval.low, row.interval.high), 'share')}: {row.count:,} of "
                    f"{row.n:,}, second for {row.secondary:,}, {row.unscored:,} unscored",
                    few=row.n < FEW,
                )
                for row in mine
            ]
        )
    caption = (
        "Share of the explained wrong answers of each system by their first label; how many were explained stands in "
        "brackets. Second labels are counted apart, in the table."
    )
    draw = partial(heatmap, rows, labels, cells, title=title, key="share of wrong answers")
    return figure(f"{group.prefix}-{aspect}", caption, draw)


def _table(group: Scored, aspect: str, title: str, systems: Sequence[System], found: Sequence[ModeShare]) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("label"),
        Column("explained", "count"),
        Column("unscored", "count"),
        Column("first", "count"),
        Column("share, 95% Wilson", "share"),
        Column("second", "count"),
        Column("sensitivity", "share"),
    )
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        for row in found:
            if (row.model, row.condition) == system:
                share = triple(row.share, row.interval)
                rows.append((*system, row.label, row.n, row.unscored, row.count, share, row.secondary, row.sensitivity))
    total = {(row.model, row.condition): row.n for row in found}
    return Table(
        name=f"{group.prefix}-{aspect}",
        caption=f"{title} of each system",
        n=sum(total.values()),
        unit="explained answers",
        columns=columns,
        rows=tuple(rows),
        note="An answer whose explanation failed stays in the denominator as unscored. Second labels are no part of "
        "the shares. Sensitivity is the share had none and had all of the unscored this label, where they exceed 1%.",
    )
