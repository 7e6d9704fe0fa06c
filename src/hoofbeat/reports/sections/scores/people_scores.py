"""People and models: everybody who sat an exam pooled to one row, inside and outside their specialty.

People are asked few of the questions, each of them others. So every figure of a model here is over the very questions
that people were asked, and every difference is paired by question.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.findings.accuracy import EXPERTS, Accuracy, accuracies, differences, leaderboard, pooled_people
from hoofbeat.findings.breakdown import group_differences
from hoofbeat.findings.outcomes import EXAM, HUMAN, INSIDE, OUTSIDE, Outcome, SystemKey
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.scores.accuracy_table import (
    CLUSTER_NOTE,
    UNSCORED,
    ScoreBlocks,
    folded,
    missing,
    place_cell,
)
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, is_closed
from hoofbeat.reports.tables import Cell, Table, columns_of, triple, written


class _Experts(Struct, frozen=True, kw_only=True):
    """People's answers under one condition: all of them, or those inside or outside their specialty."""

    name: str
    people: int
    outcomes: list[Outcome]
    accuracy: Accuracy

    @property
    def system(self) -> SystemKey:
        return self.accuracy.model, self.accuracy.condition


def people_section(group: OutcomeSet) -> ScoreBlocks:
    """The pooled rows, and models on the same questions; nothing where no person answered."""
    conditions = dict.fromkeys(row.condition for row in group.outcomes if row.model.startswith(HUMAN))
    pooled = [each for condition in conditions for each in _experts(group, condition)]
    if not pooled:
        return ScoreBlocks()
    blocks: list[Block] = [Heading("People and models", f"{group.prefix}-experts", 3), _experts_table(group, pooled)]
    blocks += [Text(words) for condition in conditions if (words := _inside_outside(pooled, condition, group))]
    models = _models_table(group, pooled)
    ours = tuple(
        OwnFigure(
            measure="accuracy",
            model=each.name,
            condition=each.accuracy.condition,
            value=triple(each.accuracy.accuracy, each.accuracy.bootstrap),
            n=each.accuracy.questions,
            unscored=missing(each.accuracy.unscored),
            protocol=_protocol(group, each.accuracy.condition),
            closed=is_closed(each.accuracy.condition, _protocol(group, each.accuracy.condition)),
        )
        for each in pooled
    )
    return ScoreBlocks(blocks=(*blocks, folded(models)) if models.rows else tuple(blocks), ours=ours)


def _protocol(group: OutcomeSet, condition: str) -> str:
    return next(tally.protocol for (_, mine), tally in group.tallies.items() if mine == condition)


def _experts(group: OutcomeSet, condition: str) -> list[_Experts]:
    """Everybody, and where the exam says so, the answers inside and outside each person's specialty."""
    mine = [row for row in group.outcomes if row.condition == condition]
    where: dict[str, set[tuple[str, str]]] = {INSIDE: set(), OUTSIDE: set()}
    for answer in group.each_answer():
        if answer.model.startswith(HUMAN) and answer.condition == condition:
            for step in answer.trace:
                if step.stage == EXAM and (why := step.text.rpartition(", ")[2]) in where:
                    where[why].add((answer.model, answer.question))
    chosen = {EXPERTS: None, **{f"{EXPERTS}, {why} their specialty": only for why, only in where.items() if only}}
    found = []
    for name, only in chosen.items():
        rows = pooled_people(mine, name=name, only=only)
        (score,) = accuracies(rows, clusters=group.clusters)
        found.append(_Experts(name=name, people=len({row.sample for row in rows}), outcomes=rows, accuracy=score))
    return found


def _experts_table(group: OutcomeSet, pooled: Sequence[_Experts]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for each in pooled:
        models = [row for row in group.outcomes if not row.model.startswith(HUMAN)]
        protocol = _protocol(group, each.accuracy.condition)
        rivals = [row for row in models if group.tallies[row.model, row.condition].protocol == protocol]
        board = leaderboard([*rivals, *each.outcomes], clusters=group.clusters)
        place = next(row for row in board if row.system == each.system)
        score = each.accuracy
        rows.append(
            (
                each.name,
                score.condition,
                each.people,
                score.questions,
                score.planned,
                missing(score.unscored),
                triple(score.accuracy, score.bootstrap),
                score.bootstrap.by,
                place_cell(place, len(board)),
                place.among - 1,
            )
        )
    return Table(
        name=f"{group.prefix}-experts",
        caption="People's answers, pooled",
        n=len({row.question for each in pooled for row in each.outcomes}),
        unit="questions that people were asked",
        columns=(
            *columns_of("who | condition | people:count | questions:count | answers:count"),
            UNSCORED,
            *columns_of(
                "accuracy, 95% interval:share | interval by | rank among models, 95%:count | "
                "models asked the same questions:count"
            ),
        ),
        rows=tuple(rows),
        note="Each question's share right is over the people who were asked it. The intervals hold for these people; "
        f"others may be better or worse. {CLUSTER_NOTE}",
    )


def _inside_outside(pooled: Sequence[_Experts], condition: str, group: OutcomeSet) -> str:
    """The difference between inside and outside the specialty; the questions are others, so nothing is paired."""
    mine = {each.name: each for each in pooled if each.accuracy.condition == condition}
    halves = [mine.get(f"{EXPERTS}, {why} their specialty") for why in (INSIDE, OUTSIDE)]
    if halves[0] is None or halves[1] is None:
        return ""
    marked = [
        Outcome(
            question=f"{place}: {row.question}",
            model=EXPERTS,
            condition=condition,
            sample=row.sample,
            correct=row.correct,
            unscored=row.unscored,
        )
        for place, half in enumerate(halves)
        if half is not None
        for row in half.outcomes
    ]
    inside, outside = ({row.question for row in marked if row.question.startswith(f"{place}: ")} for place in (0, 1))
    together = group.clusters
    clusters = {row.question: together.get(row.question[3:], row.question[3:]) for row in marked}
    (found,) = group_differences(marked, inside, outside, clusters=clusters)
    gap = written(triple(found.difference, found.interval), "points")
    return f"Inside minus outside their specialty, {condition}: {gap} points."


def _models_table(group: OutcomeSet, pooled: Sequence[_Experts]) -> Table:
    """Every model on the questions of every pooled row, and the difference between them."""
    models = [system for system in group.order if not system[0].startswith(HUMAN)]
    rows: list[tuple[Cell, ...]] = []
    for each in pooled:
        asked = {row.question for row in each.outcomes}
        protocol = _protocol(group, each.accuracy.condition)
        shared = [
            row
            for row in group.outcomes
            if row.question in asked
            and (row.model, row.condition) in models
            and group.tallies[row.model, row.condition].protocol == protocol
        ]
        scores = {(row.model, row.condition): row for row in accuracies(shared, clusters=group.clusters)}
        pairs = [(each.system, system) for system in models if system in scores]
        for row in differences([*shared, *each.outcomes], pairs, clusters=group.clusters):
            score = scores[row.b]
            gap = triple(row.paired.difference, row.paired.interval)
            rows.append(
                (
                    each.name,
                    *row.b,
                    row.paired.n,
                    triple(score.accuracy, score.bootstrap),
                    gap,
                    row.paired.interval.by,
                    row.p,
                    row.p_holm,
                )
            )
    return Table(
        name=f"{group.prefix}-experts-models",
        caption="Models on the questions that people were asked",
        n=len({row.question for each in pooled for row in each.outcomes}),
        unit="questions that people were asked",
        columns=columns_of(
            "who | model | condition | shared questions:count | model's accuracy, 95%:share | "
            "people minus model, points:points | interval of the difference by | p:p | p, Holm:p"
        ),
        rows=tuple(rows),
        note=f"Paired by question. {CLUSTER_NOTE}",
    )
