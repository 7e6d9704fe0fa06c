"""Tables of JSON lines that are too long to hold: where each line begins, and single lines read again from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError

__all__ = ["each_line", "lines_at", "spans_at"]

T = TypeVar("T", bound=Struct)


def each_line(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Where each line begins, and what is wanted of it."""
    decode = msgspec.json.Decoder(kind).decode
    offset = 0
    try:
        with path.open("rb") as stream:
            for line in stream:
                if not line.isspace():
                    yield offset, decode(line)
                offset += len(line)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise _unreadable(path, err) from err


def lines_at(path: Path, offsets: Iterable[int], kind: type[T]) -> list[T]:
    """The records that begin at these places."""
    return spans_at(path, ((offset, 1) for offset in offsets), kind)


def spans_at(path: Path, spans: Iterable[tuple[int, int]], kind: type[T]) -> list[T]:
    """The records of these spans: where each begins, and how many lines it has."""
    decode = msgspec.json.Decoder(kind).decode
    found = []
    try:
        with path.open("rb") as stream:
            for offset, count in spans:
                stream.seek(offset)
                found += [decode(line) for line in islice(stream, count)]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise _unreadable(path, err) from err
    return found


def _unreadable(path: Path, err: Exception) -> InputError:
    return InputError(f"can't read the table: {err}", where=str(path), fix="restore the folder, or make it again")
