"""Accuracy by facet of the questions and of rare diseases against the rest, and what was judged beside right or wrong.

The latter: failure modes, relevance of the evidence, doubtful answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from hoofbeat.facets import facet_names, facet_values
from hoofbeat.findings.accuracy import Accuracy, accuracies
from hoofbeat.findings.breakdown import NONE, GroupDifference, group_differences
from hoofbeat.findings.intervals import FEW, bootstrap_mean, share_interval
from hoofbeat.findings.outcomes import HUMAN, ModeShare, Outcome, SystemKey, mode_shares
from hoofbeat.judging.aspects.relevance import RELEVANCE
from hoofbeat.judging.catalogue import all_criteria, explains
from hoofbeat.records import Judgment
from hoofbeat.reports.charts import Shade, grouped_bars, heatmap, interval_bar
from hoofbeat.reports.interval_words import BY, method_words, questions_in
from hoofbeat.reports.model import Block, Details, Heading, Notice, Text
from hoofbeat.reports.section import OwnFigure, figure
from hoofbeat.reports.sections.scores.accuracy_table import (
    CLUSTER_NOTE,
    SENSITIVITY_NOTE,
    UNSCORED,
    ScoreBlocks,
    folded,
    missing,
)
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.reports.tables import MIN_OBSERVATIONS, Cell, Column, Table, columns_of, count_of, triple, written

RARE_FACETS = ("rare", "rarity")
"""The facets that say whether a disease is rare; they have a section of their own."""

_FACETS = 4
_SYSTEMS = 24
_VALUES = 40
Groups = dict[str, dict[SystemKey, Accuracy]]


def facets_section(group: OutcomeSet) -> ScoreBlocks:
    """The first facet in full, the others behind a line each; nothing where questions have no facets."""
    known = [name for name in facet_names(group.facets.values()) if name not in RARE_FACETS]
    blocks: list[Block] = []
    for place, facet in enumerate(known[:_FACETS]):
        found = _scored(group, facet)
        parts = group.protocols()
        drawn: list[Block] = [
            _heat(part, facet, found, number if len(parts) > 1 else 0) for number, part in enumerate(parts, 1)
        ]
        largest = max(row.questions for rows in found.values() for row in rows.values())
        if largest < MIN_OBSERVATIONS:
            drawn = [Text(f"No {facet} has more than {count_of(largest, 'question')}: too few to compare them.")]
        table = _facet_table(group, facet, found)
        if place == 0:
            blocks += [Heading(f"By {facet}", f"{group.prefix}-by-{place}", 3), *drawn, folded(table)]
        else:
            blocks.append(Details(f"Accuracy by {facet} ({len(found)})", (*drawn, table)))
    if len(known) > _FACETS:
        blocks.append(Notice(f"Facets without a breakdown: {', '.join(known[_FACETS:])}."))
    return ScoreBlocks(blocks=tuple(blocks))


def grouped_outcomes(group: OutcomeSet, facet: str) -> dict[str, list[Outcome]]:
    """The outcomes of each value of a facet, most questions first; a question of several values counts in each."""
    values = {name: facet_values(facets, facet) or [NONE] for name, facets in group.facets.items()}
    rows: dict[str, list[Outcome]] = {}
    members: dict[str, set[str]] = {}
    for row in group.outcomes:
        for value in values.get(row.question, [NONE]):
            rows.setdefault(value, []).append(row)
            members.setdefault(value, set()).add(row.question)
    order = sorted(rows, key=lambda value: (value == NONE, -len(members[value]), value))
    return {value: rows[value] for value in order}


def _scored(group: OutcomeSet, facet: str) -> Groups:
    return {
        value: {(row.model, row.condition): row for row in accuracies(rows, clusters=group.clusters)}
        for value, rows in grouped_outcomes(group, facet).items()
    }


def _shade(row: Accuracy | None) -> Shade:
    if row is None:
        return Shade(value=None, tip="not asked")
    figures = written(triple(row.accuracy, row.bootstrap), "share")
    tip = f"{figures}, n = {row.questions:,} questions, {missing(row.unscored):,} of {row.planned:,} unscored"
    return Shade(value=row.accuracy, tip=tip, few=row.questions < FEW)


def _heat(group: OutcomeSet, facet: str, found: Groups, number: int) -> Block:
    """One protocol's systems by the values of the facet; `number` tells several protocols apart."""
    shown, values = group.order[:_SYSTEMS], list(found)[:_VALUES]
    sizes = {value: max(row.questions for row in found[value].values()) for value in values}
    columns = [f"{value} ({sizes[value]:,})" for value in values]
    cells = [[_shade(found[value].get(system)) for value in values] for system in shown]
    rows = [group.name(system) for system in shown]
    protocol = f", {group.tallies[group.order[0]].protocol or 'free text'}" if number else ""
    caption = (
        f"Share right by {facet}{protocol}; the number of questions is in brackets, and a dashed outline marks "
        f"fewer than {FEW}. Intervals and unscored answers are in the table."
    )
    caption += f" The first {_SYSTEMS} of {len(group.order)} systems." if len(group.order) > len(shown) else ""
    draw = partial(heatmap, rows, columns, cells, title=f"Accuracy by {facet}{protocol}", key=f"share right{protocol}")
    return figure(f"{group.prefix}-by-{facet}" + (f"-{number}" if number > 1 else ""), caption, draw)


def _facet_table(group: OutcomeSet, facet: str, found: Groups) -> Table:
    columns = (
        Column(facet),
        *columns_of("model | condition | questions:count | planned:count | right:count"),
        UNSCORED,
        *columns_of(f"accuracy, 95% interval:share | {BY} | 95% Wilson:share | sensitivity:share"),
    )
    return Table(
        name=f"{group.prefix}-by-{facet}",
        caption=f"Accuracy by {facet}",
        n=len(group.questions),
        unit=questions_in(group.questions, group.clusters),
        columns=columns,
        rows=tuple(_rows(group.order, found)),
        note=f"Small groups say little: those with fewer than {FEW} questions are marked *. {CLUSTER_NOTE}",
    )


def _rows(order: Sequence[SystemKey], found: Groups) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for value, systems in found.items():
        for system in order:
            row = systems.get(system)
            if row is None:
                continue
            rows.append(
                (
                    value + (" *" if row.questions < FEW else ""),
                    *system,
                    row.questions,
                    row.planned,
                    row.correct,
                    missing(row.unscored),
                    triple(row.accuracy, row.bootstrap),
                    row.bootstrap.by,
                    (row.wilson.low, row.wilson.high) if row.questions >= MIN_OBSERVATIONS else None,
                    row.sensitivity,
                )
            )
    return rows


_RARE = frozenset({"yes", "rare", "true"})
_COMMON = frozenset({"no", "not rare", "non-rare", "common", "false"})
_BARS = 12


def rare_section(group: OutcomeSet) -> ScoreBlocks:
    """Nothing where questions do not say whether their disease is rare, or where all say the same."""
    rare, common = _questions(group, _RARE), _questions(group, _COMMON)
    found = group_differences(group.outcomes, rare, common, clusters=group.clusters) if rare and common else []
    if not found:
        return ScoreBlocks()
    by_system = {(row.model, row.condition): row for row in found}
    rows = [by_system[system] for system in group.order if system in by_system]
    ours = tuple(
        OwnFigure(
            measure=measure,
            model=row.model,
            condition=row.condition,
            value=triple(half.accuracy, half.interval),
            n=half.questions,
            unscored=missing(half.unscored),
            protocol=group.tallies[row.model, row.condition].protocol,
        )
        for row in rows
        for measure, half in (("accuracy, rare", row.a), ("accuracy, common", row.b))
    )
    heading = Heading("Rare diseases", f"{group.prefix}-rare", 3)
    table = folded(_rare_table(group, rows, len(rare) + len(common)))
    fewest = min(len(rare), len(common))
    drawn = (
        Text(f"{len(rare):,} questions are about rare diseases and {len(common):,} are not: too few to compare them.")
        if fewest < MIN_OBSERVATIONS
        else _rare_chart(group, rows)
    )
    return ScoreBlocks(blocks=(heading, drawn, table), ours=ours)


def _questions(group: OutcomeSet, words: frozenset[str]) -> set[str]:
    return {
        name
        for name, facets in group.facets.items()
        if any(value.lower() in words for facet in RARE_FACETS for value in facet_values(facets, facet))
    }


def _rare_chart(group: OutcomeSet, rows: Sequence[GroupDifference]) -> Block:
    shown = rows[:_BARS]
    halves = {"rare": [row.a for row in shown], "not rare": [row.b for row in shown]}
    series = {name: [interval_bar("", half.accuracy, half.interval) for half in each] for name, each in halves.items()}
    systems: list[SystemKey] = [(row.model, row.condition) for row in shown]
    names = [group.name(system) for system in systems]
    caption = "Share right on questions about rare diseases and about others, with 95% intervals."
    caption += f" The first {_BARS} of {len(rows)} systems." if len(rows) > len(shown) else ""
    draw = partial(grouped_bars, names, series, title="Accuracy on rare and other diseases", limits=(0, 1))
    return figure(f"{group.prefix}-rare", caption, draw)


def _rare_table(group: OutcomeSet, rows: Sequence[GroupDifference], n: int) -> Table:
    columns = columns_of(
        "model | condition | rare questions:count | rare, 95%:share | rare, unscored:count | "
        "other questions:count | not rare, 95%:share | not rare, unscored:count | "
        "difference, points:points | sensitivity:points"
    )
    cells: list[tuple[Cell, ...]] = []
    for row in rows:
        halves = [
            cell
            for half in (row.a, row.b)
            for cell in (half.questions, triple(half.accuracy, half.interval), missing(half.unscored))
        ]
        cells.append((row.model, row.condition, *halves, triple(row.difference, row.interval), row.sensitivity))
    return Table(
        name=f"{group.prefix}-rare",
        caption="Rare diseases against the others",
        n=n,
        unit="questions",
        columns=columns,
        rows=tuple(cells),
        note="Rare minus not rare; the groups have different questions, so nothing is paired. 95% intervals of the "
        f"difference: {_methods(rows)}. {CLUSTER_NOTE} {SENSITIVITY_NOTE}",
    )


def _methods(rows: Sequence[GroupDifference]) -> str:
    return method_words((f"{row.model} · {row.condition}", row.interval) for row in rows)


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
        found = mode_shares(mine, aspect.name, aspect.labels, clusters=group.clusters)
        systems = [system for system in group.tallies if any((row.model, row.condition) == system for row in found)]
        blocks += [
            Heading(aspect.title, f"{group.prefix}-{aspect.name}", 3),
            _aspect_heat(group, aspect, systems, found),
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


def _aspect_heat(
    group: OutcomeSet, aspect: _Labelled, systems: Sequence[SystemKey], found: Sequence[ModeShare]
) -> Block:
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
                    tip=f"{written(triple(row.share, row.interval), 'share')}: {row.count:,} of "
                    f"{row.n:,}, second for {row.secondary:,}, {row.unscored:,} unscored",
                    few=row.n < FEW,
                )
                for row in mine
            ]
        )
    caption = (
        f"Share of the {aspect.answers} of each system by their first label; their number is in brackets. "
        "The table counts second labels as well."
    )
    key = "share of wrong answers" if aspect.explains else "share of answers"
    draw = partial(heatmap, rows, labels, cells, title=aspect.title, key=key)
    return figure(f"{group.prefix}-{aspect.name}", caption, draw)


def _table(group: OutcomeSet, aspect: _Labelled, systems: Sequence[SystemKey], found: Sequence[ModeShare]) -> Table:
    columns = (
        *columns_of("model | condition | label"),
        Column(aspect.verb, "count"),
        *columns_of(
            "unscored:count | first:count | share, 95% Wilson:share | second:count | "
            "first or second, 95% Wilson:share | sensitivity:share"
        ),
    )
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        for row in found:
            if (row.model, row.condition) == system:
                share, either = triple(row.share, row.interval), triple(row.either, row.either_interval)
                rows.append(
                    (*system, row.label, row.n, row.unscored, row.count, share, row.secondary, either, row.sensitivity)
                )
    total = {(row.model, row.condition): row.n for row in found}
    return Table(
        name=f"{group.prefix}-{aspect.name}",
        caption=f"{aspect.title} of each system",
        n=sum(total.values()),
        unit=f"{aspect.verb} answers",
        columns=columns,
        rows=tuple(rows),
        note=f"An answer whose {aspect.noun} failed stays in the denominator as unscored. The first share leaves "
        "second labels out. Sensitivity, where unscored answers exceed 1%: the share if none, and if all, of them "
        "had this label.",
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
        *columns_of("model | condition | passages:count"),
        UNSCORED,
        *(Column(label, "count") for label in _LABELS),
        *columns_of("relevant, 95% Wilson:share | mean grade, 95% interval:number | mean grade, interval by"),
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
        "of the mean. The passages of a question are kept together in both intervals.",
    )
    return ScoreBlocks(blocks=(Heading(RELEVANCE.heading, f"{group.prefix}-relevance", 3), table))


def _row(system: SystemKey, judged: list[Judgment]) -> tuple[Cell, ...]:
    labels = Counter(each.label for each in judged if not each.failure)
    scored = [(each.score, each.question) for each in judged if each.score is not None and not each.failure]
    grades: Cell = None
    by: Cell = None
    if scored:
        values = [value for value, _ in scored]
        span = bootstrap_mean(values, clusters=[question for _, question in scored], bounds=(0, 10))
        grades, by = triple(sum(values) / len(values), span), span.by
    right = labels[_LABELS[0]]
    hits = [not each.failure and each.label == _LABELS[0] for each in judged]
    share = triple(right / len(judged), share_interval(hits, [each.question for each in judged]))
    failed = sum(each.failure is not None for each in judged)
    return (*system, len(judged), failed, *(labels[label] for label in _LABELS), share, grades, by)


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
        caption="Answers that read their own source or missed documents",
        n=sum(tally.answers for tally in group.tallies.values()),
        unit="planned answers",
        columns=columns_of(
            "model | condition | answers:count | read their own source:count | "
            "read its title elsewhere:count | documents left out:count"
        ),
        rows=rows,
        note="An agent may find the report behind its question, or another document with the same title; then it is "
        "in the same position as the oracle. Documents are left out where the model's window is too small. "
        "Systems without any of these are not listed.",
    )
    return ScoreBlocks(blocks=(Heading("Answers to doubt", f"{group.prefix}-doubts", 3), table))
