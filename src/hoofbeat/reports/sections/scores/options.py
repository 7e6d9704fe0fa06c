"""Sensitivity and specificity over option decisions, all together and with every specialty weighing the same."""

from __future__ import annotations

from hoofbeat.facets import facet_names
from hoofbeat.findings.option_decisions import OptionDecisions, option_decisions
from hoofbeat.reports.model import Heading
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import UNSCORED, ScoreBlocks, folded, triple
from hoofbeat.reports.tables import Cell, Column, Table

__all__ = ["options_section"]


def options_section(group: Scored) -> ScoreBlocks:
    """One row a system that chose options; nothing where all answers are free text."""
    if not any(tally.protocol for tally in group.tallies.values()):
        return ScoreBlocks()
    facet = next(iter(facet_names(group.facets.values())), "")
    kept = (answer for answer in group.each_answer() if (answer.model, answer.condition) in group.order)
    found = option_decisions(group.questions.values(), kept, facet or None, clusters=group.clusters)
    if not found:
        return ScoreBlocks()
    rank = {system: place for place, system in enumerate(group.order)}
    found.sort(key=lambda row: rank[row.model, row.condition])
    columns = [
        Column("model"),
        Column("condition"),
        Column("answers", "count"),
        UNSCORED,
        *(Column(name, "count") for name in ("TP", "FN", "TN", "FP")),
        Column("sensitivity", "share"),
        Column("specificity", "share"),
        Column("range of sensitivity", "share"),
        Column("range of specificity", "share"),
    ]
    if facet:
        columns += [
            Column(f"sensitivity, macro by {facet}", "share"),
            Column(f"specificity, macro by {facet}", "share"),
        ]
    undecided = sum(row.undecided for row in found)
    table = Table(
        name=f"{group.prefix}-options",
        caption="Sensitivity and specificity over option decisions",
        n=len(group.questions),
        unit="questions",
        columns=tuple(columns),
        rows=tuple(_row(row, facet) for row in found),
        note="TP: the right option selected; FN: not selected; TN: a wrong option not selected; FP: selected. 95% "
        "intervals by bootstrap over questions. An unscored answer selects nothing; where such answers exceed 1%, the "
        "range is the figure had each of them selected a wrong option and had each selected the right one."
        + (
            f" Questions without options leave nothing to decide: {undecided:,} answers are in neither rate."
            if undecided
            else ""
        ),
    )
    ours = tuple(
        OwnFigure(
            measure=name,
            model=row.model,
            condition=row.condition,
            value=triple(rate.value, rate.bootstrap),
            n=row.questions,
            unscored=row.unscored,
        )
        for row in found
        for name, rate in (("sensitivity", row.sensitivity), ("specificity", row.specificity))
    )
    heading = Heading("Sensitivity and specificity", f"{group.prefix}-options", 3)
    return ScoreBlocks(blocks=(heading, folded(table)), ours=ours)


def _row(row: OptionDecisions, facet: str) -> tuple[Cell, ...]:
    cells: list[Cell] = [row.model, row.condition, row.answers, row.unscored, row.tp, row.fn, row.tn, row.fp]
    cells += [triple(rate.value, rate.bootstrap) for rate in (row.sensitivity, row.specificity)]
    cells += [rate.sensitivity_range for rate in (row.sensitivity, row.specificity)]
    if facet:
        for macro in (row.macro_sensitivity, row.macro_specificity):
            cells.append(triple(macro.value, macro.interval) if macro else None)
    return tuple(cells)
