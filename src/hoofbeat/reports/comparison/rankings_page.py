"""Rankings of several systems as one page: who is better, by how much, how surely, and where.

Everything comes in as plain mappings (system to question to measure to value), so that rankings folders, runs of other
programs and figures of a paper can be set side by side. Blocks: systems with their measures and differences, ablations,
facets, sets, and answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.breakdown import FacetGroup, FacetTable, SetTable, by_facet, over_sets, values_of
from hoofbeat.findings.caveats import folder_caveats
from hoofbeat.findings.intervals import Interval, bootstrap_mean, cluster_labels
from hoofbeat.findings.systems import (
    Ablation,
    AblationCell,
    AnswersAndRetrieval,
    Correlation,
    PairedComparison,
    Systems,
    SystemTable,
    compare_systems,
    correlation,
    shared_values,
)
from hoofbeat.records import Facets
from hoofbeat.reports.charts import (
    NARROW,
    Bar,
    Curve,
    FitPoint,
    curves,
    difference_bars,
    fitted_scatter,
    interval_bar,
    interval_dots,
    number_matrix,
)
from hoofbeat.reports.charts.svg import SERIES
from hoofbeat.reports.comparison.rankings import RankingsComparison
from hoofbeat.reports.interval_words import BY, clustered_unit, interval_note, method_words
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, Report, Text
from hoofbeat.reports.ranking_tables import difference_table
from hoofbeat.reports.report_writer import KIND, NOTICE, Sheet, write_comparison
from hoofbeat.reports.section import figure, spread
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple, written
from hoofbeat.store import Artefact, Counts, Manifest
from hoofbeat.store.files import slug
from hoofbeat.text import some_of
from hoofbeat.version import __version__

_RECALL = re.compile(r"R@[1-9]\d{0,8}")
_PLOTTED = 6
_DRAWN = 6
Measured = Mapping[str, Mapping[str, tuple[float, Interval]]]


def measured_means(
    systems: Systems, measures: Sequence[str], *, clusters: Mapping[str, str] | None = None, seed: int = 0
) -> dict[str, dict[str, tuple[float, Interval]]]:
    """Measure to system to its mean with interval, over the questions that all systems share."""
    found: dict[str, dict[str, tuple[float, Interval]]] = {}
    for measure in measures:
        questions, values = shared_values(systems, measure)
        labels = cluster_labels(questions, clusters)
        found[measure] = {
            name: (float(array.mean()), bootstrap_mean(array, clusters=labels, seed=seed))
            for name, array in values.items()
        }
    return found


def system_blocks(table: SystemTable) -> list[Block]:
    """What was compared, and what could not be."""
    of = (
        f" in {count_of(table.clusters, 'cluster')} (questions with the same documents)"
        if table.clusters < table.n
        else ""
    )
    blocks: list[Block] = [
        Text(
            f"{count_of(len(table.means), 'system')} over the {count_of(table.n, 'question')}{of} for which all have "
            f"a value. A question without a relevant hit counts 0."
        )
    ]
    missing = [f"{row.system} {row.left_out:,}" for row in table.means if row.left_out]
    if missing:
        blocks.append(
            Notice(f"Questions left out, because another system has no value for them: {', '.join(missing)}.")
        )
    return blocks


def measure_blocks(found: Measured, table: SystemTable) -> list[Block]:
    """Every measure of every system: dots with intervals, best first, and the figures."""
    order = [row.system for row in table.ranked]
    plotted = list(found)[:_PLOTTED]
    panels = {measure: [interval_bar(name, *found[measure][name]) for name in order] for measure in plotted}
    columns = [*columns_of("system | place:count | place, 95%:text")]
    columns += [*(Column(measure, "number") for measure in found), Column(BY)]
    rows: list[tuple[Cell, ...]] = []
    for row in table.ranked:
        cells: list[Cell] = [row.system, row.rank, _places(row.rank_interval)]
        cells += [triple(*found[measure][row.system]) for measure in found]
        cells.append(method_words((measure, found[measure][row.system][1]) for measure in found))
        rows.append(tuple(cells))
    spans = [(f"{measure} of {name}", span) for measure in found for name, (_, span) in found[measure].items()]
    drawn = method_words(each for each in spans if each[0].partition(" of ")[0] in plotted)
    caption = f"Measures of each system with 95% intervals ({drawn})."
    return [
        Heading("Measures", "measures"),
        figure("measures", caption, partial(interval_dots, order, panels, title="Measures of each system")),
        Table(
            name="measures",
            caption=f"Measures of each system, ranked by {table.measure}",
            n=table.n,
            unit=clustered_unit(table.n, table.clusters),
            columns=tuple(columns),
            rows=tuple(rows),
            note=f"{interval_note((span for _, span in spans), seed=table.seed)} The interval of a place is from "
            f"drawing the same questions for all systems.",
        ),
    ]


def difference_blocks(systems: Systems, table: SystemTable) -> list[Block]:
    """Every comparison as a table, and the questions behind the first of them as bars."""
    if not table.comparisons:
        return []
    blocks: list[Block] = [
        Heading("Differences", "differences"),
        difference_table(table, "differences"),
    ]
    questions, values = shared_values({row.system: systems[row.system] for row in table.means}, table.measure)
    drawn = [_difference_chart(number, row, questions, values, table.measure) for number, row in _shown(table)]
    blocks += drawn[:2]
    if drawn[2:]:
        blocks.append(Details(f"{len(drawn) - 2} more differences, question by question", tuple(drawn[2:])))
    return blocks


def _shown(table: SystemTable) -> list[tuple[int, PairedComparison]]:
    """The comparisons to draw: the largest differences."""
    numbered = list(enumerate(table.comparisons))
    return sorted(numbered, key=lambda pair: -abs(pair[1].paired.difference))[:_DRAWN]


def _difference_chart(
    number: int,
    row: PairedComparison,
    questions: Sequence[str],
    values: Mapping[str, NDArray[np.float64]],
    measure: str,
) -> Block:
    gains = [
        (question, float(mine - other))
        for question, mine, other in zip(questions, values[row.second], values[row.first], strict=True)
    ]
    title = f"{row.second} against {row.first}"
    draw = partial(
        difference_bars, gains, title=f"{title}, question by question", y=f"{measure} gained by {row.second}"
    )
    return figure(f"difference-{number + 1}", f"{title}: the gain on each question, largest first.", draw)


def recall_blocks(means: Measured, table: SystemTable) -> list[Block]:
    """Recall over depth of the best systems, where it was measured at three depths or more."""
    known = sorted((int(name[2:]), name) for name in means if _RECALL.fullmatch(name))
    if len(known) < 3:
        return []
    best = [row.system for row in table.ranked][:SERIES]
    series = []
    for system in best:
        found = [interval_bar(system, *means[name][system]) for _, name in known]
        points = tuple((float(depth), bar.value or 0.0) for (depth, _), bar in zip(known, found, strict=True))
        band = tuple((bar.low or 0.0, bar.high or 0.0) for bar in found)
        series.append(Curve(name=system, points=points, band=band))
    draw = partial(curves, series, title="Recall over depth", x="documents kept (k)", y="recall", log=True)
    left = len(table.means) - len(best)
    rest = f" The {SERIES} best systems by {table.measure}; {left} more are in the table." if left else ""
    caption = f"Share of the relevant documents among the first k, with 95% intervals.{rest}"
    return [Heading("Recall over depth", "recall"), figure("recall", caption, draw)]


def _places(interval: tuple[int, int]) -> str:
    return str(interval[0]) if interval[0] == interval[1] else f"{interval[0]}–{interval[1]}"


_ROWS = 24
_PANELS = 6


def facet_blocks(tables: Mapping[str, FacetTable], measure: str) -> list[Block]:
    """One facet: a panel of dots for each system (best first) and the figures; `tables` maps systems to theirs."""
    if not tables:
        return []
    first = next(iter(tables.values()))
    facet, values = first.facet, [group.value for group in first.groups]
    shown = values[:_ROWS]
    panels = {name: [_bar(_group(table, value)) for value in shown] for name, table in list(tables.items())[:_PANELS]}
    labels = [f"{group.value} ({group.n:,})" for group in first.groups[: len(shown)]]
    rows: list[tuple[Cell, ...]] = []
    for value in [*values, "all"]:
        groups = [_group(table, value) for table in tables.values()]
        n = max((group.n for group in groups if group), default=0)
        rows.append((value, n, *(_group_cell(group) for group in groups)))
    cut = [f"the {len(shown)} largest of {len(values)} groups"] if len(values) > len(shown) else []
    cut += [f"the {_PANELS} best of {len(tables)} systems"] if len(tables) > _PANELS else []
    drawn = f" Drawn are {' and '.join(cut)}." if cut else ""
    return [
        Heading(f"By {facet}", f"by-{slug(facet)}"),
        figure(
            f"by-{facet}",
            f"{measure} by {facet} with 95% intervals; the number of questions is in brackets.{drawn}",
            partial(interval_dots, labels, panels, title=f"{measure} by {facet}", shared=True),
        ),
        Table(
            name=f"by-{facet}",
            caption=f"{measure} by {facet}",
            n=first.n,
            unit="questions",
            columns=(Column(facet), Column("questions", "count"), *(Column(name, "number") for name in tables)),
            rows=tuple(rows),
            note="A question with several values counts in each. Groups with few questions say little. "
            + _by_system({name: [*table.groups, table.overall] for name, table in tables.items()}),
        ),
    ]


def _by_system(groups: Mapping[str, Sequence[FacetGroup]]) -> str:
    """By which method the intervals of groups are; what differs from the rest is named with its system."""
    named = ((f"{name} ({each.value})", each.interval) for name, rows in groups.items() for each in rows)
    return f"95% intervals: {method_words(named)}."


def set_blocks(tables: Mapping[str, SetTable], measure: str) -> list[Block]:
    """The sets of a benchmark as shades, with the average over sets; `tables` maps systems to theirs."""
    if not tables:
        return []
    first = next(iter(tables.values()))
    names = [group.value for group in first.sets]
    found_in = {name: [*table.sets, table.macro] for name, table in tables.items()}

    def draw(*, width: int) -> str:
        """Shades where there is room for them, else dots."""
        title, groups = f"{measure} by set", [*names, "average"]
        if width <= NARROW:
            panels = {name: [_bar(group) for group in row] for name, row in list(found_in.items())[:_PANELS]}
            return interval_dots(groups, panels, title=title, shared=True, width=width)
        values = [[group.mean for group in row] for row in found_in.values()]
        return number_matrix(
            list(tables), groups, values, title=title, across="set", down="system", form="number", width=width
        )

    columns = (Column("system"), *(Column(name, "number") for name in [*names, "average"]))
    return [
        Heading("By set", "by-set"),
        figure("by-set", f"{measure} of each system on each set, and the mean of the sets.", draw),
        Table(
            name="by-set",
            caption=f"{measure} by set",
            n=first.macro.n,
            unit="questions",
            columns=columns,
            rows=tuple((name, *map(_group_cell, (*table.sets, table.macro))) for name, table in tables.items()),
            note=f"Every set has the same weight in the average. {_by_system(found_in)}",
        ),
    ]


def ablation_table(grid: Ablation) -> Table:
    """The grid as a table: for each value of the second setting the mean, what it gains, and that as a share."""
    columns = [Column(grid.down)]
    for name in grid.columns:
        head = f"{grid.across} {name}" if grid.across else name
        columns += [Column(head, "number"), Column(f"{head} gained", "number"), Column(f"{head} gained, %", "points")]
    rows: list[tuple[Cell, ...]] = []
    for row in grid.rows:
        cells: list[Cell] = [row]
        for name in grid.columns:
            cells += _ablation_cells(grid.cell(row, name))
        rows.append(tuple(cells))
    fixed = f" All with {', '.join(f'{name} {value}' for name, value in grid.fixed.items())}." if grid.fixed else ""
    left = f" {count_of(grid.left_out, 'question')} not shared by all runs are left out." if grid.left_out else ""
    return Table(
        name=f"ablation-{grid.down}-{grid.across}-{grid.measure}",
        caption=f"{grid.measure} by {grid.down}" + (f" and {grid.across}" if grid.across else ""),
        n=grid.n,
        unit="questions",
        columns=tuple(columns),
        rows=tuple(rows),
        note=f"Gains over {_baseline_words(grid)}, paired by question, with 95% bootstrap intervals.{fixed}{left}",
    )


def _baseline_words(grid: Ablation) -> str:
    base = next(cell for cell in grid.cells if cell.baseline)
    return f"{grid.down} {base.down}" + (f" and {grid.across} {base.across}" if grid.across else "")


def _ablation_cells(cell: AblationCell | None) -> list[Cell]:
    if cell is None:
        return [None, None, None]
    mean = triple(cell.mean, cell.interval)
    if cell.gain is None:
        return [mean, "baseline" if cell.baseline else None, None]
    return [mean, triple(cell.gain.difference, cell.gain.interval), cell.relative]


def ablation_blocks(grids: Sequence[Ablation]) -> list[Block]:
    """Each grid of settings as dots, a panel for each value of the second setting, and as a table."""
    blocks: list[Block] = []
    for grid in grids:
        table = ablation_table(grid)
        panels = {
            f"{grid.across} {name}" if grid.across else name: [_ablation_bar(grid.cell(row, name)) for row in grid.rows]
            for name in grid.columns
        }
        rows = [f"{grid.down} {row}" for row in grid.rows]
        blocks.append(
            figure(
                table.name,
                f"{table.caption} with 95% intervals.",
                partial(interval_dots, rows, panels, title=table.caption, shared=True),
            )
        )
        blocks.append(table)
    return [Heading("Settings", "settings"), *blocks] if blocks else []


def _ablation_bar(cell: AblationCell | None) -> Bar:
    return interval_bar("", cell.mean, cell.interval) if cell else Bar(label="", value=None)


def answer_blocks(models: Sequence[AnswersAndRetrieval], measure: str, *, seed: int = 0) -> list[Block]:
    """Right answers against retrieval, a point for each model, with the line that fits and how well it does."""
    if not models:
        return []
    found = correlation([row.score for row in models], [row.accuracy for row in models], seed=seed)
    points = [
        FitPoint(
            label=row.model,
            x=row.score,
            y=row.accuracy,
            x_interval=(row.score_interval.low, row.score_interval.high),
            y_interval=(row.accuracy_interval.low, row.accuracy_interval.high),
        )
        for row in models
    ]
    line = None if found.slope is None or found.intercept is None else (found.slope, found.intercept)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.model,
            row.n,
            row.unscored,
            triple(row.accuracy, row.accuracy_interval),
            triple(row.score, row.score_interval),
            row.when_right,
            row.when_wrong,
        )
        for row in models
    )
    columns = (
        *columns_of("model | questions:count | unscored:count | right:share"),
        Column(measure, "number"),
        Column(f"{measure} where right", "number"),
        Column(f"{measure} where wrong", "number"),
    )
    title = f"Right answers against {measure}"
    words = _correlation_words(found)
    return [
        Heading("Answers against retrieval", "answers"),
        Text(words) if found.pearson is not None else Notice(words),
        figure(
            "answers",
            f"{title}, a point for each model, with 95% intervals and the least-squares line.",
            partial(fitted_scatter, points, line, title=title, x=measure, y="right answers"),
        ),
        Table(
            name="answers",
            caption=title,
            n=max(row.n for row in models),
            unit="questions",
            columns=columns,
            rows=rows,
            note="Unscored questions (no verdict or no ranking) are left out.",
        ),
    ]


def _correlation_words(found: Correlation) -> str:
    if found.pearson is None:
        return f"{count_of(found.n, 'model')}: too few, or too similar, for a correlation."
    pearson = written(triple(found.pearson, found.pearson_interval), "number")
    spearman = written(triple(found.spearman, found.spearman_interval), "number")
    few = "" if found.pearson_interval else " There are too few models for intervals."
    return f"Over {count_of(found.n, 'model')}: Pearson's r {pearson}, Spearman's ρ {spearman}.{few}"


def _group(table: FacetTable, value: str) -> FacetGroup | None:
    if value == "all":
        return table.overall
    return next((group for group in table.groups if group.value == value), None)


def _bar(group: FacetGroup | None) -> Bar:
    return interval_bar(group.value, group.mean, group.interval) if group else Bar(label="", value=None)


def _group_cell(group: FacetGroup | None) -> Cell:
    return triple(group.mean, group.interval) if group else None


_MAIN = "nDCG@10"
_FACETS = 4


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
    every = [chosen, *(name for name in measures if name != chosen)]
    means = measured_means(systems, every, clusters=clusters, seed=seed)
    order = [row.system for row in table.ranked]
    shared = _shared(systems, chosen)
    blocks: list[Block] = [*system_blocks(table), *measure_blocks(means, table), *difference_blocks(systems, table)]
    blocks += recall_blocks(means, table)
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
        notice=NOTICE,
        version=__version__,
        subtitle=f"{count_of(len(order), 'system')}, {count_of(table.n, 'question')}, ranked by {chosen}.",
        cards=_cards(table),
        leads=_leads(table),
        blocks=tuple(blocks),
    )


def write_rankings(target: Path, compared: RankingsComparison, *, command: Sequence[str] = ()) -> Artefact:
    """Write the folder: `systems.tsv`, `pairs.tsv`, the settings' grid and the answers if any, and the report."""
    main = compared.tables[0]
    report = rankings_report(
        compared.systems,
        title=f"Retrievers compared on {_searched(compared)}: {some_of(list(compared.systems), 3)}",
        main=main.measure,
        baseline=compared.baseline,
        facets={question.id: question.facets for question in compared.questions},
        sets=compared.sets,
        clusters=compared.clusters,
        ablations=[compared.grid] if compared.grid else [],
        answers=compared.answers,
        seed=compared.seed,
    )
    warnings = folder_caveats(compared.folders)
    manifest = Manifest(
        kind=KIND,
        title=f"{len(compared.systems)} retrievers over {main.n} questions of {_searched(compared)}",
        command=list(command),
        inputs=[artefact.reference() for artefact in compared.folders],
        settings={
            "systems": list(compared.systems), "baseline": compared.baseline,
            **({"warnings": warnings} if warnings else {}),
        },
        seeds={"bootstrap and randomisation": compared.seed},
        counts=Counts(kept=len(compared.folders)),
        metrics={
            row.system: {"measure": main.measure, "value": row.mean, "low": row.interval.low,
                         "high": row.interval.high, "n": main.n, "clusters": main.clusters, "interval": row.interval.by}
            for row in main.means
        },
    )  # fmt: skip
    return write_comparison(target, replace(report, notes=tuple(warnings)), manifest, _sheets(compared))


def _searched(compared: RankingsComparison) -> str:
    """The test collections that were searched, by name."""
    return some_of(list(dict.fromkeys(str(each.manifest.settings["bed"]) for each in compared.folders)), 3)


def _sheets(compared: RankingsComparison) -> Iterator[Sheet]:
    tables, grid, right = compared.tables, compared.grid, compared.answers
    yield (
        "systems",
        ("measure", "system", "n", "mean", "low", "high", "rank", "rank_low", "rank_high",
         "clusters", "interval_by"),
        [
            (table.measure, row.system, table.n, row.mean, row.interval.low, row.interval.high, row.rank,
             *row.rank_interval, table.clusters, row.interval.by)
            for table in tables
            for row in table.means
        ],
    )  # fmt: skip
    yield (
        "pairs",
        ("measure", "first", "second", "n", "second_minus_first", "low", "high", "p", "p_holm", "second_better", "same",
         "second_worse",
         "clusters", "interval_by"),
        [
            (table.measure, pair.first, pair.second, pair.paired.n, pair.paired.difference, pair.paired.interval.low,
             pair.paired.interval.high, pair.test.p, pair.p_holm, pair.better, pair.same, pair.worse,
             table.clusters, pair.paired.interval.by)
            for table in tables
            for pair in table.comparisons
        ],
    )  # fmt: skip
    if grid is not None:
        yield (
            "ablation",
            ("measure", grid.down, grid.across or "-", "mean", "low", "high", "gain", "gain_low", "gain_high"),
            [
                (grid.measure, cell.down, cell.across, cell.mean, cell.interval.low, cell.interval.high,
                 *_gain(cell))
                for cell in grid.cells
            ],
        )  # fmt: skip
    if right:
        yield (
            "answers",
            ("system", "n", "unscored", "accuracy", "accuracy_low", "accuracy_high",
             "score", "score_low", "score_high"),
            [
                (row.model, row.n, row.unscored, row.accuracy, row.accuracy_interval.low, row.accuracy_interval.high,
                 row.score, row.score_interval.low, row.score_interval.high)
                for row in right
            ],
        )  # fmt: skip


def _gain(cell: AblationCell) -> tuple[object, object, object]:
    """What a combination gains over the baseline, and the interval; nothing for the baseline itself."""
    if cell.gain is None:
        return "", "", ""
    return cell.gain.difference, cell.gain.interval.low, cell.gain.interval.high


def _measures(systems: Systems) -> list[str]:
    """The measures that every system has, in the order of the first."""
    if not systems:
        raise UsageError("no systems to compare", fix="give at least one")
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


def _leads(table: SystemTable) -> tuple[Lead, ...]:
    """The best system, whether the next is surely worse, and how many differences are sure."""
    best, *rest = table.ranked
    sure = spread((best.interval.low, best.interval.high), "number", count_of(table.n, "question"))
    among = f", the best of {len(table.means)}" if rest else ""
    leads = [Lead(f"{best.system} has {table.measure} {written(best.mean, 'number')} ({sure}){among}.")]
    if rest:
        low = rest[-1]
        leads.append(Lead(f"The last, {low.system}, has {written(low.mean, 'number')}."))
    if len(table.comparisons) == 1:
        p = written(table.comparisons[0].p_holm, "p")
        told = "larger" if table.comparisons[0].p_holm < 0.05 else "not larger"
        leads.append(Lead(f"The difference is {told} than chance explains (p {p if '<' in p else f'= {p}'})."))
    elif table.comparisons:
        clear = sum(row.p_holm < 0.05 for row in table.comparisons)
        words = f"{clear} of {len(table.comparisons)} differences between systems"
        verb = "is" if clear == 1 else "are"
        leads.append(Lead(f"{words} {verb} larger than chance explains (p < 0.05, corrected for their number)."))
    return tuple(leads)


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
                label="Differences larger than chance explains",
                value=f"{sure} of {len(table.comparisons)}",
                detail="p < 0.05 by the paired randomisation test, Holm-corrected",
            )
        )
    return tuple(cards)
