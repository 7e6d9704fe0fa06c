"""Telling a patient's story from prose about the literature, paragraph by paragraph.

Letters, image pages and many older reports give their case no heading. Its paragraphs can be told by what is said in
them: a person of an age who presented, findings with units, a course in the past tense; the literature is told by
citations and general statements. Both are counted features (`data/roles.toml`); the case is the run of paragraphs
whose scores add up to most. Nothing is random and nothing is learned, so every decision can be read off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

__all__ = ["Feature", "Paragraph", "best_run", "best_start", "paragraphs", "score"]

LEAST_RUN = 3.2
PER_PARAGRAPH = 4.0
TYPICAL_LENGTH = 900
SHORTEST_PROSE = 40

_LINE = re.compile(r"[^\n]+")
_FLOAT = re.compile(r"\W*(fig(ure)?s?|table|video|image|supplement\w*)\b[\s.]*\w?\d", re.IGNORECASE)


class Feature(Struct, frozen=True, kw_only=True):
    """Something a paragraph may say, what it counts and how often at most."""

    name: str
    pattern: re.Pattern[str]
    weight: float
    most: int


class Paragraph(Struct, frozen=True):
    """A paragraph of a document and how much it reads like a patient's story (more than nothing: it does)."""

    start: int
    end: int
    score: float
    opens: bool


def paragraphs(text: str, start: int, end: int, features: Sequence[Feature]) -> list[Paragraph]:
    """The paragraphs between two places of a text, each with its score; captions and table rows score nothing."""
    found = []
    for match in _LINE.finditer(text, start, end):
        line = match.group()
        if line.strip():
            found.append(Paragraph(match.start(), match.end(), *score(line, features)))
    return found


def score(text: str, features: Sequence[Feature]) -> tuple[float, bool]:
    """A paragraph's score, and whether it introduces a person by age."""
    if (len(text) < SHORTEST_PROSE and text[-1] != ".") or "\t" in text or " | " in text or _FLOAT.match(text):
        return 0.0, False
    lowered = text.lower()
    scale = min(1.0, TYPICAL_LENGTH / len(text))
    total, opens = 0.0, False
    for feature in features:
        count = 0
        for count, _ in enumerate(feature.pattern.finditer(lowered), start=1):
            if count * scale >= feature.most:
                break
        if not count:
            continue
        if feature.name == "opening":
            total += feature.weight
            opens = True
        else:
            total += feature.weight * min(count * scale, feature.most)
    return max(-PER_PARAGRAPH, min(PER_PARAGRAPH, total)), opens


def best_run(found: Sequence[Paragraph]) -> tuple[int, int, float] | None:
    """First and last paragraph of the run whose scores add up to most, and the sum; None where there is no story.

    A run begins with a paragraph that speaks for itself, names a person by age somewhere in its first three, and is
    worth at least as much as one clear paragraph.
    """
    best: tuple[float, int, int] | None = None
    total, first = 0.0, 0
    for place, paragraph in enumerate(found):
        if total <= 0:
            total, first = 0.0, place
        total += paragraph.score
        if paragraph.score > 0 and total >= LEAST_RUN and (best is None or total > best[0]):
            opened = any(each.opens for each in found[first : first + 3])
            best = (total, first, place) if opened else best
    if best is None:
        return None
    return best[1], best[2], best[0]


def best_start(found: Sequence[Paragraph]) -> int:
    """How many paragraphs from the first on tell most of a patient's story; all where what follows tells on."""
    best, count, total = 0.0, 0, 0.0
    for place, paragraph in enumerate(found, start=1):
        total += paragraph.score
        if total >= best:
            best, count = total, place
    return count
