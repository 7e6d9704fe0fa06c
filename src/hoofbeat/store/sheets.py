"""Tables that people fill in with a spreadsheet, read whatever program saved them.

Spreadsheets save CSV in UTF-8 with or without a mark, in UTF-16 with tabs, or in the code page of an older Windows,
with commas or semicolons, and with a first line `sep=;`. All of these are read; nothing else is guessed.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from hoofbeat.errors import InputError
from hoofbeat.store.files import read_bytes
from hoofbeat.store.tables import bare_cell

_MAX_PROBLEMS = 10
_DELIMITERS = (",", ";", "\t")
_OLD_WINDOWS = "cp1252"


def refuse_lines(
    problems: Sequence[str], path: Path, fix: str = "correct these lines; nothing was written", *, kind: str = "line"
) -> None:
    """Say of all lines (or what else a problem is of) at once what is wrong with them; nothing happens without any."""
    if not problems:
        return
    more = f"\nand {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
    raise InputError(
        "\n".join([f"{len(problems)} {kind}{'s' * (len(problems) != 1)} can't be used:", *problems[:_MAX_PROBLEMS]])
        + more,
        where=str(path),
        fix=fix,
        details={"problems": list(problems)},
    )


def sheet_text(path: Path) -> tuple[str, str]:
    """The text of a table, and what had to be guessed to read it."""
    data = read_bytes(path)
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return data.decode("utf-16"), ""
        if b"\0" not in data:
            return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as err:
        if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise _no_text(path, str(err)) from err
        return data.decode(_OLD_WINDOWS, errors="replace"), "not UTF-8: read as Windows-1252"
    raise _no_text(path, "it contains NUL bytes")


def _no_text(path: Path, why: str) -> InputError:
    return InputError(f"this is not a text file: {why}", where=str(path), fix="save it as CSV in UTF-8")


def sheet_rows(
    path: Path, text: str, needed: Sequence[str], missing: InputError, *, beyond: str = ""
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table with their lines; `missing` is raised where `needed` columns are not named.

    Cells beyond the last column are under the name `beyond`, joined; without such a name they are passed over.
    """
    before = 0
    if text[:4].lower() == "sep=":
        text, before = text.partition("\n")[2], 1
    delimiter, header = _header(path, text, needed, missing)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        next(reader)
        line = reader.line_num + 1
        for row in reader:
            cells = [bare_cell(cell).strip() for cell in row]
            more = {beyond: " ".join(filter(None, cells[len(header) :]))} if beyond else {}
            yield line + before, dict(zip(header, cells, strict=False)) | more
            line = reader.line_num + 1
    except csv.Error as err:
        raise InputError(
            f"the file is not valid CSV (line {reader.line_num + before}): {err}",
            where=str(path),
            fix="save it as CSV again",
        ) from err


def csv_delimiter(header: str) -> str:
    """The delimiter of a CSV file, told by its first line: the one that gives most cells, else a comma.

    Spreadsheets in many European countries save CSV with semicolons. A first line `sep=;` says it itself.
    """
    if is_delimiter_line(header):
        return header[4]

    def cells(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        except csv.Error:
            return 0

    return max(_DELIMITERS, key=cells)


def is_delimiter_line(line: str) -> bool:
    """Whether a line is `sep=;`, with which spreadsheets name the delimiter of the lines after it."""
    return len(line.rstrip("\r\n")) == len("sep=;") and line[:4].lower() == "sep=" and line[4] in _DELIMITERS


def _header(path: Path, text: str, needed: Sequence[str], missing: InputError) -> tuple[str, list[str]]:
    """The delimiter under which the first line names the columns that are needed, and all columns."""
    for delimiter in _DELIMITERS:
        try:
            names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        header = [name.strip().lower() for name in names]
        if all(name in header for name in needed):
            twice = next((name for name in header if name and header.count(name) > 1), "")
            if twice:
                raise InputError(f"the file has two columns named {twice!r}", where=str(path), fix="remove one of them")
            return delimiter, header
    raise missing
