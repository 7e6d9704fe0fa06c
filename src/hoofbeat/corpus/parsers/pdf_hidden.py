"""Text of a PDF that a reader of the page can't see.

Invisible letters are usual on scanned pages, where recognised text lies over the picture: a page that a picture covers
keeps its text. White letters are usual on dark boxes: letters in the colour of the box behind them, or pale ones on no
box or on a picture, count as hidden only where the page, once drawn, shows nothing at their place.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.pdf_lines import TextRun, Turn, page_runs, turned

INVISIBLE, CLEAR, TINY, OUTSIDE = "invisible letters", "transparent letters", "letters below 1 point", "off the page"
SAME = "letters in the colour of the background"
MIN_SIZE = 1.0
MAX_SHAPES = 5_000
COVERED = 0.6
_PALE = 235
_NEAR = 12
_MIN_INK = 0.03
_MIN_BOX = 200.0
_SCALE = 2.0
_MAX_DRAWN = 6_000_000.0
_STEPS = 20

_FILLED = frozenset({pdfium.raw.FPDF_TEXTRENDERMODE_FILL, pdfium.raw.FPDF_TEXTRENDERMODE_FILL_STROKE})
_SHAPES = [pdfium.raw.FPDF_PAGEOBJ_PATH, pdfium.raw.FPDF_PAGEOBJ_IMAGE]

Colour = tuple[int, int, int]
Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""


class PageSight:
    """What of a page's text can be seen."""

    def __init__(self, page: Any, textpage: Any) -> None:
        self._page = page
        self._textpage = textpage
        left, bottom, right, top = page.get_cropbox()
        self._crop: Box = (left, right, bottom, top)
        self._looks: dict[int, str] = {}
        self._cleared: list[tuple[str, Box]] = []
        self._shapes: list[tuple[Colour | None, Box]] | None = None
        self._matrix = pdfium.raw.FS_MATRIX()
        self._channels = tuple(ctypes.c_uint() for _ in range(4))

    def runs(self, number: int, turn: Turn, hidden: HiddenTexts) -> list[TextRun]:
        """The pieces of the page that can be seen; the others are listed, each stretch of them as one.

        Letters that only seemed hidden are read once more with those around them, so that no line is broken for them.
        """
        pieces = page_runs(self._textpage, number, turn, self._why)
        if any(piece.why for piece in pieces) and self._clear(pieces, turn):
            pieces = page_runs(self._textpage, number, turn, self._why)
        return _seen(pieces, hidden)

    def _why(self, index: int, box: Box) -> str:
        """Why a letter may not be seen; empty where it is, or for a letter that only the reading added."""
        handle = pdfium.raw.FPDFText_GetTextObject(self._textpage, index)
        if not handle:
            return ""
        key = ctypes.cast(handle, ctypes.c_void_p).value or 0
        place = (box[0] + box[1]) / 2, (box[2] + box[3]) / 2
        why = self._looks.get(key)
        if why is None:
            why = self._looks[key] = self._look(handle, index, place)
        if (not why or why == SAME) and not _within(place, self._crop):
            return OUTSIDE
        if why and self._cleared:
            return "" if any(why == other and _within(place, seen) for other, seen in self._cleared) else why
        return why

    def _look(self, handle: Any, index: int, place: tuple[float, float]) -> str:
        """Why the letters of a text object, which begins at this place, may not be seen."""
        mode = pdfium.raw.FPDFTextObj_GetTextRenderMode(handle)
        if mode == pdfium.raw.FPDF_TEXTRENDERMODE_INVISIBLE:
            return INVISIBLE
        size = pdfium.raw.FPDFText_GetFontSize(self._textpage, index)
        if pdfium.raw.FPDFText_GetMatrix(self._textpage, index, self._matrix):
            size *= math.hypot(self._matrix.c, self._matrix.d)
        if 0 <= size < MIN_SIZE:
            return TINY
        red, green, blue, seen = self._channels
        if mode not in _FILLED or not pdfium.raw.FPDFText_GetFillColor(self._textpage, index, red, green, blue, seen):
            return ""
        if seen.value <= 5:
            return CLEAR
        colour = red.value, green.value, blue.value
        for behind, box in reversed(self._filled_shapes()):
            if _within(place, box):
                return SAME if _near(colour, behind) or (behind is None and min(colour) >= _PALE) else ""
        return SAME if min(colour) >= _PALE else ""

    def _filled_shapes(self) -> list[tuple[Colour | None, Box]]:
        """Filled shapes and pictures that are large enough to lie behind a line, the topmost last."""
        if self._shapes is None:
            self._shapes = []
            for count, each in enumerate(self._page.get_objects(filter=_SHAPES)):
                if count >= MAX_SHAPES:
                    break
                colour = _fill(each) if each.type == pdfium.raw.FPDF_PAGEOBJ_PATH else None
                if colour is None and each.type == pdfium.raw.FPDF_PAGEOBJ_PATH:
                    continue
                left, bottom, right, top = each.get_bounds()
                if (right - left) * (top - bottom) >= _MIN_BOX and min(right - left, top - bottom) >= 4:
                    self._shapes.append((colour, (left, right, bottom, top)))
        return self._shapes

    def _clear(self, pieces: Sequence[TextRun], turn: Turn) -> bool:
        """Note the places where letters can be seen after all, by a look at the whole page; whether there are any."""
        letters = sum(len(piece.text) for piece in pieces)
        unseen = sum(len(piece.text) for piece in pieces if piece.why == INVISIBLE)
        if unseen and 2 * unseen >= letters and self._picture_share() >= COVERED:
            self._cleared.append((INVISIBLE, (-math.inf, math.inf, -math.inf, math.inf)))
        doubtful = [piece for piece in pieces if piece.why == SAME]
        drawn = _DrawnPage(self._page) if doubtful else None
        back: Turn = (0, 3, 2, 1)[turn]
        for piece in doubtful:
            box = turned(piece.x0, piece.x1, piece.y, piece.y + 0.6 * piece.size, back)
            if drawn is not None and drawn.shows_ink(box):
                whole = turned(piece.x0, piece.x1, piece.y - piece.size, piece.y + piece.size, back)
                self._cleared.append((SAME, whole))
        return bool(self._cleared)

    def _picture_share(self) -> float:
        """The share of the page that pictures cover."""
        boxes = []
        for image in self._page.get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_IMAGE]):
            left, bottom, right, top = image.get_bounds()
            boxes.append((left, right, bottom, top))
        left, right, bottom, top = self._crop
        steps = [(step + 0.5) / _STEPS for step in range(_STEPS)]
        points = [(left + (right - left) * x, bottom + (top - bottom) * y) for x in steps for y in steps]
        return sum(any(_within(point, box) for box in boxes) for point in points) / len(points)


def _seen(pieces: Sequence[TextRun], hidden: HiddenTexts) -> list[TextRun]:
    """The pieces without reasons; the others are listed, each stretch of them as one, and kept if hidden text is."""
    kept: list[TextRun] = []
    for why, stretch in groupby(pieces, key=lambda piece: piece.why):
        found = list(stretch)
        words = " ".join(each.text for each in found)
        if not why or not hidden.leaves_out(f"page {found[0].page}", why, words):
            kept += found
    return kept


class _DrawnPage:
    """The page as pixels."""

    def __init__(self, page: Any) -> None:
        width, height = page.get_size()
        scale = min(_SCALE, math.sqrt(_MAX_DRAWN / max(1.0, width * height)))
        bitmap = page.render(scale=scale, may_draw_forms=False)
        self._pixels: NDArray[np.uint8] = bitmap.to_numpy().reshape(bitmap.height, bitmap.width, -1)
        self._places = bitmap.get_posconv(page)

    def shows_ink(self, box: Box) -> bool:
        """Whether anything stands out at this place."""
        left, right, bottom, top = box
        corners = [self._places.to_bitmap(x, y) for x, y in ((left, bottom), (right, top))]
        x0, x1 = sorted(corner[0] for corner in corners)
        y0, y1 = sorted(corner[1] for corner in corners)
        found = self._pixels[max(0, y0) : max(0, y1) + 1, max(0, x0) : max(0, x1) + 1].astype(np.int16)
        if not found.size:
            return False
        usual = np.median(found.reshape(-1, found.shape[2]), axis=0)
        return float((np.abs(found - usual).max(axis=2) > _NEAR).mean()) >= _MIN_INK


def _fill(path: Any) -> Colour | None:
    """The colour that a shape is filled with, if it is."""
    mode, stroked = ctypes.c_int(), ctypes.c_int()
    red, green, blue, seen = (ctypes.c_uint() for _ in range(4))
    if not pdfium.raw.FPDFPath_GetDrawMode(path.raw, mode, stroked) or not mode.value:
        return None
    if not pdfium.raw.FPDFPageObj_GetFillColor(path.raw, red, green, blue, seen) or seen.value < 250:
        return None
    return red.value, green.value, blue.value


def _near(one: Colour, two: Colour | None) -> bool:
    return two is not None and max(abs(a - b) for a, b in zip(one, two, strict=True)) <= _NEAR


def _within(point: tuple[float, float], box: Box) -> bool:
    return box[0] <= point[0] <= box[1] and box[2] <= point[1] <= box[3]
