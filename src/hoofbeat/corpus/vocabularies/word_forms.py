"""Words as the matcher sees them: one form for what differs in case, inflection, spelling or script only.

The same rules run over vocabularies and over texts, so a form need not be a real word; it must only be the same for
words that mean the same ("tumours" and "tumor", "haemorrhages" and "hemorrhage", "α1" and "alpha-1") and differ for
words that do not. Every token keeps its place in the text.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.text import without_accents

COMMA = ","
BREAK = ""

_PIECE = re.compile(
    r"([^\W_]+(?:['’ʼ][^\W_]+)*['’]?)|(,)|\n\s*\n|[.;:!?()\[\]{}|•<>=\"“”]"  # a word, a comma, what ends a phrase
)
_GREEK = re.compile(r"[α-ωΑ-Ω](?![α-ωΑ-Ωά-ώ])|(?i:alpha|beta|gamma|delta)(?=\d)")
_POSSESSIVE = re.compile(r"['’ʼ]s?$")
_ISE = re.compile(r"is(?=(?:e|ed|es|er|ing|ation|ations)$)")
_OUR = re.compile(r"(?<=.)our(?=(?:s|al|ed|ing|less|able|ally)?$)")
_YS = re.compile(r"lys(?=(?:e|ed|es|ing)$)")


class WordLists(Struct, frozen=True, forbid_unknown_fields=True):
    """`words.toml`: what the rules can't tell."""

    joined_prefixes: frozenset[str]
    too_general: frozenset[str]
    little: frozenset[str]
    irregular: dict[str, str]
    greek: dict[str, str]


class WordTokens(NamedTuple):
    """The words of a text: their forms and places, as three lists of one length.

    A comma is a word of its own; an empty form marks what no phrase crosses.
    """

    forms: list[str]
    starts: list[int]
    ends: list[int]


@cache
def word_lists() -> WordLists:
    """The lists of `words.toml`."""
    text = (resources.files("hoofbeat.corpus") / "data" / "words.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), WordLists)


@lru_cache(maxsize=200_000)
def term_form(word: str) -> str:
    """The form of one word in which terms of vocabularies match: singular, American, no accents, Greek spelt out."""
    word = _POSSESSIVE.sub("", word.lower())
    if not word.isascii():
        letters = without_accents(word.replace("ß", "ss").replace("æ", "ae").replace("œ", "oe"))
        word = (
            "".join(word_lists().greek.get(c, c) for c in letters).replace("’", "'").replace("ø", "o").replace("ł", "l")
        )
    word = word.replace("'", "")
    irregular = word_lists().irregular
    if word in irregular:
        return _american(irregular[word])
    return _american(_singular(word)) if len(word) > 3 else word


def _singular(word: str) -> str:
    """The word without its plural, English, Latin or Greek."""
    if word.endswith("itides"):
        return word[:-6] + "itis"
    if word.endswith("mata"):
        return word[:-2]
    if word.endswith("sis"):
        return word[:-3] + "se"
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    if word.endswith("uses") and word[-5:-4] not in "aeo":
        return word[:-2]
    return word[:-1]


def _american(word: str) -> str:
    """The word in the shorter of two national spellings."""
    if "ae" in word or "oe" in word:
        word = word.replace("ae", "e").replace("oe", "e")
    if "our" in word:
        word = _OUR.sub("or", word)
    if "is" in word:
        word = _ISE.sub("iz", word)
    if "lys" in word:
        word = _YS.sub("lyz", word)
    if "ph" in word:
        word = word.replace("sulph", "sulf")
    return word[:-2] if word.endswith("ogue") else word


@lru_cache(maxsize=200_000)
def _parts(word: str) -> tuple[tuple[str, int, int], ...]:
    """A written word as one form, or as several where a Greek letter stands in it (α1 as alpha and 1)."""
    if word.isascii() and not _GREEK.match(word):
        return ((term_form(word), 0, len(word)),)
    parts, place = [], 0
    for found in _GREEK.finditer(word):
        if found.start() > place:
            parts.append((term_form(word[place : found.start()]), place, found.start()))
        parts.append((term_form(found.group()), found.start(), found.end()))
        place = found.end()
    if place < len(word):
        parts.append((term_form(word[place:]), place, len(word)))
    return tuple(parts)


def tokens(text: str) -> WordTokens:
    """The words of a text with their places; prefixes are joined with the word they belong to."""
    joined = word_lists().joined_prefixes
    found = WordTokens([], [], [])
    forms, starts, ends = found
    pending = False
    for piece in _PIECE.finditer(text):
        kind = piece.lastindex
        begin = piece.start()
        if kind != 1:
            forms.append(COMMA if kind else BREAK)
            starts.append(begin)
            ends.append(piece.end())
            pending = False
            continue
        for form, start, end in _parts(piece.group()):
            if pending and begin + start - ends[-1] == 1 and text[ends[-1]] in " -‐‑–\n":
                forms[-1] = _american(forms[-1] + form)
                ends[-1] = begin + end
                pending = False
            else:
                forms.append(form)
                starts.append(begin + start)
                ends.append(begin + end)
                pending = form in joined
    return found


def phrase_key(text: str) -> str:
    """The key a phrase is kept under: its forms, with commas, without what separates them."""
    return " ".join(form for form in tokens(text).forms if form)


def content_forms(text: str) -> list[str]:
    """The words of a text that say something, in their normal form and order: no commas, no "of" and "the"."""
    little = word_lists().little
    return [form for form in tokens(text).forms if form not in (BREAK, COMMA) and form not in little]
