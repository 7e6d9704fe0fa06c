"""Where a text speaks of its figures and tables.

A recipe that asks about an image has to know which sentences refer to it, and one that must not show the answer has to
know which figures a passage gives away. References are found by the words (`Fig. 2`, `Figures 1 and 3`, `Figs. 1–3`),
so this works for every format; the captions themselves are no references.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hoofbeat.corpus.roles import role_spans
from hoofbeat.records import Document, DocumentTable, Figure

MAX_RANGE = 20

_ONE = r"[Ss]?\d{1,3}(?![\d.]\d)"
_TAIL = r"(?:\s?[\(\[]?[A-Za-z](?:\s?[-–,]\s?[A-Za-z])*[\)\]]?(?![A-Za-z]))?"
_LIST = rf"{_ONE}{_TAIL}(?:(?:\s*(?:,|and|&|or|to|[-–—])\s*)+(?:Figs?\.?\s*|Figures?\s*|Tables?\s*)?{_ONE}{_TAIL})*"
_FIGURES = re.compile(rf"\bFig(?:ure|\.)?s?\.?\s*({_LIST})", re.IGNORECASE)
_TABLES = re.compile(rf"\bTables?\.?\s*({_LIST})", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![A-Za-z\d])[Ss]?\d{1,3}(?!\d)")
_RANGE = re.compile(r"\s*(?:[-–—]|to)\s*")

_LABEL_NUMBER = re.compile(r"\d+")


def figure_references(document: Document) -> list[tuple[int, int, str]]:
    """Start, end and figure id of every place that names a figure by its number, in reading order."""
    return list(_references(document, document.figures, _FIGURES))


def table_references(document: Document) -> list[tuple[int, int, str]]:
    """Start, end and table id of every place that names a table by its number, in reading order."""
    return list(_references(document, document.tables, _TABLES))


def _references(
    document: Document, things: Iterable[Figure | DocumentTable], pattern: re.Pattern[str]
) -> Iterator[tuple[int, int, str]]:
    ids: dict[str, str] = {}
    own: set[int] = set()
    for thing in things:
        own.add(thing.start)
        if number := _NUMBER.search(thing.label):
            ids.setdefault(number.group().upper(), thing.id)
    if not ids:
        return
    for match in pattern.finditer(document.text):
        if match.start() in own:
            continue
        before = None
        for number in _NUMBER.finditer(document.text, match.start(1), match.end(1)):
            name = number.group().upper()
            for between in _between(before, name, document.text, number.start()):
                if between in ids:
                    yield number.start(), number.end(), ids[between]
            if name in ids:
                yield number.start(), number.end(), ids[name]
            before = name, number.end()


def _between(before: tuple[str, int] | None, name: str, text: str, start: int) -> Iterator[str]:
    """The numbers that a range (`1–3`) names without writing them."""
    if before is None or not _RANGE.fullmatch(text[before[1] : start]):
        return
    first, last = before[0].lstrip("S"), name.lstrip("S")
    if int(first) < int(last) <= int(first) + MAX_RANGE:
        prefix = "S" if name.startswith("S") else ""
        yield from (f"{prefix}{number}" for number in range(int(first) + 1, int(last)))


def figure_roles(document: Document, figure: Figure) -> set[str]:
    """The roles of the sections a figure belongs to."""
    spans = list(role_spans(document))
    found = {role for role, start, end in spans if start <= figure.start < end}
    number = _LABEL_NUMBER.search(figure.label)
    if found or not number:
        return found
    mention = re.compile(rf"\bfig(?:ure|s|ures)?\b\.?\s*{number[0]}(?!\d)", re.IGNORECASE)
    for match in mention.finditer(document.text):
        if not figure.start <= match.start() < figure.end:
            return {role for role, start, end in spans if start <= match.start() < end}
    return found
