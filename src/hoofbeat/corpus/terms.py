"""Words of medical terms: one form for what differs in spelling only, the wordings of a term, and abbreviations.

The same rules for words run over vocabularies and over texts, so a form need not be a real word; it must only be the
same for words that mean the same ("tumours" and "tumor", "haemorrhages" and "hemorrhage", "α1" and "alpha-1") and
differ for words that do not. Every token keeps its place in the text.

Catalogues write "Crohn's disease of small intestine, unspecified", "Microcephaly 4, primary, autosomal recessive" or
"Malignant neoplasm of breast"; authors write "Crohn's disease of the small intestine", "autosomal recessive primary
microcephaly" and "breast cancer". Rules here are cautious: a wording that could mean something else is not made.

An abbreviation means what its text says it means ("granulomatosis with polyangiitis (GPA)"), and nothing where the text
says nothing: the same three letters mean other things elsewhere. The idea is Schwartz and Hearst's (2003): read the
short form from its end, and find each of its letters in the words before the bracket, the first of them at the
beginning of a word. A few short forms mean one thing everywhere; they are data (`abbreviations.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

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

    A comma is a separate word; an empty form marks what no phrase crosses.
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
    """The words of a text with their places; prefixes are joined with the word they belong to.

    What comes back is shared: callers read it only. Recipes ask for the same names thousands of times, and for many
    things in one report after another.
    """
    return _short_tokens(text) if len(text) <= _SHORT_TEXT else _long_tokens(text)


_SHORT_TEXT = 300


@lru_cache(maxsize=16_384)
def _short_tokens(text: str) -> WordTokens:
    return _tokens(text)


@lru_cache(maxsize=16)
def _long_tokens(text: str) -> WordTokens:
    return _tokens(text)


def _tokens(text: str) -> WordTokens:
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


Via = Literal["name", "synonym", "family", "abbreviation", "code"]


class Term(Struct, frozen=True, kw_only=True, array_like=True):
    """One entry: its code, preferred name, other names, and the codes above it, nearest first.

    `in_text` is false for entries that are looked up but not searched for in texts: chapters, and codes that only add
    an encounter to another.
    """

    code: str
    name: str
    synonyms: tuple[str, ...] = ()
    abbreviations: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    in_text: bool = True


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A term at these characters. `codes` are all terms of that wording, the best first; `via` says which wording fit.

    `family` means that the wording names a group of numbered subtypes, all of which are in `codes`.
    """

    code: str
    name: str
    start: int
    end: int
    text: str
    via: Via = "name"
    codes: tuple[str, ...] = ()


_BRACKETED = re.compile(r"\s*[\[(][^\[\]()]*[\])]")
_ALSO = re.compile(r"^[^\[\]()]{4,60}\[([^\[\]()]+)\]$")
_CONDITION = re.compile(r" |(?:itis|oma|osis|emia|aemia|pathy|phobia|algia|plasia|trophy|penia|uria|cele|ism)$")
_TAILS = re.compile(
    r"(?:,\s*unspecified(?: \w+){0,2}|, not (?:otherwise specified|elsewhere classified)| NOS| NEC|,? unspecified|"
    r",? (?:of )?unspecified site|, site unspecified|,? without complications?)$",
    re.IGNORECASE,
)
_UNSPECIFIED = re.compile(r"^unspecified (?=\w)", re.IGNORECASE)
_DANGLING = re.compile(r"(?: (?:of|in|with|to|due to|and|or|by|from|at|on|the|for|without|following))+$", re.IGNORECASE)
_NEOPLASM = re.compile(r"^malignant neoplasm of (?:the )?((?:\w+[ -]){0,2}\w+)$", re.IGNORECASE)
_OF = re.compile(r"^([\w'’-]+) of (?:the )?([\w'’-]+)$")
_SUBTYPE = re.compile(r"[,\s]+(?:type |group |complementation group )?(?:\d+[A-Za-z]{0,2}\d?|[IVX]+[A-Da-d]?\d?)$")
_SUBTYPE_INSIDE = re.compile(r"^([A-Za-z][\w' -]{5,}?) (?:type )?\d+[A-Za-z]?(?=, )")
_SHORT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9/+-]{0,7}$")
_MAX_INVERTED = 4


def is_short_form(text: str) -> bool:
    """Whether a wording is an abbreviation (ALS, HSCT-TMA, iTTP), which a text must define before it counts."""
    if " " in text.strip() or not any(c.isalpha() for c in text):
        return False
    capitals = sum(c.isupper() for c in text)
    return len(text) <= 12 and capitals >= 2 and bool(_SHORT.match(text) or text.replace("-", "").isupper())


def wordings(name: str) -> Iterator[str]:
    """The wordings of one name, the name itself first."""
    yield name
    plain = " ".join(_BRACKETED.sub(" ", name).split())
    forms = [plain]
    if (also := _ALSO.match(name)) and _names_condition(also.group(1)):
        forms.append(also.group(1))
    for form in forms:
        for whole in _without_tails(form):
            yield whole
            yield from _reordered(whole)


def _names_condition(inner: str) -> bool:
    """Whether what stands in brackets is another name and not a remark."""
    return bool(_CONDITION.search(inner)) and not is_short_form(inner) and not _DANGLING.search(f" {inner}")


def _without_tails(name: str) -> Iterator[str]:
    yield name
    shorter = name
    while (cut := _DANGLING.sub("", _UNSPECIFIED.sub("", _TAILS.sub("", shorter)))) != shorter:
        shorter = cut
    if shorter and shorter != name:
        yield shorter


def _reordered(name: str) -> Iterator[str]:
    """What stands after commas put in front, sites and what they have exchanged, cancers by their short names."""
    parts = [part.strip() for part in name.split(",")]
    if 1 < len(parts) <= 4 and all(parts) and all(part.count(" ") < 4 for part in parts):
        yield " ".join(reversed(parts))
        yield " ".join(parts)
    if found := _NEOPLASM.match(name):
        yield f"{found.group(1)} cancer"
        yield f"cancer of {found.group(1)}"
        yield f"cancer of the {found.group(1)}"
    elif found := _OF.match(name):
        yield f"{found.group(2)} {found.group(1)}"
        yield f"{found.group(1)} of the {found.group(2)}"
    if " of " in name and " of the " not in name and name.count(" of ") == 1:
        yield name.replace(" of ", " of the ")


def _family(name: str) -> str:
    """The group that a numbered subtype belongs to, or nothing."""
    shorter = _SUBTYPE_INSIDE.sub(r"\1", _SUBTYPE.sub("", name))
    return shorter if shorter != name and len(shorter.split()) > 1 else ""


def _inverted(key: str) -> Iterator[str]:
    """`crohn disease` as `disease , crohn`: the end of a short phrase first, as catalogues and indexes write it."""
    words = key.split(" ")
    if len(words) <= _MAX_INVERTED and COMMA not in words:
        for cut in range(1, len(words)):
            yield " ".join((*words[cut:], COMMA, *words[:cut]))


def term_keys(term: Term) -> dict[str, Via]:
    """Every key the term is found under in texts, each with what it is; names come before synonyms."""
    keys: dict[str, Via] = {}
    labelled: list[tuple[str, Via]] = [(term.name, "name"), *((each, "synonym") for each in term.synonyms)]
    for name, via in labelled:
        for wording in wordings(name):
            if not is_short_form(wording):
                _add(keys, phrase_key(wording), via)
        if family := _family(name):
            for wording in wordings(family):
                _add(keys, phrase_key(wording), "family")
    return keys


def _add(keys: dict[str, Via], key: str, via: Via) -> None:
    lists = word_lists()
    if len(key) < 3 or key in lists.too_general or key.replace(" ", "").isdigit():
        return
    keys.setdefault(key, via)
    for other in _inverted(key):
        keys.setdefault(other, via)


_BRACKET = re.compile(r"\(([^()\[\]\n]{2,80})\)|\[([^()\[\]\n]{2,80})\]")
_SHORT_ABBREVIATIONS = re.compile(r"^(?=.*[^\W\d_])[^\W_](?:[^\W_]|[-/+&.’' ](?=[^\W_])){1,9}$")
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


@lru_cache(maxsize=64)
def known_abbreviations(text: str) -> Mapping[str, str]:
    """What `find_abbreviations` finds, remembered: a report is asked for its own with each of its sentences."""
    return find_abbreviations(text)


def is_candidate(short: str) -> bool:
    """Whether this could be a short form: 2 to 10 characters, at most two words, with capitals or digits."""
    if not _SHORT_ABBREVIATIONS.match(short) or short.count(" ") > 1:
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
    """Where a short form is a separate word, in its own letter case, alone or with a plural s."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(short)}(?:s|'s|’s)?(?![\w-]*[A-Z0-9])(?![^\W_])")
    for match in pattern.finditer(text):
        yield match.start(), match.start() + len(short)
