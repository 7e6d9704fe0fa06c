"""One ranker of a line at work: pieces of queries against the passages of one way of cutting, pooled to documents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from hoofbeat.records import Failure
from hoofbeat.retrieval.ann import Approximate
from hoofbeat.retrieval.chunking import Chunking, pieces
from hoofbeat.retrieval.collection import PassageCollection
from hoofbeat.retrieval.indexes import IndexSet
from hoofbeat.retrieval.instructions import instructions
from hoofbeat.retrieval.line import Stage
from hoofbeat.retrieval.pooling import Pooled, Search, best_of, check_pool, pool_documents
from hoofbeat.retrieval.querying import mean_vectors
from hoofbeat.retrieval.stages import SearchQuery, Tools
from hoofbeat.retrieval.topk import Floats, Indices, Ranking

__all__ = ["Ranked", "Scope", "rank_stage"]


class Scope(NamedTuple):
    """What a search ranks: documents or passages, of all documents or of some."""

    by_document: bool
    documents: tuple[str, ...] | None


class Ranked(NamedTuple):
    """Units best first (document numbers, or passage codes), each with its passage's code, and its place by stage."""

    query: SearchQuery
    ranking: Ranking
    passages: Indices
    via: dict[str, Ranking]

    @classmethod
    def empty(cls, query: SearchQuery) -> Ranked:
        """Nothing found."""
        return cls(query, Ranking.empty(), np.empty(0, np.int64), {})

    def first(self, k: int) -> Ranked:
        """The best `k`."""
        ranking = Ranking(self.ranking.indices[:k], self.ranking.scores[:k])
        return self._replace(ranking=ranking, passages=self.passages[:k])

    def reordered(self, stage: str, scores: list[float] | Failure) -> Ranked:
        """The first of the ranking in the order of new scores, equal ones as they were; the rest stays below them."""
        if isinstance(scores, Failure):
            return Ranked.empty(msgspec.structs.replace(self.query, failure=scores))
        new = np.array(scores, np.float64)
        if not np.isfinite(new).all():
            failure = Failure(kind="unreadable", message=f"{stage} gave scores that are no numbers")
            return Ranked.empty(msgspec.structs.replace(self.query, failure=failure))
        order = np.argsort(-new, kind="stable")
        rest = slice(len(new), None)
        tail = self.ranking.scores[rest]
        below = (new.min() - 1.0 - (tail[0] - tail)) if len(tail) and len(new) else tail
        units = np.concatenate([self.ranking.indices[: len(new)][order], self.ranking.indices[rest]])
        passages = np.concatenate([self.passages[: len(new)][order], self.passages[rest]])
        seen = Ranking(units[: len(new)], new[order])
        ranking = Ranking(units, _falling(np.concatenate([new[order], below])))
        return Ranked(self.query, ranking, passages, {**self.via, stage: seen})


def rank_stage(
    indexes: IndexSet, stage: Stage, queries: Sequence[SearchQuery], k: int, scope: Scope, tools: Tools
) -> list[Ranked]:
    """Rank by one stage; queries that have failed, or that have no text, find nothing."""
    alive = [query for query in queries if query.failure is None and query.text.strip()]
    if stage.spec.name == "hero":
        from hoofbeat.retrieval.sources import rank_hero  # noqa: PLC0415 (it ranks by stages of its own)

        found = iter(rank_hero(indexes, stage, alive, k, scope, tools))
    else:
        found = iter(_rank(indexes, stage, alive, k, scope))
    return [next(found) if query.failure is None and query.text.strip() else Ranked.empty(query) for query in queries]


def _rank(indexes: IndexSet, stage: Stage, queries: Sequence[SearchQuery], k: int, scope: Scope) -> list[Ranked]:
    encoder = stage.word("encoder") if stage.spec.name == "dense" else ""
    collection = indexes.collection(Chunking.parse(stage.word("chunk")), encoder)
    pool = check_pool(stage.word("pool"))
    allowed = None if scope.documents is None else collection.places_of(scope.documents)
    if pool == "first":
        firsts = collection.bounds[:-1]
        allowed = firsts if allowed is None else np.intersect1d(firsts, allowed)
    if not queries or not len(collection.passages) or (allowed is not None and not len(allowed)):
        return [Ranked.empty(query) for query in queries]
    search, owners = _searcher(indexes, stage, collection, queries, allowed)
    if scope.by_document:
        pooled = pool_documents(search, len(owners), k, collection.document_of, len(collection.documents), pool)
    else:
        pooled = [Pooled(ranking, ranking.indices) for ranking in search(list(range(len(owners))), k)]
    by_query: list[list[Pooled]] = [[] for _ in queries]
    for owner, piece in zip(owners, pooled, strict=True):
        by_query[owner].append(piece)
    name = str(stage)
    ranked = []
    for query, parts in zip(queries, by_query, strict=True):
        best = best_of(parts, k)
        codes = indexes.code(collection, best.passages)
        ranking = best.ranking if scope.by_document else Ranking(codes, best.ranking.scores)
        ranked.append(Ranked(query, ranking, codes, {name: ranking}))
    return ranked


def _searcher(
    indexes: IndexSet,
    stage: Stage,
    collection: PassageCollection,
    queries: Sequence[SearchQuery],
    allowed: Indices | None,
) -> tuple[Search, list[int]]:
    """A search by pieces of the queries, and which query each piece belongs to."""
    cutting = Chunking.parse(stage.word("qchunk"))
    tokens = (
        indexes.tokens(stage.word("encoder") if stage.spec.name == "dense" else "") if cutting.needs_tokens else None
    )
    if stage.spec.name == "bm25":
        cut = [pieces(query.for_lexical, cutting, tokens) for query in queries]
        texts = [text for each in cut for text in each]
        weighted = stage.word("query") == "weighted"
        bm25 = collection.bm25(stage.number("k1"), stage.number("b"))
        return (
            lambda numbers, k: bm25.search([texts[number] for number in numbers], k, allowed, weighted=weighted),
            [owner for owner, each in enumerate(cut) for _ in each],
        )
    encoder, dense = collection.dense(
        stage.word("encoder"),
        search=stage.word("search"),
        store=stage.word("store"),
        instruct=stage.word("instruct"),
    )
    # Several texts of one query are averaged, so only a single one is cut into pieces that are searched apart.
    groups: list[tuple[int, tuple[str, ...]]] = []
    for owner, query in enumerate(queries):
        alone = query.for_dense[0] if len(query.for_dense) == 1 else None
        parts = [query.for_dense] if alone is None else [(piece,) for piece in pieces(alone, cutting, tokens)]
        groups += [(owner, part) for part in parts]
    words = instructions(stage.word("instruct"))
    vectors = mean_vectors(
        [(queries[owner].text, part) for owner, part in groups],
        partial(encoder.encode_queries, instructions=words),
        partial(encoder.encode_documents, instructions=words),
    )
    if isinstance(dense, Approximate) and "queries" not in dense.measured_on:
        dense.measure(vectors)
    return lambda numbers, k: dense.search(vectors[numbers], k, allowed), [owner for owner, _ in groups]


def _falling(scores: Floats) -> Floats:
    """Scores in the same order with ties pulled apart, by the least that single precision can tell.

    Whoever measures a ranking orders it by its scores anew; the order in which a reranker left ties must survive that.
    """
    apart = scores.astype(np.float32)
    for place in range(1, len(apart)):
        if not apart[place] < apart[place - 1]:
            apart[place] = np.nextafter(apart[place - 1], np.float32(-np.inf))
    return apart.astype(np.float64)
