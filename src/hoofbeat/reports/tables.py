"""The one table model: columns with a form for their figures, and rows of plain values.

The same table is written as CSV or TSV here, as HTML by the page's templates, as Markdown and LaTeX by
`reports.markdown` and `reports.latex`, and printed by `cli.console`. How a figure is written depends on its column's
form only, so that no two outputs differ. The module loads nothing heavy, as every command prints tables.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import ClassVar

from msgspec import Struct

from hoofbeat.reports.words import Form
from hoofbeat.store.tables import plain_cell
from hoofbeat.text import one_line

Cell = str | int | float | tuple[float, float] | tuple[float, float, float] | None
"""A table's cell; a pair of numbers is a range, three a value with its interval, None a figure that has no value."""

_HEADS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high")}


class Column(Struct, frozen=True):
    """A column of a table and how its numbers are written."""

    title: str
    form: Form = "text"


class Table(Struct, frozen=True, kw_only=True):
    """A table. `name` is the stem of its files, `n` how many of `unit` it speaks of.

    `links` holds an anchor (`#...`) or an address of the site (`/...`) for each row, or an empty string; it may be left
    out.
    """

    kind: ClassVar[str] = "table"
    name: str
    caption: str
    n: int
    unit: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    links: tuple[str, ...] = ()
    note: str = ""


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
    return csv_text(*flat_rows(table))


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows as CSV that no spreadsheet runs: numbers with twelve decimals, text on one line."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(map(_plain, header))
    writer.writerows(map(_plain, row) for row in rows)
    return stream.getvalue()


def table_of(columns: Sequence[str | Column], rows: Iterable[Sequence[Cell]]) -> Table:
    """A table without name and caption, as commands print them; a column given as a word holds text."""
    made = tuple(Column(each) if isinstance(each, str) else each for each in columns)
    return Table(name="", caption="", n=0, unit="", columns=made, rows=tuple(tuple(row) for row in rows))


def _width(cell: Cell) -> int:
    return len(cell) if isinstance(cell, tuple) else 1


def _parts(cell: Cell, width: int) -> list[object]:
    parts: list[object] = list(cell) if isinstance(cell, tuple) else [cell]
    return parts + [None] * (width - len(parts))


def _plain(value: object) -> str:
    if isinstance(value, float):
        return repr(round(value, 12))
    return _line(value) if isinstance(value, str) else plain_cell(value)


@lru_cache(maxsize=4096)
def _line(text: str) -> str:
    return plain_cell(one_line(text))
