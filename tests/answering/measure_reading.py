"""Measures how well choices are read from outputs: `python -m tests.answering.measure_reading [PART…]`.

`data/outputs.jsonl` holds outputs written by hand in the manner of many models, and some that small models really gave
(part `r`), each with the option that a careful reader takes it to choose, or none. All cases are invented. Precision is
the share of read choices that are right, recall the share of stated choices that are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.answering.choice_reader import ParsedChoice, read_choice
from hoofbeat.store.tables import read_jsonl

__all__ = ["Measured", "Row", "labelled_outputs", "measure"]


class Row(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One labelled output; the first letter of the id is its part."""

    id: str
    output: str
    options: list[str]
    label: str | None
    habit: str


class Measured(Struct, frozen=True, kw_only=True):
    """What was read: how many outputs, how many state an option, how many were read, how many of these are right."""

    outputs: int
    stated: int
    read: int
    right: int
    misread: list[tuple[Row, ParsedChoice]]

    @property
    def precision(self) -> float:
        return self.right / self.read

    @property
    def recall(self) -> float:
        return self.right / self.stated

    def line(self, name: str) -> str:
        """One line of a table."""
        return (
            f"{name:<6} {self.outputs:>4} outputs, {self.stated:>3} state an option: {self.read:>3} read, "
            f"{self.right:>3} right; precision {self.precision:.3f}, recall {self.recall:.3f}"
        )


def labelled_outputs() -> list[Row]:
    return list(read_jsonl(Path(__file__).parent / "data" / "outputs.jsonl", Row))


def measure(rows: Iterable[Row]) -> Measured:
    """Read every output and compare."""
    rows = list(rows)
    readings = [read_choice(row.output, row.options) for row in rows]
    pairs = list(zip(rows, readings, strict=True))
    return Measured(
        outputs=len(rows),
        stated=sum(row.label is not None for row in rows),
        read=sum(reading.choice is not None for reading in readings),
        right=sum(reading.choice is not None and reading.choice == row.label for row, reading in pairs),
        misread=[(row, reading) for row, reading in pairs if reading.choice != row.label],
    )


def main(parts: Sequence[str]) -> None:
    rows = labelled_outputs()
    for part in parts or sorted({row.id[0] for row in rows}):
        print(measure([row for row in rows if row.id[0] == part]).line(part))
    whole = measure(rows)
    print(whole.line("all"))
    for row, reading in whole.misread:
        print(
            f"  {row.id} ({row.habit}): {row.output[-70:]!r} is {row.label!r}, read {reading.choice!r} {reading.words}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
