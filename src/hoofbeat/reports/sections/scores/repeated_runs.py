"""Several runs, few bootstrap samples, and measured scores: the figures that papers give as mean ± spread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoofbeat.findings.mean_scores import ScoreMean, score_means
from hoofbeat.findings.outcomes import HUMAN, SystemKey, by_system, per_question
from hoofbeat.findings.repeated_answers import bootstrap_sd, runs_mean
from hoofbeat.judging.catalogue import criterion
from hoofbeat.reports.charts import Bar, interval_dots
from hoofbeat.reports.model import Block, Details, Heading
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

_PANELS = 5
_ROWS = 24
_LARGER = (
    "Samples larger than what there is to draw from spread less than the accuracy itself is unsure; a size of at most "
    "the number of questions can be asked for."
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
            Column("model"),
            Column("condition"),
            Column("runs", "count"),
            Column("planned", "count"),
            UNSCORED,
            Column("mean accuracy", "share"),
            Column("sd over runs", "share"),
            Column("sensitivity", "share"),
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
            Column("model"),
            Column("condition"),
            Column("questions", "count"),
            UNSCORED,
            Column("mean", "share"),
            Column("sd", "share"),
        ),
        rows=tuple(rows),
        note="Questions are drawn with replacement (seed 0). The standard deviation is that of samples of this size: "
        "it says how far such samples spread, not how sure the accuracy is." + (f" {_LARGER}" if size > fewest else ""),
    )
    return Details(table.caption, (table,))


def _max_score(aspect: str) -> float:
    known = criterion(aspect)
    return known.scale[1] if known else 1.0


def measured_section(group: OutcomeSet, *, draws: int, size: int) -> ScoreBlocks:
    """Scores that measure instead of labelling: BERTScore, ROUGE-L, edit distance, exact and fuzzy match."""
    aspects = list(
        dict.fromkeys(each.aspect for each in group.judgments if each.score is not None and not each.passage)
    )
    if not aspects:
        return ScoreBlocks()
    mine = [each for each in group.judgments if not each.passage and not each.judge.startswith(HUMAN)]
    found = {
        aspect: score_means(mine, aspect, max_score=_max_score(aspect), clusters=group.clusters, draws=draws, size=size)
        for aspect in aspects
    }
    order = [system for system in group.tallies if any(_row(table, system) for table in found.values())]
    ours = tuple(
        OwnFigure(
            measure=row.aspect,
            model=row.model,
            condition=row.condition,
            value=triple(row.mean, row.interval),
            n=row.n,
            unscored=missing(row.unscored),
        )
        for table in found.values()
        for row in table
    )
    blocks: list[Block] = [Heading("Measured scores", f"{group.prefix}-measured", 3), _dots(group, found, order)]
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
            Bar(label=system[1], value=row.mean, low=row.interval.low, high=row.interval.high)
            if row
            else Bar(label=system[1], value=None)
            for system, row in rows
        ]
    names = [group.name(system) for system in shown]
    draw = partial(interval_dots, names, panels, title="Measured scores", form="number")
    caption = "Mean score of all planned answers with 95% bootstrap intervals; an answer without a score counts 0."
    return figure(f"{group.prefix}-measured", caption, draw)


def _table(
    group: OutcomeSet, found: dict[str, list[ScoreMean]], order: Sequence[SystemKey], draws: int, size: int
) -> Table:
    fewest = min(row.n for table in found.values() for row in table)
    columns = (
        Column("score"),
        Column("scorer"),
        Column("model"),
        Column("condition"),
        Column("planned", "count"),
        UNSCORED,
        Column("mean, 95% bootstrap", "number"),
        Column("mean of the scored", "number"),
        Column(f"mean of {draws} × {size}" + (f" (of {fewest:,})" if size > fewest else ""), "number"),
        Column("sd", "number"),
        Column("sensitivity", "number"),
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
                    row.judge,
                    row.model,
                    row.condition,
                    row.n,
                    missing(row.unscored),
                    triple(row.mean, row.interval),
                    row.mean_scored,
                    few.mean,
                    few.std,
                    row.sensitivity,
                )
            )
    best = "1" if {_max_score(aspect) for aspect in found} == {1.0} else "the maximum"
    return Table(
        name=f"{group.prefix}-measured",
        caption="Measured scores of each system",
        n=len(group.questions),
        unit="questions",
        columns=columns,
        rows=tuple(rows),
        note="An answer without a score counts 0 and stays in the denominator; sensitivity is the mean had all of "
        f"them scored 0 and had all scored {best}, where they exceed 1%." + (f" {_LARGER}" if size > fewest else ""),
    )
