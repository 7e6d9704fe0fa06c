"""Real sentences turned round at test time: by comparator, denial, direction, number and unit.

The swaps are written here a second time on purpose: a check that is measured with its own word list finds nothing new.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SWAPS: dict[str, tuple[tuple[str, str], ...]] = {
    "comparator": (
        ("≥", "≤"),
        ("≤", "≥"),
        (r"(?<![<>=])>(?=\s?\d)", "<"),
        (r"(?<![<>=])<(?=\s?\d)", ">"),
        (r"\bat least(?= \d)", "at most"),
        (r"\b(?:more|greater) than(?= \d)", "less than"),
        (r"\bless than(?= \d)", "more than"),
        (r"\bolder than(?= \d)", "younger than"),
        (r"\byounger than(?= \d)", "older than"),
        (r"(?<=\d) years or older\b", " years or younger"),
        (r"\babove(?= \d)", "below"),
        (r"\bbelow(?= \d)", "above"),
    ),
    "negation": (
        (r"\bshould be\b", "should not be"),
        (r"\bshould not be\b", "should be"),
        (r"\brecommends against\b", "recommends"),
        (r"\bis recommended\b", "is not recommended"),
        (r"\bare recommended\b", "are not recommended"),
        (r"\bnot recommended\b", "recommended"),
        (r"\bis contraindicated\b", "is indicated"),
        (r"\bis indicated\b", "is not indicated"),
        (r"\bshould receive\b", "should not receive"),
        (r"\bdo not\b", "do"),
        (r"\bmay be used\b", "may not be used"),
    ),
    "direction": (
        (r"\bbefore\b", "after"),
        (r"\bafter\b", "before"),
        (r"\bincreased\b", "decreased"),
        (r"\breduced?\b", "increase"),
        (r"\bfirst-line\b", "second-line"),
        (r"\bhigher\b", "lower"),
        (r"\blower\b", "higher"),
        (r"\bearly\b", "late"),
        (r"\bolder\b", "younger"),
        (r"\bstarted\b", "stopped"),
        (r"\bcontinued\b", "discontinued"),
    ),
    "threshold": ((r"(?<![\w.,/])(\d{2})(?= (?:years|days|weeks|mg|mmHg|mm Hg|%|hours|months))", r"1\1"),),
    "unit": (
        (r"(?<=\d) mg\b", " g"),
        (r"(?<=\d) weeks\b", " months"),
        (r"(?<=\d) days\b", " weeks"),
        (r"(?<=\d) hours\b", " days"),
    ),
}


def reversals(sentence: str) -> Iterator[tuple[str, str]]:
    """Each kind of reversal that a sentence has words for, with the sentence turned round by it, once a kind."""
    for kind, swaps in SWAPS.items():
        for pattern, other in swaps:
            turned, count = re.subn(pattern, other, sentence, count=1)
            if count:
                yield kind, turned
                break
