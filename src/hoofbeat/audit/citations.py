"""Citations and quotes: how a section is cited, and whether a quote is in a passage.

A quote may be misspelt, but it may not give another dose or denial. A quote that is found but for a few letters is
compared once more: every amount with its unit (number words and "twice" included) and every denial must be the same on
both sides. One or two words are not a quote, unless the passage has no more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.records import Document, Passage
from hoofbeat.text import for_quote_matching

_PAGE = re.compile(r" \(page \d+\)\Z")


def format_citation(heading: str, page: int | None) -> str:
    """The citation of a section."""
    return heading if page is None else f"{heading} (page {page})"


def cites_heading(citation: str, heading: str) -> bool:
    """Whether a citation names this heading."""
    return heading in (citation, _PAGE.sub("", citation))


MIN_WORDS = 3
"""The words a quote has at least; signs of scripts without spaces count one by one."""

_SIGNS = "\u3040-\u30ff\u3400-\u9fff"
_COUNTED = re.compile(rf"[{_SIGNS}]|[^\s{_SIGNS}]+")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_NUMBER_WORD = (
    r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|"
    r"twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|half|quarter|once|twice|thrice|"
    r"hourly|daily|weekly|monthly|yearly"
)
_AMOUNT = re.compile(
    rf"(?P<number>(?:(?<![^\s(\[])-)?\d+(?:[.,/^]\d+)*|\b(?:{_NUMBER_WORD})\b)"
    r"(?:\s?-?\s?(?P<unit>%|°?\s?[^\W\d_]+(?:\s?/\s?[^\W\d_]+)*))?"
)
_SAME_UNIT = {"mcg": "μg", "ug": "μg", "litre": "l", "liter": "l", "hr": "h", "hour": "h", "min": "minute"}
_DENIALS = re.compile(r"no|not|nor|never|none|neither|nothing|nobody|nowhere|without|cannot|avoid|except|unless|hardly")
_TURNING = ("un", "in", "im", "ir", "dis", "non", "contra")


def long_enough(quote: str, passages: Sequence[Passage]) -> bool:
    """Whether a text has enough words for a quote of one of these passages."""
    count = len(_COUNTED.findall(quote))
    return count >= MIN_WORDS or any(len(_COUNTED.findall(passage.text)) <= count for passage in passages)


def quote_in_passage(quote: str, passage: Passage) -> bool:
    """Whether a quote stands in a passage, with the same amounts and denials where it is not the same to the letter."""
    if not long_enough(quote, [passage]):
        return False
    found = find_quote(Document(id=passage.document, title="", text=passage.text), quote)
    if found is None:
        return False
    return found.how != "fuzzy" or same_amounts_and_denials(quote, " … ".join(span.quote for span in found.spans))


def same_amounts_and_denials(quote: str, there: str) -> bool:
    """Whether two texts that differ by some letters have the same amounts with their units, and the same denials."""
    one, two = (for_quote_matching(text).text.strip(" \"'.,;:!?") for text in (quote, there))
    if two.startswith(one):  # the last word is cut short
        return True
    return _amounts(one) == _amounts(two) and _denials(one) == _denials(two) and not _turned(one, two)


def _amounts(text: str) -> Counter[tuple[str, str]]:
    return Counter((match["number"], _unit(match["unit"] or "")) for match in _AMOUNT.finditer(text))


def _unit(written: str) -> str:
    unit = "".join(written.split())
    if len(unit) > 2:
        unit = unit.removesuffix("s")
    return _SAME_UNIT.get(unit, unit)


def _denials(text: str) -> Counter[str]:
    words = ("not" if word.endswith("n't") else word for word in _WORD.findall(text))
    return Counter(word for word in words if _DENIALS.fullmatch(word))


def _turned(one: str, two: str) -> bool:
    """Whether a word stands on one side only, and on the other the same word behind a syllable that denies it."""
    ours, theirs = Counter(_WORD.findall(one)), Counter(_WORD.findall(two))
    left, right = ours - theirs, theirs - ours
    return any(
        f"{syllable}{word}" in other for word, other in _each(left, right) for syllable in _TURNING if len(word) > 2
    )


def _each(left: Counter[str], right: Counter[str]) -> list[tuple[str, Counter[str]]]:
    return [(word, right) for word in left] + [(word, left) for word in right]
