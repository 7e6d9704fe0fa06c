"""Bars and dots: one figure per line with its interval, groups, shares of a whole, panels of dots, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from hoofbeat.reports.words import Form, count_of, written

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


def tone_of(place: int, count: int) -> int:
    """The colour of the label at this place of so many: the first is neutral, the last the strongest."""
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
            panel = _Panel(edge + 2, edge + size - 56, _marks(flat if shared else bars))
            _dot_axis(drawing, panel, top, bottom, form)
            for row, bar, middle in zip(rows, bars, middles, strict=True):
                told.append(f"{name}, {row}: {' '.join(bar.words(form))}".strip())
                _dot(drawing, panel, bar, middle, told[-1])
                drawing.text(edge + size - 14, middle + 4, written(bar.value, form), "m", anchor="end")
        y = bottom + 32
    return drawing.svg(max(y, 20), title=title, description="; ".join(told) or "nothing to show")


def _marks(bars: Sequence[Bar]) -> list[float]:
    known = [number for bar in bars for number in (bar.value, bar.low, bar.high) if number is not None]
    return ticks(min(known, default=0.0), max(known, default=1.0), 3)


def _dot_axis(drawing: SvgDrawing, panel: _Panel, top: float, bottom: float, form: Form) -> None:
    """Lines at the marks, and the numbers of all of them, or of every second or third where they would touch."""
    words = [f"{100 * mark:g}%" if form == "share" else f"{mark:g}".replace("-", "−") for mark in panel.marks]
    gap = panel.at(panel.marks[1]) - panel.left
    step = next((n for n in (1, 2, 3) if max(text_width(word, SMALL) for word in words) + 4 <= n * gap), len(words))
    for place, (mark, word) in enumerate(zip(panel.marks, words, strict=True)):
        x = panel.at(mark)
        drawing.line(x, top, x, bottom, "ax" if mark == 0 else "g")
        if place % step == 0:
            drawing.text(x, bottom + 15, word, "m", anchor="middle")


def _dot(drawing: SvgDrawing, panel: _Panel, bar: Bar, middle: float, tip: str) -> None:
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
