"""Abbreviations that a text defines itself: "granulomatosis with polyangiitis (GPA)", "GPA (granulomatosis …)".

A short form means what its text says it means, and nothing where the text says nothing: the same three letters stand
for other things elsewhere. The idea is Schwartz and Hearst's (2003): read the short form from its end, and find each
of its letters in the words before the bracket, the first of them at the beginning of a word. A few short forms mean
one thing only wherever they stand; they are data (`abbreviations.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

_BRACKET = re.compile(r"\(([^()\[\]\n]{2,80})\)|\[([^()\[\]\n]{2,80})\]")
_SHORT = re.compile(r"^(?=.*[^\W\d_])[^\W_](?:[^\W_]|[-/+&.’' ](?=[^\W_])){1,9}$")
_SPLIT = re.compile(r"[;,]| or |\bi\.e\.|=")
_WORD = re.compile(r"[^\W_]+(?:[-'’/][^\W_]+)*")


class _Lists(Struct, frozen=True, forbid_unknown_fields=True):
    not_beginning: frozenset[str]
    well_known: dict[str, str]


@cache
def _lists() -> _Lists:
    text = (resources.files("hoofbeat.corpus") / "data" / "abbreviations.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Lists)


def well_known_abbreviations() -> dict[str, str]:
    """Short forms that have one meaning in clinical texts, to their long forms."""
    return _lists().well_known


def find_abbreviations(text: str) -> dict[str, str]:
    """The short forms this text defines, each with its long form as first written there."""
    found: dict[str, str] = {}
    for bracket in _BRACKET.finditer(text):
        inner = _SPLIT.split(bracket.group(1) or bracket.group(2), maxsplit=1)[0].strip(" \"“”'‘’")
        before = text[max(0, bracket.start() - 200) : bracket.start()]
        if is_candidate(inner):
            long = long_form(inner, before)
            if long:
                found.setdefault(inner, long)
        elif (short := _last_word(before)) and is_candidate(short):
            long = long_form(short, inner)
            if long and _WORD.findall(long)[0] == _WORD.findall(inner)[0]:
                found.setdefault(short, long)
    return found


def is_candidate(short: str) -> bool:
    """Whether this could be a short form: 2 to 10 characters, at most two words, with capitals or digits."""
    if not _SHORT.match(short) or short.count(" ") > 1:
        return False
    letters = [c for c in short if c.isalpha()]
    return len(letters) >= 2 and sum(c.isupper() for c in letters) * 2 >= len(letters)


def _last_word(before: str) -> str:
    words = before.rstrip().rsplit(None, 1)
    return words[-1] if words else ""


def long_form(short: str, before: str) -> str:
    """The words at the end of `before` that `short` abbreviates, or nothing."""
    sentence = re.split(r"[.;:!?()\[\]\n]\s|[()\[\]\n]", before.rstrip())[-1]
    letters = [c.lower() for c in short if c.isalnum()]
    words = list(_WORD.finditer(sentence))
    most = min(len(letters) + 5, len(letters) * 2)
    for start in _beginnings(sentence, letters):
        candidate = sentence[start:].strip(" ,")
        inside = [word for word in words if word.start() >= start]
        if not inside or len(inside) > most or inside[0].group().lower() in _lists().not_beginning:
            continue
        if len(candidate) > len(short) and candidate.lower() != short.lower():
            return candidate
    return ""


def _beginnings(sentence: str, letters: list[str]) -> Iterator[int]:
    """Where the long form could begin, nearest first: every letter found in order, the first at a word's beginning."""
    text = sentence.lower()
    place = len(text)
    for letter in reversed(letters[1:]):
        place = text.rfind(letter, 0, place)
        if place < 0:
            return
    while (place := text.rfind(letters[0], 0, place)) >= 0:
        if place == 0 or not text[place - 1].isalnum():
            yield place


def short_form_places(text: str, short: str) -> Iterator[tuple[int, int]]:
    """Where a short form stands as a word of its own, in its own letter case, alone or with a plural s."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(short)}(?:s|'s|’s)?(?![\w-]*[A-Z0-9])(?![^\W_])")
    for match in pattern.finditer(text):
        yield match.start(), match.start() + len(short)
