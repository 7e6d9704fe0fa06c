"""Every table of a report as CSV: full precision, intervals in columns of their own, and no cell that would run."""

from __future__ import annotations

import csv
import io

from hoofbeat.reports.model import Cell, Table
from hoofbeat.reports.words import one_line
from hoofbeat.store.tables import plain_cell

__all__ = ["to_csv"]

_HEADS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


def to_csv(table: Table) -> str:
    """The table with a header line; figures are plain numbers, a figure without value is an empty cell."""
    widths = [max((_width(row[place]) for row in table.rows), default=1) for place in range(len(table.columns))]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    titles = [plain_cell(one_line(column.title)) for column in table.columns]
    writer.writerow(title + head for title, width in zip(titles, widths, strict=True) for head in _HEADS[width])
    for row in table.rows:
        writer.writerow(cell for value, width in zip(row, widths, strict=True) for cell in _cells(value, width))
    return stream.getvalue()


def _width(value: Cell) -> int:
    return len(value) if isinstance(value, tuple) else 1


def _cells(value: Cell, width: int) -> list[str]:
    parts = [_plain(part) for part in value] if isinstance(value, tuple) else [_plain(value)]
    return parts + [""] * (width - len(parts))


def _plain(value: Cell) -> str:
    if isinstance(value, float):
        return repr(round(value, 12))
    return plain_cell(one_line(value) if isinstance(value, str) else value)
