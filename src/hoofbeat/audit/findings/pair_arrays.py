"""The table of an audit's pairs as numbers: millions of rows in a few bytes each, counted by numpy in moments.

Findings take the table as a polars frame (of an `Audit`, or any with its columns) or as `AuditPairs` read from
it; read a large table once if you want several findings of it. Only the columns that are needed are read, one after
the other, so that the texts of millions of judgments never lie in memory.

The first findings are here as well: how often sources are silent, agree and differ, over the whole table and group by
group, and the grid of one question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.relations import (
    FIVE_RELATIONS,
    RelationLabels,
    RelationMatrix,
    Relations,
    groups_of,
    relations_of_counts,
    unknown_question,
)
from hoofbeat.errors import InputError
from hoofbeat.records import Question

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
                fix="each pair may appear once: check whether two runs were joined",
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
        raise InputError(
            f"a pair names the {what} {name!r}, which is not part of this run", fix=f"give every {what} of this run"
        )
    return moved


def label_counts(
    table: Frame | AuditPairs, questions: Iterable[Question | str] = (), domain: RelationLabels = FIVE_RELATIONS
) -> Relations:
    """The rates of a table; `questions` adds those that have no pair at all to the denominator."""
    counted = _PerQuestion(pairs_of(table, domain))
    asked = {*counted.pairs.questions, *(item if isinstance(item, str) else item.id for item in questions)}
    return counted.together(np.ones(len(counted.pairs.questions), bool), len(asked))


def counts_by(
    table: Frame | AuditPairs, questions: Sequence[Question], facet: str, domain: RelationLabels = FIVE_RELATIONS
) -> dict[str, Relations]:
    """The same for each value of a facet of the questions, sorted; a question with several values counts in each."""
    counted = _PerQuestion(pairs_of(table, domain))
    places = {name: place for place, name in enumerate(counted.pairs.questions)}
    members: dict[str, set[str]] = {}
    for question in questions:
        for name in groups_of(question, facet):
            members.setdefault(name, set()).add(question.id)
    known = {question.id for question in questions}
    for name in counted.pairs.questions:
        if name not in known:
            raise unknown_question(name)
    found = {}
    for name in sorted(members):
        chosen = np.zeros(len(places), bool)
        chosen[[places[question] for question in members[name] if question in places]] = True
        found[name] = counted.together(chosen, len(members[name]))
    return found


class _PerQuestion:
    """The labels and failures of each question's pairs."""

    def __init__(self, pairs: AuditPairs) -> None:
        self.pairs = pairs
        self.labels = _table(pairs.question, pairs.label, len(pairs.questions), len(pairs.domain.order))
        self.failed = _table(pairs.question, pairs.failure, len(pairs.questions), len(pairs.failures))
        places = [pairs.domain.order.index(label) for label in pairs.domain.diverging]
        self.diverging = self.labels[:, places].sum(axis=1) > 0

    def together(self, chosen: NDArray[np.bool_], asked: int) -> Relations:
        """The relations of the chosen questions, with the number of questions asked."""
        domain = self.pairs.domain
        failed = self.failed[chosen]
        possibly = self.diverging[chosen] | (failed.sum(axis=1) > 0)
        return relations_of_counts(
            dict(zip(domain.order, self.labels[chosen].sum(axis=0).tolist(), strict=True)),
            dict(zip(self.pairs.failures, failed.sum(axis=0).tolist(), strict=True)),
            questions=asked,
            diverging=int(self.diverging[chosen].sum()),
            possibly=int(possibly.sum()),
            domain=domain,
        )


def _table(rows: NDArray[np.int32], codes: NDArray[np.int8], height: int, width: int) -> NDArray[np.int64]:
    """How often each code occurs in each row; −1 does not count."""
    there = codes >= 0
    places = rows[there].astype(np.int64) * width + codes[there]
    return np.bincount(places, minlength=height * width).reshape(height, width)


def question_matrix(
    table: Frame | AuditPairs, question: str, domain: RelationLabels = FIVE_RELATIONS
) -> RelationMatrix:
    """The matrix of one question; its sources are sorted, the diagonal is consistent, no label is empty."""
    if isinstance(table, AuditPairs):
        pairs = table
        if question not in pairs.questions:
            raise _nothing(question)
        rows = np.flatnonzero(pairs.question == pairs.questions.index(question))
    else:
        mine = lazy(table).filter(polars.col("question").cast(polars.String) == question)
        pairs = pairs_of(mine.select("question", "a", "b", "label", "failure").collect(), domain)
        if not pairs.questions:
            raise _nothing(question)
        pairs.check_once()
        rows = np.arange(len(pairs.question))
    return _matrix(pairs, question, rows)


def each_matrix(table: Frame | AuditPairs, domain: RelationLabels = FIVE_RELATIONS) -> Iterator[RelationMatrix]:
    """The matrix of every question that has pairs, questions sorted, one at a time."""
    pairs = pairs_of(table, domain)
    pairs.check_once()
    order = np.argsort(pairs.question, kind="stable")
    ends = np.cumsum(pairs.by_question())
    for place, name in enumerate(pairs.questions):
        rows = order[ends[place - 1] if place else 0 : ends[place]]
        if len(rows):
            yield _matrix(pairs, name, rows)


def _nothing(question: str) -> InputError:
    return InputError(f"the question {question!r} has no pair in this audit", fix="name a question of this audit")


def _matrix(pairs: AuditPairs, question: str, rows: NDArray[np.int64]) -> RelationMatrix:
    a, b, label = pairs.a[rows], pairs.b[rows], pairs.label[rows]
    present = np.unique(np.concatenate([a, b]))
    cells = np.full((len(present), len(present)), -1, np.int8)
    first, second = np.searchsorted(present, a), np.searchsorted(present, b)
    cells[first, second] = cells[second, first] = label
    np.fill_diagonal(cells, pairs.domain.order.index(pairs.domain.consistent))
    words = (*pairs.domain.order, "")
    return RelationMatrix(
        question=question,
        sources=tuple(pairs.sources[place] for place in present),
        labels=tuple(tuple(words[code] for code in line) for line in cells.tolist()),
    )
