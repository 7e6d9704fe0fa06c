"""The texts of a collection that is kept in a file: workers of a cluster read their stretch of it by themselves.

Analysis is so quick that reading, packing and sending every text would keep the command busier than its workers. So a
worker gets the places of some blocks, and reads the file, which is the same on all machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from hoofbeat.records import Passage
from hoofbeat.retrieval.index.chunking import indexed_text
from hoofbeat.retrieval.index.kept_parts import PartPlace, found_part
from hoofbeat.store.tables import IndexedTable

PASSAGES = "passages.jsonl"
"""The file of a collection's passages in their part."""

_RECORDS = 1 << 15
_BYTES = 4 << 20  # of lines in a block: few enough for a quick sort
_TOGETHER = 8  # blocks in a stretch: a stretch names its terms once, and most terms are in all of its blocks
_FEWEST = 32  # stretches before blocks are taken together: every worker should have some


class TextStretch(NamedTuple):
    """Some passages in the order of the collection: where their blocks begin, and where the last one ends."""

    place: PartPlace
    edges: tuple[int, ...]

    def blocks(self) -> Iterator[list[str]]:
        """What retrievers read of each passage, block by block."""
        passages = opened(self.place)
        for first, last in pairwise(self.edges):
            yield [indexed_text(passage) for passage in passages[first:last]]


class StoredTexts(NamedTuple):
    """All passages of a collection, by the place of their file."""

    place: PartPlace

    def stretches(self) -> Iterator[TextStretch]:
        """The passages in stretches of a few blocks of limited number and length."""
        blocks = list(opened(self.place).stretches(_RECORDS, _BYTES))
        together = min(_TOGETHER, max(1, len(blocks) // _FEWEST))
        for first in range(0, len(blocks), together):
            some = blocks[first : first + together]
            yield TextStretch(self.place, (*(block.start for block in some), some[-1].stop))


def opened(place: PartPlace) -> IndexedTable[Passage]:
    """The passages of a collection, memory-mapped.

    A process compares the file with its hash once, not for every stretch that it reads: hashing a file of two gigabytes
    for each of its stretches took four times as long as the index. A file that was changed since is compared again.
    """
    return _opened(place, _state(place))


@lru_cache(maxsize=4)
def _opened(place: PartPlace, _state: tuple[tuple[int, ...], ...]) -> IndexedTable[Passage]:
    return found_part(place, lambda folder: IndexedTable(folder / PASSAGES, Passage))


def _state(place: PartPlace) -> tuple[tuple[int, ...], ...]:
    """What tells one state of a part's files from another; nothing where it is still to be fetched."""
    files = sorted(place.folder.iterdir()) if place.folder.is_dir() else []
    return tuple((found.st_ino, found.st_size, found.st_mtime_ns) for found in (file.stat() for file in files))
