"""How far the judge can be trusted: people's labels, corrected scores, votes of several judges, and probes."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.findings.corrected_scores import CorrectedAccuracy, corrected_accuracies, labels_needed
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.outcomes import HUMAN, Outcome
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.judgments_folder import Judged
from hoofbeat.judging.probes import FlipCount, flips
from hoofbeat.reports.model import Block, Details, Heading
from hoofbeat.reports.sections.scores.annotators import people_shown, votes_shown
from hoofbeat.reports.sections.scores.gather import Scored
from hoofbeat.reports.sections.scores.shown import ScoreBlocks, triple
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of

__all__ = ["judges_section"]


_WIDTHS = (0.05, 0.03)


def judges_section(group: Scored) -> ScoreBlocks:
    """Everything that says how good the judgments are; nothing where a single judge was never checked."""
    shown = [_alone(group), people_shown(group), _corrected(group), votes_shown(group), _probes(group)]
    blocks = [block for each in shown for block in each.blocks]
    if blocks:
        blocks.insert(0, Heading("The judge", f"{group.prefix}-judge", 3))
    return ScoreBlocks(blocks=tuple(blocks), ours=tuple(figure for each in shown for figure in each.ours))


def _alone(group: Scored) -> ScoreBlocks:
    """Systems that only people have labelled: the share right of what they labelled, with nothing said of the rest."""
    if not group.by_people:
        return ScoreBlocks()
    columns = (
        Column("model"),
        Column("condition"),
        Column("planned", "count"),
        Column("labelled", "count"),
        Column("contested", "count"),
        Column("unlabelled", "count"),
        Column("right", "count"),
        Column("right of the labelled, 95% Wilson", "share"),
    )
    rows: list[tuple[Cell, ...]] = []
    for system, count in group.by_people.items():
        planned = group.tallies[system].answers
        share = triple(count.right / count.labelled, wilson(count.right, count.labelled)) if count.labelled else None
        rest = planned - count.labelled - count.contested
        rows.append((*system, planned, count.labelled, count.contested, rest, count.right, share))
    table = Table(
        name=f"{group.prefix}-people-alone",
        caption=f"Labels by {', '.join(group.people)}, and no judge",
        n=sum(count.labelled for count in group.by_people.values()),
        unit="labelled answers",
        columns=columns,
        rows=tuple(rows),
        note="The label of more than half of those who labelled an answer; without such a label it is contested. The "
        "share says something of all answers only where the labelled ones are a random sample of them; Wilson's "
        "interval takes answers as independent.",
    )
    return ScoreBlocks(blocks=(table,))


def _corrected(group: Scored) -> ScoreBlocks:
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
        if each.judge.startswith(HUMAN) and each.aspect == EQUIVALENCE.name
    ]
    mine = {(row.model, row.condition) for row in group.outcomes} - group.by_people.keys()
    labels = [row for row in human if (row.model, row.condition) in mine]
    found = corrected_accuracies(group.outcomes, labels, clusters=group.clusters)
    if not found:
        return ScoreBlocks()
    doubtful = sum(bool(row.score.warnings) for row in found)
    blocks: list[Block] = [_corrected_table(group, found)]
    if doubtful:
        care = _care_table(group, found)
        words = f"{doubtful:,} of {count_of(len(found), 'corrected score')} must be read with care"
        blocks.append(Details(words, (care,)))
    return ScoreBlocks(blocks=tuple(blocks))


def _corrected_table(group: Scored, found: Sequence[CorrectedAccuracy]) -> Table:
    columns = (
        Column("model"),
        Column("condition"),
        Column("by the judge", "share"),
        Column("corrected, 95%", "share"),
        Column("planned", "count"),
        Column("unanswered", "count"),
        Column("unscored", "count"),
        Column("sensitivity", "share"),
        Column("by people alone", "share"),
        Column("labelled", "count"),
        Column("contested", "count"),
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
        note="Prediction-powered estimate: what people say differently on the labelled answers is added to the judge's "
        "mean over all. It holds where the labelled answers are a random sample. An answer that failed can't be "
        "labelled and counts as not right (unanswered; with those the judge failed on: unscored); sensitivity is the "
        "estimate with all of those wrong and all right, where they exceed 1%. Contested: labelled by several people "
        "with no majority, and not counted as labelled.",
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


def _probes(group: Scored) -> ScoreBlocks:
    """How often a verdict changed with what should not matter."""
    probes = [
        probe for artefact in group.artefacts if artefact.has("probes.jsonl") for probe in Judged(artefact).each_probe()
    ]
    found = flips(probes)
    if not found:
        return ScoreBlocks()
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
    return ScoreBlocks(blocks=(table,))


def _probe_row(row: FlipCount) -> tuple[Cell, ...]:
    flipped = triple(row.flips / row.n, wilson(row.flips, row.n)) if row.n else None
    halves = [triple(right / of, wilson(right, of)) if of else None for right, of in (row.short, row.long)]
    return (row.probe, row.judge, row.n, row.unscored, row.flips, flipped, row.to_equivalent, row.to_mismatch, *halves)
