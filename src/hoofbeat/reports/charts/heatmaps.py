"""Heatmaps: figures as shades, with what is behind each beside it; matrices of numbers and of pairs of sources, strips.

Matrices of pairs stay legible for five names and for a hundred. In a strip every question is a row and every source a
column; a cell says how the source relates to the others. A label has its colour and the height of its bar, so that a
strip of a hundred sources can be read in grey.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.svg import NARROW, SMALL, WIDE, SvgDrawing, num, text_width, ticks, wrap
from hoofbeat.reports.tables import Form, written

_SHADES = 7


def abbreviations(labels: Sequence[str]) -> dict[str, str]:
    """The shortest beginnings, of three letters or more, that tell the labels apart."""
    short = {}
    for label in labels:
        others = [other for other in labels if other != label]
        lengths = range(3, max(4, len(label)))
        short[label] = next((label[:n] for n in lengths if not any(o.startswith(label[:n]) for o in others)), label)
    return short


def number_matrix(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    title: str,
    across: str = "",
    down: str = "",
    form: Form = "count",
    width: int = 560,
) -> str:
    """Numbers as shades with the figures written in; `down` and `across` say what rows and columns are."""
    left = min(0.34 * width, max([text_width(name, SMALL) for name in [*rows, down]], default=0.0)) + 12
    drawing = SvgDrawing(width)
    cell = (width - left) / max(1, len(columns))
    heads = [wrap(name, cell - 4, SMALL, 2) for name in columns]
    if any(text_width(word, SMALL) > cell - 4 for name in columns for word in name.split()):
        short = abbreviations(columns)
        heads = [wrap(short[name], cell - 4, SMALL, 1) for name in columns]
    y = 18.0 if across else 0.0
    if across:
        drawing.text(left, 12, across, "m b")
    depth = max((len(lines) for lines in heads), default=1)
    for column, lines in enumerate(heads):
        for number, line in enumerate(lines):
            base = y + 13 + (depth - len(lines) + number) * 15
            drawing.text(left + (column + 0.5) * cell, base, line, "m", anchor="middle", tip=columns[column])
    if down:
        drawing.text(left - 10, y + 13 + (depth - 1) * 15, down, "m b", anchor="end")
    y += depth * 15 + 8
    known = [value for line in values for value in line if value is not None]
    most = max(known, default=0.0)
    told = []
    for row, name in enumerate(rows):
        drawing.text(left - 10, y + 20, wrap(name, left - 11, SMALL, 1)[0], "m", anchor="end", tip=name)
        for column, value in enumerate(values[row]):
            shade = 0 if value is None or most <= 0 else min(_SHADES - 1, round((_SHADES - 1) * max(0.0, value) / most))
            words = written(value, form)
            told.append(f"{name}, {columns[column]}: {words}")
            drawing.rect(left + column * cell, y, cell - 2, 30, f"q{shade}", tip=told[-1])
            ink = "qi" if shade >= _SHADES - 2 else "t"
            drawing.text(left + (column + 0.5) * cell - 1, y + 20, words, ink, anchor="middle")
        y += 32
    return drawing.svg(y, title=title, description="; ".join(told) or "nothing to show")


_HEIGHT = 30.0
_NOTED = 42.0
_MIN_CELL = 38.0
"""A column is never narrower than this; what does not fit stands in another panel below."""

_TILT = -38.0
_TILTED = 56.0
_LONGEST = 185.0


class Shade(Struct, frozen=True, kw_only=True):
    """One cell: its figure, what is written below it, what it says when pointed at, and whether few items are behind.

    Without a figure the cell is dashed; one of few items has a dashed outline and a quiet figure.
    """

    value: float | None
    note: str = ""
    tip: str = ""
    few: bool = False


class _Scale:
    """Figures to shades over round limits."""

    def __init__(self, values: Sequence[float], limits: tuple[float, float] | None) -> None:
        low, high = limits or (min(values, default=0.0), max(values, default=1.0))
        if low == high:  # equal figures have no range: the scale begins at 0, and never ends above a share of 100%
            low, high = min(0.0, low), max(0.0, high) or 1.0
        marks = ticks(low, high, 4)
        self.low, self.high = limits or (marks[0], marks[-1])

    def shade(self, value: float) -> int:
        """The shade of a figure, from 0 to 6."""
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0
        return min(_SHADES - 1, max(0, math.floor(share * _SHADES)))


def heatmap(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Shade]],
    *,
    title: str,
    form: Form = "share",
    limits: tuple[float, float] | None = None,
    key: str = "",
    width: int = WIDE,
) -> str:
    """Rows by columns with the figures written in; the scale stands above, with `key` saying what it measures.

    Many columns are drawn as several panels below each other, so that every figure can be read.
    """
    drawing = SvgDrawing(width)
    known = [cell.value for line in cells for cell in line if cell.value is not None]
    scale = _Scale(known, limits)
    most = (0.34 if width <= NARROW else 0.28) * width
    left = min(most, max((text_width(name, SMALL) for name in rows), default=0.0)) + 12
    noted = any(cell.note for line in cells for cell in line)
    needed = max([_MIN_CELL, *(text_width(_figure(value, form), SMALL) + 4 for value in known)])
    needed = max([needed, *(text_width(cell.note, 11) + 6 for line in cells for cell in line if cell.note)])
    count, size = _columns(len(columns), width - left - 1, needed)
    if not _flat(columns, size):  # tilted names lean out to the right
        count, size = _columns(len(columns), width - left - 1 - _TILTED, needed)
    told: list[str] = []
    y = _key(drawing, scale, form, key, any(cell.few for line in cells for cell in line), width)
    for first in range(0, len(columns), count):
        shown = range(first, min(first + count, len(columns)))
        y = _heads(drawing, [columns[place] for place in shown], left, size, y, width)
        for name, line in zip(rows, cells, strict=True):
            lines = wrap(name, left - 11, SMALL, 3 if width <= NARROW else 2)
            height = max(_NOTED if noted else _HEIGHT, 14.0 * len(lines) + 2)
            for number, words in enumerate(lines):
                base = y + height / 2 + 3 - (len(lines) - 1) * 7 + number * 14
                drawing.text(left - 10, base, words, "m", anchor="end", tip=name)
            for place in shown:
                said = _cell(drawing, line[place], scale, form, (left + (place - first) * size, y, size, height))
                told.append(f"{name}, {columns[place]}: {line[place].tip or said}")
            y += height + 2
        y += 16
    return drawing.svg(max(y - 12, 20), title=title, description="; ".join(told) or "nothing to show")


def _columns(columns: int, room: float, needed: float) -> tuple[int, float]:
    """How many columns stand beside each other, and how wide each is."""
    panels = math.ceil(max(1, columns) / max(1, int(room // needed)))
    count = math.ceil(max(1, columns) / panels)
    return count, min(room / count, 110.0)


def _flat(names: Sequence[str], size: float) -> bool:
    """Whether every name fits over its column in two lines of whole words."""
    whole = all(text_width(word, SMALL) <= size - 5 for name in names for word in name.split())
    return whole and not any(wrap(name, size - 5, SMALL, 2)[-1].endswith("…") for name in names)


def _heads(drawing: SvgDrawing, names: Sequence[str], left: float, size: float, y: float, width: float) -> float:
    """The columns' names over their columns, tilted where they would touch; returns where the cells begin."""
    if _flat(names, size):
        lines = [wrap(name, size - 5, SMALL, 2) for name in names]
        depth = max((len(parts) for parts in lines), default=1)
        for place, parts in enumerate(lines):
            for number, line in enumerate(parts):
                base = y + 12 + (depth - len(parts) + number) * 15
                drawing.text(left + (place + 0.5) * size, base, line, "m", anchor="middle", tip=names[place])
        return y + depth * 15 + 6
    slope, flat = math.sin(math.radians(-_TILT)), math.cos(math.radians(_TILT))
    shown = []
    for place, name in enumerate(names):
        room = (width - left - (place + 0.5) * size) / flat
        shown.append(wrap(name, min(_LONGEST, room + 4), SMALL, 1)[0])
    rise = max((text_width(name, SMALL) for name in shown), default=0.0) * slope
    base = y + rise + 8
    for place, (name, words) in enumerate(zip(names, shown, strict=True)):
        drawing.text(left + (place + 0.5) * size, base, words, "m", tip=name, turn=_TILT)
    return base + 8


def _cell(drawing: SvgDrawing, cell: Shade, scale: _Scale, form: Form, box: tuple[float, float, float, float]) -> str:
    x, y, size, height = box
    words = _figure(cell.value, form)
    tip = cell.tip or words
    middle = y + height / 2 + (4.5 if not cell.note else -1)
    if cell.value is None:
        drawing.rect(x + 0.5, y + 0.5, size - 3, height - 1, "none", tip=cell.tip)
        drawing.text(x + size / 2 - 1, middle, words, "m", anchor="middle")
        return words
    shade = scale.shade(cell.value)
    ink = "qi" if shade >= _SHADES - 2 else "t"
    drawing.rect(x, y, size - 2, height, f"q{shade}", tip=tip)
    if cell.few:
        drawing.rect(x + 2, y + 2, size - 6, height - 4, "none on" if ink == "qi" else "none")
    drawing.text(x + size / 2 - 1, middle, words, ink, anchor="middle")
    if cell.note:
        drawing.text(x + size / 2 - 1, y + height / 2 + 14, cell.note, f"{ink} c", anchor="middle")
    return f"{words} {cell.note}".strip()


def _figure(value: float | None, form: Form) -> str:
    """A figure as it stands in a cell: shares as whole percents, for the rest is in the tooltip and the table."""
    return f"{100 * value:.0f}%" if form == "share" and value is not None else written(value, form)


def _key(drawing: SvgDrawing, scale: _Scale, form: Form, key: str, few: bool, width: float) -> float:
    """The shades from the lowest to the highest figure, and what they and a dashed outline mean; returns the end."""
    low, high = _figure(scale.low, form), _figure(scale.high, form)
    x = text_width(low, SMALL) + 4
    drawing.text(0, 12, low, "m")
    for shade in range(_SHADES):
        drawing.rect(x + shade * 18, 2, 18, 12, f"q{shade}")
    x += _SHADES * 18 + 6
    drawing.text(x, 12, high, "m")
    x += text_width(high, SMALL) + 16
    y = 12.0
    for words, dashed in ((key, False), ("few questions", True)):
        if not words or (dashed and not few):
            continue
        if x + text_width(words, SMALL) + 24 > width:
            x, y = 0.0, y + 20
        if dashed:
            drawing.rect(x + 0.5, y - 9.5, 16, 11, "none")
        drawing.text(x + (22 if dashed else 0), y, wrap(words, width - x, SMALL, 1)[0], "m", tip=words)
        x += text_width(words, SMALL) + 34
    return y + 18


TRIANGLE = 40
"""Above this number of sources each pair is drawn once, below the diagonal."""

_FIGURE = 34.0
"""A cell at least this wide has its figure written in."""

_MIN_PAIR_CELL = 12.0
"""No cell of a matrix is smaller: a large one is wider than the page and is scrolled."""

_NAMES = 0.3
_KEY = 34.0
Pair = tuple[int, int]


class _ShareScale:
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
    size = max(_MIN_PAIR_CELL, min(58.0, (width - left - 1) / count))
    whole = max(float(width), left + count * size + 1)
    scale = _ShareScale([cell.value for cell in cells.values() if cell.value is not None], tone, None)
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
    scale = _ShareScale([c.value for line in cells for c in line if c.value is not None], tone, limit)
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


def _shade(
    drawing: SvgDrawing, cell: Shade, scale: _ShareScale, box: tuple[float, float, float, float], tip: str
) -> None:
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
"""Up to this number of cells, each says what it is when pointed at; in larger drawings each row does."""


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
