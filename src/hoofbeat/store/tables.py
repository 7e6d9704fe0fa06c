"""Tables inside artefacts: JSONL and TSV for what people read and diff, CSV to give away, Parquet for what grows large.

JSONL lines are records of one type in a fixed field order, UTF-8, one newline each: the same records give the same
bytes. TSV and CSV cells that a spreadsheet would take for a formula are written so that it does not.

JSON lines too long to hold are read once, and single records again from where their lines begin: a caller keeps only
the offsets (eight bytes per line in an `array("Q")` or a NumPy column) and what it needs to find a line again.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import mmap
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, overload

import msgspec

from hoofbeat.errors import InputError
from hoofbeat.store.files import atomic_write, output_errors

if TYPE_CHECKING:
    import numpy as np
    import polars
    from numpy.typing import NDArray

T = TypeVar("T")

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What the decoder raises for JSON that others wrote: damaged, not UTF-8, or nested without end."""


def each_line(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Where each line begins, and its record; `kind` may name only the fields that are wanted.

    Blank lines are passed over. A line that can't be read is an `InputError` that gives its number.
    """
    decode = msgspec.json.Decoder(kind).decode
    offset = number = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):  # noqa: B007 - told when a line can't be read
                if not line.isspace():
                    yield offset, decode(line)
                offset += len(line)
    except UNREADABLE as err:
        raise InputError(
            f"line {number} of {path.name} can't be read: {err}",
            where=str(path),
            fix="restore the file from its origin, or correct that line",
        ) from err
    except OSError as err:
        raise _out_of_reach(path, err) from err


def lines_at(path: Path, offsets: Iterable[int], kind: type[T]) -> list[T]:
    """The records that begin at these offsets."""
    return spans_at(path, ((offset, 1) for offset in offsets), kind)


def spans_at(path: Path, spans: Iterable[tuple[int, int]], kind: type[T]) -> list[T]:
    """The records of these spans: where each span begins, and how many lines it has."""
    decode = msgspec.json.Decoder(kind).decode
    found = []
    try:
        with path.open("rb") as stream:
            for offset, count in spans:
                stream.seek(offset)
                found += [decode(stream.readline()) for _ in range(count)]
    except UNREADABLE as err:
        raise InputError(
            f"a line of {path.name} can't be read: {err}", where=str(path), fix="restore the folder, or make it again"
        ) from err
    except OSError as err:
        raise _out_of_reach(path, err) from err
    return found


def _out_of_reach(path: Path, err: OSError) -> InputError:
    return InputError(
        f"can't read the table: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
    )


def write_indexed(path: Path, records: Iterable[object]) -> None:
    """Write JSON lines, and beside them (`.npy`) where each begins: an `IndexedTable` opens without reading them."""
    import numpy as np  # noqa: PLC0415 - 0.1 s that most commands need not pay

    encode = msgspec.json.Encoder().encode
    offsets = array("q", [0])
    with path.open("wb") as stream:
        for record in records:
            offsets.append(offsets[-1] + stream.write(encode(record) + b"\n"))
    np.save(path.with_suffix(".npy"), np.array(offsets, np.int64))


class IndexedTable(Sequence[T], Generic[T]):
    """The records that `write_indexed` wrote. Both files are mapped: a million records take no memory until read."""

    def __init__(self, path: Path, kind: type[T]) -> None:
        import numpy as np  # noqa: PLC0415 - 0.1 s that most commands need not pay

        self._decode = msgspec.json.Decoder(kind).decode
        self._offsets: NDArray[np.int64] = np.load(path.with_suffix(".npy"), mmap_mode="r")
        with path.open("rb") as stream:
            self._lines: mmap.mmap | bytes = (
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if self._offsets[-1] else b""
            )
        if len(self._lines) != self._offsets[-1]:
            raise ValueError(f"{path.name} is cut off")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return self._decode(self._lines[self._offsets[place] : self._offsets[place + 1]])

    def __iter__(self) -> Iterator[T]:
        for place in range(len(self)):
            yield self[place]

    def stretches(self, records: int, size: int) -> Iterator[range]:
        """All places in their order, in stretches with a maximum of records and bytes; a longer record is alone."""
        first = 0
        while first < len(self):
            within = int(self._offsets.searchsorted(self._offsets[first] + size, "right")) - 1
            last = min(max(within, first + 1), first + records, len(self))
            yield range(first, last)
            first = last


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


def write_jsonl(path: Path, records: Iterable[object], *, private: bool = False) -> int:
    """Write records as JSON lines; returns how many. The file appears whole or not at all (`atomic_write`)."""
    count = 0
    with atomic_write(path, private=private) as stream:
        for line in jsonl_lines(records):
            stream.write(line)
            count += 1
    return count


def jsonl_lines(records: Iterable[object]) -> Iterator[bytes]:
    """Records as the lines of a JSONL file."""
    for record in records:
        yield _encode(record) + b"\n"


def read_jsonl(path: Path, kind: type[T]) -> Iterator[T]:
    """Read JSON lines as records of one type, one at a time; a bad line is named by its number."""
    for _, record in each_line(path, kind):
        yield record


def plain_cell(value: object) -> str:
    """A TSV or CSV cell: tabs and newlines become spaces; what a spreadsheet would run as a formula gets a quote.

    A number that is not finite, such as the end of an interval that few values leave open, has an empty cell.
    """
    text = "" if value is None or (isinstance(value, float) and not math.isfinite(value)) else str(value)
    text = text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
    return _guarded(text) if isinstance(value, str) else text


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run the text."""
    return bool(_FORMULA.match(text))


def _guarded(text: str) -> str:
    """The text, with a quote before what a spreadsheet would run; `bare_cell` takes it away again."""
    return "'" + text if is_formula(text) else text


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
    """Read a tab-separated table with a header line, a dictionary a row; undoes `plain_cell`'s quotes.

    A column that the table lacks is an `InputError` where a row is asked for it.
    """

    class Row(dict[str, str]):
        def __missing__(self, name: str) -> str:
            raise InputError(
                f"the table has no column {name}", where=str(path), fix="restore the file, or make its folder again"
            )

    try:
        with path.open(encoding="utf-8-sig") as stream:
            header = stream.readline().rstrip("\n").split("\t")
            for number, line in enumerate(stream, start=2):
                cells = line.rstrip("\n").split("\t")
                if len(cells) != len(header):
                    raise InputError(
                        f"line {number} has {len(cells)} cells, but the header has {len(header)}",
                        where=str(path),
                        fix="correct that line",
                    )
                yield Row(zip(header, map(bare_cell, cells), strict=True))
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(
            f"can't read the table: {err}", where=str(path), fix="check the path, its permissions and its encoding"
        ) from err


def number_cell(row: Mapping[str, str], name: str, path: Path) -> float:
    """The number in a column of a TSV row; an `InputError` where the column is missing or holds something else."""
    try:
        return float(row[name])
    except ValueError as err:
        raise InputError(
            f"{path.name} has no number in the column {name}",
            where=str(path),
            fix="restore the folder or make it again",
        ) from err


def write_parquet(path: Path, frame: polars.DataFrame) -> int:
    """Write a data frame as Parquet, atomically and with the same bytes for the same frame."""
    with output_errors(path), atomic_write(path) as stream:
        frame.write_parquet(stream, compression="zstd", statistics=True)
    return frame.height


def table_errors() -> tuple[type[BaseException], ...]:
    """What reading a damaged table raises. Polars panics over some files, and a panic is not an `Exception`."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    return OSError, polars.exceptions.PolarsError, polars.exceptions.PanicException


def is_panic(err: BaseException) -> bool:
    """Whether native code has given up, as Polars does over some damaged tables; not an `Exception`."""
    return type(err).__name__ == "PanicException"


def table_reason(err: BaseException) -> str:
    """Why a table can't be read, in a line; what a panic says means something to the authors of Polars only."""
    return "it is damaged" if is_panic(err) else next(iter(str(err).splitlines()), "")


def table_trouble(err: BaseException) -> InputError | None:
    """An error of the libraries that read tables and JSON in our words; None where it is something else.

    Tables are read lazily, so that damage shows wherever their values are first needed.
    """
    from_tables = isinstance(err, msgspec.MsgspecError) or type(err).__module__.startswith(("polars", "pyarrow"))
    if not from_tables and not is_panic(err):
        return None
    return InputError(
        f"a file can't be read: {table_reason(err)}",
        fix="find the damaged folder with hoofbeat verify FOLDER, and restore it",
    )


_TRIAL = """
import sys, polars
if sys.argv[2] == "a Parquet table":
    polars.read_parquet(sys.argv[1])
else:
    try:
        polars.read_ipc_stream(sys.argv[1])
    except polars.exceptions.ComputeError:
        polars.read_ipc(sys.argv[1])
"""


def check_survived(path: Path, kind: str) -> None:
    """Refuse a table that a process does not survive to read, whatever else it finds there.

    Polars asks for as much memory as a damaged file says, and that ends the process: no error could be caught.
    """
    stat = path.stat()
    if not _ends_well(path, kind, (stat.st_size, stat.st_mtime_ns)):
        raise InputError(f"not readable as {kind}: it is damaged", where=str(path), fix="save it again")


@lru_cache(maxsize=256)
def _ends_well(path: Path, kind: str, stamp: tuple[int, int]) -> bool:  # noqa: ARG001 - a changed file is tried again
    import subprocess  # noqa: PLC0415 - only where somebody's table is read

    words = [sys.executable, "-P", "-c", _TRIAL, str(path), kind]
    return subprocess.run(words, capture_output=True, check=False).returncode >= 0  # noqa: S603


def read_foreign_parquet(path: Path) -> polars.DataFrame:
    """Read a Parquet table that is no part of an artefact: a file that somebody made with anything."""
    check_survived(path, "a Parquet table")
    return read_parquet(path)


def read_parquet(path: Path) -> polars.DataFrame:
    """Read a Parquet table."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    try:
        return polars.read_parquet(path)
    except table_errors() as err:
        raise InputError(
            f"can't read the Parquet table: {table_reason(err)}",
            where=str(path),
            fix="restore the file or make the artefact again",
        ) from err
