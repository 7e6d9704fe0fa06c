"""The grid of one question: how any two of its sources relate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, lazy, pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels, RelationMatrix
from hoofbeat.errors import InputError


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
    return InputError(f"the question {question!r} has no pair in this audit", fix="name a question that it asked")


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
