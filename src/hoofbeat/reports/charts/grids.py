"""Grids: labels between sources, confusion of two judges, and numbers as shades."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.svg import SMALL, Drawing, text_width, wrap
from hoofbeat.reports.words import Form, written

__all__ = ["abbreviations", "label_matrix", "number_matrix"]

_SHADES = 7
_LABEL_ROOM = 158.0


def abbreviations(labels: Sequence[str]) -> dict[str, str]:
    """The shortest beginnings, of three letters or more, that tell the labels apart."""
    short = {}
    for label in labels:
        others = [other for other in labels if other != label]
        lengths = range(3, max(4, len(label)))
        short[label] = next((label[:n] for n in lengths if not any(o.startswith(label[:n]) for o in others)), label)
    return short


def label_matrix(
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    labels: Sequence[str],
    *,
    title: str,
    links: dict[tuple[int, int], str] | None = None,
    marks: Collection[tuple[int, int]] = (),
    cell: float = 36.0,
) -> str:
    """Labels between the same names down and across; the diagonal is left blank.

    `labels` gives the order of colours; a cell of no label is dashed. `links` leads from a cell to an anchor, `marks`
    outlines cells. Columns carry the numbers that stand before the names.
    """
    left = min(_LABEL_ROOM, max((text_width(name, SMALL) for name in names), default=0.0)) + 26
    drawing = Drawing(left + max(1, len(names)) * cell + 1)
    short = abbreviations(labels)
    tone = {label: tone_of(number, len(labels)) for number, label in enumerate(labels)}
    told = []
    for row, name in enumerate(names):
        drawing.text(left + (row + 0.5) * cell, 13, str(row + 1), "m", anchor="middle", tip=name)
        y = 20 + row * (cell - 6)
        drawing.text(16, y + cell / 2 + 1, str(row + 1), "m", anchor="end")
        drawing.text(22, y + cell / 2 + 1, wrap(name, left - 25, SMALL, 1)[0], "m", tip=name)
        for column, label in enumerate(cells[row]):
            x = left + column * cell
            if row == column:
                drawing.rect(x, y, cell - 2, cell - 8, "self")
                continue
            said = f"{name} and {names[column]}: {label or 'no label'}"
            if column > row:
                told.append(said)
            href = (links or {}).get((row, column))
            if href:
                drawing.open_link(href, said)
            drawing.rect(x, y, cell - 2, cell - 8, f"l{tone[label]}" if label in tone else "none", tip=said)
            ink = f"c i{tone[label]}" if label in tone else "c m"
            drawing.text(x + cell / 2 - 1, y + cell / 2, short.get(label, "?"), ink, anchor="middle")
            if (row, column) in marks:
                drawing.rect(x, y, cell - 2, cell - 8, "mark")
            if href:
                drawing.close_link()
    height = 20 + len(names) * (cell - 6)
    return drawing.svg(height, title=title, description="; ".join(told), group=bool(links))


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
