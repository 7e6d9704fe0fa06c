"""How much of a question its evidence speaks of: the share of the question's terms, rare ones counting more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.bm25 import Postings
from hoofbeat.retrieval.expansion import Added
from hoofbeat.retrieval.hero_parents import Unit
from hoofbeat.retrieval.topk import Floats

__all__ = ["Concept", "Coverage"]


class Concept(NamedTuple):
    """A term of a question: how much it counts, and terms that may stand for it."""

    stem: str
    weight: float
    instead: tuple[tuple[str, ...], ...]


class Coverage:
    """How much of a question its evidence speaks of: the share of the question's terms, rare ones counting more."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings
        self._analyzer = postings.vocabulary.analyzer

    def concepts(self, question: str, added: Sequence[Added]) -> list[Concept]:
        """The terms of a question, weighed by their rarity in the collection; added words may stand for their match."""
        instead: dict[str, list[tuple[str, ...]]] = {}
        for each in added:
            others = [tuple(self._analyzer.terms(term)) for term in each.terms]
            for stem in self._analyzer.terms(each.matched):
                instead.setdefault(stem, []).extend(others)
        total = len(self._postings.lengths)
        found = []
        for stem in dict.fromkeys(self._analyzer.terms(question)):
            frequency = len(self._row(stem))
            weight = float(np.log1p((total - frequency + 0.5) / (frequency + 0.5)))
            found.append(Concept(stem, weight, tuple(instead.get(stem, ()))))
        return found

    def covered(self, concepts: Sequence[Concept], evidence: Sequence[Sequence[Unit]]) -> NDArray[np.bool_]:
        """For each concept (row) and each list of units (column) whether the units speak of it."""
        spans = np.array([unit[2:] for units in evidence for unit in units], np.int64).reshape(-1, 2)
        lo, hi = np.ascontiguousarray(spans.T)
        owner = np.repeat(np.arange(len(evidence)), [len(units) for units in evidence])
        known: dict[str, NDArray[np.bool_]] = {}

        def present(stem: str) -> NDArray[np.bool_]:
            if stem not in known:
                row = self._row(stem)
                inside = np.searchsorted(row, hi) > np.searchsorted(row, lo)
                known[stem] = np.zeros(len(evidence), bool)
                known[stem][owner[inside]] = True
            return known[stem]

        table = np.zeros((len(concepts), len(evidence)), bool)
        for number, concept in enumerate(concepts):
            table[number] = present(concept.stem)
            for stems in concept.instead:
                table[number] |= np.logical_and.reduce([present(stem) for stem in stems])
        return table

    def shares(self, concepts: Sequence[Concept], table: NDArray[np.bool_]) -> Floats:
        """For each column of the table the share of the question's weight that is covered."""
        weights = np.array([concept.weight for concept in concepts])
        total = weights.sum()
        shares: Floats = weights @ table / total if total else np.zeros(table.shape[1])
        return shares

    def _row(self, stem: str) -> NDArray[np.int32]:
        number = self._postings.vocabulary.terms.get(stem)
        if number is None:
            return np.empty(0, np.int32)
        return self._postings.texts[self._postings.starts[number] : self._postings.starts[number + 1]]
