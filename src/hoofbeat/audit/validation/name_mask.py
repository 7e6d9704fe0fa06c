"""Taking the names of sources out of texts that people label blind.

What is taken out is what the audit knows of its sources, by a list of rules (`RULES`): titles, institutions and ids as
they are written, short forms in brackets, initials, words of a name that are nothing else, and places. Names are found
with their capitals, so that a word that is also a name stays where it is a word. Every replacement is counted under its
rule: nobody is promised more than was done, and a name that no rule knows stays.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources

from hoofbeat.audit.source_names import AuditSource, short_title
from hoofbeat.facets import facet_values

MASK = "[source]"
"""What replaces the name of a source in an answer."""

RULES = {
    "title": "titles of the sources",
    "institution": "institutions of the sources",
    "id": "ids that are not plain words",
    "brackets": "short forms in brackets, in a name or after it in a text",
    "initials": "initials of an institution's words: all of them, or four or more in order",
    "word": "words of an institution's name that are not general and always capitalised in the texts",
    "place": "places of the sources, and an institution's country before words like guideline or society",
}
"""The rules by name, in the order in which they are tried."""

_MIN_NAME = 3
_PLACES = ("city", "country", "place", "region", "state", "town")
_WORDS = tomllib.loads((resources.files("hoofbeat.audit.validation") / "name_words.toml").read_text(encoding="utf-8"))
_SMALL, _GENERAL, _LANDS, _CLINICAL = (frozenset(_WORDS[name]) for name in ("small", "general", "lands", "clinical"))
_SPEAKERS = "guidelines?|guidance|recommendations?|society|college|association|handbooks?|task force|academy|federation"
_ABBREVIATION = re.compile(r"(?<![\w-])[A-Z]{3,8}(?![\w-])")
_BRACKETS = re.compile(r"\(([A-Z][\w&/-]{1,11})\)")
_ASIDE = re.compile(r"\s*\([^)]*\)")


class NameMask:
    """Replaces the names of sources in texts by `MASK`, and counts what it replaced.

    `texts` are those that may be masked: they show what a short form means, and which words are plain words.
    """

    def __init__(self, sources: Iterable[AuditSource], facet: str, texts: Sequence[str] = ()) -> None:
        self.replaced: Counter[tuple[str, str]] = Counter()
        self._rule: dict[str, str] = {}
        for rule, name in _names(list(sources), facet, texts):
            plain = " ".join(name.split())
            if len(plain) >= _MIN_NAME:
                self._rule.setdefault(plain, rule)
        kept = sorted(self._rule, key=lambda name: (-len(name), name))
        parts = [r"\s+".join(map(re.escape, name.split())) for name in kept]
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)") if parts else None

    def __call__(self, text: str) -> str:
        """The text without the names."""
        return self._pattern.sub(self._mask, text) if self._pattern else text

    def _mask(self, found: re.Match[str]) -> str:
        name = " ".join(found.group().split())
        self.replaced[name, self._rule[name]] += 1
        return MASK

    def rows(self) -> list[tuple[str, str, int]]:
        """What was replaced, by which rule and how often, the most frequent first."""
        counted = sorted(self.replaced.items(), key=lambda each: (-each[1], each[0]))
        return [(name, RULES[rule], count) for (name, rule), count in counted]


def _names(sources: Sequence[AuditSource], facet: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every name with its rule; of a name that several rules give the first counts."""
    joined = "\n".join(texts)
    institutions: list[str] = []
    for source in sources:
        yield from (("title", title) for title in _titles(source))
        institutions += facet_values(source.facets, facet)
        if not source.id.isalpha():
            yield "id", source.id
    institutions = list(dict.fromkeys(institutions))
    for name in institutions:
        yield "institution", name
        yield "institution", _ASIDE.sub("", name)
    for name in [*institutions, *(title for source in sources for title in _titles(source))]:
        yield from (("brackets", short) for short in _short_forms(name, joined))
    for name in institutions:
        yield from (("initials", short) for short in _initials(name, joined))
    small = set(re.findall(r"(?<!\w)[a-zà-ÿ][\w'-]+", joined))
    for name in institutions:
        yield from (("word", word) for word in _own_words(_ASIDE.sub("", name), small))
    yield from (("place", name) for name in _places(sources, institutions, joined))


def _titles(source: AuditSource) -> list[str]:
    """The title of a source; those of its documents where it has several, in full and as headings name them."""
    if not source.documents:
        return [source.title]
    return [title for full in source.documents.values() for title in (full, short_title(full))]


def _short_forms(name: str, text: str) -> Iterator[str]:
    """Short forms in brackets: in the name itself, or behind it where a text writes it out."""
    yield from _BRACKETS.findall(name)
    plain = _ASIDE.sub("", name).strip()
    if len(plain) >= _MIN_NAME:
        spaced = r"\s+".join(map(re.escape, plain.split()))
        yield from re.findall(rf"(?<!\w){spaced}\s+{_BRACKETS.pattern}", text)


def _initials(name: str, text: str) -> Iterator[str]:
    """Abbreviations of the texts that are the name's initials, with or without small words, or most of them."""
    words = re.findall(r"[^\W\d_][\w'-]*", _ASIDE.sub("", name))
    large = "".join(word[0].upper() for word in words if word.casefold() not in _SMALL)
    every = "".join(word[0].upper() for word in words)
    for short in sorted(set(_ABBREVIATION.findall(text)) - _CLINICAL):
        if short in (large, every) or (len(short) > _MIN_NAME and short[0] == large[:1] and _within(short, large)):
            yield short


def _within(short: str, initials: str) -> bool:
    """Whether the letters come in this order among the initials."""
    rest = iter(initials)
    return all(letter in rest for letter in short)


def _own_words(name: str, small: set[str]) -> Iterator[str]:
    """Words by which people call the institution: those that are neither general nor plain words of the texts."""
    known = _GENERAL | _SMALL | _LANDS | small
    for word in re.findall(r"[^\W\d_][\w'-]*", name):
        if word[0].isupper() and len(word) > _MIN_NAME and word.casefold() not in known:
            yield word


def _places(sources: Sequence[AuditSource], institutions: Sequence[str], text: str) -> Iterator[str]:
    for source in sources:
        for name in _PLACES:
            yield from facet_values(source.facets, name)
    lands = {word for name in institutions for word in name.split() if word.casefold() in _LANDS}
    for land in sorted(lands):
        yield from re.findall(rf"(?<!\w){re.escape(land)}\s+(?:{_SPEAKERS})(?!\w)", text)
