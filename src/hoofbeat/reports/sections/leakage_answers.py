"""The part of a leakage check that rests on earlier answers: dates against cutoffs, and closed book against source."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoofbeat.leakage.leakage_figures import CAVEATS, BookGap, LeakageSummary, share_of
from hoofbeat.leakage.training_cutoffs import POSITIONS
from hoofbeat.reports.charts import Bar, grouped_bars, stacked_bars
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.sections.common import figure
from hoofbeat.reports.sections.leakage_elsewhere import value_cell
from hoofbeat.reports.tables import Cell, Column, Table

__all__ = ["date_blocks", "gap_blocks"]

_TONES = {"before": 1, "after": 2, "same year": 3, "undated": 0}


def date_blocks(summary: LeakageSummary, prefix: str) -> list[Block]:
    """When sources came out against each model's cutoff, and accuracy before and after it."""
    if not summary.dates:
        return []
    blocks: list[Block] = [Heading("Publication against training cutoff", f"{prefix}-dates", 3)]
    known = [row for row in summary.dates if row.cutoff]
    if known:
        parts = [(f"{row.model} ({row.cutoff.until})", row.positions) for row in known if row.cutoff]
        draw = partial(stacked_bars, parts, POSITIONS, title="Sources before and after the cutoff", tones=_TONES)
        blocks.append(figure(f"{prefix}-dates", "Questions by when their source came out and the cutoff.", draw))
    columns = (
        Column("model"), Column("cutoff"), Column("how known"), Column("source of it"),
        *(Column(name, "count") for name in POSITIONS),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for row in summary.dates:
        if row.cutoff is None:
            rows.append((row.model, "not known", None, "name it with --cutoff", None, None, None, None))
            continue
        counts = tuple(row.positions.get(name, 0) for name in POSITIONS)
        rows.append((row.model, row.cutoff.until, row.cutoff.kind, row.cutoff.source, *counts))
    blocks.append(
        Table(
            name=f"{prefix}-dates",
            caption="When the questions' sources came out, against each model's cutoff",
            n=summary.questions,
            unit="questions",
            columns=columns,
            rows=tuple(rows),
            note="Same year: the source's month is not known, so it can't be said.",
        )
    )
    blocks += _date_accuracies(summary, prefix)
    return [*blocks, Text(CAVEATS["dates"])]


def _date_accuracies(summary: LeakageSummary, prefix: str) -> list[Block]:
    if not summary.date_accuracies:
        return []
    columns = (
        Column("model"), Column("condition"), Column("n before", "count"), Column("before", "share"),
        Column("n after", "count"), Column("after", "share"), Column("before − after", "points"),
        Column("unscored", "count"),
    )  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (
            row.model,
            row.condition,
            row.before_n,
            (row.before, row.before_interval.low, row.before_interval.high),
            row.after_n,
            (row.after, row.after_interval.low, row.after_interval.high),
            (row.difference, row.interval.low, row.interval.high),
            row.unscored,
        )
        for row in summary.date_accuracies
    ]
    return [
        Table(
            name=f"{prefix}-date-accuracy",
            caption="Accuracy on questions from before and from after the cutoff",
            n=summary.outcomes,
            unit="answers",
            columns=columns,
            rows=tuple(rows),
            note="Shares with Wilson's interval; the difference is of two sets of questions, by bootstrap over "
            "sources within each, 1,000 samples, seed 0. Unscored answers count as wrong.",
        )
    ]


def gap_blocks(gaps: Sequence[BookGap], prefix: str) -> list[Block]:
    """Accuracy without and with the source, and what became of each question."""
    if not gaps:
        return []
    names = [f"{row.model}, {row.protocol}" for row in gaps]
    series = {
        what: [
            Bar(label=name, value=each.accuracy, low=each.bootstrap.low, high=each.bootstrap.high)
            for name, row in zip(names, gaps, strict=True)
            for each in [row.closed if what == "closed book" else row.oracle]
        ]
        for what in ("closed book", "with the source")
    }
    draw = partial(grouped_bars, names, series, title="Accuracy without and with the source", limits=(0, 1))
    return [
        Heading("Closed book against the source at hand", f"{prefix}-gap", 3),
        figure(f"{prefix}-gap", "Accuracy closed book and with the question's source, 95% intervals.", draw),
        *_gap_tables(gaps, prefix),
        Text(CAVEATS["gap"]),
    ]


def _gap_tables(gaps: Sequence[BookGap], prefix: str) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    became: list[tuple[Cell, ...]] = []
    for row in gaps:
        paired = row.gap.paired
        rows.append(
            (
                row.model,
                row.protocol,
                row.pairs,
                (row.closed.accuracy, row.closed.bootstrap.low, row.closed.bootstrap.high),
                (row.oracle.accuracy, row.oracle.bootstrap.low, row.oracle.bootstrap.high),
                (paired.difference, paired.interval.low, paired.interval.high),
                row.gap.p,
                row.gap.unscored,
            )
        )
        counts = (row.both, row.closed_only, row.oracle_only, row.neither, row.unscored)
        became.append((row.model, row.protocol, row.pairs, *(value_cell(share_of(n, row.pairs)) for n in counts)))
    who = (Column("model"), Column("protocol"), Column("answers", "count"))
    n = max(row.pairs for row in gaps)
    return [
        Table(
            name=f"{prefix}-gap",
            caption="Accuracy closed book and with the source, paired by question",
            n=n,
            unit="answers",
            columns=(
                *who, Column("closed book", "share"), Column("with source", "share"), Column("gap", "points"),
                Column("p (McNemar)", "p"), Column("unscored", "count"),
            ),
            rows=tuple(rows),
            note="Gap: with source minus closed book. Bootstrap over sources, 1,000 samples, seed 0.",
        ),
        Table(
            name=f"{prefix}-gap-became",
            caption="What became of each question",
            n=n,
            unit="answers",
            columns=(
                *who, Column("right both ways", "share"), Column("right closed book only", "share"),
                Column("right with source only", "share"), Column("wrong both ways", "share"),
                Column("unscored in either", "share"),
            ),
            rows=tuple(became),
            note="Shares with Wilson's interval. Where either answer is unscored, nothing is said of the pair.",
        ),
    ]  # fmt: skip
