"""The table of an audit's pairs as numbers: millions of rows in a few bytes each, counted by numpy in moments.

Findings take the table as a polars frame (of an `Audit`, or any with its columns) or as `AuditPairs` read from
it; read a large table once if you want several findings of it. Only the columns that are needed are read, one after
the other, so that the texts of millions of judgments never lie in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.errors import InputError

Frame = polars.DataFrame | polars.LazyFrame
"""A table of pairs: question, a, b, label, failure, and what a finding needs beside them."""

Codes = NDArray[np.int32]

_NO_LABEL = -1


class AuditPairs(Struct, frozen=True, kw_only=True):
    """Every pair of an audit as codes: `question`, `a` and `b` point into the sorted names, `label` into the labels.

    A pair without a label (its comparison failed) has the label −1 and a `failure`, which points into `failures`.
    """

    questions: tuple[str, ...]
    sources: tuple[str, ...]
    failures: tuple[str, ...]
    domain: RelationLabels
    question: Codes
    a: Codes
    b: Codes
    label: NDArray[np.int8]
    failure: NDArray[np.int8]

    @property
    def absent(self) -> int:
        """The code of the absent label."""
        return self.domain.order.index(self.domain.absent)

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which pairs have a label other than absent."""
        return np.asarray((self.label != _NO_LABEL) & (self.label != self.absent), np.bool_)

    @property
    def diverging(self) -> NDArray[np.bool_]:
        """Which pairs diverge."""
        return self.has(self.domain.diverging)

    def has(self, labels: Sequence[str]) -> NDArray[np.bool_]:
        """Which pairs have one of these labels."""
        wanted = np.zeros(len(self.domain.order) + 1, bool)
        wanted[[self.domain.order.index(label) for label in labels]] = True
        found: NDArray[np.bool_] = wanted[self.label]
        return found

    @property
    def keys(self) -> NDArray[np.int64]:
        """One number for each pair, in the order of question and sources."""
        size = len(self.sources)
        return (self.question.astype(np.int64) * size + self.a) * size + self.b

    def by_question(self, chosen: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """How many pairs, or how many of the chosen ones, each question has."""
        return np.bincount(self.question if chosen is None else self.question[chosen], minlength=len(self.questions))

    def by_source(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Of the chosen pairs, how many each source has on each question (questions × sources)."""
        size = len(self.sources)
        cells = self.question[chosen].astype(np.int64) * size
        places = np.concatenate([cells + self.a[chosen], cells + self.b[chosen]])
        return np.bincount(places, minlength=len(self.questions) * size).reshape(len(self.questions), size)

    def check_once(self) -> None:
        """Refuse a table in which a pair stands twice."""
        keys = self.keys
        if len(keys) < 2 or bool((keys[1:] > keys[:-1]).all()):
            return
        order = np.argsort(keys, kind="stable")
        twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        if len(twice):
            row = int(order[twice[0]])
            raise InputError(
                f"{self.sources[self.a[row]]!r} and {self.sources[self.b[row]]!r} are compared twice on question "
                f"{self.questions[self.question[row]]!r}",
                fix="each pair stands once: check that two runs were not joined",
            )


def pairs_of(
    table: Frame | AuditPairs,
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    questions: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
) -> AuditPairs:
    """Read the pairs of a table. `questions` and `sources` are sorted names to count by, where the caller knows more.

    The lesser source of a pair always comes first, whatever the table says.
    """
    if isinstance(table, AuditPairs):
        return table
    rows = lazy(table)
    question, names = _column(rows, "question", questions)
    a, first = _column(rows, "a", None)
    b, second = _column(rows, "b", None)
    everyone = tuple(sorted({*first, *second}) if sources is None else sources)
    a, b = _moved(a, first, everyone, "source"), _moved(b, second, everyone, "source")
    failure, kinds = _column(rows, "failure", None, optional=True)
    if "" in kinds:  # another way to say that nothing failed
        failure[failure == kinds.index("")] = -1
    pairs = AuditPairs(
        questions=names,
        sources=everyone,
        failures=kinds,
        domain=domain,
        question=question,
        a=np.minimum(a, b),
        b=np.maximum(a, b),
        label=np.empty(0, np.int8),
        failure=failure.astype(np.int8),
    )
    return AuditPairs(
        **{name: getattr(pairs, name) for name in AuditPairs.__struct_fields__ if name != "label"},
        label=_labels(rows, pairs),
    )


def lazy(table: Frame) -> polars.LazyFrame:
    """The table as a lazy frame."""
    return table.lazy()


def sure_rows(table: Frame) -> polars.LazyFrame:
    """The rows that have a label; names and labels as text, so that tables with other categories can be joined."""
    rows = lazy(table)
    present = rows.collect_schema().names()
    if "failure" in present:
        failure = polars.col("failure").cast(polars.String)
        rows = rows.filter(failure.is_null() | (failure == ""))
    return rows


def diverging_rows(table: Frame, columns: Sequence[str], domain: RelationLabels) -> polars.DataFrame:
    """The diverging pairs with these columns, all as text, in the order of the table."""
    found = sure_rows(table).filter(polars.col("label").cast(polars.String).is_in(list(domain.diverging)))
    return found.select(polars.col(name).cast(polars.String) for name in columns).collect()


def _labels(rows: polars.LazyFrame, pairs: AuditPairs) -> NDArray[np.int8]:
    codes, names = _column(rows, "label", None, optional=True)
    known = {label: number for number, label in enumerate(pairs.domain.order)}
    places = np.array([*(known.get(name, len(known)) for name in names), len(known)], np.int8)
    labels = places[codes]
    labels[pairs.failure >= 0] = _NO_LABEL
    if len(wrong := np.flatnonzero(labels == len(known))):
        row = int(wrong[0])
        label = names[codes[row]] if codes[row] >= 0 else ""
        raise InputError(
            f"unknown label {label!r} between {pairs.sources[pairs.a[row]]!r} and {pairs.sources[pairs.b[row]]!r} "
            f"on question {pairs.questions[pairs.question[row]]!r}",
            fix=f"the labels are {', '.join(pairs.domain.order)}",
        )
    return labels


def _column(
    rows: polars.LazyFrame, name: str, wanted: Sequence[str] | None, *, optional: bool = False
) -> tuple[Codes, tuple[str, ...]]:
    """A column as codes into the sorted names that occur in it (or into `wanted`); nothing is −1."""
    series = rows.select(name).collect().to_series()
    if not isinstance(series.dtype, polars.Enum):
        series = series.cast(polars.String)
        series = series.cast(polars.Enum(series.unique().drop_nulls().sort()))
    if not optional and series.null_count():
        raise InputError(f"a pair has no {name}", fix="restore the table, or make the audit again")
    assert isinstance(series.dtype, polars.Enum)
    categories = series.dtype.categories.to_list()
    codes = series.to_physical().cast(polars.Int32).fill_null(-1).to_numpy()
    used = np.bincount(codes + 1, minlength=len(categories) + 1)[1:].nonzero()[0]
    names = tuple(sorted(categories[place] for place in used)) if wanted is None else tuple(wanted)
    return _moved(codes, categories, names, name), names


def _moved(codes: Codes, before: Sequence[str], after: Sequence[str], what: str) -> Codes:
    """Codes into one list of names as codes into another."""
    places = {name: number for number, name in enumerate(after)}
    lookup = np.array([*(places.get(name, -2) for name in before), -1], np.int32)
    moved: Codes = lookup[codes]
    if len(moved) and moved.min() < -1:
        name = before[codes[int(moved.argmin())]]
        raise InputError(f"the {what} {name!r} of a pair was not asked", fix=f"give every {what} of this run")
    return moved
