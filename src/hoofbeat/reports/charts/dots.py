"""Dots with their intervals in panels side by side, and differences sorted from best to worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.reports.charts.bars import Bar
from hoofbeat.reports.charts.svg import NARROW, SMALL, WIDE, Drawing, text_width, ticks, wrap
from hoofbeat.reports.words import Form, count_of, written

__all__ = ["difference_bars", "interval_dots"]

_LINE = 16.0
_PANEL = 165.0
_TIPS = 400
"""Differences up to so many are bars that say what they are; more are drawn as one shape."""


class _Panel:
    """One panel of dots: where it stands, and its axis."""

    def __init__(self, left: float, right: float, marks: Sequence[float]) -> None:
        self.left, self.right, self.marks = left, right, marks

    def at(self, value: float) -> float:
        """Where a value stands; what lies beyond the axis stands at its end."""
        first, last = self.marks[0], self.marks[-1]
        return self.left + (min(max(value, first), last) - first) / (last - first) * (self.right - self.left)


def interval_dots(
    rows: Sequence[str],
    panels: Mapping[str, Sequence[Bar]],
    *,
    title: str,
    form: Form = "number",
    shared: bool = False,
    width: int = WIDE,
) -> str:
    """A dot with its interval for each row, in a panel for each name; `shared` gives all panels one axis."""
    drawing = Drawing(width)
    most = (0.42 if width <= NARROW else 0.3) * width
    left = min(most, max((text_width(row, SMALL) for row in rows), default=0.0)) + 12
    count = max(1, min(len(panels), int((width - left) // _PANEL)))
    size = (width - left) / count
    labels = [wrap(row, left - 11, SMALL, 2) for row in rows]
    flat = [bar for bars in panels.values() for bar in bars]
    told: list[str] = []
    names, y = list(panels), 0.0
    for first in range(0, len(names), count):
        shown = names[first : first + count]
        heads = [wrap(name, size - 14, SMALL, 2) for name in shown]
        top = y + max(len(lines) for lines in heads) * _LINE + 6
        tops, bottom = [], top
        for lines in labels:
            tops.append(bottom)
            bottom += max(1, len(lines)) * _LINE + 8
        for row, lines, start in zip(rows, labels, tops, strict=True):
            for number, line in enumerate(lines):
                drawing.text(left - 12, start + 15 + number * _LINE, line, "m", anchor="end", tip=row)
        middles = [start + 3 + len(lines) * _LINE / 2 for start, lines in zip(tops, labels, strict=True)]
        for place, (name, lines) in enumerate(zip(shown, heads, strict=True)):
            edge = left + place * size
            for number, line in enumerate(lines):
                drawing.text(edge, y + 12 + number * _LINE, line, "m b", tip=name)
            bars = panels[name]
            panel = _Panel(edge + 2, edge + size - 56, _marks(flat if shared else bars))
            _axis(drawing, panel, top, bottom, form)
            for row, bar, middle in zip(rows, bars, middles, strict=True):
                told.append(f"{name}, {row}: {' '.join(bar.words(form))}".strip())
                _dot(drawing, panel, bar, middle, told[-1])
                drawing.text(edge + size - 14, middle + 4, written(bar.value, form), "m", anchor="end")
        y = bottom + 32
    return drawing.svg(max(y, 20), title=title, description="; ".join(told) or "nothing to show")


def _marks(bars: Sequence[Bar]) -> list[float]:
    known = [number for bar in bars for number in (bar.value, bar.low, bar.high) if number is not None]
    return ticks(min(known, default=0.0), max(known, default=1.0), 3)


def _axis(drawing: Drawing, panel: _Panel, top: float, bottom: float, form: Form) -> None:
    """Lines at the marks, and the numbers of all of them, or of every second or third where they would touch."""
    words = [f"{100 * mark:g}%" if form == "share" else f"{mark:g}".replace("-", "−") for mark in panel.marks]
    gap = panel.at(panel.marks[1]) - panel.left
    step = next((n for n in (1, 2, 3) if max(text_width(word, SMALL) for word in words) + 4 <= n * gap), len(words))
    for place, (mark, word) in enumerate(zip(panel.marks, words, strict=True)):
        x = panel.at(mark)
        drawing.line(x, top, x, bottom, "ax" if mark == 0 else "g")
        if place % step == 0:
            drawing.text(x, bottom + 15, word, "m", anchor="middle")


def _dot(drawing: Drawing, panel: _Panel, bar: Bar, middle: float, tip: str) -> None:
    if bar.value is None:
        return
    if bar.low is not None and bar.high is not None:
        drawing.line(panel.at(bar.low), middle, panel.at(bar.high), middle, "w")
    drawing.dot(panel.at(bar.value), middle, 4.5, "s1", tip=tip)


def difference_bars(
    differences: Sequence[tuple[str, float]], *, title: str, y: str, form: Form = "number", width: int = WIDE
) -> str:
    """What each item gains, a bar each, from the largest gain to the largest loss."""
    ordered = sorted(differences, key=lambda pair: (-pair[1], pair[0]))
    gains = [value for _, value in ordered]
    marks = ticks(min([0.0, *gains]), max([0.0, *gains]), 4)
    labels = [f"{mark:g}".replace("-", "−") for mark in marks]
    drawing = Drawing(width)
    left, right = max(text_width(label, SMALL) for label in labels) + 10, width - 2.0
    heads = wrap(y, width - 4, SMALL, 2)
    top = 8.0 + len(heads) * _LINE
    bottom = top + min(200.0, 0.5 * width)

    def at(value: float) -> float:
        return bottom - (value - marks[0]) / (marks[-1] - marks[0]) * (bottom - top)

    for number, line in enumerate(heads):
        drawing.text(0, 11 + number * _LINE, line, "m", tip=y)
    for mark, label in zip(marks, labels, strict=True):
        drawing.line(left, at(mark), right, at(mark), "ax" if mark == 0 else "g")
        drawing.text(left - 8, at(mark) + 4, label, "m", anchor="end")
    step = (right - left) / max(1, len(ordered))
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    if len(ordered) <= _TIPS:
        for place, (name, gain) in enumerate(ordered):
            height = max(abs(at(gain) - at(0)), 0.8) if gain else 0.0
            if height:
                upper = at(0) - height if gain > 0 else at(0)
                tone, tip = ("s1" if gain > 0 else "s2"), f"{name}: {written(gain, form)}"
                drawing.rect(left + place * step, upper, max(0.6, step - (1 if step > 4 else 0)), height, tone, tip=tip)
    else:
        for tone, chosen in (("s1", range(better)), ("s2", range(len(gains) - worse, len(gains)))):
            edge = [(left + (place + side) * step, at(gains[place])) for place in chosen for side in (0, 1)]
            if edge:
                drawing.path([(edge[0][0], at(0)), *edge, (edge[-1][0], at(0))], tone, closed=True)
    said = f"better on {better:,}, the same on {len(gains) - better - worse:,}, worse on {worse:,}"
    for number, line in enumerate(wrap(f"{count_of(len(gains), 'question')}: {said}", width - left, SMALL, 2)):
        drawing.text(left, bottom + 20 + number * _LINE, line, "m")
    return drawing.svg(bottom + 44, title=title, description=f"{y}: {said}")
