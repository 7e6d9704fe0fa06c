"""Sources against each other: matrices that stay legible for five names and for a hundred, and strips.

In a strip every question is a row and every source a column; a cell says how the source relates to the others. A label
has its colour and the height of its bar, so that a strip of a hundred sources can be read in grey.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.heatmaps import Shade, abbreviations
from hoofbeat.reports.charts.svg import NARROW, SMALL, WIDE, SvgDrawing, num, text_width, ticks, wrap
from hoofbeat.reports.words import written

TRIANGLE = 40
"""Above so many sources each pair is drawn once, below the diagonal."""

_SHADES = 7
_FIGURE = 34.0
"""A cell at least this wide has its figure written in."""

_LEAST = 12.0
"""No cell of a matrix is smaller: a large one is wider than the page and is scrolled."""

_NAMES = 0.3
_KEY = 34.0

Pair = tuple[int, int]


class _Scale:
    """Shares to shades from nought to a round figure at or above the highest; `tone` names the row of colours."""

    def __init__(self, values: Sequence[float], tone: str, limit: float | None) -> None:
        self.tone = tone
        self.high = limit or (ticks(0.0, max(values, default=0.0), 4)[-1] if any(values) else 1.0)

    def shade(self, value: float) -> int:
        """The shade of a share, from 0 to 6."""
        return min(_SHADES - 1, max(0, math.floor(value / self.high * _SHADES)))

    def key(self, drawing: SvgDrawing, words: str, width: float) -> None:
        """The shades with what they mean, above the drawing."""
        drawing.text(0, 12, "0%", "m")
        for shade in range(_SHADES):
            drawing.rect(24 + shade * 16, 2, 16, 12, f"{self.tone}{shade}")
        end = 24 + _SHADES * 16 + 6
        most = _percent(self.high)
        drawing.text(end, 12, most, "m")
        x = end + text_width(most, SMALL) + 14
        drawing.text(x, 12, wrap(words, width - x, SMALL, 1)[0], "m", tip=words)


def pair_matrix(
    names: Sequence[str],
    cells: Mapping[Pair, Shade],
    *,
    title: str,
    key: str = "",
    tone: str = "d",
    links: Mapping[Pair, str] | None = None,
    width: int = WIDE,
) -> str:
    """The same names down and across with a share for each two; `cells` holds each pair once, the lesser place first.

    Columns carry the numbers that stand before the names. Many names make a drawing wider than `width`, of the half
    below the diagonal; a pair without a share is dashed.
    """
    count = max(1, len(names))
    left = min(_NAMES * width, max((text_width(name, SMALL) for name in names), default=0.0)) + 36
    size = max(_LEAST, min(58.0, (width - left - 1) / count))
    whole = max(float(width), left + count * size + 1)
    scale = _Scale([cell.value for cell in cells.values() if cell.value is not None], tone, None)
    drawing = SvgDrawing(whole)
    scale.key(drawing, key, whole)
    height = min(size, 34.0)
    half, small = count > TRIANGLE, size < 16
    words = "s" if small else "m"
    base = (height - 2) / 2 + (3.5 if small else 4.5)
    for place, name in enumerate(names):
        if not small or not place or (place + 1) % 5 == 0:
            drawing.text(left + (place + 0.5) * size - 1, _KEY + 13, str(place + 1), words, anchor="middle", tip=name)
    told: list[str] = []
    for row, name in enumerate(names):
        y = _KEY + 20 + row * height
        drawing.text(20, y + base, str(row + 1), words, anchor="end")
        drawing.text(26, y + base, wrap(name, left - 32, SMALL, 1)[0], words, tip=name)
        for column in range(row if half else len(names)):
            x, pair = left + column * size, (min(row, column), max(row, column))
            if row == column:
                drawing.rect(x, y, size - 2, height - 2, "self")
                continue
            cell = cells.get(pair, Shade(value=None))
            tip = f"{name} and {names[column]}: {cell.tip or _percent(cell.value)}"
            if column < row:
                told.append(tip)
            href = (links or {}).get(pair)
            if href:
                drawing.open_link(href, tip, reached=not small and column < row)
            _shade(drawing, cell, scale, (x, y, size - (1 if small else 2), height - (1 if small else 2)), tip)
            if href:
                drawing.close_link()
    end = _KEY + 20 + len(names) * height + 2
    said = "; ".join(told[:400]) + (f"; and {len(told) - 400} more pairs" if len(told) > 400 else "")
    return drawing.svg(end, title=title, description=said or "nothing to show", group=bool(links))


def shade_rows(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Shade]],
    *,
    title: str,
    key: str = "",
    tone: str = "q",
    limit: float | None = 1.0,
    width: int = WIDE,
) -> str:
    """Many rows by few columns, close together: figures are written in where there is room for them."""
    left = (
        min((0.4 if width <= NARROW else _NAMES) * width, max((text_width(r, SMALL) for r in rows), default=0.0)) + 12
    )
    size = min(120.0, (width - left - 1) / max(1, len(columns)))
    scale = _Scale([c.value for line in cells for c in line if c.value is not None], tone, limit)
    drawing = SvgDrawing(width)
    scale.key(drawing, key, width)
    heads = [wrap(name, size - 6, SMALL, 3) for name in columns]
    depth = max((len(lines) for lines in heads), default=1)
    for column, lines in enumerate(heads):
        for number, line in enumerate(lines):
            base = _KEY + 11 + (depth - len(lines) + number) * 14
            drawing.text(left + (column + 0.5) * size - 1, base, line, "m", anchor="middle", tip=columns[column])
    top, height = _KEY + depth * 14 + 6, 26.0 if len(rows) <= 24 else 18.0
    told: list[str] = []
    for number, (name, values) in enumerate(zip(rows, cells, strict=True)):
        y = top + number * height
        drawing.text(left - 10, y + height / 2 + 3.5, wrap(name, left - 11, SMALL, 1)[0], "m", anchor="end", tip=name)
        for column, cell in enumerate(values):
            tip = f"{name}, {columns[column]}: {cell.tip or _percent(cell.value)}"
            told.append(tip)
            _shade(drawing, cell, scale, (left + column * size, y, size - 2, height - 2), tip)
    return drawing.svg(
        top + len(rows) * height + 2, title=title, description="; ".join(told[:400]) or "nothing to show"
    )


def _shade(drawing: SvgDrawing, cell: Shade, scale: _Scale, box: tuple[float, float, float, float], tip: str) -> None:
    x, y, size, height = box
    written_in = size + 2 >= _FIGURE
    if cell.value is None:
        if size < 16:
            drawing.rect(x, y, size, height, "blank", tip=tip)
            return
        drawing.rect(x + 0.5, y + 0.5, size - 1, height - 1, "blank", tip=tip)
        drawing.text(x + size / 2, y + height / 2 + 4.5, "–", "m", anchor="middle")
        return
    shade = scale.shade(cell.value)
    drawing.rect(x, y, size, height, f"{scale.tone}{shade}", tip=tip)
    if cell.few and size >= 16:
        drawing.rect(x + 2, y + 2, size - 4, height - 4, "none")
    if written_in:
        ink = f"{scale.tone}i" if shade >= _SHADES - 2 else "t"
        drawing.text(x + size / 2, y + height / 2 + 4.5, _percent(cell.value), f"{ink} c", anchor="middle")


def _percent(value: float | None) -> str:
    return written(None) if value is None else f"{num(round(100 * value))}%"


_ROW = 17.0
_LETTERS = 34.0
_TIPS = 2400
"""Up to so many cells each says what it is when pointed at; in larger drawings each row does."""


class Strip(Struct, frozen=True, kw_only=True):
    """One row: its name, where it leads, and the label of each column; an empty one was not asked, `?` has no label."""

    name: str
    cells: tuple[str, ...]
    link: str = ""
    tip: str = ""


def label_strips(
    rows: Sequence[Strip], columns: Sequence[str], labels: Sequence[str], *, title: str, width: int = WIDE
) -> str:
    """Rows of labels; `labels` gives the order of heights and colours, from the first, which is silence."""
    narrow = width <= NARROW
    most = 0.38 if narrow else 0.3 if len(columns) > 30 else 0.42
    left = min(most * width, max((text_width(row.name, SMALL) for row in rows), default=0.0)) + 10
    size = (width - left) / max(1, len(columns))
    drawing = SvgDrawing(width)
    y = _legend(drawing, labels, width) + 4
    told, single = [], len(rows) * len(columns) <= _TIPS
    if size >= 15:
        for place, name in enumerate(columns):
            drawing.text(left + (place + 0.5) * size, y + 10, str(place + 1), "s", anchor="middle", tip=name)
        y += 16
    for row in rows:
        if row.link:
            drawing.open_link(row.link, row.tip or row.name)
        drawing.text(
            left - 8, y + 12, wrap(row.name, left - 9, SMALL, 1)[0], "m", anchor="end", tip=row.tip or row.name
        )
        if row.link:
            drawing.close_link()
        drawing.line(left, y + _ROW - 2, width, y + _ROW - 2, "g")
        tips = {
            place: f"{row.name}, {name}: {_said(label)}"
            for place, (name, label) in enumerate(zip(columns, row.cells, strict=True))
        }
        told.append(f"{row.name}: {_tally(row.cells, labels)}")
        _cells(drawing, row.cells, labels, (left, y, size), tips if single else {})
        y += _ROW
    return drawing.svg(y + 4, title=title, description="; ".join(told) or "nothing to show", group=True)


def _cells(
    drawing: SvgDrawing,
    cells: Sequence[str],
    labels: Sequence[str],
    box: tuple[float, float, float],
    tips: Mapping[int, str],
) -> None:
    left, top, size = box
    gap = 2.0 if size > 12 else 1.0 if size > 5 else 0.0
    short = abbreviations(labels)
    for place, label in enumerate(cells):
        x = left + place * size
        if label in labels:
            rank, tone = labels.index(label), tone_of(labels.index(label), len(labels))
            height, wide = _height(rank, len(labels)), max(0.8, size - gap)
            if not rank:
                dash = min(wide, 10.0)
                drawing.rect(x + (wide - dash) / 2, top + 8, dash, 2, "hush", tip=tips.get(place, ""))
                continue
            drawing.rect(x, top + _ROW - 2 - height, wide, height, f"l{tone}", tip=tips.get(place, ""))
            if size >= _LETTERS and rank >= len(labels) - 2:
                drawing.text(x + (size - gap) / 2, top + _ROW - 5, short[label], f"i{tone} s", anchor="middle")
        elif label:
            drawing.rect(x + 0.5, top + 6.5, max(0.8, size - gap - 1), _ROW - 10, "none", tip=tips.get(place, ""))


def _height(rank: int, count: int) -> float:
    """How high the bar of a label is: silence is a dash, the last label the whole row."""
    return 2 if rank == 0 else 3 + (_ROW - 6) * rank / max(1, count - 1)


def _legend(drawing: SvgDrawing, labels: Sequence[str], width: float) -> float:
    """The labels with their colours and heights; returns how much room they took."""
    x, y = 0.0, 0.0
    for rank, label in enumerate(labels):
        needed = 20 + text_width(label, SMALL) + 16
        if x and x + needed - 16 > width:
            x, y = 0.0, y + 20
        height = _height(rank, len(labels))
        if rank:
            drawing.rect(x, y + 15 - height, 12, height, f"l{tone_of(rank, len(labels))}")
        else:
            drawing.rect(x + 1, y + 9, 10, 2, "hush")
        drawing.text(x + 18, y + 13.5, label, "m")
        x += needed
    return y + 24 if labels else 0.0


def _said(label: str) -> str:
    return {"": "not asked", "?": "no label"}.get(label, label)


def _tally(cells: Sequence[str], labels: Sequence[str]) -> str:
    counts = ((label, sum(cell == label for cell in cells)) for label in [*labels, "?"])
    return ", ".join(f"{_said(label)} {count}" for label, count in counts if count) or "not asked"
