"""Curves: accuracy as more of the case is read, and how it falls when every one of k answers must be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct, structs

from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.information_curve import InformationCurve, information_curves, retained_scores
from hoofbeat.findings.intervals import Interval
from hoofbeat.findings.mean_scores import score_means
from hoofbeat.findings.outcomes import SystemKey
from hoofbeat.findings.repeated_answers import WorstAtK, worst_at_k
from hoofbeat.judging import Scorer
from hoofbeat.registry import registry
from hoofbeat.reports.charts import Curve, curves
from hoofbeat.reports.charts.svg import SERIES
from hoofbeat.reports.model import Block, Heading
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.section_blocks import figure
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.reports.sections.scores.score_tables import (
    SENSITIVITY_NOTE,
    UNSCORED,
    ScoreBlocks,
    folded,
    missing,
    triple,
)
from hoofbeat.reports.tables import Cell, Column, Table

_KS = 16
_MARKS = 12


class _Point(Struct, frozen=True, kw_only=True):
    """A point of a curve as it is drawn: how much was shown, the score with its interval, and what stands behind it."""

    fraction: float
    words: str
    planned: int
    unscored: int
    score: float
    interval: Interval
    sensitivity: tuple[float, float] | None


class _Line(Struct, frozen=True):
    """A curve with all its points, the whole case among them where it was asked."""

    row: InformationCurve
    points: tuple[_Point, ...]


def cumulative_section(group: OutcomeSet) -> ScoreBlocks:
    """What a model makes of the first parts of a case, by accuracy and by the scores of its free text."""
    blocks: list[Block] = []
    ours: list[OwnFigure] = []
    ends: dict[str, dict[SystemKey, _Point]] = {"accuracy": _accuracy_ends(group)}
    found = {"accuracy": information_curves(group.outcomes, clusters=group.clusters)}
    for aspect in (each.name for each in registry.all(Scorer) if each.by_part):
        if any(each.aspect == aspect for each in group.judgments):
            found[aspect] = retained_scores(group.judgments, aspect, clusters=group.clusters)
            ends[aspect] = _score_ends(group, aspect)
    for measure, table in found.items():
        kept = [line for row in table if len((line := _line(row, ends[measure])).points) > 1]
        if not kept:
            continue
        if not blocks:
            blocks.append(Heading("How much of the case is needed", f"{group.prefix}-cumulative", 3))
        blocks += [_cumulative_chart(group, measure, kept), folded(_cumulative_table(group, measure, kept), 30)]
        ours += [
            OwnFigure(
                measure="retained",
                model=line.row.model,
                condition=", ".join(part for part in (measure, line.row.protocol) if part),
                value=triple(line.row.retained_at_first, line.row.interval),
                n=line.row.n,
                unscored=line.points[0].unscored,
            )
            for line in kept
            if line.row.retained_at_first is not None
        ]
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(ours))


def _accuracy_ends(group: OutcomeSet) -> dict[SystemKey, _Point]:
    """Every system as the end of a curve, for those whose whole case is the closed book."""
    return {
        (row.model, row.condition): _Point(
            fraction=1.0,
            words=row.condition,
            planned=row.planned,
            unscored=missing(row.unscored),
            score=row.accuracy,
            interval=row.bootstrap,
            sensitivity=row.sensitivity,
        )
        for row in accuracies(group.outcomes, clusters=group.clusters)
    }


def _score_ends(group: OutcomeSet, aspect: str) -> dict[SystemKey, _Point]:
    return {
        (row.model, row.condition): _Point(
            fraction=1.0,
            words=row.condition,
            planned=row.n,
            unscored=missing(row.unscored),
            score=row.mean,
            interval=row.interval,
            sensitivity=row.sensitivity,
        )
        for row in score_means(group.judgments, aspect, clusters=group.clusters)
    }


def _line(row: InformationCurve, ends: Mapping[SystemKey, _Point]) -> _Line:
    points = [
        _Point(
            fraction=point.fraction,
            words=f"{100 * point.fraction:g}% of {row.unit}",
            planned=point.planned,
            unscored=point.unscored,
            score=point.score,
            interval=point.interval,
            sensitivity=point.sensitivity,
        )
        for point in row.points
    ]
    if points[-1].fraction < 1 and (end := ends.get((row.model, row.full))):
        points.append(structs.replace(end, words=f"all ({row.full})"))
    return _Line(row, tuple(points))


def worst_section(group: OutcomeSet) -> ScoreBlocks:
    """worst@k of every system with several samples a question."""
    most = max((group.tallies[system].samples for system in group.order), default=1)
    if most < 2:
        return ScoreBlocks()
    several = {system for system in group.order if group.tallies[system].samples > 1}
    chosen = (row for row in group.outcomes if (row.model, row.condition) in several)
    found = worst_at_k(chosen, range(1, min(most, _KS) + 1), clusters=group.clusters)
    rows: dict[SystemKey, list[WorstAtK]] = {}
    for row in found:
        if row.value is not None:
            rows.setdefault((row.model, row.condition), []).append(row)
    table = _worst_table(group, found)
    return ScoreBlocks(
        blocks=(
            Heading("Right every time: worst@k", f"{group.prefix}-worst", 3),
            _worst_chart(group, rows),
            folded(table, 16),
        )
    )


def _curve_name(group: OutcomeSet, row: InformationCurve) -> str:
    several = len({model for model, _ in group.order}) > 1
    parts = [row.model if several else "", row.protocol, row.unit if row.unit != "tokens" else ""]
    return ", ".join(part for part in parts if part) or row.model


def _cumulative_chart(group: OutcomeSet, measure: str, lines: Sequence[_Line]) -> Block:
    best = sorted(lines, key=lambda line: -line.points[-1].score)[:SERIES]
    rank = {model: place for place, (model, _) in enumerate(group.order)}
    drawn = sorted(best, key=lambda line: rank[line.row.model])
    series = [
        Curve(
            name=_curve_name(group, line.row),
            points=tuple((point.fraction, point.score) for point in line.points),
            band=tuple((point.interval.low, point.interval.high) for point in line.points),
        )
        for line in drawn
    ]
    marks = sorted({0.0, *(point.fraction for line in drawn for point in line.points)})
    rest = f" The {SERIES} best of {len(lines)}; all are in the table." if len(lines) > len(drawn) else ""
    draw = partial(
        curves,
        series,
        title=f"{measure.capitalize()} with the first part of the case",
        x="share of the case shown",
        y=measure,
        forms=("share", "share"),
        whiskers=True,
        marks=marks if len(marks) <= _MARKS else (),
    )
    caption = f"Whiskers are 95% bootstrap intervals; unscored answers count 0.{rest}"
    return figure(f"{group.prefix}-cumulative-{measure}", caption, draw)


def _cumulative_table(group: OutcomeSet, measure: str, lines: Sequence[_Line]) -> Table:
    columns = (
        Column("model"),
        Column("protocol"),
        Column("part shown"),
        Column(measure, "share"),
        UNSCORED,
        Column("sensitivity", "share"),
        Column("kept of the whole", "share"),
        Column("planned", "count"),
    )
    rank = {model: place for place, (model, _) in enumerate(group.order)}
    rows: list[tuple[Cell, ...]] = []
    for line in sorted(lines, key=lambda line: rank[line.row.model]):
        for place, point in enumerate(line.points):
            rows.append(
                (
                    line.row.model,
                    line.row.protocol or "free text",
                    point.words.replace(" ", "\u00a0"),
                    triple(point.score, point.interval),
                    point.unscored,
                    point.sensitivity,
                    triple(line.row.retained_at_first, line.row.interval) if place == 0 else None,
                    point.planned,
                )
            )
    return Table(
        name=f"{group.prefix}-cumulative-{measure}",
        caption=f"{measure.capitalize()} by how much of the case was shown",
        n=len(group.questions),
        unit="questions",
        columns=columns,
        rows=tuple(rows),
        note="What the first part keeps of the whole is paired by question, with its bootstrap interval. "
        f"{SENSITIVITY_NOTE}",
    )


def _worst_chart(group: OutcomeSet, rows: dict[SystemKey, list[WorstAtK]]) -> Block:
    best = sorted(rows, key=lambda system: -(rows[system][-1].value or 0.0))[:SERIES]
    best.sort(key=group.order.index)
    series = [
        Curve(
            name=group.name(system),
            points=tuple((float(row.k), row.value or 0.0) for row in rows[system]),
            band=tuple((row.interval.low, row.interval.high) for row in rows[system] if row.interval),
        )
        for system in best
    ]
    rest = f" The {SERIES} best of {len(rows)} systems at the largest k." if len(rows) > len(best) else ""
    most = max(row.k for found in rows.values() for row in found)
    marks = sorted({1.0, *(float(k) for k in range(2, most, max(1, round(most / 8)))), float(most)})
    if most > 4:
        marks = [mark for mark in marks if mark == most or most - mark >= max(1, round(most / 8))]
    draw = partial(curves, series, title="worst@k", x="answers that must all be right (k)", y="worst@k", marks=marks)
    caption = (
        f"The chance that k answers to a question are all right, averaged over questions, with 95% intervals.{rest}"
    )
    return figure(f"{group.prefix}-worst", caption, draw)


def _worst_table(group: OutcomeSet, found: Sequence[WorstAtK]) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("k", "count"),
        Column("questions", "count"),
        Column("with fewer samples", "count"),
        UNSCORED,
        Column("worst@k", "share"),
        Column("sensitivity", "share"),
    )
    rank = {system: place for place, system in enumerate(group.order)}
    rows = tuple(
        (
            row.model,
            row.condition,
            row.k,
            row.n,
            row.skipped,
            missing(row.unscored),
            triple(row.value, row.interval),
            row.sensitivity,
        )
        for row in sorted(found, key=lambda row: (rank[row.model, row.condition], row.k))
    )
    return Table(
        name=f"{group.prefix}-worst",
        caption="worst@k of each system",
        n=len(group.questions),
        unit="questions",
        columns=columns,
        rows=rows,
        note="From n samples with c right: C(c,k)/C(n,k), averaged over questions with at least k samples. "
        "Unscored samples count as not right.",
    )
