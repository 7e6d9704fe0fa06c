"""The lines of a PDF in reading order.

A PDF has no lines, only characters at places. Here they become pieces of lines (`Piece`: one baseline, no wide gap),
running heads and feet are taken out, columns are found, and pieces are put together as lines in the order in which a
person reads them.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from hoofbeat.corpus.readers.building import squeeze
from hoofbeat.errors import HostileInputError

__all__ = ["Line", "PageBox", "Piece", "body_size", "ordered_lines", "page_pieces", "without_running_heads"]

MOST_CHARACTERS = 400_000
WIDE_GAP = 1.8
LARGER = 1.12
MARGIN_ZONE = 0.12
HYPHEN = "\u00ad"

_PAGE_NUMBER = re.compile(r"(page|p\.)\s*#(\s*(of|/)\s*#)?", re.IGNORECASE)


class Piece(NamedTuple):
    """Characters on one baseline without a wide gap; `y` is the baseline, from the bottom of the page."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    page: int


class PageBox(NamedTuple):
    """The bottom and top of a page."""

    bottom: float
    top: float


class Line(NamedTuple):
    """One line as read: its cells (more than one in a table row), place, look, page and column."""

    cells: tuple[str, ...]
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    page: int
    column: int

    @property
    def text(self) -> str:
        """The line's text."""
        return " | ".join(self.cells)


class _Run:
    """A piece under way."""

    def __init__(self) -> None:
        self.characters: list[str] = []
        self.first = -1
        self.x0 = self.x1 = self.y = self.size = 0.0

    def add(self, character: str, index: int, *, x0: float, x1: float, y: float, size: float) -> None:
        if self.first < 0:
            self.first, self.x0, self.x1, self.y, self.size = index, x0, x1, y, size
        self.characters.append(character)
        self.x0, self.x1 = min(self.x0, x0), max(self.x1, x1)
        if size > self.size * 1.2:
            self.y, self.size = y, size

    def takes(self, x0: float, y: float) -> bool:
        """Whether a character there goes on with this piece."""
        if self.first < 0:
            return True
        size = max(self.size, 4.0)
        return abs(y - self.y) <= 0.6 * size and -size <= x0 - self.x1 <= WIDE_GAP * size


def page_pieces(textpage: Any, number: int) -> list[Piece]:
    """The pieces of one page, in the order in which the file draws them."""
    count = pdfium.FPDFText_CountChars(textpage)
    if count > MOST_CHARACTERS:
        raise HostileInputError(f"PDF refused as hostile: page {number} has {count:,} characters")
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    pieces: list[Piece] = []
    run = _Run()
    for index in range(count):
        code = pdfium.FPDFText_GetUnicode(textpage, index)
        if code in {0x0A, 0x0D}:
            _finish(textpage, run, number, pieces)
            run = _Run()
            continue
        if code in {0x02, 0xAD, 0xFFFE}:
            code = ord(HYPHEN)
        elif code == 0x20 or code < 0x20:
            run.characters.append(" ")
            continue
        pdfium.FPDFText_GetCharBox(textpage, index, left, right, bottom, top)
        pdfium.FPDFText_GetCharOrigin(textpage, index, x, y)
        if not run.takes(left.value, y.value):
            _finish(textpage, run, number, pieces)
            run = _Run()
        size = pdfium.FPDFText_GetFontSize(textpage, index)
        run.add(chr(code), index, x0=left.value, x1=right.value, y=y.value, size=size)
    _finish(textpage, run, number, pieces)
    return pieces


def _finish(textpage: Any, run: _Run, number: int, pieces: list[Piece]) -> None:
    raw = "".join(run.characters).rstrip()
    text = squeeze(raw)
    if run.first < 0 or not text:
        return
    if raw.endswith(HYPHEN):
        text += HYPHEN
    size = run.size * _scale(textpage, run.first)
    pieces.append(Piece(text, run.x0, run.x1, run.y, round(size * 2) / 2, _is_bold(textpage, run.first), number))


def _scale(textpage: Any, index: int) -> float:
    """How much the text matrix enlarges the font: many files set size 1 and scale it."""
    matrix = pdfium.FS_MATRIX()
    if not pdfium.FPDFText_GetMatrix(textpage, index, matrix):
        return 1.0
    scale = math.hypot(matrix.c, matrix.d)
    return scale if 0.01 < scale < 1000 else 1.0


def _is_bold(textpage: Any, index: int) -> bool:
    if pdfium.FPDFText_GetFontWeight(textpage, index) >= 600:
        return True
    name = ctypes.create_string_buffer(128)
    pdfium.FPDFText_GetFontInfo(textpage, index, name, 128, ctypes.c_int())
    return any(word in name.value.lower() for word in (b"bold", b"black", b"heavy", b"semibold"))


def body_size(pieces: Iterable[Piece | Line]) -> float:
    """The size most characters are set in."""
    weights: Counter[float] = Counter()
    for piece in pieces:
        weights[piece.size] += len(piece.text)
    return max(weights, key=lambda size: (weights[size], -size), default=10.0)


def without_running_heads(pieces: list[Piece], pages: list[PageBox]) -> list[Piece]:
    """Pieces that do not come again at the same place of page after page, and are no page numbers."""
    body = body_size(pieces)
    groups: defaultdict[tuple[bool, str], list[Piece]] = defaultdict(list)
    for piece in pieces:
        box = pages[piece.page - 1]
        margin = MARGIN_ZONE * (box.top - box.bottom)
        if piece.y > box.top - margin or piece.y < box.bottom + margin:
            text = piece.text if piece.size > body * LARGER else re.sub(r"\d+", "#", piece.text)
            groups[piece.y > box.top - margin, text].append(piece)
    enough = 2 if len(pages) < 3 else 3
    removed: set[Piece] = set()
    for (_, text), group in groups.items():
        usual = median(piece.y for piece in group)
        same = [piece for piece in group if abs(piece.y - usual) <= 6]
        needed = max(enough, len(pages) / 2) if same and same[0].size > body * LARGER else enough
        if _PAGE_NUMBER.fullmatch(text) or len({piece.page for piece in same}) >= needed:
            removed.update(same)
    return [piece for piece in pieces if piece not in removed]


def ordered_lines(pieces: list[Piece]) -> list[Line]:
    """All lines in reading order: page by page, and on a page with two columns the left one first."""
    pages: defaultdict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        pages[piece.page].append(piece)
    gutters = {page: _gutter(found) for page, found in pages.items()}
    known = [gutter for gutter in gutters.values() if gutter is not None]
    usual = median(known) if len(known) * 2 >= len(pages) else None
    lines: list[Line] = []
    for page in sorted(pages):
        gutter = gutters[page]
        if gutter is None and usual is not None and _crossing(pages[page], usual) <= len(pages[page]) * 0.3:
            gutter = usual
        lines.extend(_page_lines(pages[page], gutter))
    return lines


def _crossing(pieces: list[Piece], x: float) -> int:
    return sum(1 for piece in pieces if piece.x0 < x - 1 and piece.x1 > x + 1)


def _gutter(pieces: list[Piece]) -> float | None:
    """Where the page's two columns part, if it has two columns of prose (and not a table's columns)."""
    left, right = min(piece.x0 for piece in pieces), max(piece.x1 for piece in pieces)
    width = right - left
    places = [left + width * (0.35 + 0.01 * step) for step in range(31)]
    fewest = min(_crossing(pieces, place) for place in places)
    best = [place for place in places if _crossing(pieces, place) == fewest]
    place = best[len(best) // 2]
    before = [piece.x1 - piece.x0 for piece in pieces if piece.x1 <= place + 1]
    after = [piece.x1 - piece.x0 for piece in pieces if piece.x0 >= place - 1]
    if min(len(before), len(after)) < 4 or fewest > len(pieces) * 0.25:
        return None
    filled = median(before) >= 0.55 * (place - left) and median(after) >= 0.5 * (right - place)
    return place if filled else None


def _page_lines(pieces: list[Piece], gutter: float | None) -> Iterator[Line]:
    if gutter is None:
        yield from _joined(pieces, 0)
        return
    left: list[Piece] = []
    right: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: -piece.y):
        if piece.x0 < gutter - 1 and piece.x1 > gutter + 1:
            yield from _joined(left, 1)
            yield from _joined(right, 2)
            yield from _joined([piece], 0)
            left, right = [], []
        else:
            (left if (piece.x0 + piece.x1) / 2 < gutter else right).append(piece)
    yield from _joined(left, 1)
    yield from _joined(right, 2)


def _joined(pieces: list[Piece], column: int) -> Iterator[Line]:
    """Pieces on one baseline as one line, from top to bottom; a wide gap between them parts cells."""
    row: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (-piece.y, piece.x0)):
        if row and row[0].y - piece.y > 0.4 * max(row[0].size, piece.size):
            yield _line(row, column)
            row = []
        row.append(piece)
    if row:
        yield _line(row, column)


def _line(row: list[Piece], column: int) -> Line:
    row.sort(key=lambda piece: piece.x0)
    main = max(row, key=lambda piece: len(piece.text))
    cells = [row[0].text]
    for before, piece in pairwise(row):
        gap = piece.x0 - before.x1
        if gap > WIDE_GAP * main.size and len(cells[-1]) > 1:
            cells.append(piece.text)
        else:
            cells[-1] += (" " if gap > 0.12 * main.size else "") + piece.text
    bold = all(piece.bold for piece in row)
    return Line(tuple(cells), row[0].x0, max(p.x1 for p in row), main.y, main.size, bold, main.page, column)
