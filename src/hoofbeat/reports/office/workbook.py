"""A report's tables as one Excel workbook: a sheet with the findings and a list of tables, then a sheet per table.

Figures are numbers with the form of their column, so that people can sort and compute; an interval has columns of its
own, as in CSV. Text is never a formula or a link: what a spreadsheet would run is marked as text, so that it stays text
when somebody edits the cell.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from hoofbeat.reports.model import Report
from hoofbeat.reports.office.office_packages import WRITTEN
from hoofbeat.reports.tables import Form, Table, flat_forms, sheet_rows
from hoofbeat.store.tables import is_formula
from hoofbeat.text import cut, one_line

if TYPE_CHECKING:
    from xlsxwriter import Workbook
    from xlsxwriter.worksheet import Worksheet

_NUMBERS: dict[Form, str] = {
    "text": "General",
    "count": "#,##0",
    "amount": "#,##0.0",
    "share": "0.0%",
    "hundredths": "0.00%",
    "points": "+0.0;-0.0;0.0",
    "number": "0.000",
    "p": "0.000",
}
_LONGEST = 32_000
"""Excel takes 32,767 characters in a cell."""

_WIDEST = 45
_HEIGHT = 15.0
_MOST_LINES = 27  # a row may be 409 points high
_A4 = 9  # Excel's number for the paper
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\']")
_FIRST = "Summary"


def to_xlsx(report: Report, tables: Mapping[str, Table]) -> bytes:
    """The workbook; `tables` are the report's, by the stem of their files."""
    from xlsxwriter import Workbook

    stream = io.BytesIO()
    plain = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False, "in_memory": True}
    book = Workbook(stream, plain)
    book.set_properties(
        {
            "title": one_line(report.title),
            "author": f"Hoofbeat {report.version}",
            "created": WRITTEN.replace(tzinfo=None),
        }
    )
    forms = _Formats(book)
    names = sheet_names([table.caption for table in tables.values()])
    _summary(book.add_worksheet(_FIRST), report, list(zip(names, tables.values(), strict=True)), forms)
    for name, table in zip(names, tables.values(), strict=True):
        _sheet(book.add_worksheet(name), table, forms)
    book.close()
    return stream.getvalue()


def sheet_names(captions: Sequence[str]) -> list[str]:
    """A name for each sheet that Excel takes: at most 31 letters, each used once, none of its special characters."""
    names: list[str] = []
    taken = {_FIRST.casefold(), "history"}
    for caption in captions:
        base = _NOT_IN_NAMES.sub(" ", one_line(caption)).strip() or "table"
        name, number = cut(base, 31), 1
        while name.casefold() in taken:
            number += 1
            name = f"{cut(base, 26)} {number}"
        taken.add(name.casefold())
        names.append(name)
    return names


class _Formats:
    """The formats of cells, each made once."""

    def of(self, text: str) -> Any:
        """The format of a text."""
        return self.marked if is_formula(text) else self.text

    def __init__(self, book: Workbook) -> None:
        self.title = book.add_format({"bold": True, "font_size": 14})
        self.plain = book.add_format()
        self.bold = book.add_format({"bold": True})
        self.head = book.add_format({"bold": True, "text_wrap": True, "valign": "bottom", "bottom": 1})
        self.text = book.add_format({"text_wrap": True, "valign": "top"})
        self.marked = book.add_format({"text_wrap": True, "valign": "top", "quote_prefix": True})
        self.link = book.add_format({"font_color": "#245a85", "underline": 1})
        self.numbers = {form: book.add_format({"num_format": code, "valign": "top"}) for form, code in _NUMBERS.items()}


def _summary(sheet: Worksheet, report: Report, named: Sequence[tuple[str, Table]], forms: _Formats) -> None:
    sheet.set_column(0, 0, 48)
    sheet.set_column(1, 1, 90)
    _print_across(sheet)
    row = 0

    def line(first: str, second: str = "", form: Any = forms.text) -> None:
        nonlocal row
        sheet.write_string(row, 0, _text(first), form)
        if second:
            sheet.write_string(row, 1, _text(second), forms.of(second))
        sheet.set_row(row, _HEIGHT * max(1, ceil(len(first) / 48) if second else 1, ceil(len(second) / 90)))
        row += 1

    line(report.title, form=forms.title)
    line(report.notice, form=forms.bold)
    if report.subtitle:
        line(report.subtitle, form=forms.plain)
    row += 1
    for place, warning in enumerate(report.warnings):
        line("Warning" if not place else "", warning, forms.bold)
    for place, lead in enumerate(report.leads):
        line("What was found" if not place else "", lead.text, forms.bold)
    for place, note in enumerate(report.notes):
        line("Please note" if not place else "", note, forms.bold)
    for card in report.cards:
        line(card.label, f"{card.value} ({card.detail})" if card.detail else card.value)
    row += 1
    line("Tables", form=forms.bold)
    for name, table in named:
        sheet.write_url(row, 0, f"internal:'{name}'!A1", forms.link, name)
        words = f"{table.caption} (n = {table.counted})"
        sheet.write_string(row, 1, _text(words), forms.of(words))
        sheet.set_row(row, _HEIGHT * ceil(len(words) / 85))
        row += 1


def _sheet(sheet: Worksheet, table: Table, forms: _Formats) -> None:
    """Caption, note, header, rows; the header stays in sight and can be filtered."""
    header, rows = sheet_rows(table)
    kinds = flat_forms(table)
    sheet.write_string(0, 0, _text(f"{table.caption} (n = {table.counted})"), forms.bold)
    top = 3
    widths = [
        min(_WIDEST, max([9, min(len(head), 16), *(_width(row[place]) for row in rows[:200])]) + 1)
        for place, head in enumerate(header)
    ]
    for place, (head, width) in enumerate(zip(header, widths, strict=True)):
        sheet.write_string(top, place, _text(head), forms.head)
        sheet.set_column(place, place, width)
    if table.note:
        across = min(sum(widths), 2 * _WIDEST)
        last = next((place for place in range(len(widths)) if sum(widths[: place + 1]) >= across), len(widths) - 1)
        if last:
            sheet.merge_range(1, 0, 1, last, "", forms.text)
        sheet.write_string(1, 0, _text(table.note), forms.of(table.note))
        sheet.set_row(1, _HEIGHT * _lines([table.note], [across]))
    sheet.set_row(top, _HEIGHT * _lines(header, widths))
    for number, row in enumerate(rows, start=top + 1):
        sheet.set_row(number, _HEIGHT * _lines(row, widths))
        for place, value in enumerate(row):
            _cell(sheet, (number, place), value, kinds[place], forms)
    _print_across(sheet)
    if rows:
        sheet.autofilter(top, 0, top + len(rows), len(header) - 1)
    sheet.freeze_panes(top + 1, 1)


def _print_across(sheet: Worksheet) -> None:
    """On A4 across, as wide as the page."""
    sheet.set_landscape()
    sheet.set_paper(_A4)
    sheet.fit_to_pages(1, 0)


def _cell(sheet: Worksheet, at: tuple[int, int], value: object, form: Form, forms: _Formats) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isfinite(value):
            number = 100 * value if form == "points" else value
            sheet.write_number(*at, round(number, 12), forms.numbers[form])
    elif value is not None:
        sheet.write_string(*at, _text(str(value)), forms.of(str(value)))


def _lines(row: Sequence[object], widths: Sequence[int]) -> int:
    """How many lines the longest text of a row takes: not every program finds the height itself."""
    texts = ((len(value), width) for value, width in zip(row, widths, strict=True) if isinstance(value, str))
    return min(_MOST_LINES, max((ceil(1.1 * length / width) for length, width in texts), default=1) or 1)


def _width(value: object) -> int:
    return len(value) if isinstance(value, str) else 8


def _text(text: str) -> str:
    return one_line(text)[:_LONGEST]
