"""Strips: every question a row, every source a column, and in each cell how the source stands to the others.

A label is told by its colour and by the height of its bar, so that a strip of a hundred sources can be read in grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.grids import abbreviations
from hoofbeat.reports.charts.svg import NARROW, SMALL, WIDE, Drawing, text_width, wrap

__all__ = ["Strip", "label_strips"]

_ROW = 17.0
_LETTERS = 34.0
_TIPS = 2400
"""Up to so many cells each says what it is when pointed at; in larger drawings each row does."""


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
    drawing = Drawing(width)
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
    drawing: Drawing,
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


def _legend(drawing: Drawing, labels: Sequence[str], width: float) -> float:
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
