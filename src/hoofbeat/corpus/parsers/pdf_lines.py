"""The lines of a PDF in reading order.

A PDF has no lines, only characters at places. Here they become pieces of lines (`TextRun`: one baseline, no wide gap),
running heads and feet are taken out, columns are found, and pieces are put together as lines in the order in which a
person reads them. Where a PDF has bookmarks, they say which lines are headings and how deep these are.
"""

from __future__ import annotations

import ctypes
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from statistics import median
from typing import Any, Literal, NamedTuple, cast

import pypdfium2.raw as pdfium
from pypdfium2 import PdfiumError

from hoofbeat.errors import HostileInputError
from hoofbeat.text import raised, squeeze

MAX_CHARACTERS = 400_000
WIDE_GAP = 1.8
LARGER = 1.12
MARGIN_ZONE = 0.12
SAMPLED_CHARACTERS = 60
HYPHEN = "\u00ad"
_SMALL, _RAISED = 0.85, 0.12  # of the size of its line: a digit that is smaller and stands higher is an exponent

_PAGE_NUMBER = re.compile(r"(page|p\.)\s*#(\s*(of|/)\s*#)?", re.IGNORECASE)


class TextRun(NamedTuple):
    """Characters on one baseline without a wide gap; `y` is the baseline, from the bottom of the page.

    `why` says why a person may not see them.
    """

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    page: int
    why: str = ""


class PageBox(NamedTuple):
    """The bottom and top of a page."""

    bottom: float
    top: float


class PdfLine(NamedTuple):
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


Turn = Literal[0, 1, 2, 3]


def page_turn(textpage: Any) -> Turn:
    """In how many quarter turns (against the clock) most characters of a page run; pages are read as they run."""
    count = pdfium.FPDFText_CountChars(textpage)
    matrix = pdfium.FS_MATRIX()
    turns: Counter[int] = Counter()
    for index in range(0, count, max(1, count // SAMPLED_CHARACTERS)):
        if pdfium.FPDFText_GetUnicode(textpage, index) > 0x20 and pdfium.FPDFText_GetMatrix(textpage, index, matrix):
            turns[round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4] += 1
    best = max(turns, key=lambda turn: (turns[turn], -turn), default=0)
    return cast(Turn, best)


def turned(left: float, right: float, bottom: float, top: float, turn: Turn) -> tuple[float, float, float, float]:
    """A box of a page whose text is rotated by quarter turns, as it is when the page is upright."""
    if turn == 0:
        return left, right, bottom, top
    if turn == 1:
        return bottom, top, -right, -left
    if turn == 2:
        return -right, -left, -top, -bottom
    return -top, -bottom, left, right


class _Run:
    """A piece under way."""

    def __init__(self) -> None:
        self.why = ""
        self.characters: list[str] = []
        self.first = -1
        self.x0 = self.x1 = self.y = self.size = 0.0

    def add(self, character: str, index: int, *, x0: float, x1: float, y: float, size: float) -> None:
        if self.first < 0:
            self.first, self.x0, self.x1, self.y, self.size = index, x0, x1, y, size
        small = size < _SMALL * self.size and y - self.y > _RAISED * self.size
        self.characters.append(raised("".join(self.characters[-6:]), character) if small else character)
        self.x0, self.x1 = min(self.x0, x0), max(self.x1, x1)
        if size > self.size * 1.2:
            self.y, self.size = y, size

    def takes(self, x0: float, y: float) -> bool:
        """Whether a character there goes on with this piece."""
        if self.first < 0:
            return True
        size = max(self.size, 4.0)
        return abs(y - self.y) <= 0.6 * size and -size <= x0 - self.x1 <= WIDE_GAP * size


WhyUnseen = Callable[[int, tuple[float, float, float, float]], str]
"""Why a person may not see a letter, by its number and its box (left, right, bottom, top) on the page."""


def page_runs(textpage: Any, number: int, turn: Turn = 0, why: WhyUnseen = lambda _index, _box: "") -> list[TextRun]:
    """The pieces of one page turned upright, in the order in which the file draws them."""
    count = pdfium.FPDFText_CountChars(textpage)
    if count > MAX_CHARACTERS:
        raise HostileInputError(f"PDF refused as hostile: page {number} has {count:,} characters")
    left, right, bottom, top, x, y = (ctypes.c_double() for _ in range(6))
    pieces: list[TextRun] = []
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
        x0, x1, base = left.value, right.value, y.value
        if turn:
            x0, x1, _, _ = turned(x0, x1, bottom.value, top.value, turn)
            _, _, base, _ = turned(x.value, x.value, base, base, turn)
        unseen = why(index, (left.value, right.value, bottom.value, top.value))
        if not run.takes(x0, base) or (run.first >= 0 and run.why != unseen):
            _finish(textpage, run, number, pieces)
            run = _Run()
        run.why = unseen
        size = pdfium.FPDFText_GetFontSize(textpage, index)
        run.add(chr(code), index, x0=x0, x1=x1, y=base, size=size)
    _finish(textpage, run, number, pieces)
    return pieces


def _finish(textpage: Any, run: _Run, number: int, pieces: list[TextRun]) -> None:
    raw = "".join(run.characters).rstrip()
    text = squeeze(raw)
    if run.first < 0 or not text:
        return
    if raw.endswith(HYPHEN):
        text += HYPHEN
    size = run.size * _scale(textpage, run.first)
    bold = _is_bold(textpage, run.first)
    pieces.append(TextRun(text, run.x0, run.x1, run.y, round(size * 2) / 2, bold, number, run.why))


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


def body_size(pieces: Iterable[TextRun | PdfLine]) -> float:
    """The size most characters are set in."""
    weights: Counter[float] = Counter()
    for piece in pieces:
        weights[piece.size] += len(piece.text)
    return max(weights, key=lambda size: (weights[size], -size), default=10.0)


def without_running_heads(pieces: list[TextRun], pages: list[PageBox]) -> list[TextRun]:
    """Pieces that do not repeat at the same place on every page, and are not page numbers."""
    body = body_size(pieces)
    groups: defaultdict[tuple[bool, str], list[TextRun]] = defaultdict(list)
    for piece in pieces:
        box = pages[piece.page - 1]
        margin = MARGIN_ZONE * (box.top - box.bottom)
        if piece.y > box.top - margin or piece.y < box.bottom + margin:
            text = piece.text if piece.size > body * LARGER else re.sub(r"\d+", "#", piece.text)
            groups[piece.y > box.top - margin, text].append(piece)
    enough = 2 if len(pages) < 3 else 3
    removed: set[TextRun] = set()
    for (_, text), group in groups.items():
        usual = median(piece.y for piece in group)
        same = [piece for piece in group if abs(piece.y - usual) <= 6]
        needed = max(enough, len(pages) / 2) if same and same[0].size > body * LARGER else enough
        if _PAGE_NUMBER.fullmatch(text) or len({piece.page for piece in same}) >= needed:
            removed.update(same)
    return [piece for piece in pieces if piece not in removed]


def ordered_lines(pieces: list[TextRun]) -> list[PdfLine]:
    """All lines in reading order: page by page, and on a page with columns one after the other from the left."""
    pages: defaultdict[int, list[TextRun]] = defaultdict(list)
    for piece in pieces:
        pages[piece.page].append(piece)
    gutters = {page: _gutters(found) for page, found in pages.items()}
    known = sorted(found for found in gutters.values() if found)
    usual = known[len(known) // 2] if len(known) * 2 >= len(pages) else ()
    lines: list[PdfLine] = []
    for page in sorted(pages):
        found = gutters[page]
        if not found and all(_crossing(pages[page], place) <= len(pages[page]) * 0.3 for place in usual):
            found = usual
        lines.extend(_page_lines(pages[page], found))
    return lines


def _crossing(pieces: list[TextRun], x: float) -> int:
    return sum(1 for piece in pieces if piece.x0 < x - 1 and piece.x1 > x + 1)


def _gutters(pieces: list[TextRun]) -> tuple[float, ...]:
    """Where the page's columns part: nowhere, in the middle (and in the middle of both halves), or in thirds."""
    left, right = min(piece.x0 for piece in pieces), max(piece.x1 for piece in pieces)
    middle = _gutter(pieces, left, right, 0.35, 0.65)
    if middle is not None:
        quarters = (_half(pieces, left, middle), _half(pieces, middle, right))
        if quarters[0] is not None and quarters[1] is not None:
            return quarters[0], middle, quarters[1]
        if _filled(pieces, (left, middle, right)):
            return (middle,)
    first, second = _gutter(pieces, left, right, 0.22, 0.45), _gutter(pieces, left, right, 0.55, 0.78)
    if first is not None and second is not None and _filled(pieces, (left, first, second, right)):
        return first, second
    return ()


def _half(pieces: list[TextRun], left: float, right: float) -> float | None:
    """Where one half of a page parts again."""
    inside = [piece for piece in pieces if piece.x0 >= left - 1 and piece.x1 <= right + 1]
    if len(inside) < 8:
        return None
    place = _gutter(inside, left, right, 0.35, 0.65)
    return place if place is not None and _filled(inside, (left, place, right)) else None


def _gutter(pieces: list[TextRun], left: float, right: float, low: float, high: float) -> float | None:
    """The place in this part of the width that fewest pieces cross, if they are few."""
    width = right - left
    steps = round((high - low) * 100)
    places = [left + width * (low + 0.01 * step) for step in range(steps + 1)]
    crossings = [_crossing(pieces, place) for place in places]
    fewest = min(crossings)
    best = [place for place, count in zip(places, crossings, strict=True) if count == fewest]
    return best[len(best) // 2] if fewest <= len(pieces) * 0.25 else None


def _filled(pieces: list[TextRun], edges: tuple[float, ...]) -> bool:
    """Whether every column holds prose: some lines, most of them about as wide as the column (a table's are not)."""
    for left, right in pairwise(edges):
        widths = [piece.x1 - piece.x0 for piece in pieces if piece.x0 >= left - 1 and piece.x1 <= right + 1]
        if len(widths) < 4 or median(widths) < 0.5 * (right - left):
            return False
    return True


def _page_lines(pieces: list[TextRun], gutters: tuple[float, ...]) -> Iterator[PdfLine]:
    if not gutters:
        yield from _joined(pieces, 0)
        return
    columns: list[list[TextRun]] = [[] for _ in range(len(gutters) + 1)]
    for piece in sorted(pieces, key=lambda piece: -piece.y):
        if any(piece.x0 < place - 1 and piece.x1 > place + 1 for place in gutters):
            for number, column in enumerate(columns, start=1):
                yield from _joined(column, number)
                column.clear()
            yield from _joined([piece], 0)
        else:
            columns[bisect_right(gutters, (piece.x0 + piece.x1) / 2)].append(piece)
    for number, column in enumerate(columns, start=1):
        yield from _joined(column, number)


def _joined(pieces: list[TextRun], column: int) -> Iterator[PdfLine]:
    """Pieces on one baseline as one line, from top to bottom; a wide gap between them parts cells."""
    row: list[TextRun] = []
    for piece in sorted(pieces, key=lambda piece: (-piece.y, piece.x0)):
        if row and row[0].y - piece.y > 0.4 * max(row[0].size, piece.size):
            yield _line(row, column)
            row = []
        row.append(piece)
    if row:
        yield _line(row, column)


def _line(row: list[TextRun], column: int) -> PdfLine:
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
    return PdfLine(tuple(cells), row[0].x0, max(p.x1 for p in row), main.y, main.size, bold, main.page, column)


MAX_BOOKMARKS = 5_000
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
        for entry in islice(document.get_toc(), MAX_BOOKMARKS):
            target = entry.get_dest()
            index = None if target is None else target.get_index()
            key = _key(entry.get_title())
            if index is not None and index >= 0 and key:
                found.append(Bookmark(key, entry.level + 1, index + 1))
    except (PdfiumError, UnicodeDecodeError, ValueError):
        return []
    return found


def marked_lines(lines: Sequence[PdfLine], outline: Sequence[Bookmark]) -> Mapping[PdfLine, int]:
    """The lines that bookmarks name and their depth; none where too few of the bookmarks are found in the text."""
    wanted: dict[tuple[str, int], int] = {}
    for mark in outline:
        wanted.setdefault((mark.key, mark.page), mark.level)
    marked: dict[PdfLine, int] = {}
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
