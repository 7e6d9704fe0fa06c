"""Named points over two axes with their intervals and the line that fits them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import legend
from hoofbeat.reports.charts.plots import Frame
from hoofbeat.reports.charts.svg import SERIES, SMALL, WIDE, Drawing, text_width, wrap
from hoofbeat.reports.words import Form, written

__all__ = ["FitPoint", "fitted_scatter"]

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
    drawing = Drawing(width)
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
    frame = Frame(drawing, xs, ys, top=top, height=height, names=(x, y), forms=forms, log=log, rounded=True)
    crossed = [box for point in points for box in _whiskers(drawing, frame, point)]
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


def _line(drawing: Drawing, frame: Frame, line: tuple[float, float], xs: Sequence[float]) -> list[Box]:
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


def _whiskers(drawing: Drawing, frame: Frame, point: FitPoint) -> list[Box]:
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


def _label(drawing: Drawing, frame: Frame, point: FitPoint, taken: list[Box], crossed: Sequence[Box]) -> None:
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
