"""Systems side by side in a report: their measures, how they differ and how surely, and recall over depth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hoofbeat.findings.clusters import cluster_labels
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.systems import PairedComparison, Systems, SystemTable, shared_values
from hoofbeat.reports.charts import Bar, Curve, curves, difference_bars, interval_dots
from hoofbeat.reports.charts.svg import SERIES
from hoofbeat.reports.model import Block, Details, Heading, Notice, Text
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of

__all__ = ["difference_blocks", "measure_bars", "measure_blocks", "recall_blocks", "system_blocks"]

_RECALL = re.compile(r"R@[1-9]\d{0,8}")
_PLOTTED = 6
_DRAWN = 6
Measured = Mapping[str, Mapping[str, Bar]]


def measure_bars(
    systems: Systems, measures: Sequence[str], *, clusters: Mapping[str, str] | None = None, seed: int = 0
) -> dict[str, dict[str, Bar]]:
    """Measure to system to its mean with interval, over the questions that all systems share."""
    found: dict[str, dict[str, Bar]] = {}
    for measure in measures:
        questions, values = shared_values(systems, measure)
        labels = cluster_labels(questions, clusters)
        spans = {name: bootstrap_mean(array, clusters=labels, seed=seed) for name, array in values.items()}
        found[measure] = {
            name: Bar(label=name, value=float(array.mean()), low=spans[name].low, high=spans[name].high)
            for name, array in values.items()
        }
    return found


def system_blocks(table: SystemTable) -> list[Block]:
    """What was compared, and what could not be."""
    of = f" from {count_of(table.clusters, 'source')}" if table.clusters < table.n else ""
    blocks: list[Block] = [
        Text(
            f"{count_of(len(table.means), 'system')} over the {count_of(table.n, 'question')}{of} that all of them "
            "have a value for. A question for which nothing was found counts 0."
        )
    ]
    missing = [f"{row.system} {row.left_out:,}" for row in table.means if row.left_out]
    if missing:
        blocks.append(Notice(f"Questions left out because another system has no value for them: {', '.join(missing)}."))
    return blocks


def measure_blocks(bars: Measured, table: SystemTable) -> list[Block]:
    """Every measure of every system: dots with intervals, best first, and the figures."""
    order = [row.system for row in table.ranked]
    plotted = list(bars)[:_PLOTTED]
    panels = {measure: [bars[measure][name] for name in order] for measure in plotted}
    columns = [Column("system"), Column("place", "count"), Column("place, 95%", "text")]
    columns += [Column(measure, "number") for measure in bars]
    rows: list[tuple[Cell, ...]] = []
    for row in table.ranked:
        cells: list[Cell] = [row.system, row.rank, _places(row.rank_interval)]
        cells += [_cell(bars[measure][row.system]) for measure in bars]
        rows.append(tuple(cells))
    caption = "Measures of each system with 95% bootstrap intervals over questions."
    return [
        Heading("Measures", "measures"),
        figure("measures", caption, partial(interval_dots, order, panels, title="Measures of each system")),
        Table(
            name="measures",
            caption=f"Measures of each system, placed by {table.measure}",
            n=table.n,
            unit="questions",
            columns=tuple(columns),
            rows=tuple(rows),
            note=f"Intervals by percentile bootstrap over questions, 1,000 samples, seed {table.seed}; places by "
            "drawing the same questions for all systems.",
        ),
    ]


def difference_blocks(systems: Systems, table: SystemTable) -> list[Block]:
    """Every comparison as a table, and the questions behind the first of them as bars."""
    if not table.comparisons:
        return []
    others = {row.b for row in table.comparisons}
    one = len(others) == 1
    columns = [
        Column("system"),
        *([] if one else [Column("against")]),
        Column(f"{table.measure} gained", "number"),
        Column("better", "count"),
        Column("same", "count"),
        Column("worse", "count"),
        Column("p", "p"),
        Column("p, Holm", "p"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for row in table.comparisons:
        span = row.paired.interval
        names: tuple[Cell, ...] = (row.a,) if one else (row.a, row.b)
        gained = (row.paired.difference, span.low, span.high)
        rows.append((*names, gained, row.wins, row.ties, row.losses, row.test.p, row.p_holm))
    against = f" from {table.comparisons[0].b}" if one else ""
    blocks: list[Block] = [
        Heading("Differences", "differences"),
        Table(
            name="differences",
            caption=f"Differences in {table.measure}{against}, paired by question",
            n=table.n,
            unit="questions",
            columns=tuple(columns),
            rows=tuple(rows),
            note=_how(table),
        ),
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
        for question, mine, other in zip(questions, values[row.a], values[row.b], strict=True)
    ]
    title = f"{row.a} against {row.b}"
    draw = partial(difference_bars, gains, title=f"{title}, question by question", y=f"{measure} gained by {row.a}")
    return figure(f"difference-{number + 1}", f"{title}: what each question gains, largest first.", draw)


def _how(table: SystemTable) -> str:
    tests = [row.test for row in table.comparisons]
    exact = sum(test.exact for test in tests)
    sampled = max((test.patterns for test in tests if not test.exact), default=0)
    how = f"by {sampled:,} random sign patterns" if not exact else "over all sign patterns"
    if 0 < exact < len(tests):
        how = f"over all sign patterns where few questions differ, else {sampled:,} random ones"
    return (
        f"Paired bootstrap intervals; p by the paired randomisation test, two-sided, {how}, seed {table.seed}; Holm's "
        f"correction over the {count_of(len(tests), 'comparison')} of the table."
    )


def recall_blocks(bars: Measured, table: SystemTable) -> list[Block]:
    """Recall over depth of the best systems, where it was measured at three depths or more."""
    known = sorted((int(name[2:]), name) for name in bars if _RECALL.fullmatch(name))
    if len(known) < 3:
        return []
    best = [row.system for row in table.ranked][:SERIES]
    series = []
    for system in best:
        found = [bars[name][system] for _, name in known]
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


def _cell(bar: Bar) -> Cell:
    if bar.value is None or bar.low is None or bar.high is None:
        return bar.value
    return bar.value, bar.low, bar.high
