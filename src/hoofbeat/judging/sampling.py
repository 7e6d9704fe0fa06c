"""Drawing a fixed number of items from a stream of unknown length: those whose seeded hash is lowest.

The hash is of what identifies an item, so the draw does not depend on the order of the stream, and an item keeps its
place when others are added.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping
from typing import Generic, TypeVar

from hoofbeat.judging.aspects import Key
from hoofbeat.store.tables import canonical_json

__all__ = ["Draw", "allot", "blind_code"]

Item = TypeVar("Item")


def _hash(value: object) -> int:
    return int.from_bytes(hashlib.blake2b(canonical_json(value), digest_size=16).digest(), "big")


def blind_code(key: Key, aspect: str) -> str:
    """A name for an answer that tells nothing about it: twelve digits of a hash."""
    return f"{_hash(['blind', aspect, *key]) >> 80:012x}"


class Draw(Generic[Item]):
    """A sample of at most `size` items, uniform, from all that were offered."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.seen = 0
        self._heap: list[tuple[int, int, Item]] = []

    def offer(self, key: Key, item: Item) -> None:
        """Take the item in if its hash is low enough."""
        self.seen += 1
        entry = (-_hash(["draw", self.seed, *key]), self.seen, item)
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, entry)
        elif self.size and entry > self._heap[0]:
            heapq.heapreplace(self._heap, entry)

    def drawn(self, count: int | None = None) -> list[Item]:
        """The items drawn, in the order of their hashes; with a count, the first so many."""
        ordered = [item for _, _, item in sorted(self._heap, key=lambda entry: (-entry[0], entry[1]))]
        return ordered if count is None else ordered[:count]


def allot(sizes: Mapping[tuple[str, ...], int], count: int) -> dict[tuple[str, ...], int]:
    """How many of `count` each stratum gives: in proportion to its size, the rest to the largest remainders."""
    total = sum(sizes.values())
    wanted = min(count, total)
    shares = {name: wanted * size / total for name, size in sizes.items()} if total else {}
    given = {name: int(share) for name, share in shares.items()}
    order = sorted(shares, key=lambda name: (given[name] - shares[name], name))
    for name in order[: wanted - sum(given.values())]:
        given[name] += 1
    return given
