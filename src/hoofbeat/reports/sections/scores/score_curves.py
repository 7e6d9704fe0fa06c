"""Curves and spreads: accuracy as more of the case is read, how it falls when all of k answers must be right, and what
several runs, few bootstrap samples and measured scores give as mean ± spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct, structs

from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.information_curve import InformationCurve, information_curves, retained_scores
from hoofbeat.findings.intervals import Interval
from hoofbeat.findings.outcomes import HUMAN, SystemKey, by_system, per_question
from hoofbeat.findings.repeated_answers import ScoreMean, WorstAtK, bootstrap_sd, runs_mean, score_means, worst_at_k
from hoofbeat.judging import Scorer
from hoofbeat.judging.catalogue import criterion
from hoofbeat.registry import registry
from hoofbeat.reports.charts import Curve, curves, interval_bar, interval_dots
from hoofbeat.reports.charts.svg import SERIES
from hoofbeat.reports.interval_words import BY, method_words
from hoofbeat.reports.model import Block, Details, Heading, Notice
from hoofbeat.reports.section import OwnFigure, figure
from hoofbeat.reports.sections.scores.accuracy_table import (
    SENSITIVITY_NOTE,
    UNSCORED,
    ScoreBlocks,
    folded,
    missing,
)
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, triple

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
    drawn = {each.name for each in registry.all(Scorer) if each.by_part}
    for name, (aspect, judge) in _measures(group).items():
        if aspect in drawn:
            found[name] = retained_scores(group.judgments, aspect, judge=judge, clusters=group.clusters)
            ends[name] = _score_ends(group, aspect, judge)
    for measure, table in found.items():
        kept = [line for row in table if len((line := _line(row, ends[measure])).points) > 1]
        if not kept:
            continue
        if not blocks:
            blocks.append(Heading("How much of the case does a model need?", f"{group.prefix}-cumulative", 3))
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


def _score_ends(group: OutcomeSet, aspect: str, judge: str | None) -> dict[SystemKey, _Point]:
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
        for row in score_means(group.judgments, aspect, judge=judge, clusters=group.clusters)
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


def _ranks(group: OutcomeSet) -> dict[str, int]:
    """The models in the order of the tables; those whose free text was measured and not judged come last."""
    return {model: place for place, (model, _) in enumerate([*group.order, *group.unjudged])}


def _curve_name(group: OutcomeSet, row: InformationCurve) -> str:
    several = len(_ranks(group)) > 1
    parts = [row.model if several else "", row.protocol, row.unit if row.unit != "tokens" else ""]
    return ", ".join(part for part in parts if part) or row.model


def _cumulative_chart(group: OutcomeSet, measure: str, lines: Sequence[_Line]) -> Block:
    best = sorted(lines, key=lambda line: -line.points[-1].score)[:SERIES]
    rank = _ranks(group)
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
    caption = f"Whiskers are 95% intervals ({_methods(lines)}); unscored answers count 0.{rest}"
    return figure(f"{group.prefix}-cumulative-{measure}", caption, draw)


def _methods(lines: Sequence[_Line]) -> str:
    """By which method the intervals of the curves' points are."""
    points = ((f"{line.row.model} ({point.words})", point.interval) for line in lines for point in line.points)
    return method_words(points)


def _cumulative_table(group: OutcomeSet, measure: str, lines: Sequence[_Line]) -> Table:
    columns = (
        *columns_of("model | protocol | part shown"),
        Column(measure, "share"),
        UNSCORED,
        *columns_of("sensitivity:share | share of the whole case's score:share | planned:count"),
    )
    rank = _ranks(group)
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
        note="The share of the whole case's score is paired by question. "
        f"95% intervals: {_methods(lines)}. {SENSITIVITY_NOTE}",
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
        *columns_of("model | condition | k:count | questions:count | with fewer samples:count"),
        UNSCORED,
        *columns_of("worst@k:share | sensitivity:share"),
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


_PANELS = 5
_ROWS = 24
_LARGER = (
    "These samples are larger than the set, so their standard deviation is smaller than the uncertainty of the "
    "figure. Choose a --size of at most the number of questions."
)


def runs_section(group: OutcomeSet, *, draws: int, size: int) -> ScoreBlocks:
    """The mean of several runs with its standard deviation, and the mean of a few bootstrap samples with theirs."""
    blocks: list[Block] = []
    several = [row for row in runs_mean(group.outcomes) if row.runs > 1]
    rank = {system: place for place, system in enumerate(group.order)}
    if several:
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (row.model, row.condition, row.runs, row.planned, missing(row.unscored), row.mean, row.std, row.sensitivity)
            for row in sorted(several, key=lambda row: rank[row.model, row.condition])
        )
        columns = (
            *columns_of("model | condition | runs:count | planned:count"),
            UNSCORED,
            *columns_of("mean accuracy:share | sd over runs:share | sensitivity:share"),
        )
        blocks.append(
            Table(
                name=f"{group.prefix}-runs",
                caption="Mean of the runs",
                n=len(group.questions),
                unit="questions",
                columns=columns,
                rows=rows,
                note="A run is one sample of every question; the standard deviation is over runs (n − 1). "
                f"{SENSITIVITY_NOTE}",
            )
        )
    blocks.append(_bootstrap(group, draws, size))
    return ScoreBlocks(blocks=(Heading("Runs and bootstrap samples", f"{group.prefix}-runs", 3), *blocks))


def _bootstrap(group: OutcomeSet, draws: int, size: int) -> Block:
    rows: list[tuple[Cell, ...]] = []
    systems = by_system(group.outcomes)
    for system in group.order:
        shares = per_question(systems[system])
        found = bootstrap_sd(shares.low, draws=draws, size=size)
        rows.append((*system, found.n, int(shares.unscored.sum()), found.mean, found.std))
    fewest = min(len({row.question for row in mine}) for mine in systems.values())
    caption = f"Mean and standard deviation over {draws} bootstrap samples of {size} questions"
    table = Table(
        name=f"{group.prefix}-bootstrap",
        caption=caption + (f", more than the {fewest:,} there are" if size > fewest else ""),
        n=len(group.questions),
        unit="questions",
        columns=(
            *columns_of("model | condition | questions:count"),
            UNSCORED,
            *columns_of("mean:share | sd:share"),
        ),
        rows=tuple(rows),
        note="Questions are drawn with replacement (seed 0). The standard deviation is of samples of this size. It "
        "shows how much such samples vary, not how certain the accuracy is." + (f" {_LARGER}" if size > fewest else ""),
    )
    return Details(table.caption, (table,))


def _max_score(aspect: str) -> float:
    known = criterion(aspect)
    return known.scale[1] if known else 1.0


def _measures(group: OutcomeSet) -> dict[str, tuple[str, str | None]]:
    """What was measured: an aspect, or an aspect by one of its scorers where several measured it.

    BERTScore by two encoders is two measures, whatever their names: the values of one say nothing about the other's.
    """
    scorers: dict[str, dict[str, None]] = {}
    for each in group.judgments:
        if each.score is not None and not each.passage and not each.judge.startswith(HUMAN):
            scorers.setdefault(each.aspect, {})[each.judge] = None
    found: dict[str, tuple[str, str | None]] = {}
    for aspect, judges in scorers.items():
        if len(judges) == 1:
            found[aspect] = (aspect, None)
        else:
            found |= {f"{aspect}, scorer {number}": (aspect, judge) for number, judge in enumerate(judges, start=1)}
    return found


def _mixed(measures: dict[str, tuple[str, str | None]]) -> list[Block]:
    """The scorers of aspects that several measured, by their names in tables and figures."""
    told = [f"{name}: {judge}" for name, (_, judge) in measures.items() if judge is not None]
    if not told:
        return []
    why = "These scores were measured by several scorers (encoder, layer or rescaling differ). Values of different "
    return [Notice(f"{why}scorers can't be compared, so each has its own panel, curve and rows. {'; '.join(told)}.")]


def measured_section(group: OutcomeSet, *, draws: int, size: int) -> ScoreBlocks:
    """Scores that measure instead of labelling: BERTScore, ROUGE-L, edit distance, exact and fuzzy match."""
    measures = _measures(group)
    if not measures:
        return ScoreBlocks()
    mine = [each for each in group.judgments if not each.passage and not each.judge.startswith(HUMAN)]
    found = {
        name: score_means(
            mine,
            aspect,
            judge=judge,
            max_score=_max_score(aspect),
            clusters=group.clusters,
            draws=draws,
            size=size,
        )
        for name, (aspect, judge) in measures.items()
    }
    order = [system for system in group.tallies if any(_row(table, system) for table in found.values())]
    ours = tuple(
        OwnFigure(
            measure=name,
            model=row.model,
            condition=row.condition,
            value=triple(row.mean, row.interval),
            n=row.n,
            unscored=missing(row.unscored),
            scorer=row.judge,
        )
        for name, table in found.items()
        for row in table
    )
    heading = Heading("Measured scores", f"{group.prefix}-measured", 3)
    blocks: list[Block] = [heading, *_mixed(measures), _dots(group, found, order)]
    blocks.append(folded(_table(group, found, order, draws, size), 30))
    return ScoreBlocks(blocks=tuple(blocks), ours=ours)


def _row(table: Sequence[ScoreMean], system: SystemKey) -> ScoreMean | None:
    return next((row for row in table if (row.model, row.condition) == system), None)


def _dots(group: OutcomeSet, found: dict[str, list[ScoreMean]], order: Sequence[SystemKey]) -> Block:
    shown = order[:_ROWS]
    panels = {}
    for aspect, table in list(found.items())[:_PANELS]:
        rows = [(system, _row(table, system)) for system in shown]
        panels[aspect] = [
            interval_bar(system[1], row.mean if row else None, row.interval if row else None) for system, row in rows
        ]
    names = [group.name(system) for system in shown]
    draw = partial(interval_dots, names, panels, title="Measured scores", form="number")
    spans = (
        (f"{aspect} of {group.name((row.model, row.condition))}", row.interval)
        for aspect, rows in found.items()
        for row in rows
    )
    caption = (
        f"Mean score of all planned answers with 95% intervals ({method_words(spans)}); an answer without a score "
        "counts 0."
    )
    return figure(f"{group.prefix}-measured", caption, draw)


def _table(
    group: OutcomeSet, found: dict[str, list[ScoreMean]], order: Sequence[SystemKey], draws: int, size: int
) -> Table:
    fewest = min(row.n for table in found.values() for row in table)
    columns = (
        *columns_of("score | model | condition | planned:count"),
        UNSCORED,
        *columns_of(f"mean, 95% interval:number | {BY} | mean of the scored:number"),
        Column(f"mean of {draws} × {size}" + (f" (of {fewest:,})" if size > fewest else ""), "number"),
        *columns_of("sd:number | sensitivity:number | scorer"),
    )
    rows: list[tuple[Cell, ...]] = []
    for aspect, table in found.items():
        for system in order:
            row = _row(table, system)
            if row is None:
                continue
            few = row.bootstrap_sd
            rows.append(
                (
                    aspect,
                    row.model,
                    row.condition,
                    row.n,
                    missing(row.unscored),
                    triple(row.mean, row.interval),
                    row.interval.by,
                    row.mean_scored,
                    few.mean,
                    few.std,
                    row.sensitivity,
                    row.judge,
                )
            )
    best = "1" if {_max_score(row.aspect) for table in found.values() for row in table} == {1.0} else "the maximum"
    return Table(
        name=f"{group.prefix}-measured",
        caption="Measured scores of each system",
        n=len(group.questions),
        unit="questions",
        columns=columns,
        rows=tuple(rows),
        note="Answers without a score count 0 and stay in the denominator. Sensitivity is the mean if all of them "
        f"scored 0 and if all scored {best}, where they exceed 1%." + (f" {_LARGER}" if size > fewest else ""),
    )
