"""Drawing a fixed number of items from a stream of unknown length, so that each is as likely to be drawn as any other.

Within a stratum, those are drawn whose seeded hash is lowest. The hash is of what identifies an item, so the draw does
not depend on the order of the stream, and an item keeps its place when others are added. How many a stratum gives is
rounded at random: a stratum to which a third of an item is due gives one in a third of all draws, never always none.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from fractions import Fraction
from typing import Generic, TypeVar

from hoofbeat.judging.criteria import Key
from hoofbeat.store.tables import seeded_number

Item = TypeVar("Item")
Name = tuple[str, ...]


def blind_code(key: Key, aspect: str, secret: bytes) -> str:
    """A name for an answer that tells nothing about it: twelve digits of a hash with a `secret` (`blinding_secret`).

    Without a secret (`b""`) it is the code of sheets that were made before there was one.
    """
    hidden = (secret.hex(),) if secret else ()
    return f"{seeded_number('blind', aspect, *key, *hidden, size=16) >> 80:012x}"


class ReservoirSample(Generic[Item]):
    """A sample of at most `size` items, uniform, from all that were offered."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.seen = 0
        self._heap: list[tuple[int, int, Item]] = []

    def offer(self, key: Key, item: Item) -> None:
        """Take the item in if its hash is low enough."""
        self.seen += 1
        entry = (-seeded_number("draw", self.seed, *key, size=16), self.seen, item)
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, entry)
        elif self.size and entry > self._heap[0]:
            heapq.heapreplace(self._heap, entry)

    def drawn(self, count: int | None = None) -> list[Item]:
        """The items drawn, in the order of their hashes; with a count, the first of that number."""
        ordered = [item for _, _, item in sorted(self._heap, key=lambda entry: (-entry[0], entry[1]))]
        return ordered if count is None else ordered[:count]


def allot(sizes: Mapping[Name, int], count: int, seed: int, of: Name = ()) -> dict[Name, int]:
    """How many of `count` each stratum gives: its share by size, rounded up or down at random so that it is right on
    average, and all together exactly `count` (or everything there is). `of` names what the strata are parts of.

    This is systematic sampling: the shares are laid end to end in a random order, and every whole number from a random
    start falls into one of them. An item's chance to be drawn is the same in every stratum.
    """
    total = sum(sizes.values())
    wanted = min(count, total)
    order = sorted(sizes, key=lambda name: (seeded_number("order", seed, of, name, size=16), name))
    start = Fraction(seeded_number("start", seed, of, size=16) >> 64, 1 << 64)
    given: dict[Name, int] = {}
    end, passed = Fraction(0), 0
    for name in order:
        end += Fraction(wanted * sizes[name], total) if total else 0
        reached = -((start - end) // 1)  # how many of start, start + 1, ... lie before the end
        given[name] = int(reached) - passed
        passed = int(reached)
    return {name: given[name] for name in sizes}


def allot_within(sizes: Mapping[Name, int], count: int, seed: int) -> dict[Name, int]:
    """How many each stratum gives, where a stratum is named by its system and, last, the judge's label.

    What each system gives is allotted first, then among the labels within it. So the answers drawn of a system are a
    random sample of its answers, all equally likely, in which the judge's labels are mixed as in all of them.
    """
    systems: dict[Name, dict[Name, int]] = {}
    for name, size in sizes.items():
        systems.setdefault(name[:-1], {})[name] = size
    share = allot({system: sum(parts.values()) for system, parts in systems.items()}, count, seed)
    within = [allot(parts, share[system], seed, system) for system, parts in systems.items()]
    given = {name: number for parts in within for name, number in parts.items()}
    return {name: given[name] for name in sizes}
