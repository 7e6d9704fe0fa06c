"""Bars: one figure a line with its interval, several figures a group, and shares of a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.reports.charts.svg import NARROW, SERIES, SMALL, TEXT, TONES, WIDE, Drawing, num, text_width, ticks, wrap
from hoofbeat.reports.words import Form, written

__all__ = ["Bar", "grouped_bars", "interval_bars", "legend", "stacked_bars", "tone_of"]

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
    drawing = Drawing(width)
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
    drawing = Drawing(width)
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
    drawing = Drawing(width)
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


def legend(drawing: Drawing, names: Sequence[str], tones: Sequence[str], width: float, top: float = 0.0) -> float:
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


def _grid(drawing: Drawing, scale: _Scale, marks: Sequence[float], bottom: float, form: Form, top: float = 0.0) -> None:
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


def _bar(drawing: Drawing, scale: _Scale, bar: Bar, middle: float, height: float, tone: str, tip: str) -> None:
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
    drawing: Drawing, parts: Sequence[tuple[str, int, int]], total: int, place: tuple[float, float, float]
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
