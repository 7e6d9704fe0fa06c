"""Text of a PDF that a reader of the page can't see.

Invisible letters are usual on scanned pages, where recognised text lies over the picture: a page that a picture covers
keeps its text. White letters are usual on dark boxes: letters in a pale colour, or in that of a box behind them, count
as hidden only where the page, once drawn, shows nothing at their place.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.pdf_lines import TextRun, Turn, turned

INVISIBLE, CLEAR, TINY, OUTSIDE = "invisible letters", "transparent letters", "letters below 1 point", "off the page"
SAME = "letters in the colour of the background"
MIN_SIZE = 1.0
MAX_PATHS = 5_000
COVERED = 0.6
_PALE = 235
_NEAR = 12
_MIN_INK = 0.03
_MIN_BOX = 200.0
_SCALE = 2.0
_MAX_DRAWN = 6_000_000.0
_STEPS = 20

Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""


class _Look(NamedTuple):
    """How the letters of a text object are drawn, and the boxes of about their colour."""

    why: str
    pale: bool
    boxes: Sequence[Box]


class PageSight:
    """What of a page's text can be seen; `why` is asked for each letter, `keep_seen` at the end for all pieces."""

    def __init__(self, page: Any, textpage: Any) -> None:
        self._page = page
        self._textpage = textpage
        left, bottom, right, top = page.get_cropbox()
        self._crop: Box = (left, right, bottom, top)
        self._looks: dict[int, _Look] = {}
        self._paths: list[tuple[tuple[int, int, int], Box]] | None = None

    def why(self, index: int, box: Box) -> str:
        """Why a letter may not be seen; empty where it is, or for a letter that only the reading added."""
        handle = pdfium.raw.FPDFText_GetTextObject(self._textpage, index)
        if not handle:
            return ""
        key = ctypes.cast(handle, ctypes.c_void_p).value or 0
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = self._look(handle, index)
        x, y = (box[0] + box[1]) / 2, (box[2] + box[3]) / 2
        if look.why:
            return look.why
        if not _within((x, y), self._crop):
            return OUTSIDE
        return SAME if look.pale or any(_within((x, y), each) for each in look.boxes) else ""

    def _look(self, handle: Any, index: int) -> _Look:
        mode = pdfium.raw.FPDFTextObj_GetTextRenderMode(handle)
        if mode == pdfium.raw.FPDF_TEXTRENDERMODE_INVISIBLE:
            return _Look(INVISIBLE, False, ())
        matrix = pdfium.raw.FS_MATRIX()
        size = pdfium.raw.FPDFText_GetFontSize(self._textpage, index)
        if pdfium.raw.FPDFText_GetMatrix(self._textpage, index, matrix):
            size *= math.hypot(matrix.c, matrix.d)
        if 0 <= size < MIN_SIZE:
            return _Look(TINY, False, ())
        red, green, blue, seen = (ctypes.c_uint() for _ in range(4))
        filled = mode in {pdfium.raw.FPDF_TEXTRENDERMODE_FILL, pdfium.raw.FPDF_TEXTRENDERMODE_FILL_STROKE}
        if not filled or not pdfium.raw.FPDFText_GetFillColor(self._textpage, index, red, green, blue, seen):
            return _Look("", False, ())
        if seen.value <= 5:
            return _Look(CLEAR, False, ())
        colour = red.value, green.value, blue.value
        if min(colour) >= _PALE:
            return _Look("", True, ())
        return _Look("", False, [box for other, box in self._filled_paths() if _near(colour, other)])

    def _filled_paths(self) -> list[tuple[tuple[int, int, int], Box]]:
        """The colours and places of filled shapes that are large enough to lie behind a line."""
        if self._paths is None:
            self._paths = []
            for count, path in enumerate(self._page.get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_PATH])):
                if count >= MAX_PATHS:
                    break
                colour = _fill(path)
                if colour is None:
                    continue
                left, bottom, right, top = path.get_bounds()
                if (right - left) * (top - bottom) >= _MIN_BOX and min(right - left, top - bottom) >= 4:
                    self._paths.append((colour, (left, right, bottom, top)))
        return self._paths

    def keep_seen(self, pieces: Sequence[TextRun], turn: Turn, hidden: HiddenTexts) -> list[TextRun]:
        """The pieces that can be seen; the others are listed, each stretch of them as one."""
        if not any(piece.why for piece in pieces):
            return list(pieces)
        checked = self._checked(pieces, turn)
        kept: list[TextRun] = []
        stretch: list[TextRun] = []
        for piece in [*checked, None]:
            if stretch and (piece is None or piece.why != stretch[0].why):
                words = " ".join(each.text for each in stretch)
                if not hidden.leaves_out(f"page {stretch[0].page}", stretch[0].why, words):
                    kept += stretch
                stretch = []
            if piece is not None and piece.why:
                stretch.append(piece)
            elif piece is not None:
                kept.append(piece)
        return kept

    def _checked(self, pieces: Sequence[TextRun], turn: Turn) -> list[TextRun]:
        """The pieces with their reasons, without those that a look at the whole page takes back."""
        letters = sum(len(piece.text) for piece in pieces)
        unseen = sum(len(piece.text) for piece in pieces if piece.why == INVISIBLE)
        scanned = bool(unseen) and 2 * unseen >= letters and self._picture_share() >= COVERED
        drawn = _DrawnPage(self._page) if any(piece.why == SAME for piece in pieces) else None
        found = []
        back: Turn = (0, 3, 2, 1)[turn]
        for piece in pieces:
            is_seen = piece.why == INVISIBLE and scanned
            if piece.why == SAME and drawn is not None:
                box = turned(piece.x0, piece.x1, piece.y, piece.y + 0.6 * piece.size, back)
                is_seen = drawn.shows_ink(box)
            found.append(piece._replace(why="") if is_seen else piece)
        return found

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


def _fill(path: Any) -> tuple[int, int, int] | None:
    """The colour that a shape is filled with, if it is."""
    mode, stroked = ctypes.c_int(), ctypes.c_int()
    red, green, blue, seen = (ctypes.c_uint() for _ in range(4))
    if not pdfium.raw.FPDFPath_GetDrawMode(path.raw, mode, stroked) or not mode.value:
        return None
    if not pdfium.raw.FPDFPageObj_GetFillColor(path.raw, red, green, blue, seen) or seen.value < 250:
        return None
    return red.value, green.value, blue.value


def _near(one: tuple[int, int, int], two: tuple[int, int, int]) -> bool:
    return max(abs(a - b) for a, b in zip(one, two, strict=True)) <= _NEAR


def _within(point: tuple[float, float], box: Box) -> bool:
    return box[0] <= point[0] <= box[1] and box[2] <= point[1] <= box[3]
