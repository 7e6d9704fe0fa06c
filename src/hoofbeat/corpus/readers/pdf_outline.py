"""Bookmarks of a PDF: where there are any, they say which lines are headings and how deep these stand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pypdfium2 as pdfium

from hoofbeat.corpus.readers.building import squeeze
from hoofbeat.corpus.readers.pdf_lines import Line

__all__ = ["Bookmark", "bookmarks", "marked_lines"]

MOST_BOOKMARKS = 5_000
ENOUGH = 0.5

_NUMBERING = re.compile(r"^(?:(?:chapter|section|part|appendix)\s+)?(?:\d+(?:\.\d+)*|[ivx]+|[a-z])[.):]?\s+", re.I)
_OTHER = re.compile(r"[\W_]+")


class Bookmark(NamedTuple):
    """An entry of the outline: its title's letters, its depth (from 1) and page."""

    key: str
    level: int
    page: int


def bookmarks(document: Any) -> list[Bookmark]:
    """The bookmarks of a document that name a page; a damaged outline counts as none."""
    found: list[Bookmark] = []
    try:
        for entry in islice(document.get_toc(), MOST_BOOKMARKS):
            target = entry.get_dest()
            index = None if target is None else target.get_index()
            key = _key(entry.get_title())
            if index is not None and index >= 0 and key:
                found.append(Bookmark(key, entry.level + 1, index + 1))
    except (pdfium.PdfiumError, UnicodeDecodeError, ValueError):
        return []
    return found


def marked_lines(lines: Sequence[Line], outline: Sequence[Bookmark]) -> Mapping[Line, int]:
    """The lines that bookmarks name and their depth; none where too few of the bookmarks are found in the text."""
    wanted: dict[tuple[str, int], int] = {}
    for mark in outline:
        wanted.setdefault((mark.key, mark.page), mark.level)
    marked: dict[Line, int] = {}
    met: set[tuple[str, int]] = set()
    for line in lines:
        for key in (_key(line.text), _key(_NUMBERING.sub("", line.text))):
            place = key, line.page
            if place in wanted and place not in met and len(line.cells) == 1:
                met.add(place)
                marked[line] = wanted[place]
                break
    return marked if wanted and len(met) >= ENOUGH * len(wanted) else {}


def _key(title: str) -> str:
    return _OTHER.sub("", squeeze(title).casefold())
