"""Rare diseases against the others: two groups of questions, the accuracy on each, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoofbeat.facets import facet_values
from hoofbeat.findings.breakdown import GroupAccuracy, GroupDifference, group_differences
from hoofbeat.findings.outcomes import SystemKey
from hoofbeat.reports.charts import Bar, grouped_bars
from hoofbeat.reports.model import Block, Heading
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.sections.scores.facets import RARE_FACETS
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import SENSITIVITY_NOTE, ScoreBlocks, folded, missing, triple
from hoofbeat.reports.tables import Cell, Column, Table

__all__ = ["rare_section"]


_RARE = frozenset({"yes", "rare", "true"})
_COMMON = frozenset({"no", "not rare", "non-rare", "common", "false"})
_BARS = 12


def rare_section(group: Scored) -> ScoreBlocks:
    """Nothing where questions do not say whether their disease is rare, or where all say the same."""
    rare, common = _questions(group, _RARE), _questions(group, _COMMON)
    found = group_differences(group.outcomes, rare, common, clusters=group.clusters) if rare and common else []
    if not found:
        return ScoreBlocks()
    by_system = {(row.model, row.condition): row for row in found}
    rows = [by_system[system] for system in group.order if system in by_system]
    ours = tuple(
        OwnFigure(
            measure=measure,
            model=row.model,
            condition=row.condition,
            value=triple(half.accuracy, half.wilson),
            n=half.questions,
            unscored=missing(half.unscored),
            protocol=group.tallies[row.model, row.condition].protocol,
        )
        for row in rows
        for measure, half in (("accuracy, rare", row.a), ("accuracy, common", row.b))
    )
    heading = Heading("Rare diseases", f"{group.prefix}-rare", 3)
    table = folded(_table(group, rows, len(rare) + len(common)))
    return ScoreBlocks(blocks=(heading, _chart(group, rows), table), ours=ours)


def _questions(group: Scored, words: frozenset[str]) -> set[str]:
    return {
        name
        for name, facets in group.facets.items()
        if any(value.lower() in words for facet in RARE_FACETS for value in facet_values(facets, facet))
    }


def _chart(group: Scored, rows: Sequence[GroupDifference]) -> Block:
    shown = rows[:_BARS]
    series = {"rare": [_bar(row.a) for row in shown], "not rare": [_bar(row.b) for row in shown]}
    systems: list[SystemKey] = [(row.model, row.condition) for row in shown]
    names = [group.name(system) for system in systems]
    caption = "Share right on questions about rare diseases and about others, with 95% Wilson intervals."
    caption += f" The first {_BARS} of {len(rows)} systems." if len(rows) > len(shown) else ""
    draw = partial(grouped_bars, names, series, title="Accuracy on rare and other diseases", limits=(0, 1))
    return figure(f"{group.prefix}-rare", caption, draw)


def _bar(half: GroupAccuracy) -> Bar:
    return Bar(label="", value=half.accuracy, low=half.wilson.low, high=half.wilson.high)


def _table(group: Scored, rows: Sequence[GroupDifference], n: int) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("rare questions", "count"),
        Column("rare, 95% Wilson", "share"),
        Column("rare, unscored", "count"),
        Column("other questions", "count"),
        Column("not rare, 95% Wilson", "share"),
        Column("not rare, unscored", "count"),
        Column("difference, points", "points"),
        Column("sensitivity", "points"),
    )
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        halves = [
            cell
            for half in (row.a, row.b)
            for cell in (half.questions, triple(half.accuracy, half.wilson), missing(half.unscored))
        ]
        cells.append((row.model, row.condition, *halves, triple(row.difference, row.interval), row.sensitivity))
    return Table(
        name=f"{group.prefix}-rare",
        caption="Rare diseases against the others",
        n=n,
        unit="questions",
        columns=columns,
        rows=tuple(cells),
        note="Rare less not rare, with a 95% bootstrap interval; the groups are different questions, so nothing is "
        f"paired. {_score(rows)}{SENSITIVITY_NOTE}",
    )


def _score(rows: Sequence[GroupDifference]) -> str:
    found = [f"{row.model} · {row.condition}" for row in rows if row.interval.method != "cluster bootstrap"]
    return f"Resampling shows no spread, and Newcombe's score interval stands: {', '.join(found)}. " if found else ""
