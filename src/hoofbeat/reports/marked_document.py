"""A document laid out for a page: contents, headings, text, figures and tables in their order, with characters marked.

Marks are half-open ranges of the document's own characters. Offsets that a damaged or hostile record gives are cut to
the text and never trusted. A text too long for one page is shown in parts.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Section, Span
from hoofbeat.retrieval.index.chunking import DEFAULT_CHUNKING, Chunking, cut
from hoofbeat.text import one_line

Mark = tuple[int, int]
"""Where a mark begins and ends."""

PART = 200_000
"""About how many characters are shown at a time."""

_BREAK = re.compile(r"\n[^\S\n]*\n\s*")
_LOOK_BACK = 4_000
_MAX_LISTED = 400


class MarkedText(Struct, frozen=True):
    """Some text. `mark` is the number of its mark, from 1 (0: none); `first` says that the mark begins here."""

    text: str
    mark: int = 0
    first: bool = False


class DocumentBlock(Struct, frozen=True):
    """One thing after the other: a heading of a level, a paragraph, or the figure or table of a number (from 0).

    `pieces` are its words; of a figure or table those that represent it in the text. `place` is the section's number.
    """

    kind: Literal["heading", "text", "figure", "table"]
    pieces: tuple[MarkedText, ...] = ()
    level: int = 0
    place: int = 0
    role: str = ""

    @property
    def marked(self) -> bool:
        """Whether something of it is marked."""
        return any(piece.mark for piece in self.pieces)


class ContentsEntry(Struct, frozen=True):
    """A line of the table of contents: the section's number, and the part of the text it begins in, from 1."""

    heading: str
    level: int
    place: int
    part: int
    role: str = ""


class DocumentPart(Struct, frozen=True):
    """Some of a text: its number from 1, of how many, and its characters."""

    number: int
    of: int
    start: int
    end: int


def merge_marks(marks: Sequence[Mark], length: int) -> list[Mark]:
    """Marks within a text of this length, in order; those that touch or overlap are one."""
    found: list[Mark] = []
    for start, end in sorted((max(0, start), min(length, end)) for start, end in marks):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def split_at_marks(text: str, marks: Sequence[Mark], start: int = 0, end: int | None = None) -> tuple[MarkedText, ...]:
    """The characters from `start` to `end`, cut where a mark begins or ends; `marks` are `merge_marks` ones."""
    end = len(text) if end is None else end
    made: list[MarkedText] = []
    at = start
    for number, (first, last) in enumerate(marks, start=1):
        low, high = max(first, at), min(last, end)
        if low >= high:
            continue
        if low > at:
            made.append(MarkedText(text[at:low]))
        made.append(MarkedText(text[low:high], number, low == first))
        at = high
    if at < end:
        made.append(MarkedText(text[at:end]))
    return tuple(made)


def split_into_parts(text: str, size: int = PART) -> list[DocumentPart]:
    """A text in parts of about `size` characters, cut at a line's end where one is near."""
    cuts = [0]
    while len(text) - cuts[-1] > size + _LOOK_BACK:
        wanted = cuts[-1] + size
        line = text.rfind("\n", wanted - _LOOK_BACK, wanted)
        cuts.append(line + 1 if line > 0 else wanted)
    ends = [*cuts[1:], len(text)]
    return [DocumentPart(number, len(cuts), *each) for number, each in enumerate(zip(cuts, ends, strict=True), start=1)]


def part_of(listed: Sequence[DocumentPart], place: int) -> DocumentPart:
    """The part in which a character stands."""
    return next((part for part in listed if place < part.end), listed[-1])


def contents(document: Document, listed: Sequence[DocumentPart]) -> list[ContentsEntry]:
    """The sections of a document; of very many the first."""
    return [
        ContentsEntry(
            one_line(section.heading) or "(no heading)",
            min(max(section.level, 1), 4),
            number,
            part_of(listed, section.start).number,
            section.role,
        )
        for number, section in enumerate(document.sections[:_MAX_LISTED])
    ]


def layout(document: Document, marks: Sequence[Mark], part: DocumentPart | None = None) -> list[DocumentBlock]:
    """What stands in a document, or in a part of it, one after the other. `marks` are `merge_marks` ones."""
    low, high = (part.start, part.end) if part else (0, len(document.text))
    seen: set[int] = set()
    return [
        replace(block, pieces=_begun(block.pieces, seen))
        for block in _all(document, marks, low, high, _insets(document))
    ]


def _begun(found: Sequence[MarkedText], seen: set[int]) -> tuple[MarkedText, ...]:
    """Pieces that know whether their mark begins with them among what is shown; `seen` are marks that have begun."""
    made = []
    for piece in found:
        made.append(MarkedText(piece.text, piece.mark, bool(piece.mark) and piece.mark not in seen))
        seen.add(piece.mark)
    return tuple(made)


def _all(
    document: Document, marks: Sequence[Mark], low: int, high: int, insets: Sequence[_Inset]
) -> Iterator[DocumentBlock]:
    at = low
    for number, section in enumerate(document.sections):
        start, body, end = _placed(section, len(document.text))
        if start >= high or end < low or (start < low and end == low):
            continue
        yield from _text(document.text, marks, at, min(start, high), insets)
        if low <= start < high:
            words = (
                split_at_marks(document.text, marks, start, body) if body > start else (MarkedText(section.heading),)
            )
            yield DocumentBlock("heading", _trimmed(words), min(max(section.level, 1), 4), number, section.role)
        at = max(at, min(body, high))
        yield from _text(document.text, marks, at, min(end, high), insets)
        at = max(at, min(end, high))
    yield from _text(document.text, marks, at, high, insets)


def _placed(section: Section, length: int) -> tuple[int, int, int]:
    start = min(max(section.start, 0), length)
    body = min(max(section.body, start), length)
    return start, body, min(max(section.end, body), length)


def _trimmed(words: Sequence[MarkedText]) -> tuple[MarkedText, ...]:
    """The pieces of a heading on one line."""
    found = (MarkedText(" ".join(piece.text.split()), piece.mark, piece.first) for piece in words)
    return tuple(piece for piece in found if piece.text)


def _text(text: str, marks: Sequence[Mark], low: int, high: int, insets: Sequence[_Inset]) -> Iterator[DocumentBlock]:
    """Paragraphs, and between them the figures and tables that stand there."""
    at = low
    for start, end, kind, number in insets[bisect.bisect_left(insets, (low,)) :]:
        if start >= high:
            break
        if start < at or end > high:
            continue
        yield from _paragraphs(text, marks, at, start)
        yield DocumentBlock(kind, split_at_marks(text, marks, start, end), place=number)
        at = end
    yield from _paragraphs(text, marks, at, high)


_Inset = tuple[int, int, Literal["figure", "table"], int]


def _insets(document: Document) -> list[_Inset]:
    """Figures and tables that have a place in the text, in order."""
    found: list[_Inset] = [
        (figure.start, figure.end, "figure", number)
        for number, figure in enumerate(document.figures)
        if 0 <= figure.start < figure.end <= len(document.text)
    ]
    found += [
        (table.start, table.end, "table", number)
        for number, table in enumerate(document.tables)
        if 0 <= table.start < table.end <= len(document.text)
    ]
    return sorted(found)


def _paragraphs(text: str, marks: Sequence[Mark], low: int, high: int) -> Iterator[DocumentBlock]:
    at = low
    while at < high:
        gap = _BREAK.search(text, at, high)
        end = gap.start() if gap else high
        if text[at:end].strip():
            yield DocumentBlock("text", split_at_marks(text, marks, at, end))
        at = gap.end() if gap else high


_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_MAX_ROWS = 300
_MAX_CELLS = 40
_MAX_LOOSE = 200


class FigureView(Struct, frozen=True):
    """A figure: which one (from 0), its words, and its image files: which one, and whether a browser can show it."""

    number: int
    label: str
    caption: str
    files: tuple[tuple[int, bool], ...]
    page: int | None


class TableView(Struct, frozen=True):
    """A table: which one (from 0), its words and rows; `left_out` rows are not shown."""

    number: int
    label: str
    caption: str
    rows: tuple[tuple[str, ...], ...]
    left_out: int


class DocumentView(Struct, frozen=True, kw_only=True):
    """A document, or a part of a long one, laid out. `loose` figures have no place in the text."""

    document: Document
    blocks: tuple[DocumentBlock, ...]
    contents: tuple[ContentsEntry, ...]
    hidden: int
    part: DocumentPart
    marks: int
    missing: tuple[str, ...]
    figures: dict[int, FigureView]
    tables: dict[int, TableView]
    loose: tuple[int, ...]
    loose_tables: tuple[int, ...]


def passage_marks(document: Document, passage: str) -> list[Mark]:
    """Where a passage stands in its document, by the id that a retriever gave it; nowhere where tokens were counted."""
    way, _, number = passage.removeprefix(f"{document.id}#").rpartition("#")
    try:
        chunking = Chunking.parse(way) if way else DEFAULT_CHUNKING
    except UsageError:
        return []
    if chunking.needs_tokens or chunking.unit == "whole" or not (number.isascii() and number.isdigit()):
        return []
    return [(each.start, each.end) for each in cut(document, chunking) if each.id == passage and each.start < each.end]


def evidence_marks(document: Document, spans: Sequence[Span]) -> tuple[list[Mark], tuple[str, ...]]:
    """Where evidence stands in a document; quotes that the document does not have there are told, not marked."""
    mine = [span for span in spans if span.document == document.id]
    there = [span for span in mine if document.text[span.start : span.end] == span.quote]
    missing = tuple(span.quote for span in mine if span not in there)
    return [(span.start, span.end) for span in there], missing


def document_view(
    document: Document, marks: Sequence[Mark], part: int | None = None, missing: Sequence[str] = ()
) -> DocumentView:
    """Lay out a document: the part asked for, or else that of the first mark."""
    found = merge_marks(marks, len(document.text))
    every = split_into_parts(document.text)
    if part is not None:
        shown = every[min(max(part, 1), len(every)) - 1]
    else:
        shown = part_of(every, found[0][0]) if found else every[0]
    blocks = tuple(layout(document, found, shown))
    placed = {kind: {block.place for block in blocks if block.kind == kind} for kind in ("figure", "table")}
    loose = [n for n, figure in enumerate(document.figures) if not figure.start < figure.end]
    loose_tables = [n for n, table in enumerate(document.tables) if not table.start < table.end]
    last = shown.number == shown.of
    loose, loose_tables = (loose[:_MAX_LOOSE], loose_tables[:_MAX_LOOSE]) if last else ([], [])
    listed = contents(document, every)
    return DocumentView(
        document=document,
        blocks=blocks,
        contents=tuple(listed),
        hidden=len(document.sections) - len(listed),
        part=shown,
        marks=len(found),
        missing=tuple(missing),
        figures={n: _figure(document, n) for n in {*placed["figure"], *loose}},
        tables={n: _table(document, n) for n in {*placed["table"], *loose_tables}},
        loose=tuple(loose),
        loose_tables=tuple(loose_tables),
    )


def _figure(document: Document, number: int) -> FigureView:
    figure = document.figures[number]
    files = tuple((place, name.lower().endswith(_IMAGES)) for place, name in enumerate(figure.files))
    return FigureView(number, figure.label, figure.caption, files, figure.page)


def _table(document: Document, number: int) -> TableView:
    table = document.tables[number]
    rows = tuple(row[:_MAX_CELLS] for row in table.rows[:_MAX_ROWS])
    return TableView(number, table.label, table.caption, rows, len(table.rows) - len(rows))
