"""Accuracy by facet of the questions (specialty first): where a model is good, and how few questions say so."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.findings.accuracy import Outcome
from hoofbeat.findings.intervals import wilson
from hoofbeat.records import Question
from hoofbeat.reports.charts import Bar, grouped_bars
from hoofbeat.reports.model import Block, Cell, Column, Details, Heading, Table
from hoofbeat.reports.sections.answers import system_name
from hoofbeat.reports.sections.common import facet_names, facet_values, figure

__all__ = ["facet_tables"]

System = tuple[str, str]
Counts = dict[str, dict[System, tuple[int, int]]]

_WORTH_A_CHART = 3
"""Questions a group, on average, below which bars would only show noise."""

_NOTE = "Share right of planned answers, with 95% Wilson intervals. A group of few questions says little."


def facet_tables(
    results: Sequence[Outcome], questions: Sequence[Question], order: Sequence[System], prefix: str, models: int
) -> list[Block]:
    """The first facet in full, the others behind a line."""
    blocks: list[Block] = []
    for place, facet in enumerate(facet_names([question.facets for question in questions])):
        counts, sizes = _count(results, questions, facet)
        table = _table(counts, sizes, order, facet, prefix, models, len(questions))
        if place:
            blocks.append(Details(table.caption, (table,)))
            continue
        blocks.append(Heading(f"By {facet}", f"{prefix}-by-{place}", 3))
        if len(counts) <= 12 and len(order) <= 3 and len(questions) >= _WORTH_A_CHART * len(counts):
            blocks.append(_chart(counts, sizes, order, facet, prefix, models))
        blocks.append(table)
    return blocks


def _count(results: Sequence[Outcome], questions: Sequence[Question], facet: str) -> tuple[Counts, dict[str, int]]:
    values = {question.id: facet_values(question.facets, facet) or ["(none)"] for question in questions}
    counts: Counts = {}
    members: dict[str, set[str]] = {}
    for row in results:
        for value in values.get(row.question, []):
            systems = counts.setdefault(value, {})
            right, planned = systems.get((row.model, row.condition), (0, 0))
            systems[row.model, row.condition] = right + (row.correct is True), planned + 1
            members.setdefault(value, set()).add(row.question)
    sizes = {value: len(found) for value, found in members.items()}
    return dict(sorted(counts.items(), key=lambda pair: (-sizes[pair[0]], pair[0]))), sizes


def _table(
    counts: Counts, sizes: dict[str, int], order: Sequence[System], facet: str, prefix: str, models: int, questions: int
) -> Table:
    columns = [Column(facet), Column("questions", "count")]
    columns += [Column(system_name(*system, models), "share") for system in order]
    rows: list[tuple[Cell, ...]] = []
    for value, systems in counts.items():
        row: list[Cell] = [value, sizes[value]]
        for system in order:
            right, planned = systems.get(system, (0, 0))
            span = wilson(right, planned)
            row.append((right / planned, span.low, span.high) if planned else None)
        rows.append(tuple(row))
    return Table(
        name=f"{prefix}-by-{facet}",
        caption=f"Accuracy by {facet}",
        n=questions,
        unit="questions",
        columns=tuple(columns),
        rows=tuple(rows),
        note=_NOTE,
    )


def _chart(
    counts: Counts, sizes: dict[str, int], order: Sequence[System], facet: str, prefix: str, models: int
) -> Block:
    series: dict[str, list[Bar]] = {system_name(*system, models): [] for system in order}
    for value, systems in counts.items():
        for system in order:
            right, planned = systems.get(system, (0, 0))
            series[system_name(*system, models)].append(Bar(label=value, value=right / planned if planned else None))
    groups = [f"{value} (n = {sizes[value]})" for value in counts]
    return figure(
        f"{prefix}-by-{facet}",
        f"Share right by {facet}; intervals are in the table.",
        lambda width: grouped_bars(groups, series, title=f"Accuracy by {facet}", limits=(0, 1), width=width),
    )
