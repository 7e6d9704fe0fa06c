"""The table of an audit's pairs: one Parquet row for every planned pair, sorted by question and the two sources.

The columns that repeat (question, sources, label, basis, judge) are enumerations whose categories are written with the
table, so that millions of rows take a few bytes each. What a pair does not have is null.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.records import Comparison, Failure, FailureKind
from hoofbeat.store.tables import table_errors, table_reason

if TYPE_CHECKING:
    import polars

BASES = ("judged", "absent", "same", "shared", "group")
COLUMNS = (
    "question", "a", "b", "label", "basis", "topic", "significance", "judge", "reasoning", "failure",
    "failure_message", "failure_attempts", "tokens_in", "tokens_out", "calls", "votes",
)  # fmt: skip
_ROW_GROUP = 131_072
_FAILURES = tuple(sorted(get_args(FailureKind)))


class TableEnums(Struct, frozen=True, kw_only=True):
    """The values that the enumerated columns of one table can have."""

    questions: tuple[str, ...]
    sources: tuple[str, ...]
    labels: tuple[str, ...]
    levels: tuple[str, ...]
    judges: tuple[str, ...]

    @staticmethod
    def of(
        *,
        questions: Iterable[str],
        sources: Iterable[str],
        labels: Sequence[str],
        levels: Sequence[str],
        judges: Iterable[str],
    ) -> TableEnums:
        """Questions, sources and judges in alphabetical order; labels and levels in that of the domain."""
        return TableEnums(
            questions=tuple(sorted(set(questions))),
            sources=tuple(sorted(set(sources))),
            labels=tuple(labels),
            levels=tuple(levels),
            judges=tuple(sorted(set(judges))),
        )

    def schema(self) -> dict[str, polars.DataType]:
        """The type of each column."""
        import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

        return {
            "question": polars.Enum(self.questions),
            "a": polars.Enum(self.sources),
            "b": polars.Enum(self.sources),
            "label": polars.Enum(self.labels),
            "basis": polars.Enum(BASES),
            "topic": polars.String(),
            "significance": polars.Enum(self.levels),
            "judge": polars.Enum(self.judges),
            "reasoning": polars.String(),
            "failure": polars.Enum(_FAILURES),
            "failure_message": polars.String(),
            "failure_attempts": polars.UInt16(),
            "tokens_in": polars.UInt32(),
            "tokens_out": polars.UInt32(),
            "calls": polars.List(polars.String()),
            "votes": polars.List(polars.String()),
        }


class PartWriter:
    """Writes a table part by part, rows in order, then one file of the parts; the same rows give the same bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._parts: list[Path] = []
        folder.mkdir()

    def add(self, frame: polars.DataFrame) -> None:
        """Write the next rows aside."""
        if frame.height:
            path = self._folder / f"{len(self._parts):06}.parquet"
            frame.write_parquet(path, compression="lz4", statistics=False)
            self._parts.append(path)

    def finish(self, target: Path, kinds: TableEnums) -> None:
        """Put the parts together, row groups of one size, and remove them."""
        import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

        parts = [polars.scan_parquet(path) for path in self._parts]
        table = polars.concat(parts) if parts else polars.DataFrame(schema=kinds.schema()).lazy()
        table.sink_parquet(target, compression="zstd", statistics=True, row_group_size=_ROW_GROUP, maintain_order=True)
        shutil.rmtree(self._folder)


def scan_table(path: Path) -> polars.LazyFrame:
    """The table as a lazy frame: nothing is read before it is asked for."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    try:
        frame = polars.scan_parquet(path)
        known = frame.collect_schema()
    except table_errors() as err:
        raise InputError(
            f"can't read the table of pairs: {table_reason(err)}",
            where=str(path),
            fix="restore the file or make the audit again",
        ) from err
    if wrong := _wrong_columns(known):
        raise InputError(
            f"the table of pairs is not as Hoofbeat writes it: {wrong}",
            where=str(path),
            fix="restore the file or make the audit again",
        )
    if "votes" in known:
        return frame
    return frame.with_columns(polars.lit(None, polars.List(polars.String())).alias("votes"))  # made before votes


def _wrong_columns(known: polars.Schema) -> str:
    """What is wrong with the columns of a table, in words; what has no values at all may have any type."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    if missing := [name for name in COLUMNS if name not in known and name != "votes"]:
        return f"it has no column {missing[0]}"
    for name, kind in known.items():
        if name in ("failure_attempts", "tokens_in", "tokens_out"):
            fits = kind.is_integer()
        elif name in ("calls", "votes"):
            fits = kind == polars.List(polars.String)
        else:
            fits = kind in (polars.String, polars.Enum, polars.Categorical) or name not in COLUMNS
        if not fits and kind != polars.Null:
            return f"its column {name} holds {kind}"
    return ""


def read_comparisons(path: Path, *, block: int = 65_536) -> Iterator[Comparison]:
    """The table's rows as records, a block of rows in memory at a time."""
    frame = scan_table(path)
    start = 0
    while True:
        rows = frame.slice(start, block).collect()
        yield from each_row(rows)
        start += block
        if rows.height < block:
            return


def each_question(path: Path, *, block: int = 131_072) -> Iterator[tuple[str, polars.DataFrame]]:
    """The table's questions one after the other, each with all its rows; a block of rows in memory at a time."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    frame = scan_table(path)
    start = 0
    rest: polars.DataFrame | None = None
    while True:
        rows = frame.slice(start, block).collect()
        start += block
        last = rows.height < block
        rest = rows if rest is None else polars.concat([rest, rows])
        groups = rest.partition_by("question", maintain_order=True)
        for group in groups if last else groups[:-1]:
            yield group["question"][0], group
        if last:
            return
        rest = groups[-1]


def each_row(rows: polars.DataFrame) -> Iterator[Comparison]:
    """Rows of the table as records."""
    for row in rows.iter_rows(named=True):
        yield _record(row)


def _record(row: dict[str, Any]) -> Comparison:
    failure = None
    if row["failure"] is not None:
        failure = Failure(
            kind=cast("FailureKind", row["failure"]),
            message=row["failure_message"] or "",
            attempts=row["failure_attempts"] if row["failure_attempts"] is not None else 1,
        )
    return Comparison(
        question=row["question"],
        a=row["a"],
        b=row["b"],
        label=row["label"] or "",
        reasoning=row["reasoning"] or "",
        topic=row["topic"],
        significance=row["significance"],
        judge=row["judge"] or "",
        basis=row["basis"] or "",
        failure=failure,
        calls=tuple(row["calls"] or ()),
        votes=tuple(row["votes"] or ()),
    )
