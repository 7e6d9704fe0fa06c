"""Passages kept in a file and read one at a time, so that a million of them take no more memory than their places."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.records import Passage

__all__ = ["PassageFile", "write_passages"]

_TEXTS = "passages.jsonl"
_PLACES = "passages.npy"
_decode = msgspec.json.Decoder(Passage).decode


def write_passages(folder: Path, passages: Iterable[Passage]) -> None:
    """Write passages into a folder, a JSON line each, with the place where each line begins."""
    encode = msgspec.json.Encoder().encode
    places = [0]
    with (folder / _TEXTS).open("wb") as stream:
        for passage in passages:
            places.append(places[-1] + stream.write(encode(passage) + b"\n"))
    np.save(folder / _PLACES, np.array(places, np.int64))


class PassageFile(Sequence[Passage]):
    """The passages of a folder that `write_passages` made."""

    def __init__(self, folder: Path) -> None:
        self._places: NDArray[np.int64] = np.load(folder / _PLACES, mmap_mode="r")
        with (folder / _TEXTS).open("rb") as stream:
            self._lines: mmap.mmap | bytes = (
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if self._places[-1] else b""
            )
        if len(self._lines) != self._places[-1]:
            raise ValueError("the passages' file is cut off")

    def __len__(self) -> int:
        return len(self._places) - 1

    @overload
    def __getitem__(self, place: int) -> Passage: ...

    @overload
    def __getitem__(self, place: slice) -> list[Passage]: ...

    def __getitem__(self, place: int | slice) -> Passage | list[Passage]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        return _decode(self._lines[self._places[place] : self._places[place + 1]])

    def __iter__(self) -> Iterator[Passage]:
        for place in range(len(self)):
            yield self[place]
