"""Two tables of pairs laid over each other: the same names, and the rows in which both speak of the same pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.errors import UsageError


class JoinedPairs(Struct, frozen=True, kw_only=True):
    """Two tables with codes of the same names. `rows` are the places of the shared pairs in the first and the second.

    Shared pairs come in the order of question and sources.
    """

    before: AuditPairs
    after: AuditPairs
    rows: tuple[NDArray[np.int64], NDArray[np.int64]]

    @property
    def labels(self) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """The labels of the shared pairs in both tables."""
        return self.before.label[self.rows[0]], self.after.label[self.rows[1]]

    @property
    def question(self) -> NDArray[np.int32]:
        """The questions of the shared pairs."""
        return self.before.question[self.rows[0]]


def join(before: Frame | AuditPairs, after: Frame | AuditPairs, domain: RelationLabels = FIVE_RELATIONS) -> JoinedPairs:
    """Lay two tables over each other; a pair that stands twice in one of them is refused."""
    first, second = pairs_of(before, domain), pairs_of(after, domain)
    if first.domain != second.domain:
        raise UsageError("the two tables have different labels", fix="give two tables of one domain")
    questions = sorted({*first.questions, *second.questions})
    sources = sorted({*first.sources, *second.sources})
    first, second = _recoded(first, questions, sources), _recoded(second, questions, sources)
    for each in (first, second):
        each.check_once()
    _, one, two = np.intersect1d(first.keys, second.keys, assume_unique=True, return_indices=True)
    return JoinedPairs(before=first, after=second, rows=(one, two))


def _recoded(pairs: AuditPairs, questions: Sequence[str], sources: Sequence[str]) -> AuditPairs:
    """The same pairs with codes of these names, which must contain all of theirs, sorted."""
    asked, told = (
        np.searchsorted(np.array(all_names, object), np.array(names, object)).astype(np.int32)
        for all_names, names in ((questions, pairs.questions), (sources, pairs.sources))
    )
    return replace(
        pairs,
        questions=tuple(questions),
        sources=tuple(sources),
        question=asked[pairs.question],
        a=told[pairs.a],
        b=told[pairs.b],
    )
