"""Rankers that search passages: pieces of queries against one way of cutting the documents, pooled to documents.

A document is as good as its best passage (MaxP), its first, or all of them together. Long queries are cut as well. Each
piece ranks documents by itself; a document keeps the best of what the pieces gave it: with MaxP inside, that is the
two-level MaxP of OGCaReBench.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.chunking import Chunking, Spans
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, top_k
from hoofbeat.retrieval.line import StageOption
from hoofbeat.retrieval.stage_roles import IndexUse, RankedUnits, Ranker, SearchQuery, SearchScope, StageTools

if TYPE_CHECKING:
    from hoofbeat.retrieval.index_set import PassageCollection

Pool = Literal["max", "sum", "first"]

PieceSearch = Callable[[list[int], int], list[Ranking]]
"""From piece numbers and a depth to rankings of passages."""


class PooledRanking(NamedTuple):
    """Units best first, with the passage (by place) that speaks for each."""

    ranking: Ranking
    passages: Indices


def check_pool(word: str) -> Pool:
    """Read the name of a pooling."""
    if word not in get_args(Pool):
        raise UsageError(f"there is no pooling {word!r}", fix=f"use one of {', '.join(get_args(Pool))}")
    return word  # type: ignore[return-value]


def pool_documents(
    search: PieceSearch, count: int, k: int, document_of: Indices, documents: int, pool: Pool
) -> list[PooledRanking]:
    """For each of `count` pieces the `k` best documents; for `first` the search itself sees first passages only."""
    if pool == "sum":
        return [_summed(ranking, k, document_of) for ranking in search(list(range(count)), max(1, len(document_of)))]
    return _best_passages_first(search, count, k, document_of, documents)


def best_of(pieces: Sequence[PooledRanking], k: int) -> PooledRanking:
    """The `k` best units over all pieces of a query, each with its best score; an earlier piece wins a tie."""
    if len(pieces) == 1:
        return pieces[0]
    units = np.concatenate([piece.ranking.indices for piece in pieces])
    scores = np.concatenate([piece.ranking.scores for piece in pieces])
    passages = np.concatenate([piece.passages for piece in pieces])
    order = np.lexsort((-scores, units))  # stable: equal scores stay in the order of the pieces
    first = np.ones(len(order), bool)
    first[1:] = units[order][1:] != units[order][:-1]
    chosen = order[first]
    speakers = dict(zip(units[chosen].tolist(), passages[chosen].tolist(), strict=True))
    ranking = top_k(units[chosen], scores[chosen], k)
    return PooledRanking(ranking, np.array([speakers[unit] for unit in ranking.indices.tolist()], np.int64))


def _best_passages_first(
    search: PieceSearch, count: int, k: int, document_of: Indices, documents: int
) -> list[PooledRanking]:
    """Passages are ranked until `k` documents are seen, so that the result is exact without ranking everything."""
    total = len(document_of)
    depth = k if total == documents else min(total, 4 * k)
    results: dict[int, PooledRanking] = {}
    unfinished = list(range(count))
    while unfinished:
        still = []
        for number, ranking in zip(unfinished, search(unfinished, depth), strict=True):
            results[number] = by_best_passage(ranking, k, document_of)
            if len(results[number].passages) < k and len(ranking.indices) == depth < total:
                still.append(number)
        unfinished, depth = still, min(total, 4 * depth)
    return [results[number] for number in range(count)]


def by_best_passage(ranking: Ranking, k: int, document_of: Indices) -> PooledRanking:
    """The first `k` documents of a ranking of passages, each with its best passage."""
    owners = document_of[ranking.indices]
    first = np.sort(np.unique(owners, return_index=True)[1])[:k]
    return PooledRanking(Ranking(owners[first], ranking.scores[first]), ranking.indices[first])


def _summed(ranking: Ranking, k: int, document_of: Indices) -> PooledRanking:
    owners, first, place = np.unique(document_of[ranking.indices], return_index=True, return_inverse=True)
    sums: Floats = np.zeros(len(owners))
    # in the order of the collection, so that a sum does not depend on how its passages were ranked
    order = np.argsort(ranking.indices, kind="stable")
    np.add.at(sums, place[order], ranking.scores[order])
    speakers = dict(zip(owners.tolist(), ranking.indices[first].tolist(), strict=True))
    best = top_k(owners, sums, k)
    return PooledRanking(best, np.array([speakers[owner] for owner in best.indices.tolist()], np.int64))


CUTTING: tuple[StageOption, ...] = (
    StageOption("chunk", "auto", "how documents are cut: auto, whole, sections, words:160/32 …", check=Chunking.parse),
    StageOption("qchunk", "whole", "how long queries are cut", check=Chunking.parse),
    StageOption("pool", "max", "from passages to documents: max, sum or first", check=check_pool),
)
"""The options of every passage ranker."""


class PassageRanker(Ranker):
    """A ranker that searches the passages of one way of cutting. It has the options in `CUTTING`, and its own."""

    options = CUTTING

    def search(
        self, collection: PassageCollection, queries: Sequence[SearchQuery], allowed: Indices | None, tools: StageTools
    ) -> tuple[PieceSearch, list[int]]:
        """A search by pieces of the queries over these passages, and the number of the query each piece belongs to.

        `allowed` are the places of passages, ascending, among which is searched.
        """
        raise NotImplementedError(f"{type(self).__name__} must define search")

    def tokenizer(self) -> str:
        """The encoder whose tokens are counted where documents are cut by tokens; empty for the usual one."""
        return ""

    def query_tokenizer(self) -> str:
        """The encoder whose tokens are counted where queries are cut by tokens."""
        return self.tokenizer()

    def query_pieces(self, tools: StageTools) -> tuple[Chunking, Spans | None]:
        """How queries are cut, and by which tokens where tokens are counted."""
        cutting = Chunking.parse(self.word("qchunk"))
        return cutting, tools.indexes.tokens(self.query_tokenizer()) if cutting.needs_tokens else None

    def index_uses(self) -> tuple[IndexUse, ...]:
        """The passages it searches."""
        return (IndexUse(Chunking.parse(self.word("chunk")), self.tokenizer()),)

    def rank(self, queries: Sequence[SearchQuery], k: int, scope: SearchScope, tools: StageTools) -> list[RankedUnits]:
        """Search by every piece of every query, and pool passages to documents."""
        indexes = tools.indexes
        collection = indexes.collection(Chunking.parse(self.word("chunk")), self.tokenizer())
        pool = check_pool(self.word("pool"))
        allowed = None if scope.documents is None else collection.places_of(scope.documents)
        if pool == "first":
            firsts = collection.bounds[:-1]
            allowed = firsts if allowed is None else np.intersect1d(firsts, allowed)
        if not queries or not len(collection.passages) or (allowed is not None and not len(allowed)):
            return [RankedUnits.empty(query) for query in queries]
        search, owners = self.search(collection, queries, allowed, tools)
        if scope.by_document:
            pooled = pool_documents(search, len(owners), k, collection.document_of, len(collection.documents), pool)
        else:
            pooled = [PooledRanking(ranking, ranking.indices) for ranking in search(list(range(len(owners))), k)]
        by_query: list[list[PooledRanking]] = [[] for _ in queries]
        for owner, piece in zip(owners, pooled, strict=True):
            by_query[owner].append(piece)
        name = str(self)
        ranked = []
        for query, parts in zip(queries, by_query, strict=True):
            best = best_of(parts, k)
            codes = indexes.code(collection, best.passages)
            ranking = best.ranking if scope.by_document else Ranking(codes, best.ranking.scores)
            ranked.append(RankedUnits(query, ranking, codes, {name: ranking}))
        return ranked
