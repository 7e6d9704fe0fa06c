"""Tables inside artefacts: JSONL and TSV for what people read and diff, CSV to give away, Parquet for what grows large.

JSONL lines are records of one type in a fixed field order, UTF-8, one newline each: the same records give the same
bytes. TSV and CSV cells that a spreadsheet would take for a formula are written so that it does not.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from hoofbeat.errors import InputError
from hoofbeat.store.atomic_files import atomic_write, output_errors
from hoofbeat.store.offsets import each_line

if TYPE_CHECKING:
    import polars

T = TypeVar("T")

_FORMULA = re.compile(r"""[\s\x00-\x1f\u200b-\u200f\ufeff'"]*[=+\-@＝＋－＠]""")  # with what spreadsheets pass over

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


def canonical_json(value: object) -> bytes:
    """The one JSON form of a value: keys sorted, no spaces. Its hash identifies the content."""
    return _encode_sorted(value)


def content_sha256(value: object) -> str:
    """The SHA-256 of a value's one JSON form, in hexadecimal."""
    return hashlib.sha256(_encode_sorted(value)).hexdigest()


def seeded_number(*parts: object, size: int = 8) -> int:
    """A number of `size` bytes that these parts alone decide, for draws and orders that are the same every time."""
    return int.from_bytes(hashlib.blake2b(_encode_sorted(parts), digest_size=size).digest(), "big")


def write_jsonl(path: Path, records: Iterable[object]) -> int:
    """Write records as JSON lines; returns how many. The file appears whole or not at all."""
    count = 0
    with atomic_write(path) as stream:
        for record in records:
            stream.write(_encode(record))
            stream.write(b"\n")
            count += 1
    return count


def read_jsonl(path: Path, kind: type[T]) -> Iterator[T]:
    """Read JSON lines as records of one type, one at a time; a bad line is named by its number."""
    for _, record in each_line(path, kind):
        yield record


def plain_cell(value: object) -> str:
    """A TSV or CSV cell: tabs and newlines become spaces; what a spreadsheet would run as a formula gets a quote."""
    text = "" if value is None else str(value)
    text = text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
    return _guarded(text) if isinstance(value, str) else text


def _guarded(text: str) -> str:
    """The text, with a quote before what a spreadsheet would run; `bare_cell` takes it away again."""
    return "'" + text if _FORMULA.match(text) else text


def bare_cell(cell: str) -> str:
    """A cell that was read back, without the quote that kept a spreadsheet from running it."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def write_tsv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Write a tab-separated table with a header line; returns the number of rows."""
    count = 0
    with atomic_write(path) as stream:
        stream.write(("\t".join(header) + "\n").encode())
        for row in rows:
            stream.write(("\t".join(plain_cell(cell) for cell in row) + "\n").encode())
            count += 1
    return count


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> int:
    """Write a comma-separated table whose cells no spreadsheet runs; returns the number of rows.

    Line breaks inside cells stay, all as newlines.
    """
    count = 0
    with atomic_write(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow([_guarded(cell.replace("\r\n", "\n").replace("\r", "\n")) for cell in row])
            count += 1
        text.flush()
        text.detach()
    return count


def read_tsv(path: Path) -> Iterator[dict[str, str]]:
    """Read a tab-separated table with a header line, a dictionary a row; undoes `plain_cell`'s quotes."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            header = stream.readline().rstrip("\n").split("\t")
            for number, line in enumerate(stream, start=2):
                cells = line.rstrip("\n").split("\t")
                if len(cells) != len(header):
                    raise InputError(
                        f"line {number} has {len(cells)} cells where the header has {len(header)}",
                        where=str(path),
                        fix="correct that line",
                    )
                yield dict(zip(header, map(bare_cell, cells), strict=True))
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(
            f"can't read the table: {err}", where=str(path), fix="check the path, its permissions and its encoding"
        ) from err


def write_parquet(path: Path, frame: polars.DataFrame) -> int:
    """Write a data frame as Parquet, atomically and with the same bytes for the same frame."""
    with output_errors(path), atomic_write(path) as stream:
        frame.write_parquet(stream, compression="zstd", statistics=True)
    return frame.height


def read_parquet(path: Path) -> polars.DataFrame:
    """Read a Parquet table."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    try:
        return polars.read_parquet(path)
    except (OSError, polars.exceptions.PolarsError) as err:
        raise InputError(
            f"can't read the Parquet table: {err}", where=str(path), fix="restore the file or make the artefact again"
        ) from err
