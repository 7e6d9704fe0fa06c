"""Grids: confusion of two judges, and numbers as shades."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.reports.charts.svg import SMALL, Drawing, text_width, wrap
from hoofbeat.reports.words import Form, written

__all__ = ["abbreviations", "number_matrix"]

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
    drawing = Drawing(width)
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
