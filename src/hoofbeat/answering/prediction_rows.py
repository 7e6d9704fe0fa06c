"""Files of answers that other software gave, row by row: JSON lines (plain or gzipped), CSV and Parquet.

Which field holds what is said or guessed from its name. A row that can't be read as what it should be ends the reading
with an error that names its line; nothing is skipped in silence.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.errors import HostileInputError, InputError, UsageError
from hoofbeat.store.streams import lines, open_stream
from hoofbeat.store.tables import plain_cell, read_parquet

_MAX_ROW_BYTES = 8_000_000  # bytes of one row; no answer is longer
_FORMATS = (".jsonl", ".ndjson", ".csv", ".parquet")

GUESSES: dict[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "realidx", "item_id"),
    "model": ("model", "model_name", "system"),
    "question": ("question", "question_text", "stem"),
    "options": ("options", "choices"),
    "answer": ("answer", "gold", "gold_answer", "correct_answer", "answer_idx", "target", "label"),
    "predicted": ("predicted", "prediction", "predicted_answer", "pred", "model_answer"),
    "text": ("text", "output", "response", "completion", "generation", "raw_output"),
    "dataset": ("dataset", "subset", "task"),
    "condition": ("condition",),
    "sample": ("sample",),
    "tokens": ("tokens", "usage", "token_usage"),
}
"""What a field is called where nobody says, in the order it is looked for."""


class PredictionFields(Struct, frozen=True, kw_only=True):
    """The name of the field that holds each thing; empty: no field does."""

    id: str = ""
    model: str = ""
    question: str = ""
    options: str = ""
    answer: str = ""
    predicted: str = ""
    text: str = ""
    dataset: str = ""
    condition: str = ""
    sample: str = ""
    tokens: str = ""


class PredictionRow(Struct, frozen=True, kw_only=True):
    """One row: its values, and where it stands (`line 12`, `row 12` of a Parquet file)."""

    values: Mapping[str, object]
    file: Path
    place: str

    @property
    def where(self) -> str:
        """File and line, for errors."""
        return f"{self.file}, {self.place}"

    def name(self, field: str) -> str:
        """A value that names something: text, or a whole number; no control characters, nothing to run. Empty: none."""
        value = self.values.get(field) if field else None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise bad(self, f"the field {field!r} should hold a name and holds {_kind(value)}")
        name = str(value).strip()
        if not name.isprintable() or plain_cell(name) != name:
            raise bad(self, f"the field {field!r} holds a name that a table can't show as it is")
        return name

    def text(self, field: str) -> str:
        """A value that is text; empty where there is none."""
        value = self.values.get(field) if field else None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if not isinstance(value, str):
            raise bad(self, f"the field {field!r} should hold text and holds {_kind(value)}")
        return value


def bad(row: PredictionRow, what: str, fix: str = "correct that line, or leave it out") -> InputError:
    """The error of a row."""
    return InputError(what, where=row.where, fix=fix)


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object", str: "text"}
    return kinds.get(type(value), type(value).__name__)


def each_row(path: Path) -> Iterator[PredictionRow]:
    """The rows of a file, one at a time."""
    names = [suffix.lower() for suffix in path.suffixes]
    plain = next((suffix for suffix in reversed(names) if suffix != ".gz"), "")
    if plain not in _FORMATS or (plain == ".parquet" and ".gz" in names[-1:]):
        raise UsageError(
            "this file's kind is not known by its name",
            where=str(path),
            fix="name a .jsonl, .jsonl.gz, .csv, .csv.gz or .parquet file",
        )
    if plain == ".parquet":
        for number, values in enumerate(read_parquet(path).iter_rows(named=True), start=1):
            yield _checked(PredictionRow(values=values, file=path, place=f"row {number}"))
        return
    try:
        with open_stream(path) as stream:
            found = lines(stream, _MAX_ROW_BYTES)
            yield from (_csv_rows if plain == ".csv" else _json_rows)(path, found)
    except HostileInputError as err:
        raise HostileInputError(err.what, where=err.where or str(path), fix=err.fix) from err


def _json_rows(path: Path, found: Iterable[tuple[int, bytes]]) -> Iterator[PredictionRow]:
    decode = msgspec.json.Decoder().decode
    for number, line in found:
        if line.isspace():
            continue
        row = PredictionRow(values={}, file=path, place=f"line {number}")
        try:
            values = decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            raise bad(row, f"the line is no JSON: {err}") from err
        if not isinstance(values, dict):
            raise bad(row, f"the line should hold an object and holds {_kind(values)}")
        yield _checked(msgspec.structs.replace(row, values=values))


def _csv_rows(path: Path, found: Iterable[tuple[int, bytes]]) -> Iterator[PredictionRow]:
    where = PredictionRow(values={}, file=path, place="line 1")

    def decoded() -> Iterator[str]:
        for number, line in found:
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as err:
                raise bad(
                    PredictionRow(values={}, file=path, place=f"line {number}"), f"the line is not UTF-8: {err}"
                ) from err

    reader = csv.reader(decoded(), strict=True)
    try:
        header = next(reader, [])
        if not header or len(set(header)) < len(header):
            raise bad(where, "the header is missing, or names a column twice", "give every column a name of its own")
        for cells in reader:
            row = PredictionRow(values={}, file=path, place=f"line {reader.line_num}")
            if not cells:
                continue
            if len(cells) != len(header):
                raise bad(row, f"the line has {len(cells)} cells where the header has {len(header)}")
            values = {name: _cell(cell) for name, cell in zip(header, cells, strict=True)}
            yield _checked(msgspec.structs.replace(row, values=values))
    except csv.Error as err:
        raise bad(
            PredictionRow(values={}, file=path, place=f"line {reader.line_num}"), f"the line is no CSV: {err}"
        ) from err


def _cell(cell: str) -> object:
    """A cell: empty is nothing; what is a JSON object or list is read as one (options); else text."""
    if not cell.strip():
        return None
    if cell.lstrip()[:1] in "[{":
        try:
            return msgspec.json.decode(cell)
        except (msgspec.DecodeError, RecursionError):
            return cell
    return cell


def _checked(row: PredictionRow) -> PredictionRow:
    for name, value in row.values.items():
        if "\0" in name or (isinstance(value, str) and "\0" in value):
            raise bad(row, f"the field {plain_cell(name)[:60]!r} holds a NUL character")
    return row


def find_fields(path: Path, given: Mapping[str, str], present: Iterable[str]) -> PredictionFields:
    """Which field holds what: as given, else by the first known name that the file has."""
    names = set(present)
    lower = {name.lower(): name for name in sorted(names, reverse=True)}
    found: dict[str, str] = {}
    for role, guesses in GUESSES.items():
        said = given.get(role, "")
        if said and said not in names:
            raise UsageError(
                f"no row has the field {said!r}",
                where=str(path),
                fix=f"the fields are: {', '.join(sorted(names)[:40])}",
            )
        found[role] = said or next((lower[name] for name in guesses if name in lower), "")
    taken = [name for role, name in found.items() if given.get(role)]
    found = {role: name if given.get(role) or name not in taken else "" for role, name in found.items()}
    return PredictionFields(**found)
