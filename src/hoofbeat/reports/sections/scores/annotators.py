"""How far labellers agree: the judge with people, people with each other, and several judges among themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.findings.agreement import Agreement, Kappa, Weights, agreement, agreement_with_intervals, weighted_kappa
from hoofbeat.findings.outcomes import HUMAN
from hoofbeat.judging import Aspect
from hoofbeat.judging.catalogue import criterion
from hoofbeat.records import Judgment
from hoofbeat.reports.model import Block, Details, Notice
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.answers import answer_key
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.labellers import WEIGHTED, alphas_table, labellers_table
from hoofbeat.reports.sections.scores.shown import ScoreBlocks, triple
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of

__all__ = ["is_ordered", "people_shown", "votes_shown"]

_WEIGHTS: tuple[Weights, Weights] = ("linear", "quadratic")
_STEPS = "The labels are in order ({order}): weighted κ counts a disagreement by its steps, or by their square."

Ratings = dict[str, dict[str, str]]


def people_shown(group: Scored) -> ScoreBlocks:
    """Agreement of the judge with each person, and of people with each other, aspect by aspect."""
    blocks: list[Block] = []
    ours: list[OwnFigure] = []
    people = [each for each in group.judgments if each.judge.startswith(HUMAN) and not each.failure and each.label]
    for aspect in dict.fromkeys(each.aspect for each in people):
        given = [each for each in group.judgments if each.aspect == aspect and not each.judge.startswith(HUMAN)]
        known: dict[str, str | None] = {_item(each): None if each.failure else each.label for each in given}
        ratings: Ratings = {}
        for each in people:
            if each.aspect == aspect:
                ratings.setdefault(each.judge.removeprefix(HUMAN), {})[_item(each)] = each.label
        labels = _labels(aspect, [*known.values(), *(label for rows in ratings.values() for label in rows.values())])
        pairs = {
            name: [(known[item], label) for item, label in rows.items() if item in known]
            for name, rows in ratings.items()
        }
        checked = {name: agreement(mine, labels) for name, mine in pairs.items() if mine}
        if checked:
            weighted = {
                name: tuple(weighted_kappa(pairs[name], labels, weights) for weights in _WEIGHTS)
                for name in (checked if is_ordered(aspect, labels) else ())
            }
            blocks.append(_agreement_table(group, aspect, checked, weighted))
            blocks += [_confusion(group, aspect, name, found) for name, found in checked.items()]
            ours += _agreed(aspect, checked)
        if len(ratings) > 1:
            blocks += _annotators(group, aspect, ("people", "People among themselves"), ratings, labels)
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(ours))


def votes_shown(group: Scored) -> ScoreBlocks:
    """Several judges: how far they agree, and how often there was no majority."""
    voted = [each for each in group.judgments if len(each.votes) > 1]
    blocks: list[Block] = []
    for aspect in dict.fromkeys(each.aspect for each in voted):
        mine = [each for each in voted if each.aspect == aspect]
        ratings: Ratings = {}
        for each in mine:
            for vote in each.votes:
                if not vote.failure and vote.label:
                    ratings.setdefault(vote.judge, {})[_item(each)] = vote.label
        if len(ratings) < 2:
            continue
        labels = _labels(aspect, [label for rows in ratings.values() for label in rows.values()])
        blocks += _annotators(group, aspect, ("votes", "Judges among themselves"), ratings, labels)
        split = sum(each.failure is not None for each in mine)
        if split:
            words = count_of(split, "answer")
            blocks.append(Notice(f"{aspect}: {words} of {len(mine):,} got no label from the judges together."))
    return ScoreBlocks(blocks=tuple(blocks))


def _item(judgment: Judgment) -> str:
    return "\x1f".join((*map(str, answer_key(judgment)), judgment.passage))


def _labels(aspect: str, seen: Sequence[str | None]) -> list[str]:
    known = criterion(aspect)
    order = _scale(aspect) or (known.labels if known and known.positive else ())
    return [*order, *sorted({label for label in seen if label} - set(order))]


def _scale(aspect: str) -> tuple[str, ...]:
    """The labels of a graded aspect, lowest first; none where labels are not steps of a scale."""
    known = criterion(aspect)
    return tuple(reversed(known.labels)) if isinstance(known, Aspect) and known.graded else ()


def is_ordered(aspect: str, labels: Sequence[str]) -> bool:
    """Whether an aspect's labels are steps of a scale, and no label lies beside it."""
    scale = _scale(aspect)
    return bool(scale) and tuple(labels) == scale


def _agreed(aspect: str, checked: Mapping[str, Agreement]) -> list[OwnFigure]:
    found = []
    for name, row in checked.items():
        condition, model = f"{aspect}, against {name}", "our judge"
        agreed = triple(row.accuracy, row.accuracy_interval)
        found.append(
            OwnFigure(
                measure="judge agreement",
                model=model,
                condition=condition,
                value=agreed,
                n=row.n,
                unscored=row.unscored,
            )
        )
        kappa = triple(row.kappa, row.kappa_interval)
        found.append(
            OwnFigure(
                measure="judge kappa", model=model, condition=condition, value=kappa, n=row.n, unscored=row.unscored
            )
        )
    return found


def _agreement_table(
    group: Scored, aspect: str, checked: Mapping[str, Agreement], weighted: Mapping[str, tuple[Kappa, ...]]
) -> Table:
    columns = (
        Column("person"),
        Column("labelled", "count"),
        Column("unscored", "count"),
        Column("agreement, 95% Wilson", "share"),
        Column("κ, 95% bootstrap", "number"),
        *(WEIGHTED if weighted else ()),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            row.n,
            row.unscored,
            triple(row.accuracy, row.accuracy_interval),
            triple(row.kappa, row.kappa_interval),
            *(triple(kappa.value, kappa.interval) for kappa in weighted.get(name, ())),
        )
        for name, row in checked.items()
    )
    return Table(
        name=f"{group.prefix}-agreement-{aspect}",
        caption=f"Agreement of the judge with people, {aspect}",
        n=sum(row.n for row in checked.values()),
        unit="labels",
        columns=columns,
        rows=rows,
        note="A labelled answer that the judge failed on counts as disagreement and is left out of Cohen's κ."
        + (f" {_STEPS.format(order=' < '.join(_scale(aspect)))}" if weighted else ""),
    )


def _confusion(group: Scored, aspect: str, name: str, found: Agreement) -> Block:
    table = Table(
        name=f"{group.prefix}-confusion-{aspect}-{name}",
        caption=f"Labels of {name} (rows) and of the judge (columns), {aspect}",
        n=found.n - found.unscored,
        unit="labels",
        columns=(Column("label"), *(Column(label, "count") for label in found.labels)),
        rows=tuple((label, *counts) for label, counts in zip(found.labels, found.confusion, strict=True)),
    )
    return Details(table.caption, (table,))


def _annotators(
    group: Scored, aspect: str, names: tuple[str, str], ratings: Ratings, labels: Sequence[str]
) -> list[Block]:
    """Every two labellers, and all together; `names` are the table's and what it is called."""
    name, caption = f"{names[0]}-{aspect}", f"{names[1]}, {aspect}"
    ordered = is_ordered(aspect, labels)
    found = agreement_with_intervals(ratings, labels, ordered=ordered)
    note = _STEPS.format(order=" < ".join(_scale(aspect))) if ordered else ""
    table = labellers_table(found, name=f"{group.prefix}-{name}", caption=caption, unit="items", note=note)
    alphas = f"{caption}: Krippendorff's α"
    return [table, alphas_table(found, name=f"{group.prefix}-{name}-alpha", caption=alphas, unit="items")]
