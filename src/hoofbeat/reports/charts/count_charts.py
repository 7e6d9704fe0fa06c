"""How many: a dense list of bars, columns along the years, and a funnel that narrows step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import legend
from hoofbeat.reports.charts.svg import NARROW, SMALL, WIDE, SvgDrawing, text_width, ticks, wrap
from hoofbeat.reports.words import written

_LINE = 16.0
_LEAST = 1.5
"""A bar that stands for something is never narrower than this."""

_YEARS = 80
"""So many years or fewer stand on an axis of time; a wider span shows only the years that occur."""

KEPT, REJECTED = "s1", "s2"


class CountBar(Struct, frozen=True):
    """One bar of a list; what is unknown is `quiet`, and what stands for many others (`rest`) has no bar."""

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
        depth = len(lines) * _LINE
        if self.above:
            bar = 0.6 * self._bar
            return _Row(lines, top + 12, top + depth + 3 + bar / 2, top + depth + bar + 6 + self._gap)
        depth = max(depth, self._bar)
        first = top + depth / 2 + 4.5 - (len(lines) - 1) * _LINE / 2
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
            drawing.text(place, row.base + number * _LINE, line, anchor=anchor, tip=tip)

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
