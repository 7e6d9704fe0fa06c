"""Rankings broken down in a report: by facet, by set, by setting, and against the answers that came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hoofbeat.findings.ablation import Ablation, AblationCell
from hoofbeat.findings.breakdown import FacetGroup, FacetTable, SetTable
from hoofbeat.findings.correlation import AnswersAndRetrieval, Correlation, correlation
from hoofbeat.findings.intervals import Interval
from hoofbeat.reports.charts import NARROW, Bar, FitPoint, fitted_scatter, interval_dots, number_matrix
from hoofbeat.reports.model import Block, Heading, Notice, Text
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of, written
from hoofbeat.store.atomic_files import slug

__all__ = ["ablation_blocks", "ablation_table", "answer_blocks", "facet_blocks", "set_blocks"]

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
        rows.append((value, n, *(_cell(group) for group in groups)))
    cut = [f"the {len(shown)} largest of {len(values)} groups"] if len(values) > len(shown) else []
    cut += [f"the {_PANELS} best of {len(tables)} systems"] if len(tables) > _PANELS else []
    drawn = f" Drawn are {' and '.join(cut)}." if cut else ""
    return [
        Heading(f"By {facet}", f"by-{slug(facet)}"),
        figure(
            f"by-{facet}",
            f"{measure} by {facet} with 95% intervals; the number of questions stands in brackets.{drawn}",
            partial(interval_dots, labels, panels, title=f"{measure} by {facet}", shared=True),
        ),
        Table(
            name=f"by-{facet}",
            caption=f"{measure} by {facet}",
            n=first.n,
            unit="questions",
            columns=(Column(facet), Column("questions", "count"), *(Column(name, "number") for name in tables)),
            rows=tuple(rows),
            note="A question with several values counts in each. A group of few questions says little.",
        ),
    ]


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
            rows=tuple((name, *map(_cell, (*table.sets, table.macro))) for name, table in tables.items()),
            note="The average weighs every set the same; its interval comes from resampling questions within sets.",
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
    mean = (cell.mean, cell.interval.low, cell.interval.high)
    if cell.gain is None:
        return [mean, "baseline" if cell.baseline else None, None]
    span = cell.gain.interval
    return [mean, (cell.gain.difference, span.low, span.high), cell.relative]


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
    if cell is None:
        return Bar(label="", value=None)
    return Bar(label="", value=cell.mean, low=cell.interval.low, high=cell.interval.high)


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
            (row.accuracy, row.accuracy_interval.low, row.accuracy_interval.high),
            (row.score, row.score_interval.low, row.score_interval.high),
            row.when_right,
            row.when_wrong,
        )
        for row in models
    )
    columns = (
        Column("model"),
        Column("questions", "count"),
        Column("unscored", "count"),
        Column("right", "share"),
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
            note="Unscored questions have no verdict or no ranking and are left out.",
        ),
    ]


def _correlation_words(found: Correlation) -> str:
    if found.pearson is None:
        return f"{count_of(found.n, 'model')}: too few, or too alike, to correlate."
    pearson = _coefficient(found.pearson, found.pearson_interval)
    spearman = _coefficient(found.spearman, found.spearman_interval)
    few = "" if found.pearson_interval else " There are too few models for intervals."
    return f"Over {count_of(found.n, 'model')}: Pearson's r {pearson}, Spearman's ρ {spearman}.{few}"


def _coefficient(value: float | None, interval: Interval | None) -> str:
    return written((value, interval.low, interval.high) if interval else value, "number")


def _group(table: FacetTable, value: str) -> FacetGroup | None:
    if value == "all":
        return table.overall
    return next((group for group in table.groups if group.value == value), None)


def _bar(group: FacetGroup | None) -> Bar:
    if group is None:
        return Bar(label="", value=None)
    return Bar(label=group.value, value=group.mean, low=group.interval.low, high=group.interval.high)


def _cell(group: FacetGroup | None) -> Cell:
    return None if group is None else (group.mean, group.interval.low, group.interval.high)
