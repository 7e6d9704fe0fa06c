"""What else was judged beside right or wrong: failure modes, relevance of the evidence, doubtful answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from hoofbeat.findings.failure_modes import ModeShare, mode_shares
from hoofbeat.findings.intervals import bootstrap_mean, wilson
from hoofbeat.findings.outcomes import HUMAN, SystemKey
from hoofbeat.judging.aspects.relevance import RELEVANCE
from hoofbeat.judging.catalogue import all_criteria, explains
from hoofbeat.records import Judgment
from hoofbeat.reports.charts import Shade, heatmap
from hoofbeat.reports.model import Block, Heading
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.section_blocks import figure
from hoofbeat.reports.sections.scores.facet_scores import FEW
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.reports.sections.scores.score_tables import UNSCORED, ScoreBlocks, folded, triple
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import written


class _Labelled(Struct, frozen=True):
    """An aspect with labels: what it is called, its labels in order, and whether it is of wrong answers only."""

    name: str
    title: str
    labels: tuple[str, ...]
    explains: bool

    @property
    def verb(self) -> str:
        """What was done with the answers."""
        return "explained" if self.explains else "judged"

    @property
    def noun(self) -> str:
        """What was given to an answer."""
        return "explanation" if self.explains else "judgment"

    @property
    def answers(self) -> str:
        """What its answers are called."""
        return "explained wrong answers" if self.explains else "judged answers"


def _labelled(judgments: Sequence[Judgment]) -> list[_Labelled]:
    """The aspects that give labels to answers, but for verdicts; of a plugin that is not loaded, the labels seen."""
    seen: dict[str, set[str]] = {}
    for each in judgments:
        if not each.passage and each.score is None:
            seen.setdefault(each.aspect, set()).update({each.label, each.secondary} - {""})
    known = {each.name: each for each in all_criteria()}
    found = [
        _Labelled(each.name, each.heading, each.labels, explains(each))
        for each in known.values()
        if each.name in seen and each.labels and not each.positive
    ]
    others = sorted(name for name, labels in seen.items() if labels and name not in known)
    return found + [_Labelled(name, name.capitalize(), tuple(sorted(seen[name])), False) for name in others]


def modes_section(group: OutcomeSet) -> ScoreBlocks:
    """A heatmap and a table for each aspect."""
    blocks: list[Block] = []
    ours: list[OwnFigure] = []
    mine = [each for each in group.judgments if not each.judge.startswith(HUMAN)]
    for aspect in _labelled(mine):
        found = mode_shares(mine, aspect.name, aspect.labels)
        systems = [system for system in group.tallies if any((row.model, row.condition) == system for row in found)]
        blocks += [
            Heading(aspect.title, f"{group.prefix}-{aspect.name}", 3),
            _heat(group, aspect, systems, found),
            folded(_table(group, aspect, systems, found)),
        ]
        ours += [
            OwnFigure(
                measure=f"{aspect.name}: {row.label}",
                model=row.model,
                condition=row.condition,
                value=triple(row.share, row.interval),
                n=row.n,
                unscored=row.unscored,
            )
            for row in found
        ]
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(ours))


def _heat(group: OutcomeSet, aspect: _Labelled, systems: Sequence[SystemKey], found: Sequence[ModeShare]) -> Block:
    labels = aspect.labels
    by_key = {(row.model, row.condition, row.label): row for row in found}
    rows = []
    cells = []
    for system in systems:
        mine = [by_key[(*system, label)] for label in labels]
        rows.append(f"{group.name(system)} ({mine[0].n:,})")
        cells.append(
            [
                Shade(
                    value=row.share,
                    tip=f"{written((row.share, row.interval.low, row.interval.high), 'share')}: {row.count:,} of "
                    f"{row.n:,}, second for {row.secondary:,}, {row.unscored:,} unscored",
                    few=row.n < FEW,
                )
                for row in mine
            ]
        )
    caption = (
        f"Share of the {aspect.answers} of each system by their first label; how many were {aspect.verb} stands in "
        "brackets. Second labels are counted apart, in the table."
    )
    key = "share of wrong answers" if aspect.explains else "share of answers"
    draw = partial(heatmap, rows, labels, cells, title=aspect.title, key=key)
    return figure(f"{group.prefix}-{aspect.name}", caption, draw)


def _table(group: OutcomeSet, aspect: _Labelled, systems: Sequence[SystemKey], found: Sequence[ModeShare]) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("label"),
        Column(aspect.verb, "count"),
        Column("unscored", "count"),
        Column("first", "count"),
        Column("share, 95% Wilson", "share"),
        Column("second", "count"),
        Column("sensitivity", "share"),
    )
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        for row in found:
            if (row.model, row.condition) == system:
                share = triple(row.share, row.interval)
                rows.append((*system, row.label, row.n, row.unscored, row.count, share, row.secondary, row.sensitivity))
    total = {(row.model, row.condition): row.n for row in found}
    return Table(
        name=f"{group.prefix}-{aspect.name}",
        caption=f"{aspect.title} of each system",
        n=sum(total.values()),
        unit=f"{aspect.verb} answers",
        columns=columns,
        rows=tuple(rows),
        note=f"An answer whose {aspect.noun} failed stays in the denominator as unscored. Second labels are no part of "
        "the shares. Sensitivity is the share had none and had all of the unscored this label, where they exceed 1%.",
    )


_LABELS = RELEVANCE.labels


def relevance_section(group: OutcomeSet) -> ScoreBlocks:
    """One row a system; nothing where no passage was graded."""
    graded: dict[SystemKey, list[Judgment]] = {}
    for each in group.judgments:
        if each.aspect == RELEVANCE.name and not each.judge.startswith(HUMAN):
            graded.setdefault((each.model, each.condition), []).append(each)
    if not graded:
        return ScoreBlocks()
    columns = (
        Column("model"),
        Column("condition"),
        Column("passages", "count"),
        UNSCORED,
        *(Column(label, "count") for label in _LABELS),
        Column("relevant, 95% Wilson", "share"),
        Column("mean grade, 95% bootstrap", "number"),
    )
    rows = tuple(_row(system, graded[system]) for system in group.tallies if system in graded)
    table = Table(
        name=f"{group.prefix}-relevance",
        caption="Relevance of the passages shown",
        n=sum(len(each) for each in graded.values()),
        unit="graded passages",
        columns=columns,
        rows=rows,
        note="Grades from 0 to 10. A passage whose grade failed stays in the denominator of the share and is left out "
        "of the mean, whose interval resamples questions.",
    )
    return ScoreBlocks(blocks=(Heading(RELEVANCE.heading, f"{group.prefix}-relevance", 3), table))


def _row(system: SystemKey, judged: list[Judgment]) -> tuple[Cell, ...]:
    labels = Counter(each.label for each in judged if not each.failure)
    scored = [(each.score, each.question) for each in judged if each.score is not None and not each.failure]
    grades: Cell = None
    if scored:
        values = [value for value, _ in scored]
        span = bootstrap_mean(values, clusters=[question for _, question in scored])
        grades = triple(sum(values) / len(values), span)
    right = labels[_LABELS[0]]
    share = triple(right / len(judged), wilson(right, len(judged)))
    failed = sum(each.failure is not None for each in judged)
    return (*system, len(judged), failed, *(labels[label] for label in _LABELS), share, grades)


def doubts_section(group: OutcomeSet) -> ScoreBlocks:
    """One row a system that was shown something; nothing where no answer is doubtful."""
    rows = tuple(
        (*system, tally.answers, tally.own_source, tally.own_title, tally.dropped)
        for system, tally in group.tallies.items()
        if tally.own_source or tally.own_title or tally.dropped
    )
    if not rows:
        return ScoreBlocks()
    table = Table(
        name=f"{group.prefix}-doubts",
        caption="What answers were shown that they should not have been, or were not",
        n=sum(tally.answers for tally in group.tallies.values()),
        unit="planned answers",
        columns=(
            Column("model"),
            Column("condition"),
            Column("answers", "count"),
            Column("read their own source", "count"),
            Column("read its title elsewhere", "count"),
            Column("documents left out", "count"),
        ),
        rows=rows,
        note="An agent may find the report that its question was made from, or another document with the same title: "
        "its answer is then no better than the oracle's. Documents are left out where the model's window is too small. "
        "Systems without any of these are not listed.",
    )
    return ScoreBlocks(blocks=(Heading("Answers to doubt", f"{group.prefix}-doubts", 3), table))
