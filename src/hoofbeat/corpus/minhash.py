"""MinHash over word shingles, in numpy: a document becomes a few hundred numbers that agree as often as texts overlap.

A text is the set of its runs of five words; two texts resemble each other by the Jaccard index of their sets. The
smallest value of a set under a seeded hash is the same for two sets with just that probability, so a signature of many
such values estimates it, and cutting signatures into bands finds pairs above a threshold without comparing all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Shingles = NDArray[np.uint64]
Signature = NDArray[np.uint32]

WIDTH = 5
SEED = 20240229
MAX_SIGNATURE = 512
MISSED = 0.005

_WORD = re.compile(r"\w+")
_REMEMBERED = 200_000
_BLOCK = 2048
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Shingler:
    """Texts to sets of hashed shingles; words' hashes are remembered, up to a limit."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self._hashes: dict[str, int] = {}

    def __call__(self, text: str) -> Shingles:
        """The distinct shingles of a text, sorted; a text shorter than one is a single shingle, an empty one none."""
        words = _WORD.findall(text.lower())
        if not words:
            return np.zeros(0, np.uint64)
        if len(self._hashes) > _REMEMBERED:
            self._hashes.clear()
        known = self._hashes
        for word in words:
            if word not in known:
                known[word] = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
        hashes = np.fromiter((known[word] for word in words), np.uint64, len(words))
        width = min(self.width, len(words))
        mixed = np.zeros(len(words) - width + 1, np.uint64)
        for place in range(width):
            mixed = mixed * _BASE + hashes[place : place + len(mixed)]
        return np.unique(_scattered(mixed))


class Banding(Struct, frozen=True):
    """How a signature is cut: `bands` bands of `rows` values; a pair is looked at when one band agrees wholly."""

    bands: int
    rows: int

    @property
    def size(self) -> int:
        """The values of a signature."""
        return self.bands * self.rows

    @staticmethod
    def for_threshold(threshold: float) -> Banding:
        """The widest bands that miss fewer than one pair in 200 at the threshold, within the largest signature."""
        for rows in range(12, 1, -1):
            chance = threshold**rows
            bands = 1 if chance >= 1 else math.ceil(math.log(MISSED) / math.log1p(-chance))
            if bands * rows <= MAX_SIGNATURE:
                return Banding(max(bands, 8), rows)
        return Banding(MAX_SIGNATURE, 1)


class Signer:
    """Sets of shingles to signatures, by seeded hashes."""

    def __init__(self, banding: Banding, seed: int = SEED) -> None:
        self.banding = banding
        random = np.random.default_rng(seed)
        self._factors = random.integers(0, 2**32, banding.size, np.uint32) | np.uint32(1)
        self._offsets = random.integers(0, 2**32, banding.size, np.uint32)

    def __call__(self, shingles: Shingles) -> Signature:
        """The smallest value of the set under each hash."""
        lowest = np.full(self.banding.size, np.iinfo(np.uint32).max, np.uint32)
        values = (shingles >> np.uint64(32)).astype(np.uint32)
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            hashed = self._factors[:, None] * block[None, :]
            hashed += self._offsets[:, None]
            np.minimum(lowest, hashed.min(axis=1), out=lowest)
        return lowest

    def band_keys(self, signatures: NDArray[np.uint32]) -> Iterator[NDArray[np.uint64]]:
        """Band by band, one number for each signature: equal where the band is."""
        for start in range(0, self.banding.size, self.banding.rows):
            keys = np.zeros(len(signatures), np.uint64)
            for place in range(start, start + self.banding.rows):
                keys = _scattered(keys * _BASE + signatures[:, place].astype(np.uint64))
            yield keys


def jaccard(one: Shingles, other: Shingles) -> float:
    """The exact Jaccard index of two sets of shingles; two empty ones share nothing."""
    if not len(one) or not len(other):
        return 0.0
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def _scattered(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    result: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return result
