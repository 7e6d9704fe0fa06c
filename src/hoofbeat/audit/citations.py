"""Citations and quotes: how a section is cited, and whether a quote is in a passage.

A quote may be misspelt, but it may not give another dose, comparator, direction or denial (`statement_check`), and it
may not begin behind the "not" of its sentence. One or two words are not a quote, unless the passage has no more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.records import Document, Passage

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


def long_enough(quote: str, passages: Sequence[Passage]) -> bool:
    """Whether a text has enough words for a quote of one of these passages."""
    count = len(_COUNTED.findall(quote))
    return count >= MIN_WORDS or any(len(_COUNTED.findall(passage.text)) <= count for passage in passages)


def quote_in_passage(quote: str, passage: Passage) -> bool:
    """Whether a quote is in a passage, with the same amounts, comparators and denials where some letters differ."""
    if not long_enough(quote, [passage]):
        return False
    return find_quote(Document(id=passage.document, title="", text=passage.text), quote) is not None


_LEFT_OUT = re.compile(
    r"(?:\b(?:not|never|no|without|against|avoid|cannot|contraindicated in|less than|more than|at least|at most|up to|"
    r"no more than|below|above|under|over)|[<>≤≥])\s*(?:(?:be|been|routinely|the|an?|to|use|using|of)\s+){0,2}\Z",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\A\s*(?:against\b|only (?:if|when|in|for)\b|unless\b|except\b|or (?:more|less|older|younger|higher|lower|above|"
    r"below|greater|fewer)\b)",
    re.IGNORECASE,
)


def left_out(quote: str, passage: Passage) -> str:
    """The word beside a quote that reverses its meaning: "not" before it, "or more" after it; empty where none does."""
    found = find_quote(Document(id=passage.document, title="", text=passage.text), quote)
    if found is None:
        return ""
    before = _LEFT_OUT.search(passage.text[max(0, found.spans[0].start - 40) : found.spans[0].start])
    behind = _GOES_ON.search(passage.text[found.spans[-1].end : found.spans[-1].end + 20])
    return " ".join((before or behind or [""])[0].split())
