"""Answers and judgments by their question, without holding all of them: a table is read once, then line by line.

A report on a hundred thousand answers shows them question by question, but they are stored system by system. Only
where each line begins is kept; the few records of one question are read when it is their turn.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from hoofbeat.records import Answer, Judgment
from hoofbeat.store.tables import each_line, lines_at

T = TypeVar("T", bound=Answer | Judgment)

System = tuple[str, str]
"""A model and the condition it answered under."""


class _Key(msgspec.Struct, frozen=True):
    """What is read of a line to find it again."""

    question: str
    model: str
    condition: str


class Lookup(Generic[T]):
    """The records of each question, and the systems they are of, both in the order of the table."""

    def __init__(self, find: Callable[[str], list[T]], systems: Iterable[System], total: int) -> None:
        self._find = find
        self.systems = list(systems)
        self.total = total

    def of(self, question: str) -> list[T]:
        """The records of one question."""
        return self._find(question)

    @staticmethod
    def held(records: Iterable[T]) -> Lookup[T]:
        """Records that are in memory."""
        found: dict[str, list[T]] = {}
        systems: dict[System, None] = {}
        total = 0
        for record in records:
            found.setdefault(record.question, []).append(record)
            systems[record.model, record.condition] = None
            total += 1
        return Lookup(lambda question: found.get(question, []), systems, total)

    @staticmethod
    def read(path: Path, kind: type[T]) -> Lookup[T]:
        """Records in a table of JSON lines, found by where they begin."""
        offsets: dict[str, array[int]] = {}
        systems: dict[System, None] = {}
        total = 0
        for offset, found in each_line(path, _Key):
            offsets.setdefault(found.question, array("Q")).append(offset)
            systems[found.model, found.condition] = None
            total += 1
        return Lookup(lambda question: lines_at(path, offsets.get(question, ()), kind), systems, total)

    @staticmethod
    def joined(parts: Sequence[Lookup[T]]) -> Lookup[T]:
        """Several tables as one."""
        if len(parts) == 1:
            return parts[0]
        systems = dict.fromkeys(system for part in parts for system in part.systems)
        return Lookup(
            lambda question: [record for part in parts for record in part.of(question)],
            systems,
            sum(part.total for part in parts),
        )
