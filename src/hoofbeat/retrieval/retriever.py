"""A retriever: a retriever line at work over passages.

Each ranker orders documents by their best passage (MaxP) or, for showing evidence to a model, the passages
themselves; fusion then joins those rankings. Every hit tells how it came about: its rank and score in each stage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Hit, Passage
from hoofbeat.retrieval.fusion import reciprocal_rank_fusion, rrf_shares
from hoofbeat.retrieval.indexes import IndexSet
from hoofbeat.retrieval.line import Fusion, Node, Pipeline, Stage, parse
from hoofbeat.retrieval.topk import Floats, Indices, Ranking, check_k

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder

__all__ = ["FUSION_DEPTH", "Retriever"]

FUSION_DEPTH = 1000
"""How deep each ranking of a fusion goes, whatever number of results is asked for: so top 10 is the top of top 100."""

_BATCH = 256


class _Ranked(NamedTuple):
    """Units (documents or passages by number) best first, each with its best passage and how it fared in each stage."""

    ranking: Ranking
    passages: Indices
    via: dict[str, Ranking]


class _Scope(NamedTuple):
    """What one search ranks: documents or passages, all of them or some."""

    by_document: bool
    allowed: Indices | None


class Retriever:
    """One retriever line over one set of passages."""

    def __init__(self, indexes: IndexSet, line: str) -> None:
        self.indexes = indexes
        self.tree = parse(line)

    @classmethod
    def over(
        cls,
        passages: Sequence[Passage],
        line: str,
        *,
        encoder: Callable[[str], Encoder],
        progress: Progress = SILENT,
    ) -> Retriever:
        """A retriever with indexes of its own; for several lines over the same passages, share an `IndexSet`."""
        tree = parse(line)
        return cls(IndexSet(passages, encoder=encoder, progress=progress), str(tree))

    @property
    def line(self) -> str:
        """The canonical form of the line."""
        return str(self.tree)

    def describe(self) -> dict[str, object]:
        """The settings as a manifest records them."""
        return {"line": self.line, "fusion_depth": FUSION_DEPTH, **self.indexes.describe()}

    def search(
        self, queries: Sequence[tuple[str, str]], k: int, documents: Collection[str] | None = None
    ) -> list[list[Hit]]:
        """The `k` best documents for each (id, text), by their best passage; `documents` restricts the search.

        A query without text has no hits.
        """
        return self._search(queries, k, documents, by_document=True)

    def search_passages(
        self, queries: Sequence[tuple[str, str]], k: int, documents: Collection[str] | None = None
    ) -> list[list[Hit]]:
        """The `k` best passages for each (id, text): a hit for each, so a document may come more than once."""
        return self._search(queries, k, documents, by_document=False)

    def _search(
        self, queries: Sequence[tuple[str, str]], k: int, documents: Collection[str] | None, *, by_document: bool
    ) -> list[list[Hit]]:
        check_k(k)
        allowed = None if documents is None else self.indexes.places_of(documents)
        scope = _Scope(by_document, allowed)
        hits: list[list[Hit]] = [[] for _ in queries]
        asked = [number for number, (_, text) in enumerate(queries) if text.strip()]
        if not self.indexes.passages or (allowed is not None and not len(allowed)):
            return hits
        with self.indexes.progress.task(f"searching: {self.line}", len(asked)) as task:
            for first in range(0, len(asked), _BATCH):
                batch = asked[first : first + _BATCH]
                ranked = self._rank(self.tree, [queries[number][1] for number in batch], k, scope)
                for number, found in zip(batch, ranked, strict=True):
                    hits[number] = self._hits(queries[number][0], found)
                task.advance(len(batch))
        return hits

    def _hits(self, question: str, found: _Ranked) -> list[Hit]:
        placed = {
            stage: {int(unit): rank for rank, unit in enumerate(ranking.indices)}
            for stage, ranking in found.via.items()
        }
        hits = []
        for place, (unit, score) in enumerate(zip(*found.ranking, strict=True)):
            passage = self.indexes.passages[found.passages[place]]
            via = {
                stage: (ranks[int(unit)] + 1, float(found.via[stage].scores[ranks[int(unit)]]))
                for stage, ranks in placed.items()
                if int(unit) in ranks
            }
            hits.append(
                Hit(
                    question=question,
                    document=passage.document,
                    rank=place + 1,
                    score=float(score),
                    passage=passage.id,
                    via=via,
                )
            )
        return hits

    def _rank(self, node: Node, queries: list[str], k: int, scope: _Scope) -> list[_Ranked]:
        match node:
            case Stage():
                return self._rank_stage(node, queries, k, scope)
            case Fusion():
                return self._rank_fusion(node, queries, k, scope)
            case Pipeline():
                raise AssertionError(f"no stage that may follow > is known, yet {node} was parsed")

    def _rank_stage(self, stage: Stage, queries: list[str], k: int, scope: _Scope) -> list[_Ranked]:
        rank = self._ranker(stage, queries, scope.allowed)
        name = str(stage)
        if not scope.by_document:
            rankings = rank(list(range(len(queries))), k)
            return [_Ranked(ranking, ranking.indices, {name: ranking}) for ranking in rankings]
        return [_Ranked(ranking, passages, {name: ranking}) for ranking, passages in self._max_p(rank, len(queries), k)]

    def _ranker(
        self, stage: Stage, queries: list[str], allowed: Indices | None
    ) -> Callable[[list[int], int], list[Ranking]]:
        """A function from query numbers and k to passage rankings by this stage."""
        if stage.spec.name == "bm25":
            bm25 = self.indexes.bm25(stage.number("k1"), stage.number("b"))
            return lambda numbers, k: bm25.search([queries[number] for number in numbers], k, allowed)
        encoder, dense = self.indexes.dense(stage.word("encoder"))
        vectors = encoder.encode(queries)
        return lambda numbers, k: dense.search(vectors[numbers], k, allowed)

    def _max_p(
        self, rank: Callable[[list[int], int], list[Ranking]], queries: int, k: int
    ) -> list[tuple[Ranking, Indices]]:
        """The `k` best documents by their best passage: passages are ranked until `k` documents are seen."""
        total = len(self.indexes.passages)
        depth = k if total == len(self.indexes.documents) else min(total, 4 * k)
        results: dict[int, tuple[Ranking, Indices]] = {}
        open_queries = list(range(queries))
        while open_queries:
            still_open = []
            for number, ranking in zip(open_queries, rank(open_queries, depth), strict=True):
                results[number] = self._collapse(ranking, k)
                if len(results[number][1]) < k and len(ranking.indices) == depth < total:
                    still_open.append(number)
            open_queries, depth = still_open, min(total, 4 * depth)
        return [results[number] for number in range(queries)]

    def _collapse(self, ranking: Ranking, k: int) -> tuple[Ranking, Indices]:
        documents = self.indexes.document_of[ranking.indices]
        first = np.sort(np.unique(documents, return_index=True)[1])[:k]
        return Ranking(documents[first], ranking.scores[first]), ranking.indices[first]

    def _rank_fusion(self, node: Fusion, queries: list[str], k: int, scope: _Scope) -> list[_Ranked]:
        weights = [part.weight for part in node.parts]
        parts = [self._rank(part.node, queries, max(k, FUSION_DEPTH), scope) for part in node.parts]
        fused = []
        for ranked in zip(*parts, strict=True):
            ranking = reciprocal_rank_fusion([part.ranking for part in ranked], k, weights=weights)
            via: dict[str, Ranking] = {}
            for part, found in zip(node.parts, ranked, strict=True):
                via |= {**found.via, str(part.node): found.ranking}
            fused.append(_Ranked(ranking, _best_passages(ranking.indices, ranked, weights), via))
        return fused


def _best_passages(units: Indices, parts: Sequence[_Ranked], weights: Sequence[float]) -> Indices:
    """For each unit the passage of the ranking that contributed most to its score; the earlier one on a tie."""
    best: dict[int, int] = {}
    most: dict[int, float] = {}
    for part, weight in zip(parts, weights, strict=True):
        shares: Floats = rrf_shares(len(part.passages), weight)
        for unit, passage, share in zip(part.ranking.indices, part.passages, shares, strict=True):
            if share > most.get(int(unit), 0.0):
                best[int(unit)], most[int(unit)] = int(passage), float(share)
    return np.array([best[int(unit)] for unit in units], np.int64)
