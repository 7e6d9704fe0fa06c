"""Heatmaps: figures as shades, with what is behind each beside it; matrices of numbers, such as two judges' labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.reports.charts.svg import NARROW, SMALL, WIDE, SvgDrawing, text_width, ticks, wrap
from hoofbeat.reports.words import Form, written

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
_LEAST = 38.0
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
    needed = max([_LEAST, *(text_width(_figure(value, form), SMALL) + 4 for value in known)])
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
        drawing.rect(x + 2, y + 2, size - 6, height - 4, "none")
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
