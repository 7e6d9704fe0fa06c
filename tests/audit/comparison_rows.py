"""Comparisons as the table of an audit's folder, for tests that make up their pairs."""

from __future__ import annotations

from collections.abc import Iterable

import polars

from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.records import Comparison

__all__ = ["comparison_frame"]


def comparison_frame(comparisons: Iterable[Comparison], kinds: TableEnums) -> polars.DataFrame:
    """Comparisons as rows of the table, sorted; records do not tell tokens."""
    rows = [_row(item) for item in comparisons]
    return polars.DataFrame(rows, schema=kinds.schema(), orient="row").sort("question", "a", "b")


def _row(item: Comparison) -> tuple[object, ...]:
    failure = item.failure
    return (
        item.question,
        item.a,
        item.b,
        item.label or None,
        item.basis or None,
        item.topic,
        item.significance,
        item.judge or None,
        item.reasoning or None,
        failure.kind if failure else None,
        failure.message if failure else None,
        failure.attempts if failure else None,
        None,
        None,
        list(item.calls) or None,
        list(item.votes) or None,
    )
