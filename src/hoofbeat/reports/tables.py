"""The one table model: columns with a form for their figures, and rows of plain values.

The same table is written as CSV or TSV here, as HTML by the page's templates, as Markdown and LaTeX by
`reports.markdown` and `reports.latex`, and printed by `cli.console`. How a figure is written depends on its column's
form only, so that no two outputs differ. The module loads nothing heavy, as every command prints tables.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from msgspec import Struct

from hoofbeat.store.tables import plain_cell
from hoofbeat.text import one_line

Form = Literal["text", "count", "amount", "share", "hundredths", "points", "number", "p"]
"""How a value is written: as it is, or as a count, a count that may have a decimal, a percentage of one decimal or of
two, percentage points, a plain number, a p value."""

DASH = "–"

_FEW = 10
"""As `findings.intervals.FEW`, which would load NumPy: a figure from fewer observations says how many."""

MIN_OBSERVATIONS = 5
"""From fewer observations an interval says nothing: the count is given instead."""


def model_name(identity: str) -> str:
    """A model's identity without how it is run (context, threads, runtime), which the last chapter tells in full.

    A recorded model is named so that its name fits into a sentence.
    """
    name = identity.partition(";")[0]
    return name.replace("recorded: written", "recorded replies written", 1) if name.startswith("recorded: ") else name


def judge_name(models: Mapping[str, str]) -> str:
    """The judge that a manifest's models name; of several, how many and who."""
    names = [model_name(name) for role, name in models.items() if role.partition(":")[0] == "judge"]
    if len(names) > 1:
        return f"the majority of {len(names)} judges ({', '.join(names)})"
    return names[0] if names else "an unnamed judge"


def short_hash(sha256: str) -> str:
    """The first twelve digits of a hash, enough to compare by eye."""
    return sha256[:12]


def money_words(money: float) -> str:
    """A sum by the price table: `$1.25`, below a cent `less than $0.01`."""
    return "less than $0.01" if 0 < money < 0.005 else f"${money:,.2f}"


def count_of(number: int, noun: str, plural: str = "") -> str:
    """`1 answer`, `1,204 answers`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def written(value: object, form: Form = "text") -> str:
    """A table's or chart's figure: a pair of numbers is a range, None a dash.

    Three are a value with its interval; a fourth is the number of observations, given where they are few.
    """
    if value is None:
        return DASH
    if isinstance(value, tuple):
        if len(value) == 2:
            return _range(*value, form)
        figure, *interval = value
        spread = written_interval(interval, form)
        return f"{_number(figure, form)} ({spread})" if spread else _number(figure, form)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return _number(value, form)


def written_interval(interval: Sequence[float], form: Form) -> str:
    """An interval as bounds, and as a third number how few observations are behind it, if they are few."""
    low, high, *few = interval
    bounds = [_range(low, high, form)] if isfinite(low) and isfinite(high) else []
    return ", ".join([*bounds, *(f"n\u00a0=\u00a0{n:,}" for n in few)])


def _number(value: float, form: Form) -> str:
    if not isfinite(value):
        return DASH
    match form:
        case "count":
            return f"{value:,.0f}"
        case "amount":
            return f"{value:,.1f}".removesuffix(".0")
        case "share":
            return f"{100 * value:.1f}%"
        case "hundredths":
            return f"{100 * value:.2f}%"
        case "points":
            return _signed(f"{100 * value:+.1f}")
        case "p":
            return "< 0.001" if value < 0.001 else f"{value:.3f}"
        case "number":
            return _signed(f"{value:.3f}")
        case "text":
            return f"{value:,}"


def _signed(digits: str) -> str:
    """With a true minus sign, and no sign at zero."""
    if not digits.strip("+-0."):
        return digits.lstrip("+-")
    return digits.replace("-", "−")


def _range(low: float, high: float, form: Form) -> str:
    if not (isfinite(low) and isfinite(high)):
        return DASH
    first, last = _number(low, form), _number(high, form)
    if form in {"share", "hundredths"}:
        return f"{first.removesuffix('%')}–{last}"
    return f"{first} to {last}" if form == "points" or low < 0 else f"{first}–{last}"


Cell = str | int | float | tuple[float, float] | tuple[float, float, float] | tuple[float, float, float, int] | None
"""A table's cell: a pair of numbers is a range, three are a value with its interval, None is a figure without a value.

A fourth number says how many observations there are, where they are few.
"""

if TYPE_CHECKING:
    from hoofbeat.findings.intervals import Interval

_HEADS = {1: ("",), 2: (" low", " high"), 3: ("", " low", " high"), 4: ("", " low", " high", " observations if few")}


_FORMS: dict[str, Form] = {"": "text", **{form: form for form in get_args(Form)}}


_PLURAL = re.compile(r"(?<=[a-z])(?:ies|s)\b")


class Column(Struct, frozen=True):
    """A column of a table and how its numbers are written."""

    title: str
    form: Form = "text"


_POINTS = ", points"


def triple(value: float | None, interval: Interval | None) -> Cell:
    """A figure with its interval as a cell; few observations are counted in it."""
    if value is None or interval is None:
        return value
    if interval.few:
        low, high = (interval.low, interval.high) if interval.few >= MIN_OBSERVATIONS else (-inf, inf)
        return value, low, high, interval.few
    return (value, interval.low, interval.high) if interval.known else value


def estimate_cell(value: float | None, low: float | None, high: float | None, n: int) -> Cell:
    """A stored figure as a cell: with its interval, and with the number of its observations where those are few."""
    if value is None:
        return None
    bounds = (-inf, inf) if low is None or high is None or n < MIN_OBSERVATIONS else (low, high)
    return (value, *bounds, n) if n < _FEW else (value, *bounds) if low is not None else value


def columns_of(header: str) -> tuple[Column, ...]:
    """Columns as one line: `model | answers:count | accuracy, 95%:share`; a title without a form holds text."""
    parts = [part.partition(":") for part in header.split(" | ")]
    return tuple(Column(title, _FORMS[form]) for title, _, form in parts)


class Table(Struct, frozen=True, kw_only=True):
    """A table. `name` is the stem of its files, `n` how many of `unit` it speaks of.

    `links` holds an anchor (`#...`) or an address of the site (`/...`) for each row, or an empty string; it may be left
    out. A report folds its tables, on paper as well, except those that are `open`: the finding itself.
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
    open: bool = False

    @property
    def counted(self) -> str:
        """`n` with its unit: `40 questions`, `1 question`."""
        one = _PLURAL.sub(lambda word: "y" if word[0] == "ies" else "", self.unit, count=1)
        return f"{self.n:,} {one if self.n == 1 else self.unit}".rstrip()


def flat_rows(table: Table) -> tuple[list[str], list[list[object]]]:
    """A table's header and rows for a file: intervals in columns of their own, figures as numbers.

    Differences of shares are fractions, as the shares beside them are; where a page's heading says points, the file's
    says so.
    """
    return _flattened(table, [_file_title(column) for column in table.columns])


def sheet_rows(table: Table) -> tuple[list[str], list[list[object]]]:
    """The same under the headings of the page, for a program that writes points as points."""
    return _flattened(table, [column.title for column in table.columns])


def _file_title(column: Column) -> str:
    return f"{column.title.removesuffix(_POINTS)}, fraction" if column.title.endswith(_POINTS) else column.title


def _flattened(table: Table, titles: Sequence[str]) -> tuple[list[str], list[list[object]]]:
    widths = [max((_width(row[place]) for row in table.rows), default=1) for place in range(len(table.columns))]
    header = [title + head for title, width in zip(titles, widths, strict=True) for head in _HEADS[width]]
    rows = [
        [part for cell, width in zip(row, widths, strict=True) for part in _parts(cell, width)] for row in table.rows
    ]
    return header, rows


def flat_forms(table: Table) -> list[Form]:
    """How the figures of each of those columns are written."""
    forms: list[Form] = []
    for place, column in enumerate(table.columns):
        width = max((_width(row[place]) for row in table.rows), default=1)
        forms += [column.form] * min(width, 3) + ["count"] * (width == 4)
    return forms


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
    parts = [None if isinstance(part, float) and not isfinite(part) else part for part in parts]
    return parts + [None] * (width - len(parts))


def _plain(value: object) -> str:
    if isinstance(value, float) and isfinite(value):
        return repr(round(value, 12))
    return _line(value) if isinstance(value, str) else plain_cell(value)


@lru_cache(maxsize=4096)
def _line(text: str) -> str:
    return plain_cell(one_line(text))
