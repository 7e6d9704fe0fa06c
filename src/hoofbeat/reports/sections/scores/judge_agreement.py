"""How far the judge can be trusted: people's labels, corrected scores, votes of several judges, and probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.findings.agreement import Agreement, Kappa, Weights, agreement, agreement_with_intervals, weighted_kappa
from hoofbeat.findings.corrected_scores import CorrectedAccuracy, corrected_accuracies, labels_needed
from hoofbeat.findings.intervals import cluster_labels, cluster_of, share_interval
from hoofbeat.findings.outcomes import HUMAN, Outcome
from hoofbeat.judging import Aspect
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.catalogue import criterion
from hoofbeat.judging.judgments_folder import JudgmentFolder
from hoofbeat.judging.probes import FlipCount, flips, injection_probes
from hoofbeat.records import Judgment
from hoofbeat.reports.injection_table import injection_blocks
from hoofbeat.reports.interval_words import BY, method_words
from hoofbeat.reports.item_views import answer_key
from hoofbeat.reports.model import Block, Details, Heading, Notice
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.scores.accuracy_table import KAPPAS, WEIGHTED, ScoreBlocks, alphas_table, labellers_table
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple

_WEIGHTS: tuple[Weights, Weights] = ("linear", "quadratic")
_STEPS = "The labels are in order ({order}): weighted κ counts a disagreement by its steps, or by their square."

Ratings = dict[str, dict[str, str]]


def people_shown(group: OutcomeSet) -> ScoreBlocks:
    """Agreement of the judge with each person, and of people with each other, aspect by aspect."""
    blocks: list[Block] = []
    ours: list[OwnFigure] = []
    people = [each for each in group.judgments if each.judge.startswith(HUMAN) and not each.failure and each.label]
    together = group.clusters
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
        shared = {
            name: cluster_labels([_question(item, together) for item in rows if item in known], None)
            for name, rows in ratings.items()
        }
        if len(pairs) > 1:
            pairs[POOLED] = [pair for mine in pairs.values() for pair in mine]
            shared[POOLED] = [_question(item, together) for rows in ratings.values() for item in rows if item in known]
        checked = {name: agreement(mine, labels, clusters=shared[name]) for name, mine in pairs.items() if mine}
        if checked:
            weighted = {
                name: tuple(weighted_kappa(pairs[name], labels, weights, clusters=shared[name]) for weights in _WEIGHTS)
                for name in (checked if is_ordered(aspect, labels) else ())
            }
            blocks.append(_agreement_table(group, aspect, checked, weighted))
            blocks += [_confusion(group, aspect, name, found) for name, found in checked.items()]
            ours += agreement_figures(aspect, checked)
        if len(ratings) > 1:
            blocks += _annotators(group, aspect, ("people", "Agreement between people"), ratings, labels)
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(ours))


def votes_shown(group: OutcomeSet) -> ScoreBlocks:
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
        blocks += _annotators(group, aspect, ("votes", "Agreement between judges"), ratings, labels)
        split = sum(each.failure is not None for each in mine)
        if split:
            words = count_of(split, "answer")
            blocks.append(Notice(f"{aspect}: no majority among the judges on {words} of {len(mine):,}."))
    return ScoreBlocks(blocks=tuple(blocks))


def _item(judgment: Judgment) -> str:
    return _SEPARATOR.join((*map(str, answer_key(judgment)), judgment.passage))


def _question(item: str, clusters: Mapping[str, str]) -> str:
    """What an item is resampled with: its question, or the document of that."""
    return cluster_of(item.partition(_SEPARATOR)[0], clusters)


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


def agreement_figures(aspect: str, checked: Mapping[str, Agreement]) -> tuple[OwnFigure, ...]:
    """Agreement and κ with each of these, to be set beside published ones."""
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
    return tuple(found)


def _agreement_table(
    group: OutcomeSet, aspect: str, checked: Mapping[str, Agreement], weighted: Mapping[str, tuple[Kappa, ...]]
) -> Table:
    columns = (
        *columns_of("person | labelled:count | unscored:count | agreement, 95% Wilson:share | κ, 95% interval:number"),
        *(WEIGHTED if weighted else ()),
        Column(f"κ, {BY}"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            row.n,
            row.unscored,
            triple(row.accuracy, row.accuracy_interval),
            triple(row.kappa, row.kappa_interval),
            *(triple(kappa.value, kappa.interval) for kappa in weighted.get(name, ())),
            method_words(
                zip(KAPPAS, (row.kappa_interval, *(k.interval for k in weighted.get(name, ()))), strict=False)
            ),
        )
        for name, row in checked.items()
    )
    return Table(
        name=f"{group.prefix}-agreement-{aspect}",
        caption=f"Agreement of the judge with people, {aspect}",
        n=sum(row.n for name, row in checked.items() if name != POOLED),
        unit="labels",
        columns=columns,
        rows=rows,
        note="A labelled answer without a verdict of the judge counts as disagreement and is left out of Cohen's κ."
        + (f" {_STEPS.format(order=' < '.join(_scale(aspect)))}" if weighted else ""),
    )


def _confusion(group: OutcomeSet, aspect: str, name: str, found: Agreement) -> Block:
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
    group: OutcomeSet, aspect: str, names: tuple[str, str], ratings: Ratings, labels: Sequence[str]
) -> list[Block]:
    """Every two labellers, and all together; `names` are the table's and what it is called."""
    name, caption = f"{names[0]}-{aspect}", f"{names[1]}, {aspect}"
    ordered = is_ordered(aspect, labels)
    together = group.clusters
    clusters = {item: _question(item, together) for rows in ratings.values() for item in rows}
    found = agreement_with_intervals(ratings, labels, ordered=ordered, clusters=clusters)
    note = _STEPS.format(order=" < ".join(_scale(aspect))) if ordered else ""
    table = labellers_table(found, name=f"{group.prefix}-{name}", caption=caption, unit="items", note=note)
    alphas = f"{caption}: Krippendorff's α"
    return [table, alphas_table(found, name=f"{group.prefix}-{name}-alpha", caption=alphas, unit="items")]


POOLED = "all people"
"""The row of the labels of everybody; those of one answer, and of one question, are kept together."""

_SEPARATOR = "\x1f"
_WIDTHS = (0.05, 0.03)


def judges_section(group: OutcomeSet) -> ScoreBlocks:
    """Everything that says how good the judgments are; nothing where a single judge was never checked."""
    shown = [_alone(group), people_shown(group), _corrected(group), votes_shown(group), _probes(group)]
    blocks = [block for each in shown for block in each.blocks]
    if blocks:
        blocks.insert(0, Heading("The judge", f"{group.prefix}-judge", 3))
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(figure for each in shown for figure in each.ours))


def _alone(group: OutcomeSet) -> ScoreBlocks:
    """Systems that only people have labelled: the share right of what they labelled, with nothing said of the rest."""
    if not group.by_people:
        return ScoreBlocks()
    columns = columns_of(
        "model | condition | planned:count | labelled:count | contested:count | unlabelled:count | "
        "right:count | right of the labelled, 95% Wilson:share"
    )
    rows: list[tuple[Cell, ...]] = []
    clusters = group.clusters
    for system, count in group.by_people.items():
        planned = group.tallies[system].answers
        given = [row for row in group.outcomes if (row.model, row.condition) == system and row.correct is not None]
        span = share_interval(
            [row.correct is True for row in given], [cluster_of(row.question, clusters) for row in given]
        )
        share = triple(count.right / count.labelled, span) if count.labelled else None
        rest = planned - count.labelled - count.contested
        rows.append((*system, planned, count.labelled, count.contested, rest, count.right, share))
    table = Table(
        name=f"{group.prefix}-people-alone",
        caption=f"Labels by {', '.join(group.people)}, and no judge",
        n=sum(count.labelled for count in group.by_people.values()),
        unit="labelled answers",
        columns=columns,
        rows=tuple(rows),
        note="An answer has the label that more than half of the people gave; without one it is contested. The share "
        "holds for all answers only if the labelled ones are a random sample.",
    )
    return ScoreBlocks(blocks=(table,))


def people_labels(group: OutcomeSet) -> list[Outcome]:
    """What people say of the answers that a judge has judged."""
    mine = {(row.model, row.condition) for row in group.outcomes} - group.by_people.keys()
    return [
        Outcome(
            question=each.question,
            model=each.model,
            condition=each.condition,
            sample=each.sample,
            correct=None if each.failure else each.label == "equivalent",
        )
        for each in group.judgments
        if each.judge.startswith(HUMAN) and each.aspect == EQUIVALENCE.name and (each.model, each.condition) in mine
    ]


def _corrected(group: OutcomeSet) -> ScoreBlocks:
    """The scores by the judge beside those corrected by people's labels, and how many more labels would help."""
    found = corrected_accuracies(group.outcomes, people_labels(group), clusters=group.clusters)
    if not found:
        return ScoreBlocks()
    doubtful = sum(bool(row.score.warnings) for row in found)
    blocks: list[Block] = [_corrected_table(group, found)]
    if doubtful:
        care = _care_table(group, found)
        words = f"{doubtful:,} of {count_of(len(found), 'corrected score')} need care"
        blocks.append(Details(words, (care,)))
    return ScoreBlocks(blocks=tuple(blocks))


def _corrected_table(group: OutcomeSet, found: Sequence[CorrectedAccuracy]) -> Table:
    columns = (
        *columns_of(
            "model | condition | by the judge:share | corrected, 95%:share | planned:count | "
            "unanswered:count | unscored:count | sensitivity:share | by people alone:share | "
            "labelled:count | contested:count | people minus judge:points | judge's weight:number"
        ),
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
                row.planned,
                row.unanswered,
                row.unanswered + score.judge_missing,
                row.sensitivity,
                triple(score.classical, score.classical_interval),
                score.n_labelled,
                score.contested,
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
        note="Prediction-powered estimate: the judge's mean over all answers, corrected by its difference from "
        "people on the labelled ones. It is valid if the labelled answers are a random sample. A failed answer "
        "can't be labelled and counts as not right (unanswered; unscored also counts failures of the judge). "
        "Where unscored answers exceed 1%, sensitivity is the estimate with all of them wrong and all right. "
        "Contested: labelled by several people "
        "with no majority, and not counted as labelled.",
    )


def _care_table(group: OutcomeSet, found: Sequence[CorrectedAccuracy]) -> Table:
    rows = tuple((row.model, row.condition, warning) for row in found for warning in row.score.warnings)
    return Table(
        name=f"{group.prefix}-corrected-care",
        caption="Why corrected scores are doubtful",
        n=len(rows),
        unit="reasons",
        columns=columns_of("model | condition | why"),
        rows=rows,
    )


def _probes(group: OutcomeSet) -> ScoreBlocks:
    """How often a verdict changed with what should not matter."""
    probes = [
        probe
        for artefact in group.artefacts
        if artefact.has("probes.jsonl")
        for probe in JudgmentFolder(artefact).each_probe()
    ]
    found = flips(probes)
    if not found:
        return ScoreBlocks()
    columns = columns_of(
        "probe | judge | pairs:count | unscored:count | flipped:count | "
        "share flipped, 95% Wilson:share | to equivalent:count | to mismatch:count | "
        "equivalent, shorter half:share | equivalent, longer half:share"
    )
    table = Table(
        name=f"{group.prefix}-probes",
        caption="Verdicts that changed although they should not",
        n=sum(row.n for row in found),
        unit="answers judged twice",
        columns=columns,
        rows=tuple(_probe_row(row) for row in found),
        note="order: the answer before the reference; length: harmless words added; consistency: the same call again. "
        "injection: the answer tells the judge which label to give. "
        "A pair with a failed verdict is unscored and in no share. Halves are by the length of answers.",
    )
    return ScoreBlocks(blocks=(table, *injection_blocks(injection_probes(probes), f"{group.prefix}-injections")))


def _probe_row(row: FlipCount) -> tuple[Cell, ...]:
    flipped = triple(row.flips / row.n, row.intervals[0]) if row.n else None
    halves = [
        triple(right / of, span) if of else None
        for (right, of), span in zip((row.short, row.long), row.intervals[1:], strict=True)
    ]
    return (row.probe, row.judge, row.n, row.unscored, row.flips, flipped, row.to_equivalent, row.to_mismatch, *halves)
