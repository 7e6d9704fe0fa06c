"""Plots over two axes: curves with bands for their intervals, and points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import legend
from hoofbeat.reports.charts.svg import NARROW, SERIES, SMALL, WIDE, Drawing, num, text_width, ticks
from hoofbeat.reports.words import Form, written

__all__ = ["Curve", "Dots", "Frame", "curves", "scatter"]

_ASIDE = 5.0
_MARKS = 12
"""So many different values or fewer are marked themselves on a logarithmic axis."""


class Curve(Struct, frozen=True, kw_only=True):
    """Points from left to right: (x, y), and for each the interval of y where there is one."""

    name: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float], ...] = ()


class Dots(Struct, frozen=True, kw_only=True):
    """Named points: (x, y, what it is)."""

    name: str
    points: tuple[tuple[float, float, str], ...]


class Frame:
    """Axes with their grid, and the way from values to places: what every plot over two axes is drawn on."""

    def __init__(
        self,
        drawing: Drawing,
        xs: Sequence[float],
        ys: Sequence[float],
        *,
        top: float,
        height: float,
        names: tuple[str, str],
        forms: tuple[Form, Form],
        log: bool = False,
        rounded: bool = False,
        marks: Sequence[float] = (),
    ) -> None:
        self.log = log and min(xs, default=0) > 0
        about = 4 if drawing.width <= NARROW else 7
        self.x_marks = list(marks) or ticks(min(xs, default=0), max(xs, default=1), about)
        if self.log:
            few = not rounded and 1 < len(set(xs)) <= _MARKS
            self.x_marks = sorted(set(xs)) if few else _log_marks(min(xs), max(xs), about)
        self.y_marks = ticks(min(ys, default=0), max(ys, default=1), 5)
        labels = [_mark(mark, forms[1]) for mark in self.y_marks]
        self.left = max(text_width(label, SMALL) for label in labels) + 10
        last = text_width(_mark(self.x_marks[-1], forms[0]), SMALL) / 2
        self.right, self.top, self.bottom = drawing.width - max(14, last + 1), top + 22, top + height
        drawing.text(0, top + 10, names[1], "m")
        for mark, label in zip(self.y_marks, labels, strict=True):
            drawing.line(self.left, self.y(mark), self.right, self.y(mark), "g")
            drawing.text(self.left - 8, self.y(mark) + 4, label, "m", anchor="end")
        for mark in self.x_marks:
            drawing.line(self.x(mark), self.bottom, self.x(mark), self.bottom + 4, "ax")
            drawing.text(self.x(mark), self.bottom + 18, _mark(mark, forms[0]), "m", anchor="middle")
        drawing.line(self.left, self.bottom, self.right, self.bottom, "ax")
        drawing.text(self.right, self.bottom + 36, names[0], "m", anchor="end")

    def x(self, value: float) -> float:
        """The place of a value from left to right."""
        first, last = self.x_marks[0], self.x_marks[-1]
        if self.log:
            first, last, value = math.log(first), math.log(last), math.log(value)
        return self.left + (value - first) / (last - first) * (self.right - self.left)

    def y(self, value: float) -> float:
        """The place of a value from bottom to top."""
        first, last = self.y_marks[0], self.y_marks[-1]
        return self.bottom - (value - first) / (last - first) * (self.bottom - self.top)


def curves(
    series: Sequence[Curve],
    *,
    title: str,
    x: str,
    y: str,
    forms: tuple[Form, Form] = ("text", "share"),
    log: bool = False,
    whiskers: bool = False,
    marks: Sequence[float] = (),
    width: int = WIDE,
) -> str:
    """Lines over a common axis (logarithmic if asked), each with a band for its intervals.

    With `whiskers` the intervals are lines, and the series stand a little apart so that they don't cover each other.
    `marks` are the marks of the axis across, the first and the last its ends.
    """
    drawing = Drawing(width)
    top = legend(drawing, [curve.name for curve in series], [f"s{_tone(n)}" for n in range(len(series))], width)
    xs = [point[0] for curve in series for point in curve.points]
    ys = [0.0, *(value for curve in series for pair in (*curve.points, *curve.band) for value in pair[-1:])]
    ys += [low for curve in series for low, _ in curve.band]
    height = min(300.0, 0.62 * width)
    frame = Frame(drawing, xs, ys, top=top, height=height, names=(x, y), forms=forms, log=log, marks=marks)
    aside = [(number - (len(series) - 1) / 2) * _ASIDE if whiskers else 0.0 for number in range(len(series))]
    told = []
    for number, curve in enumerate(series):
        if curve.band and whiskers:
            _whiskers(drawing, frame, curve, f"s{_tone(number)}", aside[number])
        elif curve.band:
            upper = [
                (frame.x(point[0]), frame.y(high)) for point, (_, high) in zip(curve.points, curve.band, strict=True)
            ]
            lower = [
                (frame.x(point[0]), frame.y(low)) for point, (low, _) in zip(curve.points, curve.band, strict=True)
            ]
            drawing.path([*upper, *reversed(lower)], f"s{_tone(number)} band", closed=True)
    for number, curve in enumerate(series):
        drawing.path([(frame.x(a) + aside[number], frame.y(b)) for a, b in curve.points], f"k{_tone(number)}")
        for a, b in curve.points:
            told.append(f"{curve.name} at {_mark(a, forms[0])}: {written(b, forms[1])}")
            drawing.dot(frame.x(a) + aside[number], frame.y(b), 3.5, f"s{_tone(number)}", tip=told[-1])
    return drawing.svg(frame.bottom + 44, title=title, description="; ".join(told) or "nothing to show")


def _whiskers(drawing: Drawing, frame: Frame, curve: Curve, tone: str, aside: float) -> None:
    """The interval of each point as a line with ends."""
    for (a, _), (low, high) in zip(curve.points, curve.band, strict=True):
        x, bottom, top = frame.x(a) + aside, frame.y(low), frame.y(high)
        drawing.rect(x - 0.6, top, 1.2, bottom - top, tone)
        for end in (bottom, top):
            drawing.rect(x - 4, end - 0.6, 8, 1.2, tone)


def scatter(
    series: Sequence[Dots],
    *,
    title: str,
    x: str,
    y: str,
    forms: tuple[Form, Form] = ("number", "number"),
    width: int = WIDE,
) -> str:
    """Points over two axes; each says what it is when pointed at."""
    drawing = Drawing(width)
    shown = list(series) if len(series) > 1 else []
    top = legend(drawing, [dots.name for dots in shown], [f"s{_tone(n)}" for n in range(len(shown))], width)
    xs = [point[0] for dots in series for point in dots.points]
    ys = [point[1] for dots in series for point in dots.points]
    frame = Frame(drawing, xs, ys, top=top, height=min(340.0, 0.75 * width), names=(x, y), forms=forms)
    for number, dots in enumerate(series):
        for a, b, what in dots.points:
            tip = f"{what}: {written(a, forms[0])}, {written(b, forms[1])}"
            drawing.dot(frame.x(a), frame.y(b), 4, f"s{_tone(number)}", tip=tip)
    total = sum(len(dots.points) for dots in series)
    return drawing.svg(frame.bottom + 44, title=title, description=f"{total} points; {x} across, {y} up")


def _tone(place: int) -> int:
    return place % SERIES + 1


def _log_marks(low: float, high: float, about: int) -> list[float]:
    """Round numbers of a logarithmic axis that spans low to high: 1, 2 and 5 of each power of ten, or only powers."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        marks = [step * 10.0**power for power in powers for step in steps]
        first = max((mark for mark in marks if mark <= low * 1.0001), default=marks[0])
        last = min((mark for mark in marks if mark >= high * 0.9999), default=marks[-1])
        found = [mark for mark in marks if first <= mark <= last]
        if len(found) <= about + 1:
            break
    return found if len(found) > 1 else [first, first * 10]


def _mark(mark: float, form: Form) -> str:
    if form == "share":
        return f"{num(100 * mark)}%"
    return f"{mark:,.0f}" if mark == int(mark) else f"{mark:g}"
