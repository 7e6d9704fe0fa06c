"""Numbers for pieces of text: what stands between two spaces, with its punctuation.

Texts have a hundred times as many pieces as there are different ones, so all depends on telling quickly which piece
this is. Here numpy looks a whole block of text up at once, in a hash table of its own: a piece of up to 15 bytes is two
numbers, compared as they are, so that nothing is ever taken for something else. Longer ones are few, and a dictionary
knows them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PieceTable", "TextPieces", "cut"]

Words = NDArray[np.uint64]

_SPACE = 32
_HALF = 8
_SHORT = 2 * _HALF - 1  # the last byte is for the length
_ROOM = bytes(2 * _HALF)
_FIRST_BITS = 12
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


def _masks(begin: int) -> Words:
    """By length, the bits that belong to a piece in the eight bytes from its byte `begin` on."""
    lengths = (min(max(length - begin, 0), _HALF) for length in range(_SHORT + 1))
    return np.array([(1 << 8 * length) - 1 for length in [*lengths, 0]], np.uint64)


_MASKS = _masks(0), _masks(_HALF)
_LENGTHS = np.arange(_SHORT + 2, dtype=np.uint64) << np.uint64(8 * (_HALF - 1))


class TextPieces(NamedTuple):
    """Texts cut into pieces: where each begins and ends, its two numbers if it is short, and how many a text has."""

    text: bytes
    begins: NDArray[np.intp]
    ends: NDArray[np.intp]
    first: Words
    second: Words
    sizes: NDArray[np.int64]

    def pieces(self, places: NDArray[np.intp]) -> list[bytes]:
        """The pieces at these places."""
        bounds = zip(self.begins[places].tolist(), self.ends[places].tolist(), strict=True)
        return [self.text[begin:end] for begin, end in bounds]


def cut(texts: list[str]) -> TextPieces:
    """Cut texts at their spaces, tabs and line ends (and other control characters of ASCII)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    text = b" ".join([*encoded, _ROOM])
    data = np.frombuffer(text, np.uint8)[: -len(_ROOM)]
    ends = np.flatnonzero(data <= _SPACE)
    begins = np.zeros_like(ends)
    np.add(ends[:-1], 1, out=begins[1:])
    lengths = np.minimum(ends - begins, _SHORT + 1)
    windows = np.ndarray((len(text) - _HALF + 1,), "<u8", text, strides=(1,))
    first = windows[begins].astype(np.uint64, copy=False)
    first &= _MASKS[0].take(lengths)
    second = _LENGTHS.take(lengths)
    longer = np.flatnonzero(lengths > _HALF)
    second[longer] |= windows[begins[longer] + _HALF] & _MASKS[1].take(lengths[longer])
    text_ends = np.cumsum([len(one) + 1 for one in encoded], dtype=np.int64) - 1
    sizes = np.diff(np.searchsorted(ends, text_ends) + 1, prepend=0).astype(np.int64)
    return TextPieces(text, begins, ends, first, second, sizes)


class PieceTable:
    """The different pieces seen so far, numbered as they came. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._count = 0
        self._long: dict[bytes, int] = {}
        self._make_table(_FIRST_BITS)

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def number(self, found: TextPieces) -> tuple[NDArray[np.int32], list[str]]:
        """The number of each piece, and those pieces that are new, in the order of their numbers."""
        numbers, _ = self._look_up(found.first, found.second)
        new = []
        long = np.flatnonzero(found.ends - found.begins > _SHORT)
        for place, piece in zip(long.tolist(), found.pieces(long), strict=True):
            number = self._long.setdefault(piece, self._count)
            if number == self._count:
                self._count += 1
                new.append(piece)
            numbers[place] = number
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            unknown = unknown[np.lexsort((found.second[unknown], found.first[unknown]))]
            first, second = found.first[unknown], found.second[unknown]
            distinct = np.ones(len(unknown), bool)
            distinct[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
            numbers[unknown] = self._count - 1 + np.cumsum(distinct)
            self._add(first[distinct], second[distinct])
            new += found.pieces(unknown[distinct])
        return numbers, [piece.decode("utf-8", "surrogatepass") for piece in new]

    # The table: a piece stands in the first free slot from the one on that its numbers lead to.

    def _make_table(self, bits: int) -> None:
        self._bits = bits
        self._first, self._second = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.uint64)
        self._numbers = np.full(1 << bits, -1, np.int32)

    def _look_up(self, first: Words, second: Words) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The numbers of pieces, -1 for unknown ones, and the slots where they stand or would."""
        mixed = first * _MIX[0]
        mixed ^= second * _MIX[1]
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX[0]
        mixed >>= np.uint64(64 - self._bits)
        slots = mixed.astype(np.intp)
        numbers = self._numbers[slots]
        others = self._first[slots] != first
        others |= self._second[slots] != second
        others &= numbers >= 0
        places = np.flatnonzero(others)
        while len(places):
            here = (slots[places] + 1) & ((1 << self._bits) - 1)
            slots[places], numbers[places] = here, self._numbers[here]
            others = (self._first[here] != first[places]) | (self._second[here] != second[places])
            places = places[others & (self._numbers[here] >= 0)]
        return numbers, slots

    def _add(self, first: Words, second: Words) -> None:
        """Give the next numbers to pieces that are not there; the table stays at most half full."""
        numbers = np.arange(self._count, self._count + len(first), dtype=np.int32)
        self._count += len(first)
        if 2 * self._count > len(self._numbers):
            taken = self._numbers >= 0
            old = self._first[taken], self._second[taken], self._numbers[taken]
            self._make_table((2 * self._count).bit_length())
            self._put(*old)
        self._put(first, second, numbers)

    def _put(self, first: Words, second: Words, numbers: NDArray[np.int32]) -> None:
        while len(numbers):
            _, slots = self._look_up(first, second)
            self._numbers[slots] = numbers
            settled = self._numbers[slots] == numbers  # of several in one slot, one
            self._first[slots[settled]], self._second[slots[settled]] = first[settled], second[settled]
            first, second, numbers = first[~settled], second[~settled], numbers[~settled]
