"""From passages to documents: a document is as good as its best passage (MaxP), its first, or all of them together.

Long queries are cut too. Each piece ranks documents by itself; a document keeps the best of what the pieces gave it:
with MaxP inside, that is the two-level MaxP of OGCaReBench.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.topk import Floats, Indices, Ranking, top_k

__all__ = ["Pool", "Pooled", "best_of", "by_best_passage", "check_pool", "pool_documents"]

Pool = Literal["max", "sum", "first"]

Search = Callable[[list[int], int], list[Ranking]]
"""From piece numbers and a depth to rankings of passages."""


class Pooled(NamedTuple):
    """Units best first, with the passage (by place) that speaks for each."""

    ranking: Ranking
    passages: Indices


def check_pool(word: str) -> Pool:
    """Read the name of a pooling."""
    if word not in get_args(Pool):
        raise UsageError(f"there is no pooling {word!r}", fix=f"use one of {', '.join(get_args(Pool))}")
    return word  # type: ignore[return-value]


def pool_documents(
    search: Search, count: int, k: int, document_of: Indices, documents: int, pool: Pool
) -> list[Pooled]:
    """For each of `count` pieces the `k` best documents; for `first` the search itself sees first passages only."""
    if pool == "sum":
        return [_summed(ranking, k, document_of) for ranking in search(list(range(count)), max(1, len(document_of)))]
    return _best_passages_first(search, count, k, document_of, documents)


def best_of(pieces: Sequence[Pooled], k: int) -> Pooled:
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
    return Pooled(ranking, np.array([speakers[unit] for unit in ranking.indices.tolist()], np.int64))


def _best_passages_first(search: Search, count: int, k: int, document_of: Indices, documents: int) -> list[Pooled]:
    """Passages are ranked until `k` documents are seen, so that the result is exact without ranking everything."""
    total = len(document_of)
    depth = k if total == documents else min(total, 4 * k)
    results: dict[int, Pooled] = {}
    unfinished = list(range(count))
    while unfinished:
        still = []
        for number, ranking in zip(unfinished, search(unfinished, depth), strict=True):
            results[number] = by_best_passage(ranking, k, document_of)
            if len(results[number].passages) < k and len(ranking.indices) == depth < total:
                still.append(number)
        unfinished, depth = still, min(total, 4 * depth)
    return [results[number] for number in range(count)]


def by_best_passage(ranking: Ranking, k: int, document_of: Indices) -> Pooled:
    """The first `k` documents of a ranking of passages, each with its best passage."""
    owners = document_of[ranking.indices]
    first = np.sort(np.unique(owners, return_index=True)[1])[:k]
    return Pooled(Ranking(owners[first], ranking.scores[first]), ranking.indices[first])


def _summed(ranking: Ranking, k: int, document_of: Indices) -> Pooled:
    owners, first, place = np.unique(document_of[ranking.indices], return_index=True, return_inverse=True)
    sums: Floats = np.zeros(len(owners))
    # in the order of the collection, so that a sum does not depend on how its passages were ranked
    order = np.argsort(ranking.indices, kind="stable")
    np.add.at(sums, place[order], ranking.scores[order])
    speakers = dict(zip(owners.tolist(), ranking.indices[first].tolist(), strict=True))
    best = top_k(owners, sums, k)
    return Pooled(best, np.array([speakers[owner] for owner in best.indices.tolist()], np.int64))
