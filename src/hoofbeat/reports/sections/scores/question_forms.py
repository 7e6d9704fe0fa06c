"""Scores by the form of a question: its number of options, and its editions with and without images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from msgspec.structs import replace

from hoofbeat.facets import facet_names
from hoofbeat.findings.accuracy import comparable_pairs, differences
from hoofbeat.findings.option_decisions import OptionDecisions, option_decisions
from hoofbeat.findings.outcomes import Outcome, SystemKey
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.sections.scores.condition_grid import difference_table
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, base_condition, is_closed
from hoofbeat.reports.sections.scores.score_tables import UNSCORED, ScoreBlocks, folded, triple
from hoofbeat.reports.tables import Cell, Column, Table


def options_section(group: OutcomeSet) -> ScoreBlocks:
    """One row a system that chose options; nothing where all answers are free text."""
    if not any(tally.protocol for tally in group.tallies.values()):
        return ScoreBlocks()
    facet = next(iter(facet_names(group.facets.values())), "")
    kept = (answer for answer in group.each_answer() if (answer.model, answer.condition) in group.order)
    found = option_decisions(group.questions.values(), kept, facet or None, clusters=group.clusters)
    if not found:
        return ScoreBlocks()
    rank = {system: place for place, system in enumerate(group.order)}
    found.sort(key=lambda row: rank[row.model, row.condition])
    columns = [
        Column("model"),
        Column("condition"),
        Column("answers", "count"),
        UNSCORED,
        *(Column(name, "count") for name in ("TP", "FN", "TN", "FP")),
        Column("sensitivity", "share"),
        Column("specificity", "share"),
        Column("range of sensitivity", "share"),
        Column("range of specificity", "share"),
    ]
    if facet:
        columns += [
            Column(f"sensitivity, macro by {facet}", "share"),
            Column(f"specificity, macro by {facet}", "share"),
        ]
    undecided = sum(row.undecided for row in found)
    table = Table(
        name=f"{group.prefix}-options",
        caption="Sensitivity and specificity over option decisions",
        n=len(group.questions),
        unit="questions",
        columns=tuple(columns),
        rows=tuple(_row(row, facet) for row in found),
        note="TP: the right option selected; FN: not selected; TN: a wrong option not selected; FP: selected. 95% "
        "intervals by bootstrap over questions. An unscored answer selects nothing; where such answers exceed 1%, the "
        "range is the figure had each of them selected a wrong option and had each selected the right one."
        + (
            f" Questions without options leave nothing to decide: {undecided:,} answers are in neither rate."
            if undecided
            else ""
        ),
    )
    ours = tuple(
        OwnFigure(
            measure=name,
            model=row.model,
            condition=row.condition,
            value=triple(rate.value, rate.bootstrap),
            n=row.questions,
            unscored=row.unscored,
        )
        for row in found
        for name, rate in (("sensitivity", row.sensitivity), ("specificity", row.specificity))
    )
    heading = Heading("Sensitivity and specificity", f"{group.prefix}-options", 3)
    return ScoreBlocks(blocks=(heading, folded(table)), ours=ours)


def _row(row: OptionDecisions, facet: str) -> tuple[Cell, ...]:
    cells: list[Cell] = [row.model, row.condition, row.answers, row.unscored, row.tp, row.fn, row.tn, row.fp]
    cells += [triple(rate.value, rate.bootstrap) for rate in (row.sensitivity, row.specificity)]
    cells += [rate.sensitivity_range for rate in (row.sensitivity, row.specificity)]
    if facet:
        for macro in (row.macro_sensitivity, row.macro_specificity):
            cells.append(triple(macro.value, macro.interval) if macro else None)
    return tuple(cells)


_IMAGES = "images"


def images_section(group: OutcomeSet) -> ScoreBlocks:
    """Answers with the images against the closed book on the text, where both were run."""
    pairs: list[tuple[SystemKey, SystemKey]] = []
    for model, condition in group.order:
        protocol = group.tallies[model, condition].protocol
        if base_condition(condition, protocol) == _IMAGES:
            pairs += [
                ((model, condition), other)
                for other in group.order
                if other[0] == model
                and group.tallies[other].protocol == protocol
                and is_closed(other[1], group.tallies[other].protocol)
            ]
    return ScoreBlocks(blocks=tuple(_blocks(group, group.outcomes, pairs, "", group.care)))


def editions_blocks(groups: Sequence[OutcomeSet]) -> dict[str, list[Block]]:
    """Two editions of the same questions, one of them with images: chapter (by its prefix) to what it shows of that."""
    found: dict[str, list[Block]] = {}
    for text, pictured in permutations(groups, 2):
        shared = text.questions.keys() & pictured.questions.keys()
        if (
            not shared
            or not any(pictured.questions[name].images for name in shared)
            or any(text.questions[name].images for name in shared)
        ):
            continue
        rows = [row for row in text.outcomes if row.question in shared]
        rows += [
            replace(row, condition=_pictured(row.condition)) for row in pictured.outcomes if row.question in shared
        ]
        pairs = [
            ((model, _pictured(condition)), (model, plain))
            for model, condition in _images_first(pictured)
            if (plain := _text_for(text, (model, condition), pictured.tallies[model, condition].protocol))
        ]
        known = {frozenset(pair) for pair in comparable_pairs(rows, "model")}
        kept = [pair for pair in pairs if frozenset(pair) in known]
        both = replace(pictured, asked=[*text.asked, *pictured.asked])
        words = (
            f"The edition with images against the one without, over the {len(shared):,} questions of both. Images are "
            f"shown under the condition “{_IMAGES}” only; any other condition of that edition is its text without the "
            "images."
        )
        found.setdefault(pictured.prefix, []).extend(_blocks(pictured, rows, kept, words, both.care))
    return found


def _pictured(condition: str) -> str:
    """What a condition is called in the edition with images."""
    shown = condition.partition(",")[0] == _IMAGES
    return f"{condition} (image edition)" if shown else f"{condition} (image edition, text only)"


def _images_first(group: OutcomeSet) -> list[SystemKey]:
    return sorted(group.order, key=lambda system: base_condition(system[1], group.tallies[system].protocol) != _IMAGES)


def _text_for(text: OutcomeSet, system: SystemKey, protocol: str) -> str:
    """The condition of the text edition that this one is set against: the closed book for images, else the same."""
    base = base_condition(system[1], protocol)
    mine = [condition for model, condition in text.order if model == system[0]]
    if base == _IMAGES:
        return next(
            (each for each in mine if text.tallies[system[0], each].protocol == protocol and is_closed(each, protocol)),
            "",
        )
    return system[1] if system[1] in mine else ""


def _blocks(
    group: OutcomeSet, outcomes: Sequence[Outcome], pairs: Sequence[tuple[SystemKey, SystemKey]], words: str, care: str
) -> list[Block]:
    if not pairs:
        return []
    found = differences(outcomes, pairs, clusters=group.clusters)
    name = f"{group.prefix}-images" if not words else f"{group.prefix}-editions"
    table = difference_table(found, name, "Images against text", care)
    return [Heading("Text against images", name, 3), *([Text(words)] if words else []), table]
