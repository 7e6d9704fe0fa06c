"""Text against images: the same questions with what the images show in words, and with the images themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from msgspec.structs import replace

from hoofbeat.findings.accuracy import comparable, differences
from hoofbeat.findings.scoring import Outcome
from hoofbeat.findings.shares import System
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.sections.scores.gather import Scored, base_condition, is_closed
from hoofbeat.reports.sections.scores.grid import difference_table
from hoofbeat.reports.sections.scores.shown import Shown

__all__ = ["editions_blocks", "images_section"]

_IMAGES = "images"


def images_section(group: Scored) -> Shown:
    """Answers with the images against the closed book on the text, where both were run."""
    pairs: list[tuple[System, System]] = []
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
    return Shown(blocks=tuple(_blocks(group, group.outcomes, pairs, "")))


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
            replace(row, condition=f"{row.condition} (images)") for row in pictured.outcomes if row.question in shared
        ]
        pairs = [
            ((model, f"{condition} (images)"), (model, condition))
            for model, condition in pictured.order
            if (model, condition) in text.order
        ]
        known = {frozenset(pair) for pair in comparable(rows, "model")}
        kept = [pair for pair in pairs if frozenset(pair) in known]
        words = f"The edition with images against the one without, over the {len(shared):,} questions of both."
        found.setdefault(pictured.prefix, []).extend(_blocks(pictured, rows, kept, words))
    return found


def _blocks(
    group: Scored, outcomes: Sequence[Outcome], pairs: Sequence[tuple[System, System]], words: str
) -> list[Block]:
    if not pairs:
        return []
    found = differences(outcomes, pairs, clusters=group.clusters)
    name = f"{group.prefix}-images" if not words else f"{group.prefix}-editions"
    table = difference_table(found, name, "Images against text")
    return [Heading("Text against images", name, 3), *([Text(words)] if words else []), table]
