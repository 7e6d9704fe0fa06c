"""How much of a question its evidence speaks of: the share of the question's terms, rare ones counting more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.bm25 import Postings
from hoofbeat.retrieval.hero.expansion import ExpansionMatch
from hoofbeat.retrieval.hero.parents import EvidenceUnits
from hoofbeat.retrieval.topk import Floats, Indices

__all__ = ["Concept", "QuestionCoverage", "shares"]


class Concept(NamedTuple):
    """A term of a question, and terms that may stand for it."""

    stem: str
    instead: tuple[tuple[str, ...], ...]


class QuestionCoverage:
    """Which terms of a question its evidence speaks of, and how much each of them counts in a source.

    `bounds` divide the texts of the postings among the sources: source n has those from `bounds[n]` to before
    `bounds[n + 1]`. Rarity is reckoned in each source by itself, so its neighbours in the index change nothing.
    """

    def __init__(self, postings: Postings, bounds: Indices) -> None:
        self._postings = postings
        self._bounds = bounds
        self._analyzer = postings.vocabulary.analyzer

    def concepts(self, question: str, added: Sequence[ExpansionMatch]) -> list[Concept]:
        """The terms of a question; words that were added may stand for the one that brought them."""
        instead: dict[str, list[tuple[str, ...]]] = {}
        for each in added:
            others = [tuple(self._analyzer.terms(term)) for term in each.terms]
            for stem in self._analyzer.terms(each.matched):
                instead.setdefault(stem, []).extend(others)
        stems = dict.fromkeys(self._analyzer.terms(question))
        return [Concept(stem, tuple(instead.get(stem, ()))) for stem in stems]

    def weights(self, concepts: Sequence[Concept], sources: Sequence[int]) -> Floats:
        """For each concept (row) and each of these sources (column) how rare the term is among the source's texts."""
        chosen = np.array(sources, np.int64)
        first, last = self._bounds[chosen], self._bounds[chosen + 1]
        edges = np.concatenate([first, last]).astype(self._postings.texts.dtype)  # or every row would be widened
        frequencies = np.empty((len(concepts), len(chosen)))
        for number, concept in enumerate(concepts):
            before = self._row(concept.stem).searchsorted(edges)
            frequencies[number] = before[len(chosen) :] - before[: len(chosen)]
        weights: Floats = np.log1p((last - first - frequencies + 0.5) / (frequencies + 0.5))
        return weights

    def covered(self, concepts: Sequence[Concept], evidence: EvidenceUnits) -> NDArray[np.bool_]:
        """For each concept (row) and each search (column) whether the units it found speak of it."""
        count = len(evidence.sizes)
        there = np.arange(evidence.table.shape[1]) < evidence.sizes[:, None]
        spans = evidence.table[:, :, 2:][there].astype(self._postings.texts.dtype)  # or every row would be widened
        lo, hi = np.ascontiguousarray(spans.T)
        owner = np.repeat(np.arange(count), evidence.sizes)
        known: dict[str, NDArray[np.bool_]] = {}

        def present(stem: str) -> NDArray[np.bool_]:
            if stem not in known:
                row = self._row(stem)
                known[stem] = np.zeros(count, bool)
                known[stem][owner[row.searchsorted(hi) > row.searchsorted(lo)]] = True
            return known[stem]

        table = np.zeros((len(concepts), count), bool)
        for number, concept in enumerate(concepts):
            table[number] = present(concept.stem)
            for stems in concept.instead:
                table[number] |= np.logical_and.reduce([present(stem) for stem in stems])
        return table

    def _row(self, stem: str) -> NDArray[np.int32]:
        number = self._postings.vocabulary.terms.get(stem)
        if number is None:
            return np.empty(0, np.int32)
        return self._postings.texts[self._postings.starts[number] : self._postings.starts[number + 1]]


def shares(weights: Floats, table: NDArray[np.bool_]) -> Floats:
    """For each column the share of the question's weight that is covered."""
    if not len(weights):
        return np.zeros(table.shape[1])
    # added up one after the other: other ways of summing round by how many columns there are
    covered = np.cumsum(weights * table, axis=0)[-1]
    found: Floats = covered / np.cumsum(weights, axis=0)[-1]
    return found
