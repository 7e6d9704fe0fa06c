"""One document as a page shows it: contents, text with marks, figures, tables, and where it came from."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Span
from hoofbeat.retrieval.chunking import DEFAULT_CHUNKING, Chunking, cut
from hoofbeat.web.browse.highlighting import (
    ContentsEntry,
    DocumentBlock,
    DocumentPart,
    Mark,
    contents,
    layout,
    merge_marks,
    part_of,
    split_into_parts,
)

__all__ = ["DocumentView", "FigureView", "TableView", "document_view", "evidence_marks", "passage_marks"]

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
