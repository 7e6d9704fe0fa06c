"""The wording of one text in another: a quote found in its source, and how much wording two texts share.

`locate` takes a quote to the letter, white space apart. `find_quote` goes further, in three steps: exact; loose (case,
typographic quotes and dashes, ligatures, accents, hyphens at line ends, punctuation at the ends); fuzzy (a few letters
differ, or the last word is cut). A quote with an ellipsis is found part by part, in order. Whatever was done to find
it, a span's offsets count the document's own characters, and it begins and ends at words: never inside a number (5 mg
is not in 12.5 mg, nor 5 °C in -5 °C), never after a prefix that changes the word's meaning (non-, pre-, anti-, ...).
Fuzzy never forgives another number, comparator or unit, a "not" that the source does not have, nor an opposite such as
left for right or hypo- for hyper- (`statement_check`).

Overlap reads a text as its words in lower case: letters and digits run together, everything else separates them,
nothing is stemmed and no word is left out. So punctuation, line breaks and capitals never make two texts differ.

- ROUGE-L is the longest common subsequence of the two word lists: precision is its share of the candidate, recall its
  share of the reference, F their harmonic mean (as `rouge_score` computes it, without stemming, for plain English).
- Edit similarity is 1 - Levenshtein distance / length of the longer text, in characters of the words joined by one
  space. Unrelated English prose of like length has about 0.25 by it, so it is read against a control, not against 0.
- The longest run is the longest stretch of words that both texts have without a gap. Runs of a dozen words and more
  hardly ever come about by chance, which is why contamination checks look for them (GPT-3's: 13 words).

Memory grows with the length of the texts, not with its square.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq, Levenshtein

from hoofbeat.benchmarks.statement_check import differing_marks
from hoofbeat.records import Document, Span
from hoofbeat.text import Folded, for_quote_matching

How = Literal["exact", "loose", "fuzzy"]
_ORDER: tuple[How, ...] = ("exact", "loose", "fuzzy")
_ELLIPSIS = re.compile(r"(?:(?<!\s)\s*+)?(?:[\[(]\s*(?:…|\.(?:\s?\.){2,3})\s*[\])]|…|\.(?:\s?\.){2,})\s*")
_ENDS = " \"'.,;:!?-*`"
_NUMBER = re.compile(r"(?:(?<![^\s(\[])-)?\d+(?:[.,]\d+)*")
_OTHER_THING = re.compile(  # what stands before a word and makes another thing of it: at most _BEFORE characters
    r"\b(?:non(?:[-\u2010-\u2013]\n?|\s)|(?:anti|hyper|hypo|para|post|pre|pseudo|sub|un)[-\u2010-\u2012]\n?)\Z",
    re.IGNORECASE,
)
_BEFORE = 9
_MINUS = "-\u2010\u2011\u2012\u2013\u2212"
_MIN_FUZZY = 12
_TURNED = 0.8
_MAX_FUZZY = 2_000
_MAX_QUOTE = 20_000
_MAX_PARTS = 20
_KEPT_TEXTS = 16


class QuoteMatch(Struct, frozen=True, kw_only=True):
    """Where a quote is: one span, or one per part; how well its worst part fits, from 0 to 1."""

    spans: tuple[Span, ...]
    how: How
    score: float


def locate(document: Document, quote: str) -> Span | None:
    """Where a quote is in a document, exactly or with other white space; never inside a word or number."""
    words = quote.split()
    if not words:
        return None
    begin = r"\b" if re.match(r"\w", words[0]) else ""
    end = r"\b" if re.search(r"\w\Z", words[-1]) else ""
    loose = r"\s+".join(re.escape(word) for word in words)
    text = document.text
    for form in (re.escape(quote.strip()), loose):
        pattern = re.compile(begin + form + end)
        match = pattern.search(text)
        while match is not None:
            start, stop = match.span()
            if _begins(text, start) and _between_words(text, stop):
                return Span(document=document.id, start=start, end=stop, quote=text[start:stop])
            match = pattern.search(text, start + 1)
    return None


def find_quote(
    document: Document, quote: str, *, min_score: float = 0.9, within: tuple[int, int] | None = None
) -> QuoteMatch | None:
    """Where a quote is in a document, or in the characters `within` of it.

    `min_score` is how alike quote and source must be where they are not the same; 1 allows the loose differences only.
    """
    text = document.text
    low, high = within or (0, len(text))
    low, high = max(0, low), min(len(text), high)
    quote = quote.strip()
    if not any(map(str.isalnum, quote)) or len(quote) > _MAX_QUOTE or low >= high:
        return None
    if place := _part(text, quote, low, high, min_score if not _ELLIPSIS.search(quote) else 1.0):
        return _found(document, [place])
    parts = [part for part in _ELLIPSIS.split(quote) if any(map(str.isalnum, part))]
    if not parts or len(parts) > _MAX_PARTS or parts == [quote]:
        return None
    places: list[_Place] = []
    for part in parts:
        place = _part(text, part, places[-1][1] if places else low, high, min_score)
        if place is None:
            return None
        places.append(place)
    return _found(document, places)


_Place = tuple[int, int, How, float]


def _found(document: Document, places: list[_Place]) -> QuoteMatch:
    spans = tuple(
        Span(document=document.id, start=start, end=end, quote=document.text[start:end]) for start, end, _, _ in places
    )
    how = max((place[2] for place in places), key=_ORDER.index)
    return QuoteMatch(spans=spans, how=how, score=min(place[3] for place in places))


def _part(text: str, quote: str, low: int, high: int, min_score: float) -> _Place | None:
    """One piece of a quote: the characters it stands on, how that was found and how well it fits."""
    for start in _places(text, quote, low, high):
        return start, start + len(quote), "exact", 1.0
    folded = _folded(text)
    wanted = _stripped(for_quote_matching(quote).text)
    first, last = _range(folded, low, high)
    if not any(map(str.isalnum, wanted)) or first >= last:
        return None
    for start in _places(folded.text, wanted, first, last):
        return *folded.original(start, start + len(wanted)), "loose", 1.0
    place = _fuzzy(folded.text, wanted, first, last, min_score)
    return (*folded.original(place[0], place[1]), "fuzzy", place[2]) if place else None


def _stripped(quote: str) -> str:
    """The quote without signs at its ends; a minus before a number is none."""
    bare = quote.strip(_ENDS)
    return "-" + bare if bare[:1].isdecimal() and re.match(r"[\s\"'*`]*-\d", quote) else bare


def _places(text: str, wanted: str, low: int, high: int) -> Iterator[int]:
    """Where `wanted` stands between two places of a text, beginning and ending at words."""
    start = text.find(wanted, low, high)
    while start >= 0:
        if _begins(text, start) and _between_words(text, start + len(wanted)):
            yield start
        start = text.find(wanted, start + 1, high)


def _begins(text: str, place: int) -> bool:
    """Whether a quote may begin here: between words, not after what makes another thing of the word that follows."""
    return _between_words(text, place) and not (
        text[place : place + 1].isalnum() and _OTHER_THING.search(text[max(0, place - _BEFORE) : place])
    )


def _between_words(text: str, place: int) -> bool:
    """Whether no word and no number goes on across this place."""
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if before.isalnum() and after.isalnum():
        return False
    ahead, behind = text[place + 1 : place + 2], text[place - 2 : place - 1] if place > 1 else ""
    if after.isdecimal() and before in ".,^":
        return not behind.isdecimal()
    if before.isdecimal() and after in ".,^":
        return not ahead.isdecimal()
    return not (after.isdecimal() and before in _MINUS and (not behind or behind in " \n\t\u00a0(["))


def _fuzzy(text: str, wanted: str, low: int, high: int, min_score: float) -> tuple[int, int, float] | None:
    """The place most like what is wanted, from word to word, with the same numbers and denials."""
    best = _nearest(text, wanted, low, high, min_score)
    return best if best and _says_the_same(wanted, text[best[0] : best[1]]) else None


def _nearest(text: str, wanted: str, low: int, high: int, min_score: float) -> tuple[int, int, float] | None:
    """The place most like what is wanted, from word to word."""
    if min_score >= 1 or not _MIN_FUZZY <= len(wanted) <= _MAX_FUZZY:
        return None
    stretch = text[low:high]
    rough = fuzz.partial_ratio_alignment(wanted, stretch, score_cutoff=max(0.0, min_score - 0.1) * 100)
    if rough is None or rough.score == 0:
        return None
    best: tuple[float, int, int] | None = None
    for left in sorted(_snapped(text, low + rough.dest_start, low, high)):
        for right in sorted(_snapped(text, low + rough.dest_end, low, high)):
            start, end = _trimmed(text, left, right)
            if end > start and _begins(text, start):
                score = _likeness(wanted, text[start:end])
                if best is None or score > best[0]:
                    best = (score, start, end)
    if best is None or best[0] < min_score:
        return None
    return best[1], best[2], round(best[0], 4)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """These places without spaces and signs at the ends; a minus before a number is none."""
    while end > start and not text[end - 1].isalnum():
        end -= 1
    while start < end and not text[start].isalnum() and _between_words(text, start + 1):
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
    if Counter(_NUMBER.findall(wanted)) - Counter(_NUMBER.findall(there)):
        return False
    return there.startswith(wanted) or not differing_marks(wanted, there)


def turned_wording(text: str, quote: str) -> tuple[str, str]:
    """For a quote that is not found: the words of the text that it turns round, and by what kind of change."""
    wanted = _stripped(for_quote_matching(quote).text)
    place = _nearest(_folded(text).text, wanted, 0, len(_folded(text).text), _TURNED)
    if place is None:
        return "", ""
    start, end = _folded(text).original(place[0], place[1])
    return (text[start:end], kind) if (kind := differing_marks(quote, text[start:end])) else ("", "")


@lru_cache(maxsize=_KEPT_TEXTS)
def _folded(text: str) -> Folded:
    return for_quote_matching(text)


def _range(folded: Folded, low: int, high: int) -> tuple[int, int]:
    """The folded characters that come from these of the text."""
    return bisect.bisect_left(folded.starts, low), bisect.bisect_left(folded.starts, high)


_WORD_TEXT_OVERLAP = re.compile(r"[^\W_]+")


class RougeL(NamedTuple):
    """ROUGE-L of a candidate against a reference."""

    precision: float
    recall: float
    f: float


class CommonRun(NamedTuple):
    """The longest run of words that two texts share: how many, and where it is in each (characters)."""

    words: int
    a: tuple[int, int]
    b: tuple[int, int]


def overlap_words(text: str) -> list[str]:
    """The words that both measures see: letters and digits in lower case."""
    return _WORD_TEXT_OVERLAP.findall(text.lower())


def rouge_l(candidate: str, reference: str) -> RougeL:
    """ROUGE-L of a text against a reference; a text without words shares nothing."""
    mine, theirs = overlap_words(candidate), overlap_words(reference)
    common = LCSseq.similarity(mine, theirs) if mine and theirs else 0
    if not common:
        return RougeL(0.0, 0.0, 0.0)
    precision, recall = common / len(mine), common / len(theirs)
    return RougeL(precision, recall, 2 * precision * recall / (precision + recall))


def edit_similarity(a: str, b: str) -> float:
    """1 - edit distance / length of the longer, over both texts' words; 1 for equal words, 0 where one has none."""
    one, other = " ".join(overlap_words(a)), " ".join(overlap_words(b))
    if not one or not other:
        return 0.0
    return 1.0 - Levenshtein.distance(one, other) / max(len(one), len(other))


def longest_run(a: str, b: str) -> CommonRun:
    """The longest run of words that both texts have; of equally long ones the first."""
    places = [[match.span() for match in _WORD_TEXT_OVERLAP.finditer(text)] for text in (a, b)]
    words = [[text[start:end].lower() for start, end in spans] for text, spans in zip((a, b), places, strict=True)]
    found = SequenceMatcher(None, words[0], words[1], autojunk=False).find_longest_match()
    if not found.size:
        return CommonRun(0, (0, 0), (0, 0))
    spans = [
        (mine[start][0], mine[start + found.size - 1][1])
        for mine, start in zip(places, (found.a, found.b), strict=True)
    ]
    return CommonRun(found.size, spans[0], spans[1])
