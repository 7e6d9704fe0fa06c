"""Text against images: the same questions with what the images show in words, and with the images themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from msgspec.structs import replace

from hoofbeat.findings.accuracy import comparable_pairs, differences
from hoofbeat.findings.outcomes import Outcome, SystemKey
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.sections.scores.gather import Scored, base_condition, is_closed
from hoofbeat.reports.sections.scores.grid import difference_table
from hoofbeat.reports.sections.scores.shown import ScoreBlocks

__all__ = ["editions_blocks", "images_section"]

_IMAGES = "images"


def images_section(group: Scored) -> ScoreBlocks:
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


def editions_blocks(groups: Sequence[Scored]) -> dict[str, list[Block]]:
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


def _images_first(group: Scored) -> list[SystemKey]:
    return sorted(group.order, key=lambda system: base_condition(system[1], group.tallies[system].protocol) != _IMAGES)


def _text_for(text: Scored, system: SystemKey, protocol: str) -> str:
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
    group: Scored, outcomes: Sequence[Outcome], pairs: Sequence[tuple[SystemKey, SystemKey]], words: str, care: str
) -> list[Block]:
    if not pairs:
        return []
    found = differences(outcomes, pairs, clusters=group.clusters)
    name = f"{group.prefix}-images" if not words else f"{group.prefix}-editions"
    table = difference_table(found, name, "Images against text", care)
    return [Heading("Text against images", name, 3), *([Text(words)] if words else []), table]
