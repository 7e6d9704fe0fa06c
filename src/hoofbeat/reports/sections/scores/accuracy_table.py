"""The leaderboard: every model under every condition, best first, how sure its place is, and what has no score.

Beside it, what all sections on scores share: blocks with their figures, tables of figures, unscored answers, labellers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from hoofbeat.findings.accuracy import Accuracy, LeaderboardRow, leaderboard
from hoofbeat.findings.agreement import Annotators
from hoofbeat.reports.charts import interval_bar, interval_bars, stacked_bars
from hoofbeat.reports.interval_words import BY, interval_method, interval_note, method_words, questions_in
from hoofbeat.reports.model import Block, Details, Heading, Notice
from hoofbeat.reports.section import OwnFigure, figure
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, base_condition, is_closed
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, triple

UNSCORED = Column("unscored", "count")
SENSITIVITY_NOTE = (
    "Answers without a score stay in the denominator. Where they exceed 1%, sensitivity is the range if all of them "
    "were wrong and if all were right."
)

CLUSTER_NOTE = (
    "Intervals keep the samples of a question, and the questions of a document, together. n is given where there are "
    "fewer than ten such groups."
)


class ScoreBlocks(Struct, frozen=True, kw_only=True):
    """What a section shows, and its figures that papers publish, too."""

    blocks: tuple[Block, ...] = ()
    ours: tuple[OwnFigure, ...] = ()


def folded(table: Table, most: int = 20) -> Block:
    """The table, behind a line where it is long."""
    if len(table.rows) <= most:
        return table
    return Details(f"{table.caption}: a table of {len(table.rows)} rows", (table,))


def missing(unscored: Mapping[str, int]) -> int:
    """How many answers have no score."""
    return sum(unscored.values())


def accuracy_intervals(rows: Iterable[Accuracy]) -> str:
    """By which method the intervals of accuracies are; the systems with another one than most are named."""
    return method_words((f"{row.model} · {row.condition}", row.bootstrap) for row in rows)


WEIGHTED = columns_of("linear κ, 95% interval:number | quadratic κ, 95% interval:number")
"""The columns of labels that stand in an order."""

KAPPAS = ("κ", "linear κ", "quadratic κ")


def labellers_table(found: Annotators, *, name: str, caption: str, unit: str, note: str = "") -> Table:
    """Every two labellers; weighted κ where the labels stand in an order."""
    weighted = any(row.linear or row.quadratic for row in found.pairs)
    rows: list[tuple[Cell, ...]] = []
    for row in found.pairs:
        kappas = (row.kappa, *((row.linear, row.quadratic) if weighted else ()))
        shown = (triple(kappa.value, kappa.interval) if kappa else None for kappa in kappas)
        by = method_words(zip(KAPPAS, (kappa.interval if kappa else None for kappa in kappas), strict=False))
        rows.append((row.a, row.b, row.n, triple(row.agreement, row.agreement_interval), *shown, by))
    return Table(
        name=name,
        caption=caption,
        n=found.items,
        unit=unit,
        columns=(
            *columns_of("one | other | both labelled:count | agreement, 95% Wilson:share | κ, 95% interval:number"),
            *(WEIGHTED if weighted else ()),
            Column(f"κ, {BY}"),
        ),
        rows=tuple(rows),
        note=note if weighted else "",
    )


def alphas_table(found: Annotators, *, name: str, caption: str, unit: str) -> Table:
    """Krippendorff's α of all labellers, on each scale that makes sense."""
    scales = [found.nominal, *([found.ordinal] if found.ordinal else [])]
    return Table(
        name=name,
        caption=caption,
        n=found.items,
        unit=unit,
        columns=(
            Column("scale"),
            Column(f"{unit} with at least two labels", "count"),
            *columns_of(f"labels:count | α, 95% interval:number | {BY}"),
        ),
        rows=tuple(
            (each.scale, each.items, each.values, triple(each.value, each.interval), interval_method(each.interval))
            for each in scales
        ),
    )


_BARS = 30
_FEW = 12


def leaderboard_section(group: OutcomeSet) -> tuple[ScoreBlocks, list[Accuracy]]:
    """A leaderboard for each protocol with what went wrong; and all accuracies, for the sections that follow."""
    blocks: list[Block] = []
    table: list[Accuracy] = []
    split = group.protocols()
    for number, part in enumerate(split, start=1):
        protocol = part.tallies[part.order[0]].protocol or "free text"
        name = f"{group.prefix}-leaderboard" + (f"-{number}" if number > 1 else "")
        title = "Leaderboard" if len(split) == 1 else f"Leaderboard, {protocol}"
        places = leaderboard(part.outcomes, clusters=part.clusters)
        scores = [place.accuracy for place in places]
        table += scores
        blocks.append(Heading(title, name, 3))
        if all(missing(row.unscored) == row.planned for row in scores):
            blocks.append(Notice("No answer could be scored. The figures below show only what failed."))
        blocks += [_chart(part, places, name, title), folded(_table(part, places, name, title), 40)]
    if any(row.unscored for row in table):
        chart = _outcomes(group, table)
        blocks.append(chart if len(table) <= _FEW else Details("Result of every planned answer", (chart,)))
        blocks.append(folded(_unscored(group, [row for row in table if row.unscored]), _FEW))
    ours = tuple(
        OwnFigure(
            measure="accuracy, images" if _images(group, row) else "accuracy",
            model=row.model,
            condition=row.condition,
            value=triple(row.accuracy, row.bootstrap),
            n=row.questions,
            unscored=missing(row.unscored),
            protocol=group.tallies[row.model, row.condition].protocol,
            closed=is_closed(row.condition, group.tallies[row.model, row.condition].protocol),
        )
        for row in table
    )
    return ScoreBlocks(blocks=tuple(blocks), ours=ours), table


def _images(group: OutcomeSet, row: Accuracy) -> bool:
    return base_condition(row.condition, group.tallies[row.model, row.condition].protocol) == "images"


def _chart(group: OutcomeSet, places: Sequence[LeaderboardRow], name: str, title: str) -> Block:
    shown = places[:_BARS]
    bars = [
        interval_bar(group.name(place.system), place.accuracy.accuracy, place.accuracy.bootstrap) for place in shown
    ]
    caption = (
        "Share right of all planned answers, best first, with 95% intervals; questions from one document stay "
        f"together. Intervals: {accuracy_intervals(place.accuracy for place in shown)}."
    )
    if len(places) > len(shown):
        caption += f" The {_BARS} best of {len(places)} systems; all are in the table."
    return figure(name, caption, partial(interval_bars, bars, title=title, limits=(0, 1)))


def _table(group: OutcomeSet, places: Sequence[LeaderboardRow], name: str, title: str) -> Table:
    uneven = is_uneven(places)
    columns = (
        *columns_of("place, 95%:count | tied with:count"),
        *(columns_of("placed among:count | by questions:count") if uneven else ()),
        *columns_of(f"model | condition | accuracy, 95% interval:share | {BY}"),
        UNSCORED,
        *columns_of("sensitivity:share | 95% Wilson:share | right:count | planned:count | questions:count"),
    )
    rows: list[tuple[Cell, ...]] = []
    for place in places:
        row = place.accuracy
        rows.append(
            (
                place_cell(place, len(places)),
                place.tied if place_cell(place, len(places)) else None,
                *((place.among, place.n) if uneven else ()),
                row.model,
                row.condition,
                triple(row.accuracy, row.bootstrap),
                row.bootstrap.by,
                missing(row.unscored),
                row.sensitivity,
                (row.wilson.low, row.wilson.high),
                row.correct,
                row.planned,
                row.questions,
            )
        )
    return Table(
        name=name,
        caption=f"{title}: accuracy of each model and condition, best first",
        n=len(group.questions),
        unit=questions_in(group.questions, group.clusters),
        columns=columns,
        rows=tuple(rows),
        note=f"{interval_note(place.accuracy.bootstrap for place in places)} {SENSITIVITY_NOTE} {CLUSTER_NOTE} "
        f"{_ranked(places)}",
    )


def place_cell(place: LeaderboardRow, systems: int) -> Cell:
    """The place with its interval; none where no other system was asked the same questions."""
    return (place.rank, *place.rank_interval) if place.among > 1 or systems == 1 else None


def is_uneven(places: Sequence[LeaderboardRow]) -> bool:
    """Whether some systems were asked other questions than the rest."""
    return any(place.among < len(places) or place.n < place.accuracy.questions for place in places)


def _ranked(places: Sequence[LeaderboardRow]) -> str:
    if all(place_cell(place, len(places)) is None for place in places):
        return "Systems are not ranked, because no two of them were asked the same questions."
    words = "Systems are ranked by the share right. The interval of the rank is from drawing the same questions again."
    if is_uneven(places):
        words = (
            "Not all systems were asked the same questions. Two systems are compared by the questions that both were "
            "asked. A system is ranked only among those that were asked at least nine tenths of its questions, so a "
            "system with few questions changes no other rank. The interval is from drawing the questions again."
        )
    tied = any(place.tied for place in places)
    return f"{words} Tied systems share a rank." if tied else words


def _outcomes(group: OutcomeSet, table: Sequence[Accuracy]) -> Block:
    parts = []
    for row in table[:_BARS]:
        lost = missing(row.unscored)
        counts = {"unscored": lost, "right": row.correct, "wrong": row.planned - row.correct - lost}
        parts.append((group.name((row.model, row.condition)), counts))
    tones = {"right": 1, "wrong": 3, "unscored": 0}
    draw = partial(stacked_bars, parts, ("right", "wrong", "unscored"), title="Outcomes", tones=tones)
    return figure(f"{group.prefix}-outcomes", "Result of every planned answer.", draw)


def _unscored(group: OutcomeSet, rows: Sequence[Accuracy]) -> Table:
    columns = columns_of("model | condition | stage and reason | count:count | of planned:share")
    return Table(
        name=f"{group.prefix}-unscored",
        caption="Answers without a score, by what went wrong",
        n=sum(missing(row.unscored) for row in rows),
        unit="answers",
        columns=columns,
        rows=tuple(
            (row.model, row.condition, reason.replace(":", ": "), count, count / row.planned)
            for row in rows
            for reason, count in row.unscored.items()
        ),
    )
