"""Documents as passages: what is indexed, retrieved, and shown to a model.

A passage is an exact slice of its document's text, so a claim about it can be checked; the heading it stands under is
kept beside the text, not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Passage
from hoofbeat.retrieval.analysis import CJK

__all__ = ["chunk", "indexed_text", "sections", "whole"]

_Stretch = tuple[str, int | None, int, int]
"""Heading, page, start and end of some text."""

_WORD = re.compile(rf"[{CJK}]|[^\s{CJK}]+")


def indexed_text(passage: Passage) -> str:
    """What a retriever reads of a passage: its heading, then its text."""
    return f"{passage.heading}\n{passage.text}" if passage.heading else passage.text


def whole(document: Document) -> list[Passage]:
    """The document as one passage under its title."""
    return [_passage(document, 0, (document.title, None, 0, len(document.text)))]


def sections(document: Document) -> list[Passage]:
    """The document as a passage for every section, so that a model that is shown all of it can still name its place."""
    return chunk(document, size_words=max(1, len(document.text)), overlap_words=0)


def chunk(document: Document, size_words: int = 160, overlap_words: int = 32) -> list[Passage]:
    """Windows of words that overlap inside a section and never cross one.

    Text outside any section stands under the document's title. A document without words gives one passage, so that
    it can still be found by its title.
    """
    if size_words < 1 or not 0 <= overlap_words < size_words:
        raise UsageError(
            f"can't chunk into {size_words} words with {overlap_words} overlapping",
            fix="the size is at least 1 word and the overlap is smaller than the size",
        )
    windows = [
        (heading, page, *window)
        for heading, page, start, end in _regions(document)
        for window in _windows(document.text, start, end, size_words, overlap_words)
    ]
    if not windows:
        return whole(document)
    return [_passage(document, number, window) for number, window in enumerate(windows)]


def _regions(document: Document) -> Iterator[_Stretch]:
    """Heading, page and bounds of every stretch of text in order: sections, and what lies between them."""
    cursor = 0
    for section in sorted(document.sections, key=lambda section: (section.start, section.end)):
        if cursor < section.start:
            yield document.title, None, cursor, section.start
        yield section.heading or document.title, section.page, max(section.body, cursor), section.end
        cursor = max(cursor, section.end)
    yield document.title, None, cursor, len(document.text)


def _windows(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    words = [match.span() for match in _WORD.finditer(text, start, end)]
    for first in range(0, len(words), size - overlap):
        last = min(first + size, len(words)) - 1
        yield words[first][0], words[last][1]
        if last == len(words) - 1:
            return


def _passage(document: Document, number: int, window: _Stretch) -> Passage:
    heading, page, start, end = window
    return Passage(
        id=f"{document.id}#{number}",
        document=document.id,
        text=document.text[start:end],
        start=start,
        end=end,
        heading=heading,
        page=page,
    )
