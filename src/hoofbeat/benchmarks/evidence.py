"""Finding a quote in its source: the exact characters it stands on, whatever a reader or a model did to it on the way.

`locate` takes a quote to the letter, white space apart. `find_quote` goes further, in three steps: exact; loose (case,
typographic quotes and dashes, ligatures, accents, hyphens at line ends, punctuation at the ends); fuzzy (a few letters
differ, or the last word is cut). A quote with an ellipsis is found part by part, in order. Whatever was done to find
it, a span's offsets count the document's own characters, and it begins and ends at words. Fuzzy never forgives another
number, a "not" that the source does not have, nor left for right or hypo- for hyper-.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from rapidfuzz import fuzz

from hoofbeat.benchmarks.folding import Folded, fold
from hoofbeat.records import Document, Span

__all__ = ["Found", "How", "find_quote", "locate"]

How = Literal["exact", "loose", "fuzzy"]

_ORDER: tuple[How, ...] = ("exact", "loose", "fuzzy")
_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:…|\.(?:\s?\.){2,3})\s*[\])]|…|\.(?:\s?\.){2,})\s*")
_ENDS = " \"'.,;:!?-*`"
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_DENIALS = frozenset(
    ["no", "not", "nor", "never", "none", "neither", "without", "denied", "denies", "absent", "negative", "cannot"]
)
_OPPOSITES = re.compile(
    r"left|right|upper|lower|increased|decreased|elevated|reduced|high|low|higher|positive|male|female|man|woman|benign|"
    r"malignant|before|after|first|second|proximal|distal|anterior|posterior|acute|chronic"
)
_OPPOSITE_BEGINNINGS = re.compile(r"hypo|hyper|brady|tachy|micro|macro")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SHORTEST_FUZZY = 12
_LONGEST_FUZZY = 2_000
_LONGEST_QUOTE = 20_000
_MOST_PARTS = 20
_KEPT_TEXTS = 16


class Found(Struct, frozen=True, kw_only=True):
    """Where a quote stands: one span, or one a part; how well its worst part fits, from 0 to 1."""

    spans: tuple[Span, ...]
    how: How
    score: float


def locate(document: Document, quote: str) -> Span | None:
    """Where a quote stands in a document, to the letter or with other white space; never inside a word."""
    words = quote.split()
    if not words:
        return None
    begin = r"\b" if re.match(r"\w", words[0]) else ""
    end = r"\b" if re.search(r"\w\Z", words[-1]) else ""
    loose = r"\s+".join(re.escape(word) for word in words)
    match = re.search(begin + re.escape(quote.strip()) + end, document.text) or re.search(
        begin + loose + end, document.text
    )
    if match is None:
        return None
    start, stop = match.span()
    return Span(document=document.id, start=start, end=stop, quote=document.text[start:stop])


def find_quote(
    document: Document, quote: str, *, least: float = 0.9, within: tuple[int, int] | None = None
) -> Found | None:
    """Where a quote stands in a document, or in the characters `within` of it.

    `least` is how alike quote and source must be where they are not the same; 1 allows the loose differences only.
    """
    text = document.text
    low, high = within or (0, len(text))
    low, high = max(0, low), min(len(text), high)
    quote = quote.strip()
    if not any(map(str.isalnum, quote)) or len(quote) > _LONGEST_QUOTE or low >= high:
        return None
    if place := _part(text, quote, low, high, least if not _ELLIPSIS.search(quote) else 1.0):
        return _found(document, [place])
    parts = [part for part in _ELLIPSIS.split(quote) if any(map(str.isalnum, part))]
    if not parts or len(parts) > _MOST_PARTS or parts == [quote]:
        return None
    places: list[_Place] = []
    for part in parts:
        place = _part(text, part, places[-1][1] if places else low, high, least)
        if place is None:
            return None
        places.append(place)
    return _found(document, places)


_Place = tuple[int, int, How, float]


def _found(document: Document, places: list[_Place]) -> Found:
    spans = tuple(
        Span(document=document.id, start=start, end=end, quote=document.text[start:end]) for start, end, _, _ in places
    )
    how = max((place[2] for place in places), key=_ORDER.index)
    return Found(spans=spans, how=how, score=min(place[3] for place in places))


def _part(text: str, quote: str, low: int, high: int, least: float) -> _Place | None:
    """One piece of a quote: the characters it stands on, how that was found and how well it fits."""
    for start in _places(text, quote, low, high):
        return start, start + len(quote), "exact", 1.0
    folded = _folded(text)
    wanted = fold(quote).text.strip(_ENDS)
    first, last = _range(folded, low, high)
    if not any(map(str.isalnum, wanted)) or first >= last:
        return None
    for start in _places(folded.text, wanted, first, last):
        return *folded.original(start, start + len(wanted)), "loose", 1.0
    place = _fuzzy(folded.text, wanted, first, last, least)
    return (*folded.original(place[0], place[1]), "fuzzy", place[2]) if place else None


def _places(text: str, wanted: str, low: int, high: int) -> Iterator[int]:
    """Where `wanted` stands between two places of a text, beginning and ending at words."""
    start = text.find(wanted, low, high)
    while start >= 0:
        if _between_words(text, start) and _between_words(text, start + len(wanted)):
            yield start
        start = text.find(wanted, start + 1, high)


def _between_words(text: str, place: int) -> bool:
    return place <= 0 or place >= len(text) or not (text[place - 1].isalnum() and text[place].isalnum())


def _fuzzy(text: str, wanted: str, low: int, high: int, least: float) -> tuple[int, int, float] | None:
    """The place most like what is wanted, from word to word, with the same numbers and denials."""
    if least >= 1 or not _SHORTEST_FUZZY <= len(wanted) <= _LONGEST_FUZZY:
        return None
    stretch = text[low:high]
    rough = fuzz.partial_ratio_alignment(wanted, stretch, score_cutoff=max(0.0, least - 0.1) * 100)
    if rough is None or rough.score == 0:
        return None
    best: tuple[float, int, int] | None = None
    for left in sorted(_snapped(text, low + rough.dest_start, low, high)):
        for right in sorted(_snapped(text, low + rough.dest_end, low, high)):
            start, end = _trimmed(text, left, right)
            if end > start:
                score = _likeness(wanted, text[start:end])
                if best is None or score > best[0]:
                    best = (score, start, end)
    if best is None or best[0] < least or not _says_the_same(wanted, text[best[1] : best[2]]):
        return None
    return best[1], best[2], round(best[0], 4)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """These places without spaces and signs at the ends."""
    while end > start and not text[end - 1].isalnum():
        end -= 1
    while start < end and not text[start].isalnum():
        start += 1
    return start, end


def _snapped(text: str, place: int, low: int, high: int) -> set[int]:
    """The beginnings and ends of words about a place: where it is, if that is between words, else to both sides."""
    left = right = place
    while left > low and not _between_words(text, left):
        left -= 1
    while right < high and not _between_words(text, right):
        right += 1
    return {side for side in (left, right) if _between_words(text, side)}


def _likeness(wanted: str, there: str) -> float:
    """How alike two texts are. A last word that was cut short counts as if it were whole."""
    score = fuzz.ratio(wanted, there)
    cut = there[: len(wanted)]
    if len(there) - len(wanted) < 20 and " " in wanted and " " not in there[len(cut) :] and there[: len(cut)] == wanted:
        return 0.99
    return score / 100


def _says_the_same(wanted: str, there: str) -> bool:
    """Whether every number of the quote is there, and what turns a sentence round is there no more and no less."""
    numbers, others = Counter(_NUMBER.findall(wanted)), Counter(_NUMBER.findall(there))
    if numbers - others:
        return False
    return _turns(wanted) == _turns(there)


def _turns(text: str) -> Counter[str]:
    """The words that say no, or say which of two opposites, each with how often."""
    turns: Counter[str] = Counter()
    for word in _WORD.findall(text):
        if word.endswith("n't"):
            turns["not"] += 1
        elif word in _DENIALS or _OPPOSITES.fullmatch(word):
            turns[word] += 1
        elif beginning := _OPPOSITE_BEGINNINGS.match(word):
            turns[beginning.group()] += 1
    return turns


@lru_cache(maxsize=_KEPT_TEXTS)
def _folded(text: str) -> Folded:
    return fold(text)


def _range(folded: Folded, low: int, high: int) -> tuple[int, int]:
    """The folded characters that come from these of the text."""
    return bisect.bisect_left(folded.starts, low), bisect.bisect_left(folded.starts, high)
