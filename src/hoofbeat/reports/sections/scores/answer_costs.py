"""What the answers cost: calls, tokens and money, and cost against accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from hoofbeat.findings.accuracy import Accuracy
from hoofbeat.findings.outcomes import SystemKey
from hoofbeat.reports.charts import FitPoint, fitted_scatter
from hoofbeat.reports.charts.svg import SERIES
from hoofbeat.reports.model import Block, Heading
from hoofbeat.reports.section import OwnFigure, figure
from hoofbeat.reports.sections.scores.accuracy_table import (
    UNSCORED,
    ScoreBlocks,
    accuracy_intervals,
    folded,
    missing,
)
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, SystemTally
from hoofbeat.reports.tables import Cell, Column, Form, Table, columns_of, triple
from hoofbeat.store import Cost


def cost_section(group: OutcomeSet, table: Sequence[Accuracy]) -> ScoreBlocks:
    """The costs of models as their runs recorded them, the tokens of systems as their answers did."""
    found = {(row.model, row.condition): row for row in table}
    costs = {model: cost for model, cost in group.costs().items() if cost.calls}
    systems = [system for system in group.order if _tokens(group.tallies[system]) and system in found]
    if not costs and not systems:
        return ScoreBlocks()
    blocks: list[Block] = [Heading("Cost", f"{group.prefix}-cost", 3)]
    split = [part for part in group.protocols() if part.order]
    for number, part in enumerate(split, start=1):
        mine = {system: row for system, row in found.items() if system in part.order}
        protocol = part.tallies[part.order[0]].protocol or "free text"
        name = f"{group.prefix}-cost" + (f"-{number}" if number > 1 else "")
        blocks += _chart(part, name, "" if len(split) == 1 else f", {protocol}", costs, mine)
    if costs:
        blocks.append(_models(group, costs))
    if systems:
        blocks.append(folded(_systems(group, systems, found)))
    asked = len(group.questions)
    ours = tuple(
        OwnFigure(measure="money", model=model, condition="all answers", value=cost.money, n=asked)
        for model, cost in costs.items()
        if cost.money
    )
    return ScoreBlocks(blocks=tuple(blocks), ours=ours)


def _chart(
    group: OutcomeSet, name: str, ending: str, costs: Mapping[str, Cost], found: Mapping[SystemKey, Accuracy]
) -> list[Block]:
    """Cost against accuracy; nothing where there is only one system."""
    money = _money_points(group, costs, found)
    points = money or _token_points(group, found)
    if len(points) < 2:
        return []
    low, high = min(point.x for point in points), max(point.x for point in points)
    form: Form = "number" if money else "amount"
    draw = partial(
        fitted_scatter,
        points,
        None,
        title=f"Cost against accuracy{ending}",
        x="$ per 1,000 answers" if money else "tokens per answer, in and out",
        y="accuracy",
        forms=(form, "share"),
        log=high > 5 * low > 0,
    )
    caption = f"Cost of an answer and share right{ending}, with 95% intervals of the accuracy ("
    caption += f"{accuracy_intervals(found.values())})."
    return [figure(name, caption, draw)]


def _money_points(group: OutcomeSet, costs: Mapping[str, Cost], found: Mapping[SystemKey, Accuracy]) -> list[FitPoint]:
    """Money for 1,000 answers, where every model answered under one condition, so that its money is that system's."""
    one = len({model for model, _ in group.tallies}) == len(group.tallies) == len(found)
    if not one or not all(model in costs and costs[model].money for model, _ in found):
        return []
    return [_point(group, system, 1000 * costs[system[0]].money / row.planned, row) for system, row in found.items()]


def _token_points(group: OutcomeSet, found: Mapping[SystemKey, Accuracy]) -> list[FitPoint]:
    points = []
    for system in group.order:
        tally, row = group.tallies[system], found.get(system)
        if _tokens(tally) and row:
            points.append(_point(group, system, (tally.tokens_in + tally.tokens_out) / tally.used, row))
    return points


def _tokens(tally: SystemTally) -> int:
    """The tokens of a system's answers, where they are known: a replayed answer used none."""
    return tally.tokens_in + tally.tokens_out if tally.used else 0


def _point(group: OutcomeSet, system: SystemKey, x: float, row: Accuracy) -> FitPoint:
    """A point named by its condition where colours tell the models, else by what tells it from the others."""
    name = group.name(system)
    coloured = name not in system and group.models <= SERIES
    return FitPoint(
        label=system[1] if coloured else name,
        x=x,
        y=row.accuracy,
        y_interval=(row.bootstrap.low, row.bootstrap.high),
        series=system[0] if coloured else "",
    )


def _models(group: OutcomeSet, costs: Mapping[str, Cost]) -> Table:
    answers = dict.fromkeys(costs, 0)
    for (model, _), tally in group.tallies.items():
        if model in answers:
            answers[model] += tally.answers
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            model,
            answers[model],
            cost.calls,
            cost.tokens_in,
            cost.tokens_out,
            cost.money if cost.money else None,
            1000 * cost.money / answers[model] if cost.money and answers[model] else None,
        )
        for model, cost in costs.items()
    )
    columns = columns_of(
        "model | answers:count | calls:count | tokens in:count | tokens out:count | cost in $:number | "
        "$ per 1,000 answers:number"
    )
    return Table(
        name=f"{group.prefix}-cost",
        caption="Cost of the answers of each model",
        n=sum(answers.values()),
        unit="answers",
        columns=columns,
        rows=rows,
        note="As recorded by the runs, including calls from the ledger, with the prices of that time. The cost of "
        "judges is in the last chapter.",
    )


def _systems(group: OutcomeSet, systems: Sequence[SystemKey], found: Mapping[SystemKey, Accuracy]) -> Table:
    columns = (
        *columns_of(
            "model | condition | answers:count | with known tokens:count | tokens in per answer:amount | tokens out "
            "per answer:amount | accuracy, 95% interval:share | interval by"
        ),
        UNSCORED,
        Column("documents dropped", "count"),
    )
    rows: list[tuple[Cell, ...]] = []
    for system in systems:
        tally, row = group.tallies[system], found[system]
        means = tally.tokens_in / tally.used, tally.tokens_out / tally.used
        counts = (missing(row.unscored), tally.dropped)
        rows.append(
            (*system, tally.answers, tally.used, *means, triple(row.accuracy, row.bootstrap), row.bootstrap.by, *counts)
        )
    return Table(
        name=f"{group.prefix}-tokens",
        caption="Tokens of each system's answers",
        n=sum(group.tallies[system].answers for system in systems),
        unit="answers",
        columns=columns,
        rows=tuple(rows),
        note="Mean over the answers whose tokens are known. Documents dropped: answers for which not all documents "
        "fitted into the model's window.",
    )
