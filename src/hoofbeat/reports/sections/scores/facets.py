"""Accuracy by facet of the questions (specialty first): where a system is good, and how few questions say so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.accuracy import Accuracy, accuracies
from hoofbeat.findings.breakdown import NONE
from hoofbeat.findings.outcomes import Outcome, SystemKey
from hoofbeat.reports.charts import Shade, heatmap
from hoofbeat.reports.model import Block, Details, Heading, Notice
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import UNSCORED, ScoreBlocks, folded, missing
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import written

__all__ = ["FEW", "RARE_FACETS", "facets_section", "grouped_outcomes"]


FEW = 10
"""A group of fewer questions than this is marked as small."""

RARE_FACETS = ("rare", "rarity")
"""The facets that say whether a disease is rare; they have a section of their own."""

_FACETS = 4
_SYSTEMS = 24
_VALUES = 40

Groups = dict[str, dict[SystemKey, Accuracy]]


def facets_section(group: Scored) -> ScoreBlocks:
    """The first facet in full, the others behind a line each; nothing where questions have no facets."""
    known = [name for name in facet_names(group.facets.values()) if name not in RARE_FACETS]
    blocks: list[Block] = []
    for place, facet in enumerate(known[:_FACETS]):
        found = _scored(group, facet)
        parts = group.protocols()
        drawn = [_heat(part, facet, found, number if len(parts) > 1 else 0) for number, part in enumerate(parts, 1)]
        table = _table(group, facet, found)
        if place == 0:
            blocks += [Heading(f"By {facet}", f"{group.prefix}-by-{place}", 3), *drawn, folded(table)]
        else:
            blocks.append(Details(f"Accuracy by {facet} ({len(found)})", (*drawn, table)))
    if len(known) > _FACETS:
        blocks.append(Notice(f"Further facets are not broken down: {', '.join(known[_FACETS:])}."))
    return ScoreBlocks(blocks=tuple(blocks))


def grouped_outcomes(group: Scored, facet: str) -> dict[str, list[Outcome]]:
    """The outcomes of each value of a facet, most questions first; a question of several values counts in each."""
    values = {name: facet_values(facets, facet) or [NONE] for name, facets in group.facets.items()}
    rows: dict[str, list[Outcome]] = {}
    members: dict[str, set[str]] = {}
    for row in group.outcomes:
        for value in values.get(row.question, [NONE]):
            rows.setdefault(value, []).append(row)
            members.setdefault(value, set()).add(row.question)
    order = sorted(rows, key=lambda value: (value == NONE, -len(members[value]), value))
    return {value: rows[value] for value in order}


def _scored(group: Scored, facet: str) -> Groups:
    return {
        value: {(row.model, row.condition): row for row in accuracies(rows, clusters=group.clusters)}
        for value, rows in grouped_outcomes(group, facet).items()
    }


def _shade(row: Accuracy | None) -> Shade:
    if row is None:
        return Shade(value=None, tip="not asked")
    figures = written((row.accuracy, row.wilson.low, row.wilson.high), "share")
    tip = f"{figures}, n = {row.questions:,} questions, {missing(row.unscored):,} of {row.planned:,} unscored"
    return Shade(value=row.accuracy, tip=tip, few=row.questions < FEW)


def _heat(group: Scored, facet: str, found: Groups, number: int) -> Block:
    """One protocol's systems by the values of the facet; `number` tells several protocols apart."""
    shown, values = group.order[:_SYSTEMS], list(found)[:_VALUES]
    sizes = {value: max(row.questions for row in found[value].values()) for value in values}
    columns = [f"{value} ({sizes[value]:,})" for value in values]
    cells = [[_shade(found[value].get(system)) for value in values] for system in shown]
    rows = [group.name(system) for system in shown]
    protocol = f", {group.tallies[group.order[0]].protocol or 'free text'}" if number else ""
    caption = (
        f"Share right by {facet}{protocol}; the number of questions stands in brackets, and a dashed outline marks "
        f"fewer than {FEW}. Intervals and unscored answers are in the table."
    )
    caption += f" The first {_SYSTEMS} of {len(group.order)} systems." if len(group.order) > len(shown) else ""
    draw = partial(heatmap, rows, columns, cells, title=f"Accuracy by {facet}{protocol}", key=f"share right{protocol}")
    return figure(f"{group.prefix}-by-{facet}" + (f"-{number}" if number > 1 else ""), caption, draw)


def _table(group: Scored, facet: str, found: Groups) -> Table:
    columns = (
        Column(facet),
        Column("model"),
        Column("condition"),
        Column("questions", "count"),
        Column("planned", "count"),
        Column("right", "count"),
        UNSCORED,
        Column("accuracy, 95% Wilson", "share"),
        Column("95% bootstrap", "share"),
        Column("sensitivity", "share"),
    )
    return Table(
        name=f"{group.prefix}-by-{facet}",
        caption=f"Accuracy by {facet}",
        n=len(group.questions),
        unit="questions",
        columns=columns,
        rows=tuple(_rows(group.order, found)),
        note=f"A group of few questions says little: those of fewer than {FEW} are marked *. Wilson's interval takes "
        "answers as independent; the bootstrap keeps the samples of a question and the questions of a document "
        "together.",
    )


def _rows(order: Sequence[SystemKey], found: Groups) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for value, systems in found.items():
        for system in order:
            row = systems.get(system)
            if row is None:
                continue
            rows.append(
                (
                    value + (" *" if row.questions < FEW else ""),
                    *system,
                    row.questions,
                    row.planned,
                    row.correct,
                    missing(row.unscored),
                    (row.accuracy, row.wilson.low, row.wilson.high),
                    (row.bootstrap.low, row.bootstrap.high),
                    row.sensitivity,
                )
            )
    return rows
