"""Bars and dots: figures with their intervals, groups, shares of a whole, panels of dots, differences, and counts.

Counts are a dense list of bars, columns along the years, or a funnel that narrows step by step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.reports.charts.svg import (
    NARROW,
    SERIES,
    SMALL,
    TEXT,
    TONES,
    WIDE,
    SvgDrawing,
    num,
    text_width,
    ticks,
    wrap,
)
from hoofbeat.reports.tables import MIN_OBSERVATIONS, Form, count_of, written

if TYPE_CHECKING:
    from hoofbeat.findings.intervals import Interval

_LINE = 17.0
_GAP = 14.0


class Bar(Struct, frozen=True, kw_only=True):
    """A figure (None where it has no value) with its interval, if it has one."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None

    def words(self, form: Form) -> tuple[str, str]:
        """The value and its interval as they stand beside the bar."""
        if self.value is None:
            return "no value", ""
        spread = f"({written((self.low, self.high), form)})" if self.low is not None and self.high is not None else ""
        return written(self.value, form), spread


def interval_bar(label: str, value: float | None, interval: Interval | None) -> Bar:
    """A figure with its interval as a bar."""
    told = interval is not None and interval.known and not 0 < interval.few < MIN_OBSERVATIONS
    low, high = (interval.low, interval.high) if interval and told else (None, None)
    return Bar(label=label, value=value, low=low, high=high)


class _Scale(Struct, frozen=True):
    """Values to places from left to right."""

    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        """Where this value stands; what lies beyond the axis stands at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)


def interval_bars(
    bars: Sequence[Bar],
    *,
    title: str,
    form: Form = "share",
    limits: tuple[float, float] | None = None,
    width: int = WIDE,
) -> str:
    """Horizontal bars with whiskers for intervals and the figures written beside them."""
    stacked = width <= NARROW + 100
    drawing = SvgDrawing(width)
    words = [bar.words(form) for bar in bars]
    value_width = max(
        (1.1 * text_width(value) + text_width(spread, SMALL) + 10 for value, spread in words), default=60.0
    )
    label_width = 0.0 if stacked else min(0.36 * width, max((text_width(bar.label) for bar in bars), default=0.0))
    right = width - 2 if stacked else width - value_width - 12
    low, high, marks = _axis(bars, limits, 4 if stacked else 6, form)
    scale = _Scale(low, high, label_width + (2 if stacked else 16), right)
    y = 4.0
    rows = []
    for bar, (value, spread) in zip(bars, words, strict=True):
        room = width - value_width - 10 if stacked else label_width
        lines = wrap(bar.label, room + 1)
        rows.append((bar, value, spread, lines, y))
        y += len(lines) * _LINE + (26 if stacked else _GAP)
    _grid(drawing, scale, marks, y, form)
    for bar, value, spread, lines, top in rows:
        for number, line in enumerate(lines):
            place = scale.left + 5 if stacked else label_width
            drawing.text(
                place,
                top + 13 + number * _LINE,
                line,
                anchor="" if stacked else "end",
                tip=bar.label if line.endswith("…") else "",
            )
        middle = top + len(lines) * _LINE + 7 if stacked else top + len(lines) * _LINE / 2
        _bar(drawing, scale, bar, middle, 13, "bar", f"{bar.label}: {value} {spread}".strip())
        base = top + 13 if stacked else middle + 4.5
        spread_width = text_width(spread, SMALL) if spread else 0
        drawing.text(width - 2 - spread_width - (6 if spread else 0), base, value, "t b", anchor="end")
        if spread:
            drawing.text(width - 2, base, spread, "m", anchor="end")
    told = "; ".join(f"{bar.label}: {value} {spread}".strip() for bar, (value, spread) in zip(bars, words, strict=True))
    return drawing.svg(y + 24, title=title, description=told or "nothing to show")


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[Bar]],
    *,
    title: str,
    form: Form = "share",
    limits: tuple[float, float] | None = None,
    width: int = WIDE,
) -> str:
    """Bars of several series side by side in each group; each series has one bar a group."""
    stacked = width <= NARROW + 100
    drawing = SvgDrawing(width)
    flat = [bar for bars in series.values() for bar in bars]
    value_width = max((sum(text_width(part, SMALL) + 6 for part in bar.words(form)) for bar in flat), default=60.0)
    label_width = 0.0 if stacked else min(0.3 * width, max((text_width(group) for group in groups), default=0.0))
    low, high, marks = _axis(flat, limits, 4 if stacked else 6, form)
    scale = _Scale(low, high, label_width + (2 if stacked else 16), width - value_width - 10)
    top = (
        legend(drawing, list(series), [f"s{_series(number)}" for number in range(len(series))], width)
        if len(series) > 1
        else 0
    )
    y, rows = top + 4.0, []
    for group in groups:
        lines = wrap(group, (width if stacked else label_width) + 1)
        rows.append((lines, y))
        y += max(len(series) * 18.0, 0 if stacked else len(lines) * _LINE) + (len(lines) * _LINE if stacked else 0) + 16
    _grid(drawing, scale, marks, y, form, top=top)
    told = []
    for number, (lines, start) in enumerate(rows):
        for count, line in enumerate(lines):
            drawing.text(
                2 if stacked else label_width, start + 13 + count * _LINE, line, anchor="" if stacked else "end"
            )
        middle = start + 9 + (len(lines) * _LINE if stacked else 0)
        for place, (name, bars) in enumerate(series.items()):
            value, spread = bars[number].words(form)
            told.append(f"{groups[number]}, {name}: {value} {spread}".strip())
            _bar(drawing, scale, bars[number], middle, 11, f"s{_series(place)}", told[-1])
            drawing.text(width - 2, middle + 4, f"{value} {spread}".strip(), "m", anchor="end")
            middle += 18
    return drawing.svg(y + 24, title=title, description="; ".join(told) or "nothing to show")


def stacked_bars(
    rows: Sequence[tuple[str, Mapping[str, int]]],
    labels: Sequence[str],
    *,
    title: str,
    tones: Mapping[str, int] | None = None,
    width: int = WIDE,
) -> str:
    """How a whole divides into labels, a horizontal bar a row; `tones` gives a label's colour by number."""
    stacked = width <= NARROW + 100
    drawing = SvgDrawing(width)
    tone = {label: (tones or {}).get(label, tone_of(number, len(labels))) for number, label in enumerate(labels)}
    names = [(name, f"n = {sum(counts.values()):,}") for name, counts in rows]
    label_width = 0.0 if stacked else min(0.34 * width, max((text_width(name) for name, _ in names), default=0.0))
    left = label_width + (0 if stacked else 14)
    right = width - (0 if stacked else max((text_width(n, SMALL) for _, n in names), default=0.0) + 12)
    y = legend(drawing, labels, [f"l{tone[label]}" for label in labels], width) + 4
    told = []
    for (name, n), (_, counts) in zip(names, rows, strict=True):
        total = sum(counts.values())
        lines = wrap(name, (width - 80 if stacked else label_width) + 1)
        base = y + 14 if stacked else y + 18.5 - (len(lines) - 1) * _LINE / 2
        for number, line in enumerate(lines):
            drawing.text(0 if stacked else label_width, base + number * _LINE, line, anchor="" if stacked else "end")
        drawing.text(width, y + 14 if stacked else y + 18.5, n, "m", anchor="end")
        top = y + len(lines) * _LINE + 4 if stacked else y
        _segments(drawing, [(label, counts.get(label, 0), tone[label]) for label in labels], total, (left, right, top))
        shares = ", ".join(f"{label} {counts.get(label, 0)}" for label in labels)
        told.append(f"{name}: {shares} of {total}")
        y = top + 28 + (14 if stacked else max(14.0, len(lines) * _LINE - 14))
    return drawing.svg(y, title=title, description="; ".join(told) or "nothing to show")


def legend(drawing: SvgDrawing, names: Sequence[str], tones: Sequence[str], width: float, top: float = 0.0) -> float:
    """Names with their colours in as many lines as they need; returns how much room they took."""
    x, y = 0.0, top
    for name, tone in zip(names, tones, strict=True):
        shown = wrap(name, width - 30, SMALL, 1)[0]
        needed = 18 + text_width(shown, SMALL) + 18
        if x and x + needed - 18 > width:
            x, y = 0.0, y + 20
        drawing.rect(x, y + 2, 12, 12, tone, round_=2)
        drawing.text(x + 18, y + 12.5, shown, "m")
        x += needed
    return y - top + 26 if names else 0.0


_SIX = (0, 1, 2, 5, 3, 4)


def tone_of(place: int, count: int) -> int:
    """The colour of the label at this place of all labels: the first is neutral, the last the strongest.

    Of six labels each has its own: the sixth colour is between the third and the fourth.
    """
    if count == len(_SIX):
        return _SIX[place]
    if count <= TONES:
        return place if place == 0 or count == TONES else min(TONES - 1, place + (place == count - 1) * (TONES - count))
    return 0 if place == 0 else 1 + round((place - 1) * (TONES - 2) / (count - 2))


def _series(place: int) -> int:
    return place % SERIES + 1


def _axis(
    bars: Sequence[Bar], limits: tuple[float, float] | None, about: int, form: Form
) -> tuple[float, float, list[float]]:
    if limits is None:
        known = [number for bar in bars for number in (bar.value, bar.low, bar.high) if number is not None]
        limits = min([0.0, *known]), max([0.0, *known])
    marks = ticks(limits[0], limits[1], about, whole=form == "count")
    return marks[0], marks[-1], marks


def _grid(
    drawing: SvgDrawing, scale: _Scale, marks: Sequence[float], bottom: float, form: Form, top: float = 0.0
) -> None:
    for place, mark in enumerate(marks):
        x = scale.at(mark)
        drawing.line(x, top, x, bottom, "ax" if mark == 0 else "g")
        anchor = (
            "start"
            if place == 0 and x < 16
            else "end"
            if place == len(marks) - 1 and x > drawing.width - 16
            else "middle"
        )
        drawing.text(x, bottom + 16, _tick(mark, form), "m", anchor=anchor)


def _tick(mark: float, form: Form) -> str:
    match form:
        case "share":
            return f"{num(100 * mark)}%"
        case "points":
            return num(100 * mark).replace("-", "−")
        case "count":
            return f"{mark:,.0f}" if mark == int(mark) else f"{mark:,.1f}"
        case _:
            return f"{mark:g}".replace("-", "−")


def _bar(drawing: SvgDrawing, scale: _Scale, bar: Bar, middle: float, height: float, tone: str, tip: str) -> None:
    if bar.value is None:
        return
    zero, end = scale.at(0.0), scale.at(bar.value)
    drawing.rect(min(zero, end), middle - height / 2, abs(end - zero), height, tone, tip=tip, round_=1.5)
    if bar.low is not None and bar.high is not None:
        first, last = scale.at(bar.low), scale.at(bar.high)
        drawing.line(first, middle, last, middle, "w")
        for x in (first, last):
            drawing.line(x, middle - 4, x, middle + 4, "w")


def _segments(
    drawing: SvgDrawing, parts: Sequence[tuple[str, int, int]], total: int, place: tuple[float, float, float]
) -> None:
    left, right, top = place
    if not total:
        drawing.rect(left + 0.5, top + 0.5, right - left - 1, 27, "none")
        drawing.text((left + right) / 2, top + 18, "nothing counted", "m", anchor="middle")
        return
    x = left
    for label, count, tone in parts:
        if not count:
            continue
        size = (right - left) * count / total
        share = written(count / total, "share")
        drawing.rect(x, top, max(1.0, size - 1), 28, f"l{tone}", tip=f"{label}: {count:,} of {total:,} ({share})")
        whole = f"{round(100 * count / total)}%"
        if text_width(whole, TEXT) + 6 < size:
            drawing.text(x + size / 2, top + 18.5, whole, f"i{tone}", anchor="middle")
        x += size


_DOT_LINE = 16.0
_PANEL = 165.0
_TIPS = 400
"""Up to this number, differences are bars that say what they are; more are drawn as one shape."""


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
    drawing = SvgDrawing(width)
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
        top = y + max(len(lines) for lines in heads) * _DOT_LINE + 6
        tops, bottom = [], top
        for lines in labels:
            tops.append(bottom)
            bottom += max(1, len(lines)) * _DOT_LINE + 8
        for row, lines, start in zip(rows, labels, tops, strict=True):
            for number, line in enumerate(lines):
                drawing.text(left - 12, start + 15 + number * _DOT_LINE, line, "m", anchor="end", tip=row)
        middles = [start + 3 + len(lines) * _DOT_LINE / 2 for start, lines in zip(tops, labels, strict=True)]
        for place, (name, lines) in enumerate(zip(shown, heads, strict=True)):
            edge = left + place * size
            for number, line in enumerate(lines):
                drawing.text(edge, y + 12 + number * _DOT_LINE, line, "m b", tip=name)
            bars = panels[name]
            marks = _marks(flat if shared else bars)
            panel = _Scale(marks[0], marks[-1], edge + 2, edge + size - 56)
            _dot_axis(drawing, panel, marks, (top, bottom), form)
            for row, bar, middle in zip(rows, bars, middles, strict=True):
                told.append(f"{name}, {row}: {' '.join(bar.words(form))}".strip())
                _dot(drawing, panel, bar, middle, told[-1])
                drawing.text(edge + size - 14, middle + 4, written(bar.value, form), "m", anchor="end")
        y = bottom + 32
    return drawing.svg(max(y, 20), title=title, description="; ".join(told) or "nothing to show")


def _marks(bars: Sequence[Bar]) -> list[float]:
    known = [number for bar in bars for number in (bar.value, bar.low, bar.high) if number is not None]
    return ticks(min(known, default=0.0), max(known, default=1.0), 3)


def _dot_axis(
    drawing: SvgDrawing, panel: _Scale, marks: Sequence[float], ends: tuple[float, float], form: Form
) -> None:
    """Lines at the marks, and the numbers of all of them, or of every second or third where they would touch."""
    words = [f"{100 * mark:g}%" if form == "share" else f"{mark:g}".replace("-", "−") for mark in marks]
    gap = panel.at(marks[1]) - panel.left
    step = next((n for n in (1, 2, 3) if max(text_width(word, SMALL) for word in words) + 4 <= n * gap), len(words))
    for place, (mark, word) in enumerate(zip(marks, words, strict=True)):
        x = panel.at(mark)
        drawing.line(x, ends[0], x, ends[1], "ax" if mark == 0 else "g")
        if place % step == 0:
            drawing.text(x, ends[1] + 15, word, "m", anchor="middle")


def _dot(drawing: SvgDrawing, panel: _Scale, bar: Bar, middle: float, tip: str) -> None:
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
    drawing = SvgDrawing(width)
    left, right = max(text_width(label, SMALL) for label in labels) + 10, width - 2.0
    heads = wrap(y, width - 4, SMALL, 2)
    top = 8.0 + len(heads) * _DOT_LINE
    bottom = top + min(200.0, 0.5 * width)

    def at(value: float) -> float:
        return bottom - (value - marks[0]) / (marks[-1] - marks[0]) * (bottom - top)

    for number, line in enumerate(heads):
        drawing.text(0, 11 + number * _DOT_LINE, line, "m", tip=y)
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
        drawing.text(left, bottom + 20 + number * _DOT_LINE, line, "m")
    return drawing.svg(bottom + 44, title=title, description=f"{y}: {said}")


_COUNT_LINE = 16.0
_LEAST = 1.5
"""A bar for a value above zero is never narrower than this."""

_YEARS = 80
"""So many years or fewer stand on an axis of time; a wider span shows only the years that occur."""

KEPT, REJECTED = "s1", "s2"


class CountBar(Struct, frozen=True):
    """One bar of a list; what is unknown is `quiet`, and the sum of many others (`rest`) has no bar."""

    label: str
    count: int
    quiet: bool = False
    rest: bool = False


class FunnelBar(Struct, frozen=True):
    """One step of a funnel: how many came in and how many stayed."""

    label: str
    came: int
    kept: int

    @property
    def rejected(self) -> int:
        """How many went."""
        return max(0, self.came - self.kept)


class _Row(Struct, frozen=True):
    """Where one row stands: the lines of its label, their first base line, the bar's middle, and where it ends."""

    lines: list[str]
    base: float
    middle: float
    end: float


class _Rows:
    """Labels left of their bars, or above them where they would leave the bars no room."""

    def __init__(self, labels: Sequence[str], width: int, values: float, *, bar: float, gap: float) -> None:
        longest = max((text_width(label) for label in labels), default=0.0)
        self.above = width <= NARROW + 100 and longest > 0.32 * width
        self.room = width - values - 12 if self.above else min(0.4 * width, longest)
        self.left = 0.0 if self.above else self.room + 12
        self.right = float(width) if self.above else width - values - 14
        self._bar, self._gap = bar, gap

    def row(self, label: str, top: float) -> _Row:
        """The row whose upper edge is there."""
        lines = wrap(label, self.room + 1)
        depth = len(lines) * _COUNT_LINE
        if self.above:
            bar = 0.6 * self._bar
            return _Row(lines, top + 12, top + depth + 3 + bar / 2, top + depth + bar + 6 + self._gap)
        depth = max(depth, self._bar)
        first = top + depth / 2 + 4.5 - (len(lines) - 1) * _COUNT_LINE / 2
        return _Row(lines, first, top + depth / 2, top + depth + self._gap)

    def bar(self, row: _Row) -> tuple[float, float]:
        """A bar's upper edge and its height."""
        height = 0.6 * self._bar if self.above else self._bar
        return row.middle - height / 2, height

    def label(self, drawing: SvgDrawing, row: _Row, label: str) -> None:
        """Write a row's label."""
        for number, line in enumerate(row.lines):
            place, anchor = (0.0, "") if self.above else (self.room, "end")
            tip = label if line.endswith("…") else ""
            drawing.text(place, row.base + number * _COUNT_LINE, line, anchor=anchor, tip=tip)

    def values(self, row: _Row) -> float:
        """The base line of the figures beside the bar, or at the end of the label's line."""
        return row.base if self.above else row.middle + 4.5


def count_bars(tallies: Sequence[CountBar], *, title: str, total: int, width: int = WIDE) -> str:
    """A bar a value, its count and its share of the total beside it; in the order they are given."""
    drawing = SvgDrawing(width)
    shares = [_share(tally.count, total) for tally in tallies]
    share_width = max((text_width(share, SMALL) for share in shares), default=0.0)
    count_width = max((1.1 * text_width(f"{tally.count:,}") for tally in tallies), default=0.0)
    place = _Rows([tally.label for tally in tallies], width, count_width + share_width + 10, bar=15, gap=7)
    most = max((tally.count for tally in tallies if not tally.rest), default=0)
    y, told = 2.0, []
    for tally, share in zip(tallies, shares, strict=True):
        row = place.row(tally.label, y)
        told.append(f"{tally.label}: {tally.count:,} ({share})")
        top, height = place.bar(row)
        if tally.count and not tally.rest:
            size = max(_LEAST, (place.right - place.left) * tally.count / most)
            drawing.rect(place.left, top, size, height, "quiet" if tally.quiet else "bar", tip=told[-1], round_=1.5)
        place.label(drawing, row, tally.label)
        base = place.values(row)
        drawing.text(width - 2 - share_width - 10, base, f"{tally.count:,}", "t b", anchor="end")
        drawing.text(width - 2, base, share, "m", anchor="end")
        y = row.end
    return drawing.svg(y, title=title, description="; ".join(told) or "nothing to show")


def _share(count: int, total: int) -> str:
    """The share in words; what is there is never written as nothing."""
    if not total:
        return ""
    return "< 0.1%" if 0 < count / total < 0.0005 else written(count / total, "share")


def funnel_bars(stages: Sequence[FunnelBar], *, title: str, width: int = WIDE) -> str:
    """A bar a step on one common scale, what stays against what goes; each is as long as what the last one left."""
    drawing = SvgDrawing(width)
    kept = [f"{stage.kept:,}" for stage in stages]
    gone = [f"−{stage.rejected:,}" if stage.rejected else "0" for stage in stages]
    gone_width = max(text_width(words, SMALL) for words in ["rejected", *gone])
    kept_width = max(1.1 * text_width(words) for words in ["kept", *kept])
    place = _Rows([stage.label for stage in stages], width, kept_width + gone_width + 14, bar=20, gap=12)
    most = max((stage.came for stage in stages), default=0)
    columns = width - 2 - gone_width - 14, width - 2.0
    y = legend(drawing, ["kept", "rejected"], [KEPT, REJECTED], width) + 2
    for x, name in zip(columns, ("kept", "rejected"), strict=True):
        drawing.text(x, 12.5, name, "m", anchor="end")
    told: list[str] = []
    before: tuple[float, float] | None = None
    for number, stage in enumerate(stages):
        row = place.row(stage.label, y)
        told.append(f"{stage.label}: {stage.came:,} in, {stage.kept:,} kept, {stage.rejected:,} rejected")
        top, height = place.bar(row)
        if before and not place.above:
            drawing.line(*before, before[0], top, "lead")
        end = _stage(drawing, stage, (place.left, place.right, top, height), most)
        before = end - 0.5, top + height
        place.label(drawing, row, stage.label)
        base = place.values(row)
        drawing.text(columns[0], base, kept[number], "t b", anchor="end")
        drawing.text(columns[1], base, gone[number], "m", anchor="end")
        y = row.end
    return drawing.svg(y, title=title, description="; ".join(told) or "nothing to show")


def _stage(drawing: SvgDrawing, stage: FunnelBar, place: tuple[float, float, float, float], most: int) -> float:
    """One bar of a funnel; returns where what stays ends."""
    left, right, top, height = place
    unit = (right - left) / most if most else 0.0
    gone = max(_LEAST, stage.rejected * unit) if stage.rejected else 0.0
    whole = max(stage.came * unit, gone + (_LEAST if stage.kept else 0.0))
    end = left + whole - gone
    if stage.kept:
        size = max(_LEAST, end - left - (1 if gone else 0))
        drawing.rect(left, top, size, height, KEPT, tip=f"kept: {stage.kept:,} of {stage.came:,}")
    if stage.rejected:
        drawing.rect(end, top, gone, height, REJECTED, tip=f"rejected: {stage.rejected:,} of {stage.came:,}")
    return end


class _Time:
    """Columns from left to right: their places, whether their counts fit above them, and the axis where not."""

    def __init__(self, columns: Sequence[CountBar], width: int) -> None:
        apart = len(columns) > 1 and columns[-1].quiet
        year, word = text_width("2000", SMALL), text_width("unknown", SMALL)
        self.most = max((column.count for column in columns), default=0)
        self.marks = ticks(0, self.most, 4, whole=True)
        slots = len(columns) or 1
        room = width - year - (word if apart else 0.0)
        self.step = min(64.0, room / slots)
        self.written = all(text_width(f"{column.count:,}", SMALL) + 2 <= self.step for column in columns)
        axis = 0.0 if self.written else max(text_width(f"{mark:,.0f}", SMALL) for mark in self.marks)
        self.step = min(64.0, (room - axis) / slots)
        self.left = axis + max(8.0, year / 2 - self.step / 2)
        self.apart = max(0.4 * self.step, (year + word) / 2 + 4 - self.step) if apart else 0.0
        self.right = self.left + slots * self.step + self.apart
        self.every = max(1, math.ceil((year + 6) / self.step))

    def middle(self, number: int, column: CountBar) -> float:
        """The middle of a column; what has no year stands apart."""
        return self.left + (number + 0.5) * self.step + (self.apart if column.quiet else 0.0)


def year_columns(years: Mapping[int, int], *, title: str, unknown: int = 0, width: int = WIDE) -> str:
    """A column a year, in order and with gaps where a year has none; what has no year stands apart."""
    span = range(min(years), max(years) + 1) if years else range(0)
    shown = list(span) if len(span) <= _YEARS else sorted(years)
    columns = [CountBar(str(year), years.get(year, 0)) for year in shown]
    columns += [CountBar("unknown", unknown, quiet=True)] if unknown else []
    drawing, time, bottom = SvgDrawing(width), _Time(columns, width), 168.0
    unit = (bottom - 22) / (time.most if time.written else time.marks[-1]) if time.most else 0.0
    for mark in () if time.written else time.marks[1:]:
        drawing.line(time.left, bottom - mark * unit, time.right, bottom - mark * unit, "g")
        drawing.text(time.left - 8, bottom - mark * unit + 4, f"{mark:,.0f}", "m", anchor="end")
    for number, column in enumerate(columns):
        middle, size = time.middle(number, column), max(_LEAST, column.count * unit)
        if column.count:
            tone, wide = "quiet" if column.quiet else "bar", max(0.76 * time.step, 1.0)
            tip = f"{column.label}: {column.count:,}"
            drawing.rect(middle - wide / 2, bottom - size, wide, size, tone, tip=tip)
            if time.written:
                drawing.text(middle, bottom - size - 5, f"{column.count:,}", "m", anchor="middle")
        if column.quiet or (len(shown) - 1 - number) % time.every == 0:
            drawing.text(middle, bottom + 17, column.label, "m", anchor="middle")
    drawing.line(time.left, bottom, time.right, bottom, "ax")
    told = "; ".join(f"{column.label}: {column.count:,}" for column in columns if column.count)
    return drawing.svg(bottom + 26, title=title, description=told or "nothing to show")
