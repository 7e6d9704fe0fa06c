"""Every table of a report as CSV: full precision, intervals in columns of their own, and no cell that would run."""

from __future__ import annotations

import csv
import io

from hoofbeat.reports.model import Cell, Table
from hoofbeat.reports.words import one_line
from hoofbeat.store.tables import plain_cell

__all__ = ["flat_rows", "to_csv"]

_HEADS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


def flat_rows(table: Table) -> tuple[list[str], list[list[object]]]:
    """A table's header and rows for a file: intervals in columns of their own, figures as numbers."""
    widths = [max((_width(row[place]) for row in table.rows), default=1) for place in range(len(table.columns))]
    header = [
        column.title + head for column, width in zip(table.columns, widths, strict=True) for head in _HEADS[width]
    ]
    rows = [
        [part for cell, width in zip(row, widths, strict=True) for part in _parts(cell, width)] for row in table.rows
    ]
    return header, rows


def to_csv(table: Table) -> str:
    """The table with a header line; figures are plain numbers, a figure without value is an empty cell."""
    header, rows = flat_rows(table)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(_plain, header))
    writer.writerows(map(_plain, row) for row in rows)
    return stream.getvalue()


def _width(cell: Cell) -> int:
    return len(cell) if isinstance(cell, tuple) else 1


def _parts(cell: Cell, width: int) -> list[object]:
    parts: list[object] = list(cell) if isinstance(cell, tuple) else [cell]
    return parts + [None] * (width - len(parts))


def _plain(value: object) -> str:
    if isinstance(value, float):
        return repr(round(value, 12))
    return plain_cell(one_line(value) if isinstance(value, str) else value)
