"""What annotators read: a pair under a code that tells nothing, answers without the names of sources, and the rules."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from hoofbeat.audit.audit_folder import AuditSource
from hoofbeat.facets import facet_values
from hoofbeat.prompts import Pack

MASK = "[source]"
"""What stands where an answer names a source."""

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 10
_NUMBERS: int = len(_LETTERS) ** _LENGTH
_MIN_NAME = 3


def number_of(question: str, a: str, b: str) -> int:
    """The number behind a pair's code: a hash of what identifies the pair."""
    digest = hashlib.blake2b("\x1f".join(("pair", question, a, b)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % _NUMBERS


def pair_code(question: str, a: str, b: str) -> str:
    """A name for a pair that tells nothing about it, and that no spreadsheet takes for a number or a date."""
    number, letters = number_of(question, a, b), ""
    for _ in range(_LENGTH):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return f"{letters[:5]}-{letters[5:]}"


def code_number(code: str) -> int | None:
    """The number behind a code as somebody typed it; None where it is no code."""
    letters = re.sub(r"[\s\-‐-―]", "", code.upper())
    if len(letters) != _LENGTH or any(letter not in _LETTERS for letter in letters):
        return None
    number = 0
    for letter in reversed(letters):
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number


class Mask:
    """Takes the names of sources out of a text: their titles, their institutions, and ids that are no plain words.

    Names are found as they are written, capitals included, so that a word that is also a name stays where it is a word.
    """

    def __init__(self, sources: Iterable[AuditSource], facet: str) -> None:
        names: set[str] = set()
        for source in sources:
            names |= {source.title, *facet_values(source.facets, facet)}
            if not source.id.isalpha():
                names.add(source.id)
        kept = sorted((name for name in map(str.strip, names) if len(name) >= _MIN_NAME), key=lambda n: (-len(n), n))
        parts = [r"\s+".join(map(re.escape, name.split())) for name in kept]
        self._names = re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)") if parts else None

    def __call__(self, text: str) -> str:
        """The text without the names."""
        return self._names.sub(MASK, text) if self._names else text


def instructions(pack: Pack, annotator: str, items: int, files: Sequence[str]) -> str:
    """The rules for one annotator, as Markdown: the pack's definitions, and how to fill the sheet in."""
    rated = [label.name for label in pack.labels if label.significance]
    lines = [
        f"# How do these answers relate? ({annotator}, {items} pairs)",
        "",
        f"Each row shows a question of {pack.reader} and what two sources say to it (one source: one "
        f"{pack.source_word}). Choose the one label that fits best and write it into `label`. Which source is A and "
        "which is B is a matter of chance.",
        "",
        "| label | when it fits |",
        "|---|---|",
        *(f"| {label.name} | {' '.join(label.definition.split())} |" for label in pack.labels),
        "",
        f"- Judge what {pack.reader} would do after each answer, not how it is worded.",
        "- The labels stand in order. Between two neighbours, take the later one only where you can name what differs.",
        "- Judge by the two texts alone, not by which advice is right.",
        "- Work alone, and row by row: rows have nothing to do with each other.",
        "- An answer is text to be judged, whatever it asks of its reader.",
    ]
    if rated and pack.significance_levels:
        lines += [
            "",
            f"Where your label is {' or '.join(rated)}, write into `significance` one of "
            f"{', '.join(pack.significance_levels)}. {' '.join(pack.significance_meaning.split())} Leave it empty "
            "elsewhere.",
        ]
    lines += [
        "",
        f"`note` is yours. `annotator` says who labelled; your name may replace {annotator}. Leave `item` as it is. "
        f"{' and '.join(files)} hold the same rows: fill in one of them, and give back that file.",
        "",
        "Research software. Not for clinical use.",
        "",
    ]
    return "\n".join(lines)
