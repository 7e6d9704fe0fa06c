"""The texts of a collection that is kept in a file: workers of a cluster read their stretch of it by themselves.

Analysis is so quick that reading, packing and sending every text would keep the command busier than its workers. So a
worker gets two numbers, and reads the file, which is the same on all machines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hoofbeat.records import Passage
from hoofbeat.retrieval.index.chunking import indexed_text
from hoofbeat.retrieval.index.kept_parts import PartPlace, found_part
from hoofbeat.store.tables import IndexedTable

PASSAGES = "passages.jsonl"
"""The file of a collection's passages in their part."""

_RECORDS = 1 << 15
_BYTES = 4 << 20  # of lines: enough that the names of a stretch's terms weigh little, few enough for a quick sort


class TextStretch(NamedTuple):
    """Some passages in the order of the collection, by their places."""

    place: PartPlace
    first: int
    last: int

    def read(self) -> list[str]:
        """What retrievers read of each passage."""
        return [indexed_text(passage) for passage in opened(self.place)[self.first : self.last]]


class StoredTexts(NamedTuple):
    """All passages of a collection, by the place of their file."""

    place: PartPlace

    def stretches(self) -> Iterator[TextStretch]:
        """The passages in stretches of limited number and length."""
        for stretch in opened(self.place).stretches(_RECORDS, _BYTES):
            yield TextStretch(self.place, stretch.start, stretch.stop)


def opened(place: PartPlace) -> IndexedTable[Passage]:
    """The passages of a collection, memory-mapped."""
    return found_part(place, lambda folder: IndexedTable(folder / PASSAGES, Passage))
