"""Rows of a file that came back from an annotator, whatever program saved it.

Spreadsheets save CSV in UTF-8 with or without a mark, in UTF-16 with tabs, or in the code page of an older Windows,
with commas or semicolons, and with a first line `sep=;`. All of these are read; nothing else is guessed.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hoofbeat.errors import InputError
from hoofbeat.store.files import read_bytes
from hoofbeat.store.tables import bare_cell

__all__ = ["Rows", "read_rows"]

_NEEDED = ("item", "label")
_DELIMITERS = (",", ";", "\t")
_OLD_WINDOWS = "cp1252"


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one file, each with its line; `note` says what had to be guessed to read them."""

    path: Path
    rows: tuple[tuple[int, dict[str, str]], ...]
    note: str = ""


def read_rows(path: Path) -> Rows:
    """The rows of a CSV or JSONL file; blank ones are left out."""
    text, note = _decoded(path)
    found = _json_rows(path, text) if path.suffix.lower() in {".jsonl", ".ndjson"} else _csv_rows(path, text)
    rows = tuple((line, cells) for line, cells in found if any(cells.values()))
    if not rows:
        raise InputError("there is no row in this file", where=str(path), fix="give the file that was filled in")
    return Rows(path=path, rows=rows, note=note)


def _decoded(path: Path) -> tuple[str, str]:
    data = read_bytes(path)
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return data.decode("utf-16"), ""
        if b"\0" not in data:
            return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as err:
        if data.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise _no_text(path, str(err)) from err
        return data.decode(_OLD_WINDOWS, errors="replace"), "not UTF-8: read in the code page Windows-1252"
    raise _no_text(path, "it holds zero bytes")


def _no_text(path: Path, why: str) -> InputError:
    return InputError(f"this is no text file: {why}", where=str(path), fix="save it as CSV in UTF-8")


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, record in enumerate(text.split("\n"), start=1):
        if not record.strip():
            continue
        try:
            value = msgspec.json.decode(record, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as err:
            raise InputError(f"line {number} can't be read: {err}", where=str(path), fix="correct that line") from err
        yield number, {name.strip().lower(): _cell(cell) for name, cell in value.items()}


def _cell(value: object) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    before = 0
    if text[:4].lower() == "sep=":
        text, before = text.partition("\n")[2], 1
    delimiter, header = _header(path, text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        next(reader)
        line = reader.line_num + 1
        for row in reader:
            yield line + before, dict(zip(header, (bare_cell(cell).strip() for cell in row), strict=False))
            line = reader.line_num + 1
    except csv.Error as err:
        raise InputError(
            f"the file is no CSV (line {reader.line_num + before}): {err}", where=str(path), fix="save it as CSV again"
        ) from err


def _header(path: Path, text: str) -> tuple[str, list[str]]:
    """The delimiter under which the first line names the columns that are needed, and all columns."""
    for delimiter in _DELIMITERS:
        try:
            names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        header = [name.strip().lower() for name in names]
        if all(name in header for name in _NEEDED):
            twice = next((name for name in header if name and header.count(name) > 1), "")
            if twice:
                raise InputError(f"the file has two columns {twice!r}", where=str(path), fix="leave one of them")
            return delimiter, header
    raise InputError(
        "the first line does not name the columns `item` and `label`",
        where=str(path),
        fix="give back the packet's own file with its first line, as CSV or JSONL",
    )
