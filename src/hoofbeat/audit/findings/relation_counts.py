"""How often sources are silent, agree and differ, over the whole table and group by group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, pairs_of
from hoofbeat.audit.findings.relations import (
    FIVE_RELATIONS,
    RelationLabels,
    Relations,
    groups_of,
    relations_of_counts,
    unknown_question,
)
from hoofbeat.records import Question


def label_counts(
    table: Frame | AuditPairs, questions: Iterable[Question | str] = (), domain: RelationLabels = FIVE_RELATIONS
) -> Relations:
    """The figures of `relations` over a table; `questions` adds those that have no pair at all to the denominator."""
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
        """The relations of the chosen questions, of which so many were asked."""
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
