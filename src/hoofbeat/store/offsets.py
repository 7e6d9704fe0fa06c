"""JSON lines by offset: tables too long to hold are read once, and single records again from where their lines begin.

Every reader of JSON lines in Hoofbeat is here or rests on this module. A caller keeps only the offsets (eight bytes per
line in an `array("Q")` or a NumPy column) and what it needs to find a line again.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, overload

import msgspec

from hoofbeat.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

_DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


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
    except _DAMAGED as err:
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
    except _DAMAGED as err:
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
