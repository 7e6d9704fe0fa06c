"""Rankings of several systems as one page: who is better, by how much, how surely, and where.

Everything comes in as plain mappings (system to question to measure to value), so that rankings folders, runs of other
programs and figures of a paper can be set side by side. `rankings_report` gives the report, `rankings_files` the page
with its tables and charts as files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import hoofbeat
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.ablation import Ablation
from hoofbeat.findings.breakdown import by_facet, over_sets, values_of
from hoofbeat.findings.correlation import AnswersAndRetrieval
from hoofbeat.findings.systems import Systems, SystemTable, compare_systems
from hoofbeat.records import Facets
from hoofbeat.reports.charts import standalone
from hoofbeat.reports.markdown import to_markdown
from hoofbeat.reports.model import Block, Card, Cell, Report, Table, charts_in, tables_in
from hoofbeat.reports.page import to_html
from hoofbeat.reports.sections.breakdowns import ablation_blocks, answer_blocks, facet_blocks, set_blocks
from hoofbeat.reports.sections.common import spread
from hoofbeat.reports.sections.systems import (
    difference_blocks,
    measure_bars,
    measure_blocks,
    recall_blocks,
    system_blocks,
)
from hoofbeat.reports.sheets import to_csv
from hoofbeat.reports.words import count_of, written
from hoofbeat.store.files import slug

__all__ = ["flat_rows", "rankings_files", "rankings_report"]

_NOTICE = "Research software. Not for clinical use."
_MAIN = "nDCG@10"
_FACETS = 4
_HEADS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


def rankings_report(
    systems: Systems,
    *,
    title: str = "Rankings compared",
    main: str = "",
    baseline: str = "",
    facets: Mapping[str, Facets] | None = None,
    sets: Mapping[str, str] | None = None,
    clusters: Mapping[str, str] | None = None,
    ablations: Sequence[Ablation] = (),
    answers: Sequence[AnswersAndRetrieval] = (),
    seed: int = 0,
) -> Report:
    """Systems compared by every measure they share, as a report.

    `main` is the measure that systems are placed, tested and broken down by (nDCG@10 where it was measured);
    `baseline` the system that the others are set against (every pair without it). `facets` are the facets of each
    question, `sets` the set each belongs to, `clusters` what questions have in common. `ablations` are grids of
    settings, `answers` the models whose right answers are set against their retrieval by the main measure.
    """
    measures = _measures(systems)
    chosen = main or (_MAIN if _MAIN in measures else measures[0])
    table = compare_systems(systems, chosen, baseline=baseline, clusters=clusters, seed=seed)
    bars = measure_bars(systems, [chosen, *(name for name in measures if name != chosen)], clusters=clusters, seed=seed)
    order = [row.system for row in table.ranked]
    shared = _shared(systems, chosen)
    blocks: list[Block] = [*system_blocks(table), *measure_blocks(bars, table), *difference_blocks(systems, table)]
    blocks += recall_blocks(bars, table)
    values = {name: {q: v for q, v in values_of(systems[name], chosen).items() if q in shared} for name in order}
    for facet in _telling(shared, facets or {}):
        tables = {name: by_facet(values[name], facets or {}, facet, clusters=clusters, seed=seed) for name in order}
        blocks += facet_blocks(tables, chosen)
    if sets:
        tallies = {name: over_sets(_by_set(values[name], sets), clusters=clusters, seed=seed) for name in order}
        blocks += set_blocks(tallies, chosen)
    blocks += ablation_blocks(ablations)
    blocks += answer_blocks(answers, chosen, seed=seed)
    return Report(
        title=title,
        notice=_NOTICE,
        version=hoofbeat.__version__,
        subtitle=f"{count_of(len(order), 'system')}, {count_of(table.n, 'question')}, placed by {chosen}.",
        cards=_cards(table),
        blocks=tuple(blocks),
    )


def rankings_files(report: Report) -> dict[str, bytes]:
    """The files of a report folder by name: the page, the same as Markdown, every table as CSV, every chart as SVG."""
    tables = {f"tables/{number:02}-{slug(table.name)}.csv": table for number, table in _numbered(report)}
    charts = list(charts_in(report.blocks))
    names = {chart.name: f"charts/{number:02}-{slug(chart.name)}.svg" for number, chart in enumerate(charts, start=1)}
    return {
        "report.html": to_html(report).encode(),
        "report.md": to_markdown(report, names).encode(),
        **{name: to_csv(table).encode() for name, table in tables.items()},
        **{names[chart.name]: standalone(chart.wide).encode() for chart in charts},
    }


def flat_rows(table: Table) -> tuple[list[str], list[list[object]]]:
    """A table's header and rows for `write_tsv`: intervals in columns of their own, figures as numbers."""
    widths = [max((_width(row[place]) for row in table.rows), default=1) for place in range(len(table.columns))]
    header = [
        column.title + head for column, width in zip(table.columns, widths, strict=True) for head in _HEADS[width]
    ]
    rows = [
        [part for cell, width in zip(row, widths, strict=True) for part in _parts(cell, width)] for row in table.rows
    ]
    return header, rows


def _width(cell: Cell) -> int:
    return len(cell) if isinstance(cell, tuple) else 1


def _parts(cell: Cell, width: int) -> list[object]:
    parts: list[object] = list(cell) if isinstance(cell, tuple) else [cell]
    return parts + [None] * (width - len(parts))


def _numbered(report: Report) -> list[tuple[int, Table]]:
    return list(enumerate(tables_in(report.blocks), start=1))


def _measures(systems: Systems) -> list[str]:
    """The measures that every system has, in the order of the first."""
    if not systems:
        raise UsageError("there are no systems to compare", fix="give at least one")
    seen = [{measure: None for row in rows.values() for measure in row} for rows in systems.values()]
    shared = [measure for measure in seen[0] if all(measure in other for other in seen)]
    if not shared:
        raise UsageError("the systems share no measure", fix="measure all of them by the same measures")
    return shared


def _shared(systems: Systems, measure: str) -> set[str]:
    found = [set(values_of(rows, measure)) for rows in systems.values()]
    return set.intersection(*found)


def _telling(questions: Collection[str], facets: Mapping[str, Facets]) -> list[str]:
    """The facets worth a breakdown: groups hold two questions or more on average."""
    known = [facets[question] for question in questions if question in facets]
    groups = {name: {value for each in known for value in facet_values(each, name)} for name in facet_names(known)}
    return [name for name, values in groups.items() if 2 * len(values) <= len(known)][:_FACETS]


def _by_set(values: Mapping[str, float], sets: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The values of each set, sets in the order they were given; a question of no set is in `(none)`."""
    grouped: dict[str, dict[str, float]] = {name: {} for name in dict.fromkeys(sets.values())}
    for question, value in values.items():
        grouped.setdefault(sets.get(question, "(none)"), {})[question] = value
    return {name: found for name, found in grouped.items() if found}


def _cards(table: SystemTable) -> tuple[Card, ...]:
    best = table.ranked[0]
    tied = sum(row.rank == 1 for row in table.means) > 1
    among = f", {'tied ' if tied else 'the '}best of {len(table.means)}" if len(table.means) > 1 else ""
    cards = [
        Card(
            label=f"{table.measure} of {best.system}{among}",
            value=written(best.mean, "number"),
            detail=spread((best.interval.low, best.interval.high), "number", f"{table.n:,} questions"),
        )
    ]
    if table.comparisons:
        sure = sum(row.p_holm < 0.05 for row in table.comparisons)
        cards.append(
            Card(
                label="Differences that chance does not explain",
                value=f"{sure} of {len(table.comparisons)}",
                detail="p < 0.05 by the paired randomisation test, Holm-corrected",
            )
        )
    return tuple(cards)
