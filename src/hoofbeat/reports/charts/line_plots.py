"""Plots over two axes: curves with bands for their intervals, points, and the line that fits named points."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import legend
from hoofbeat.reports.charts.svg import NARROW, SERIES, SMALL, WIDE, SvgDrawing, num, text_width, ticks, wrap
from hoofbeat.reports.tables import Form, written

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


class PlotFrame:
    """Axes with their grid, and the way from values to places: what every plot over two axes is drawn on."""

    def __init__(
        self,
        drawing: SvgDrawing,
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
    diagonal: bool = False,
    marks: Sequence[float] = (),
    width: int = WIDE,
) -> str:
    """Lines over a common axis (logarithmic if asked), each with a band for its intervals.

    With `whiskers` the intervals are lines, and the series are a little apart so that they don't cover each other.
    `diagonal` adds the dashed line on which both axes have the same value, from 0 to 1. `marks` are the marks of the
    axis across, the first and the last its ends.
    """
    drawing = SvgDrawing(width)
    top = legend(drawing, [curve.name for curve in series], [f"s{_tone(n)}" for n in range(len(series))], width)
    ends = (0.0, 1.0) if diagonal else ()
    xs = [*ends, *(point[0] for curve in series for point in curve.points)]
    ys = [0.0, *ends, *(value for curve in series for pair in (*curve.points, *curve.band) for value in pair[-1:])]
    ys += [low for curve in series for low, _ in curve.band]
    height = min(300.0, 0.62 * width)
    frame = PlotFrame(drawing, xs, ys, top=top, height=height, names=(x, y), forms=forms, log=log, marks=marks)
    aside = [(number - (len(series) - 1) / 2) * _ASIDE if whiskers else 0.0 for number in range(len(series))]
    told = []
    if diagonal:
        drawing.line(frame.x(0), frame.y(0), frame.x(1), frame.y(1), "lead")
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


def _whiskers(drawing: SvgDrawing, frame: PlotFrame, curve: Curve, tone: str, aside: float) -> None:
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
    drawing = SvgDrawing(width)
    shown = list(series) if len(series) > 1 else []
    top = legend(drawing, [dots.name for dots in shown], [f"s{_tone(n)}" for n in range(len(shown))], width)
    xs = [point[0] for dots in series for point in dots.points]
    ys = [point[1] for dots in series for point in dots.points]
    frame = PlotFrame(drawing, xs, ys, top=top, height=min(340.0, 0.75 * width), names=(x, y), forms=forms)
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


_LABELLED = 40
_RADIUS = 5.0
_PLACES = (
    *((anchor, side * 8.0, dy) for dy in (-6.0, 14.0, -20.0, 28.0) for anchor, side in (("start", 1), ("end", -1))),
    ("middle", 0.0, -14.0),
    ("middle", 0.0, 24.0),
)
"""Where a name may stand beside its point, best first."""

Box = tuple[float, float, float, float]


class FitPoint(Struct, frozen=True, kw_only=True):
    """A named point, with the interval of each of its figures if there is one, and the series it belongs to."""

    label: str
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None
    series: str = ""

    @property
    def name(self) -> str:
        """Series and label together."""
        return f"{self.series} · {self.label}" if self.series else self.label


def fitted_scatter(
    points: Sequence[FitPoint],
    line: tuple[float, float] | None,
    *,
    title: str,
    x: str,
    y: str,
    forms: tuple[Form, Form] = ("number", "share"),
    note: str = "",
    log: bool = False,
    width: int = WIDE,
) -> str:
    """Points with whiskers and names, and the line (slope, intercept) over the points' span; `note` stands above.

    `log` makes the axis across logarithmic.
    """
    drawing = SvgDrawing(width)
    notes = wrap(note, width - 4, SMALL, 3) if note else []
    for number, text in enumerate(notes):
        drawing.text(0, 12 + number * 16, text, "m")
    xs = [value for point in points for value in (point.x, *(point.x_interval or ()))]
    ys = [value for point in points for value in (point.y, *(point.y_interval or ()))]
    top = len(notes) * 16.0 + (8 if notes else 0)
    series = [name for name in dict.fromkeys(point.series for point in points) if name]
    if series:
        top += legend(drawing, series, [f"s{place % SERIES + 1}" for place in range(len(series))], width, top)
    tones = {name: f"s{place % SERIES + 1}" for place, name in enumerate(series)}
    height = min(380.0, 0.9 * width)
    frame = PlotFrame(drawing, xs, ys, top=top, height=height, names=(x, y), forms=forms, log=log, rounded=True)
    crossed = [box for point in points for box in _point_whiskers(drawing, frame, point)]
    if line is not None and points:
        crossed += _line(drawing, frame, line, [point.x for point in points])
    told, taken = [], []
    for point in points:
        told.append(f"{point.name}: {x} {written(point.x, forms[0])}, {y} {written(point.y, forms[1])}")
        place = frame.x(point.x), frame.y(point.y)
        drawing.dot(*place, _RADIUS, tones.get(point.series, "s1"), tip=told[-1])
        taken.append((place[0] - 6, place[1] - 6, place[0] + 6, place[1] + 6))
    for point in points[:_LABELLED]:
        _label(drawing, frame, point, taken, crossed)
    return drawing.svg(frame.bottom + 44, title=title, description="; ".join(told) or "nothing to show")


def _line(drawing: SvgDrawing, frame: PlotFrame, line: tuple[float, float], xs: Sequence[float]) -> list[Box]:
    """The fitted line between the outermost points, cut where it leaves the frame, and the room it takes."""
    slope, intercept = line
    low, high = frame.y_marks[0], frame.y_marks[-1]
    ends = []
    for x in (min(xs), max(xs)):
        y = slope * x + intercept
        inside = min(max(y, low), high)
        ends.append(((inside - intercept) / slope if inside != y and slope else x, inside))
    (x1, y1), (x2, y2) = ((frame.x(x), frame.y(y)) for x, y in ends)
    drawing.path([(x1, y1), (x2, y2)], "k2")
    along = [(x1 + (x2 - x1) * part / 60, y1 + (y2 - y1) * part / 60) for part in range(61)]
    return [(x - 2, y - 2, x + 2, y + 2) for x, y in along]


def _point_whiskers(drawing: SvgDrawing, frame: PlotFrame, point: FitPoint) -> list[Box]:
    """The intervals of a point as lines, and the room they take."""
    x, y = frame.x(point.x), frame.y(point.y)
    taken: list[Box] = []
    if point.x_interval:
        first, last = map(frame.x, point.x_interval)
        drawing.line(first, y, last, y, "ax")
        taken.append((first, y - 1, last, y + 1))
    if point.y_interval:
        low, high = map(frame.y, point.y_interval)
        drawing.line(x, low, x, high, "ax")
        taken.append((x - 1, high, x + 1, low))
    return taken


def _label(drawing: SvgDrawing, frame: PlotFrame, point: FitPoint, taken: list[Box], crossed: Sequence[Box]) -> None:
    """The point's name where it covers no dot, no name and, if there is such a place, no interval.

    A point in a crowd keeps only its tooltip.
    """
    words = wrap(point.label, 190, SMALL, 1)[0]
    size, x, y = text_width(words, SMALL), frame.x(point.x), frame.y(point.y)
    for avoided in (crossed, ()):
        for anchor, dx, dy in _PLACES:
            left = x + dx - {"start": 0.0, "middle": size / 2, "end": size}[anchor]
            box = (left, y + dy - 10, left + size, y + dy + 3)
            inside = box[0] >= 0 and box[2] <= drawing.width and box[1] >= frame.top - 8 and box[3] <= frame.bottom
            if inside and not any(_meet(box, other) for other in (*taken, *avoided)):
                drawing.text(x + dx, y + dy, words, "m", anchor=anchor, tip=point.name)
                taken.append(box)
                return


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
