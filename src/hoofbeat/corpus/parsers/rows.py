"""Rows of tables: JSON lines, JSON arrays, CSV and TSV, plain or gzipped, one at a time however large the file.

Each row comes with its line number as a dictionary, or as a `Refusal` when it can't be read; the rows after it go on.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

import msgspec

from hoofbeat.corpus.reader import DocumentEntry, Refusal, member_of, refusal
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from hoofbeat.store.files import MAX_LINE_BYTES, lines, open_stream, text_of

ROW_SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".json")
MAX_COLUMNS = 10_000
MAX_SEPARATORS = 1_000_000
STEP = 1 << 20
MAX_FIRST_LINE_BYTES = 4_000_000

Row = dict[str, object]

_BETWEEN = re.compile(r"[\s,]*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def table_suffix(path: Path) -> str:
    """The suffix that says what a file is: `.jsonl` for both `a.jsonl` and `a.jsonl.gz`."""
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def first_row(path: Path) -> Row | Refusal | None:
    """A file's first row, if it is not too long to be looked at before the file is read."""
    return next((row for _, row in read_rows(path, MAX_FIRST_LINE_BYTES)), None)


def read_rows(path: Path, max_length: int = MAX_LINE_BYTES) -> Iterator[tuple[int, Row | Refusal]]:
    """The rows of a file with their line numbers (for a JSON array: their place in it)."""
    suffix = table_suffix(path)
    with open_stream(path) as stream:
        if suffix == ".json":
            yield from _array(stream)
        elif suffix in {".csv", ".tsv"}:
            yield from _separated(lines(stream, max_length), "\t" if suffix == ".tsv" else "")
        else:
            yield from ((number, _json_row(line, number)) for number, line in lines(stream, max_length) if line.strip())


def row_documents(path: Path, document_of: Callable[[Row], Document]) -> Iterator[DocumentEntry | Refusal]:
    """Each row of a table as a document; a row that can't be one is refused, and the others go on."""
    for number, row in read_rows(path):
        if isinstance(row, Refusal):
            yield row
            continue
        try:
            yield DocumentEntry(document=document_of(row), member=member_of(number))
        except InputError as err:
            yield refusal(member_of(number), err)


def _json_row(line: bytes, number: int) -> Row | Refusal:
    try:
        return _object(msgspec.json.decode(text_of(line, number)))
    except RecursionError:
        return refusal(
            member_of(number), HostileInputError("JSON refused as hostile: nested too deep", fix="leave it out")
        )
    except (msgspec.DecodeError, UnicodeError) as err:
        return refusal(member_of(number), InputError(f"not readable JSON: {err}"))
    except InputError as err:
        return refusal(member_of(number), err)


def _object(value: object) -> Row:
    if not isinstance(value, dict):
        raise InputError("the row is not a JSON object with named fields", fix="write one object per row")
    return value


def _array(stream: IO[bytes]) -> Iterator[tuple[int, Row | Refusal]]:
    """The objects of a JSON array, decoded as they come; one object alone is an array of one."""
    decode = json.JSONDecoder().raw_decode
    text, ended = _more(stream, STEP, first=True)
    place = _BETWEEN.match(text).end()  # type: ignore[union-attr]
    place += text.startswith("[", place)
    number = 0
    while True:
        place = _BETWEEN.match(text, place).end()  # type: ignore[union-attr]
        if text.startswith("]", place) or (ended and place == len(text)):
            return
        problem = ""
        try:
            value, end = decode(text, place)
        except RecursionError:
            raise HostileInputError("JSON refused as hostile: nested too deep", fix="leave it out") from None
        except json.JSONDecodeError as err:
            problem, end = err.msg, len(text)
        except ValueError:  # thousands of digits
            raise InputError(
                f"not readable JSON: object {number + 1}: a number is too long", fix="correct the file"
            ) from None
        if ended or end < len(text):
            if problem:
                raise InputError(f"not readable JSON: object {number + 1}: {problem}", fix="correct the file")
            number += 1
            try:
                yield number, _object(_whole(value, text[place:end]))
            except InputError as err:
                yield number, refusal(member_of(number), err)
            place = end
            continue
        text, place = text[place:], 0
        if len(text) > MAX_LINE_BYTES:
            raise InputError(f"not readable JSON: object {number + 1} does not end", fix="correct the file")
        more, ended = _more(stream, max(STEP, len(text)), first=False)
        text += more


def _whole(value: object, source: str) -> object:
    """A decoded value, refused if a text has half of a surrogate pair, as in JSON lines: no file can hold it."""
    if _HALF.search(source):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as err:
            raise InputError(f"not readable JSON: {err}", fix="correct the file") from None
    return value


def _more(stream: IO[bytes], size: int, *, first: bool) -> tuple[str, bool]:
    """More text of a stream, up to a line's end where there is one soon, and whether the stream has ended."""
    data = stream.read(min(size, MAX_LINE_BYTES))
    if not data:
        return "", True
    while data[-1] >= 0x80 and (byte := stream.read(1)):
        data += byte
    return text_of(data, 1 if first else 2), False


def _separated(numbered: Iterator[tuple[int, bytes]], separator: str) -> Iterator[tuple[int, Row | Refusal]]:
    """The rows of a table; without a `separator` its first line tells it."""
    csv.field_size_limit(MAX_LINE_BYTES)
    first = next(numbered, None)
    if first is None:
        return
    numbered = chain([first], numbered)
    if not separator:
        from hoofbeat.store.sheets import csv_delimiter, is_delimiter_line  # noqa: PLC0415 - only where CSV is read

        head = text_of(first[1], first[0])
        separator = csv_delimiter(head)
        if is_delimiter_line(head):
            numbered = chain([(first[0], b"\n")], islice(numbered, 1, None))
    reader = csv.reader(_texts(numbered, separator), delimiter=separator)
    header: list[str] = []
    while True:
        before = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as err:
            yield before, refusal(member_of(before), InputError(f"not readable as a table row: {err}"))
            continue
        if len(cells) > MAX_COLUMNS:
            raise HostileInputError(
                f"table refused as hostile: {len(cells):,} columns, at most {MAX_COLUMNS:,} are read"
            )
        if not any(cell.strip() for cell in cells):
            continue
        if not header:
            header = [cell.strip() for cell in cells]
        elif len(cells) != len(header):
            what = f"wrong number of cells: {len(cells)}, but the header has {len(header)}"
            yield before, refusal(member_of(before), InputError(what))
        else:
            yield before, dict(zip(header, cells, strict=True))


def _texts(numbered: Iterator[tuple[int, bytes]], separator: str) -> Iterator[str]:
    for number, line in numbered:
        if line.count(separator.encode()) > MAX_SEPARATORS:
            raise HostileInputError(
                f"table refused as hostile: more than {MAX_SEPARATORS:,} separators in line {number}",
                fix="leave it out",
            )
        yield text_of(line, number)
