"""Anonymising what people wrote: who they are goes, what they ask stays.

Names, places, institutions, dates, ages over 89, user names, addresses of every sort, telephone and record numbers are
found by rules, so that the same text always loses the same, and replaced by a mark that says what stood there. What was
removed is never written anywhere, nor its length or a hash of it: a report says how many marks of which kind stand
where in the text that is left, and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from hoofbeat.recipes.messages.identifiers import (
    Identifier,
    MessageWords,
    find_formal,
    find_institutions,
    find_people,
    find_places,
    kinds,
    unexplained,
)
from hoofbeat.recipes.recipe_items import ItemRejection

__all__ = [
    "AnonymisedText",
    "Identifier",
    "WordRange",
    "anonymise",
    "find_identifiers",
    "in_plain_words",
    "kinds",
    "mask_words",
    "numbered_words",
    "possible_names",
    "returned",
    "tells_who",
    "tidy",
    "words_in",
]

_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_GIVEN_MARKS = re.compile(
    r"\[\s*(?:(NAME|PERSON)|(LOCATION|CITY|ADDRESS|PLACE)|(DATE)|(CONTACT|PHONE)|(E-?MAIL)|(URL|LINK)|(USER(?:NAME)?)"
    r"|(HOSPITAL)|(RECORD|ID)|(AGE)|(INSTITUTION|SCHOOL|ORGANI[SZ]ATION))\s*\]",
    re.IGNORECASE,
)
_MARK_KINDS = (
    "name", "place", "date", "phone", "email", "url", "username", "hospital", "record", "age", "institution",
)  # fmt: skip
_DOCTOR = re.compile(r"\b(?:the |a )?(?:Dr|Doctor|Doc|Prof|Professor)\.?\s+\[name\]", re.IGNORECASE)
_TITLE = re.compile(r"\b(?:Mr|Mrs|Ms|Miss|Mister)\.?\s+\[name\]", re.IGNORECASE)
_LONGEST = 100_000
_WIDE = {wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F)}


class AnonymisedText(Struct, frozen=True):
    """A text without what identifies people; `found` says where in the text as given each identifier stood.

    Those places tell how long a name was, so they stay in memory. `marks` says where the marks stand in the text that
    is left, and may be written down.
    """

    text: str
    found: tuple[Identifier, ...]
    marks: tuple[Identifier, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind were removed."""
        return dict(sorted(Counter(each.kind for each in self.found).items()))


def tidy(text: str) -> str:
    """A text in one Unicode form without invisible characters, so that nothing hides between letters."""
    plain = _INVISIBLE.sub("", unicodedata.normalize("NFC", text)).translate(_WIDE)
    return "".join(
        c if c in "\n\t" or c.isprintable() else " " for c in plain.replace("\r\n", "\n").replace("\r", "\n")
    )


def find_identifiers(text: str) -> list[Identifier]:
    """What identifies people in a text (as `tidy` leaves it): spans that do not overlap, in their order."""
    if len(text) > _LONGEST:
        raise ValueError(f"a text of {len(text)} characters is too long for a question")
    marks = [match.span() for match in _GIVEN_MARKS.finditer(text)]
    words = MessageWords(text)
    elsewhere = [*find_formal(text), *find_institutions(words), *find_places(words)]
    taken = {place for each in elsewhere for place in range(each.start, each.end)}
    return _merged([each for each in (*elsewhere, *find_people(words, taken)) if not _within(each, marks)])


def anonymise(text: str) -> AnonymisedText:
    """A text with a mark such as `[name]` in place of everything that identifies people."""
    clean = tidy(text)
    found = find_identifiers(clean)
    masked, marks, end = "", [], 0
    for each in found:
        masked += _GIVEN_MARKS.sub(_own_mark, clean[end : each.start])
        marks.append(Identifier(len(masked), len(masked) + len(each.kind) + 2, each.kind))
        masked += f"[{each.kind}]"
        end = each.end
    return AnonymisedText(masked + _GIVEN_MARKS.sub(_own_mark, clean[end:]), tuple(found), tuple(marks))


class WordRange(Struct, frozen=True):
    """Words of a text by their numbers, the first is 1, and what kind of identifier they are. Never the words."""

    first: int
    last: int
    kind: str


def numbered_words(text: str) -> str:
    """A text with a number before every word, so that words can be named without repeating them."""
    return " ".join(f"{number}:{word}" for number, word in enumerate(text.split(), start=1))


def words_in(text: str, ranges: Iterable[WordRange]) -> list[str]:
    """The words of each range."""
    words = text.split()
    return [" ".join(words[each.first - 1 : each.last]) for each in ranges]


def mask_words(text: str, ranges: Iterable[WordRange]) -> str:
    """A text with a mark in place of each range of words; punctuation around them stays."""
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    for each in sorted(ranges, key=lambda one: -one.first):
        start, end = spans[each.first - 1][0], spans[each.last - 1][1]
        inner = re.match(r"(\W*)(.*?)((?:['’]s)?\W*)\Z", text[start:end], re.DOTALL)
        before, after = (inner[1], inner[3]) if inner and inner[2] else ("", "")
        text = f"{text[:start]}{before}[{each.kind}]{after}{text[end:]}"
    return text


def in_plain_words(text: str) -> str:
    """An anonymised text with plain words in place of the marks, to be read by people and models."""
    words = kinds()
    text = _DOCTOR.sub("the doctor", _TITLE.sub("[name]", text))
    return re.sub(r"\[(\w+)\]", lambda mark: words.get(mark[1], mark[0]), text)


def returned(text: str, removed: Iterable[str]) -> list[Identifier]:
    """Where words that had been removed stand in a text again, whatever their case."""
    clean = tidy(text)
    found = []
    for words in {each.strip().casefold() for each in removed}:
        if len(words) > 2:
            pattern = r"(?<!\w)" + r"\s+".join(re.escape(part) for part in words.split()) + r"(?!\w)"
            found += [Identifier(*match.span(), "returned") for match in re.finditer(pattern, clean, re.IGNORECASE)]
    return sorted(found)


def tells_who(text: str, removed: Iterable[str]) -> ItemRejection | None:
    """Why a rewritten question may not be kept: something removed is back, or something new identifies someone."""
    back = returned(text, removed)
    if back:
        return ItemRejection(reason="something removed came back", details=f"{len(back)} places")
    new = Counter(each.kind for each in find_identifiers(text))
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(new.items()))
    return ItemRejection(reason="the rewritten question identifies someone", details=found) if new else None


def possible_names(text: str, vocabulary: Collection[str]) -> list[Identifier]:
    """Capitalised words within sentences that may be names, for people or a model to look at: no rule knows them.

    `vocabulary` holds words in lower case that are none, such as those of the sources.
    """
    words = MessageWords(tidy(text))
    return [
        Identifier(words[place].start, words[place].end, "name")
        for place in range(len(words))
        if unexplained(words, place) and words.bare(place) not in vocabulary
    ]


def _own_mark(match: re.Match[str]) -> str:
    return f"[{next(kind for kind, group in zip(_MARK_KINDS, match.groups(), strict=True) if group)}]"


def _within(each: Identifier, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start <= each.start and each.end <= end for start, end in spans)


def _merged(found: Sequence[Identifier]) -> list[Identifier]:
    """Spans that touch each other become one, of the kind of the longest (of the first named where they are equal)."""
    order = list(kinds())
    merged: list[Identifier] = []
    for each in sorted(found, key=lambda f: (f.start, -f.end, order.index(f.kind))):
        if merged and each.start < merged[-1].end:
            last = merged.pop()
            longer = each if each.end - each.start > last.end - last.start else last
            merged.append(Identifier(last.start, max(last.end, each.end), longer.kind))
        else:
            merged.append(each)
    return merged
