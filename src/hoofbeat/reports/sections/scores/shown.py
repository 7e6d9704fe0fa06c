"""What the sections on scores share: what they give back, and how figures with their unscored answers are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from hoofbeat.findings.accuracy import Accuracy
from hoofbeat.findings.intervals import Interval
from hoofbeat.reports.model import Block, Details
from hoofbeat.reports.section import OwnFigure
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.text import some_of

__all__ = [
    "SENSITIVITY_NOTE",
    "UNSCORED",
    "ScoreBlocks",
    "folded",
    "interval_of",
    "method_of",
    "missing",
    "triple",
    "wilson_note",
]


_NAMED = 6

UNSCORED = Column("unscored", "count")

SENSITIVITY_NOTE = (
    "An answer without a score stays in the denominator. Where such answers exceed 1%, sensitivity is the figure had "
    "all of them been wrong and had all been right."
)


class ScoreBlocks(Struct, frozen=True, kw_only=True):
    """What a section shows, and its figures that papers publish, too."""

    blocks: tuple[Block, ...] = ()
    ours: tuple[OwnFigure, ...] = ()


def folded(table: Table, most: int = 20) -> Block:
    """The table, behind a line where it is long."""
    if len(table.rows) <= most:
        return table
    return Details(f"{table.caption}: a table of {len(table.rows)} rows", (table,))


def missing(unscored: Mapping[str, int]) -> int:
    """How many answers have no score."""
    return sum(unscored.values())


def triple(value: float | None, interval: Interval | None) -> Cell:
    """A figure with its interval as a cell."""
    if value is None or interval is None:
        return value
    return value, interval.low, interval.high


def interval_of(row: Accuracy) -> tuple[float, float]:
    """The bootstrap interval, or Wilson's where resampling shows no spread; `method_of` names which."""
    chosen = row.wilson if _no_spread(row) else row.bootstrap
    return chosen.low, chosen.high


def method_of(row: Accuracy) -> str:
    """Which of its intervals `interval_of` gives."""
    return "Wilson" if _no_spread(row) else "bootstrap"


def wilson_note(rows: Iterable[Accuracy]) -> str:
    """A sentence that names the systems for which Wilson's interval stands in place of the bootstrap's; or nothing."""
    found = list(dict.fromkeys(f"{row.model} · {row.condition}" for row in rows if _no_spread(row)))
    if not found:
        return ""
    return f" Where resampling shows no spread, Wilson's interval stands instead: {some_of(found, _NAMED)}."


def _no_spread(row: Accuracy) -> bool:
    return row.bootstrap.low == row.bootstrap.high
