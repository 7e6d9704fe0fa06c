"""How far the judge can be trusted: people's labels, corrected scores, votes of several judges, and probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.findings.agreement import Agreement, Annotators, agreement, agreement_with_intervals
from hoofbeat.findings.alpha import Alpha
from hoofbeat.findings.corrected import CorrectedAccuracy, corrected_accuracies, labels_needed
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.scoring import HUMAN, Outcome
from hoofbeat.judging.folder import Judged
from hoofbeat.judging.probes import FlipCount, flips
from hoofbeat.records import Judgment
from hoofbeat.reports.model import Block, Cell, Column, Details, Heading, Notice, Table
from hoofbeat.reports.sections.answers import answer_key
from hoofbeat.reports.sections.scores.gather import EQUIVALENCE, Scored
from hoofbeat.reports.sections.scores.shown import Ours, Shown, triple
from hoofbeat.reports.words import count_of

__all__ = ["judges_section"]

_ORDERED = {"equivalence": ("equivalent", "mismatch"), "choice": ("correct", "incorrect")}
_WIDTHS = (0.05, 0.03)

Ratings = dict[str, dict[str, str]]


def judges_section(group: Scored) -> Shown:
    """Everything that says how good the judgments are; nothing where a single judge was never checked."""
    shown = [_people(group), _corrected(group), _votes(group), _probes(group)]
    blocks = [block for each in shown for block in each.blocks]
    if blocks:
        blocks.insert(0, Heading("The judge", f"{group.prefix}-judge", 3))
    return Shown(blocks=tuple(blocks), ours=tuple(figure for each in shown for figure in each.ours))


def _people(group: Scored) -> Shown:
    """Agreement of the judge with each person, and of people with each other, aspect by aspect."""
    blocks: list[Block] = []
    ours: list[Ours] = []
    people = [each for each in group.judgments if each.judge.startswith(HUMAN) and not each.failure and each.label]
    for aspect in dict.fromkeys(each.aspect for each in people):
        given = [each for each in group.judgments if each.aspect == aspect and not each.judge.startswith(HUMAN)]
        known: dict[str, str | None] = {_item(each): None if each.failure else each.label for each in given}
        ratings: Ratings = {}
        for each in people:
            if each.aspect == aspect:
                ratings.setdefault(each.judge.removeprefix(HUMAN), {})[_item(each)] = each.label
        labels = _labels(aspect, [*known.values(), *(label for rows in ratings.values() for label in rows.values())])
        checked = {
            name: agreement(((known[item], label) for item, label in rows.items() if item in known), labels)
            for name, rows in ratings.items()
            if any(item in known for item in rows)
        }
        if checked:
            blocks.append(_agreement_table(group, aspect, checked))
            blocks += [_confusion(group, aspect, name, found) for name, found in checked.items()]
            ours += _agreed(aspect, checked)
        if len(ratings) > 1:
            blocks += _annotators(group, f"people-{aspect}", f"People among themselves, {aspect}", ratings, labels)
    return Shown(blocks=tuple(blocks), ours=tuple(ours))


def _item(judgment: Judgment) -> str:
    return "\x1f".join((*map(str, answer_key(judgment)), judgment.passage))


def _labels(aspect: str, seen: Sequence[str | None]) -> list[str]:
    order = _ORDERED.get(aspect, ())
    return [*order, *sorted({label for label in seen if label} - set(order))]


def _agreed(aspect: str, checked: Mapping[str, Agreement]) -> list[Ours]:
    found = []
    for name, row in checked.items():
        condition, model = f"{aspect}, against {name}", "our judge"
        agreed = triple(row.accuracy, row.accuracy_interval)
        found.append(
            Ours(
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
            Ours(measure="judge kappa", model=model, condition=condition, value=kappa, n=row.n, unscored=row.unscored)
        )
    return found


def _agreement_table(group: Scored, aspect: str, checked: Mapping[str, Agreement]) -> Table:
    columns = (
        Column("person"),
        Column("labelled", "count"),
        Column("unscored", "count"),
        Column("agreement, 95% Wilson", "share"),
        Column("κ, 95% bootstrap", "number"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            row.n,
            row.unscored,
            triple(row.accuracy, row.accuracy_interval),
            triple(row.kappa, row.kappa_interval),
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
        note="A labelled answer that the judge failed on counts as disagreement and is left out of Cohen's κ.",
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


def _annotators(group: Scored, name: str, caption: str, ratings: Ratings, labels: Sequence[str]) -> list[Block]:
    found = agreement_with_intervals(ratings, labels)
    columns = (
        Column("one"),
        Column("other"),
        Column("both labelled", "count"),
        Column("agreement, 95% Wilson", "share"),
        Column("κ, 95% bootstrap", "number"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.a,
            row.b,
            row.n,
            triple(row.agreement, row.agreement_interval),
            triple(row.kappa.value, row.kappa.interval),
        )
        for row in found.pairs
    ]
    table = Table(
        name=f"{group.prefix}-{name}",
        caption=caption,
        n=found.items,
        unit="items",
        columns=columns,
        rows=tuple(rows),
    )
    return [table, _alphas(group, name, caption, found)]


def _alphas(group: Scored, name: str, caption: str, found: Annotators) -> Table:
    scales: list[Alpha] = [found.nominal, *([found.ordinal] if found.ordinal else [])]
    return Table(
        name=f"{group.prefix}-{name}-alpha",
        caption=f"{caption}: Krippendorff's α",
        n=found.items,
        unit="items",
        columns=(
            Column("scale"),
            Column("items of two labels or more", "count"),
            Column("labels", "count"),
            Column("α, 95% bootstrap", "number"),
        ),
        rows=tuple((each.scale, each.items, each.values, triple(each.value, each.interval)) for each in scales),
    )


def _corrected(group: Scored) -> Shown:
    """The scores by the judge beside those corrected by people's labels, and how many more labels would help."""
    human = [
        Outcome(
            question=each.question,
            model=each.model,
            condition=each.condition,
            sample=each.sample,
            correct=None if each.failure else each.label == "equivalent",
        )
        for each in group.judgments
        if each.judge.startswith(HUMAN) and each.aspect == EQUIVALENCE
    ]
    mine = {(row.model, row.condition) for row in group.outcomes}
    labels = [row for row in human if (row.model, row.condition) in mine]
    found = corrected_accuracies(group.outcomes, labels, clusters=group.clusters)
    if not found:
        return Shown()
    doubtful = sum(bool(row.score.warnings) for row in found)
    blocks: list[Block] = [_corrected_table(group, found)]
    if doubtful:
        care = _care_table(group, found)
        words = f"{doubtful:,} of {count_of(len(found), 'corrected score')} must be read with care"
        blocks.append(Details(words, (care,)))
    return Shown(blocks=tuple(blocks))


def _corrected_table(group: Scored, found: Sequence[CorrectedAccuracy]) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("by the judge", "share"),
        Column("corrected, 95%", "share"),
        Column("unscored", "count"),
        Column("sensitivity", "share"),
        Column("by people alone", "share"),
        Column("labelled", "count"),
        Column("planned", "count"),
        Column("people less judge", "points"),
        Column("judge's weight", "number"),
        *(Column(f"more labels for ± {100 * width:g} points", "text") for width in _WIDTHS),
    )
    rank = {system: place for place, system in enumerate(group.order)}
    rows: list[tuple[Cell, ...]] = []
    for row in sorted(found, key=lambda row: rank[row.model, row.condition]):
        score = row.score
        needed = [labels_needed(score, width) for width in _WIDTHS]
        rows.append(
            (
                row.model,
                row.condition,
                score.judge,
                triple(score.estimate, score.interval),
                row.unanswered + score.judge_missing,
                row.sensitivity,
                triple(score.classical, score.classical_interval),
                score.n_labelled,
                row.planned,
                score.rectifier,
                score.weight,
                *("not even all" if count is None else f"{count:,}" for count in needed),
            )
        )
    return Table(
        name=f"{group.prefix}-corrected",
        caption="Accuracy by the judge, corrected by people's labels",
        n=sum(row.score.n_labelled for row in found),
        unit="labelled answers",
        columns=columns,
        rows=tuple(rows),
        note="Prediction-powered estimate: what people say differently on the labelled answers is added to the judge's "
        "mean over all. It holds where the labelled answers are a random sample. An answer that failed can't be "
        "labelled and counts as not right; sensitivity is the estimate with all of those wrong and all right, where "
        "they exceed 1%.",
    )


def _care_table(group: Scored, found: Sequence[CorrectedAccuracy]) -> Table:
    rows = tuple((row.model, row.condition, warning) for row in found for warning in row.score.warnings)
    return Table(
        name=f"{group.prefix}-corrected-care",
        caption="What makes corrected scores doubtful",
        n=len(rows),
        unit="reasons",
        columns=(Column("model"), Column("condition"), Column("why")),
        rows=rows,
    )


def _votes(group: Scored) -> Shown:
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
        blocks += _annotators(group, f"votes-{aspect}", f"Judges among themselves, {aspect}", ratings, labels)
        split = sum(each.failure is not None for each in mine)
        if split:
            words = count_of(split, "answer")
            blocks.append(Notice(f"{aspect}: {words} of {len(mine):,} got no label from the judges together."))
    return Shown(blocks=tuple(blocks))


def _probes(group: Scored) -> Shown:
    """How often a verdict changed with what should not matter."""
    probes = [
        probe for artefact in group.artefacts if artefact.has("probes.jsonl") for probe in Judged(artefact).each_probe()
    ]
    found = flips(probes)
    if not found:
        return Shown()
    columns = (
        Column("probe"),
        Column("judge"),
        Column("pairs", "count"),
        Column("unscored", "count"),
        Column("flipped", "count"),
        Column("share flipped, 95% Wilson", "share"),
        Column("to equivalent", "count"),
        Column("to mismatch", "count"),
        Column("equivalent, shorter half", "share"),
        Column("equivalent, longer half", "share"),
    )
    table = Table(
        name=f"{group.prefix}-probes",
        caption="Verdicts that changed with what should not matter",
        n=sum(row.n for row in found),
        unit="answers judged twice",
        columns=columns,
        rows=tuple(_probe_row(row) for row in found),
        note="order: the answer before the reference; length: harmless words added; consistency: the same call again. "
        "A pair of which one verdict failed is unscored and in no share. The halves are of the answers by length.",
    )
    return Shown(blocks=(table,))


def _probe_row(row: FlipCount) -> tuple[Cell, ...]:
    flipped = triple(row.flips / row.n, wilson(row.flips, row.n)) if row.n else None
    halves = [triple(right / of, wilson(right, of)) if of else None for right, of in (row.short, row.long)]
    return (row.probe, row.judge, row.n, row.unscored, row.flips, flipped, row.to_equivalent, row.to_mismatch, *halves)
