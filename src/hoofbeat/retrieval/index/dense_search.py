"""Exact dense search: every vector is compared, so a result can be reproduced and a subset loses nothing.

Matrix products round differently with the batch's shape and the number of threads. They only choose the candidates,
with a margin for their rounding; the candidates are then scored one by one in double precision. So a ranking depends
on the stored vectors alone, and equal vectors always have equal scores. With 16-bit floats or 8-bit integers in store
this is exact search over the rounded vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models.embedded import default_threads
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval.index.topk import Indices, Ranking, Rankings, check_k, top_k
from hoofbeat.retrieval.index.topk_selection import QueryRankings, QueryRows, TopKSelection, joined, rankings
from hoofbeat.retrieval.index.vector_storage import VectorRows, check_storage

__all__ = ["DenseSearcher"]

Vectors = NDArray[np.float32]
Job = Callable[[], object]

_QUERIES = 1024  # go over the rows together, so that narrow ones are widened once for all of them
_AT_ONCE = 256  # of them, in one matrix product
_LEAST_APART = 16  # are selected in a thread of their own
_CELLS = 1 << 23
_LEAST_ROWS = 8192
_MOST_ROWS = 1 << 15
_WIDENED = 8192  # rows at a time for one product: they are still in the cache when it reads them
_MOST_PAIRS = 1 << 21
_EXACT_BLOCK = 4096


class DenseSearcher:
    """Dot-product search over the rows of a matrix, known by their positions; `store` is how they are kept.

    `fast` says whether to use numba, if it is installed; by default once there has been enough to do. It changes no
    score.
    """

    def __init__(self, vectors: NDArray[Any], store: str = "float32", *, fast: bool | None = None) -> None:
        self.rows = VectorRows(vectors, check_storage(store), fast=fast)

    @classmethod
    def over(
        cls, vectors: NDArray[Any], *, store: str = "float32", search: str = "exact", progress: Progress = SILENT
    ) -> DenseSearcher:
        """The search of that name: `exact`, `ivf`, `hnsw` (see `ann.py`); approximate ones measure their recall."""
        if search == "exact":
            return DenseSearcher(vectors, store)
        from hoofbeat.retrieval.index.approximate_search import approximate  # noqa: PLC0415 (it is written in this module's words)

        return approximate(vectors, search, store=store, progress=progress)

    def __len__(self) -> int:
        return len(self.rows)

    def describe(self) -> dict[str, object]:
        """How vectors are stored and searched, as a manifest records it."""
        return {"search": "exact", "store": self.rows.storage}

    def search(self, queries: Vectors, k: int, allowed: Indices | None = None) -> list[Ranking]:
        """The `k` rows nearest to each query; `allowed` (ascending positions) restricts the search."""
        check_k(k)
        queries = self._checked(queries)
        found: list[Ranking] = []
        step = max(1, min(_QUERIES, _MOST_PAIRS // k))
        for first in range(0, len(queries), step):
            found += self._nearest(queries[first : first + step], k, allowed)
        return found

    def search_partitions(self, queries: Vectors, k: int, bounds: Indices) -> list[list[Ranking]]:
        """The `k` nearest rows of each partition to each query, as searching each partition by `allowed` would give.

        Rows of partition n are `bounds[n]:bounds[n + 1]`. One list per query, in it one ranking per partition.
        """
        return [
            [found.ranking(part) for part in range(len(found.edges) - 1)]
            for found in self.search_parts(queries, k, bounds)
        ]

    def search_parts(
        self, queries: Vectors, k: int, bounds: Indices, parts: Sequence[int] | None = None
    ) -> list[Rankings]:
        """The same rankings, joined for each query; `parts` (ascending) are the partitions to search, else all."""
        check_k(k)
        queries = self._checked(queries)
        bounds = np.asarray(bounds, np.int64)
        if (
            bounds.ndim != 1
            or not len(bounds)
            or bounds[0] < 0
            or bounds[-1] > len(self)
            or (np.diff(bounds) < 0).any()
        ):
            raise UsageError(f"the bounds of partitions must ascend from 0 to {len(self)} at most", fix="check them")
        chosen = np.arange(len(bounds) - 1) if parts is None else np.asarray(parts, np.int64)
        if len(chosen) and (chosen[0] < 0 or chosen[-1] >= len(bounds) - 1 or (np.diff(chosen) <= 0).any()):
            raise UsageError(f"the partitions to search must ascend from 0 to {len(bounds) - 2}", fix="check them")
        spans = list(zip(bounds[chosen].tolist(), bounds[chosen + 1].tolist(), strict=True))
        most = sum(min(end - start, k) for start, end in spans)
        step = max(1, min(_QUERIES, _MOST_PAIRS // max(1, most)))
        found: list[Rankings] = []
        for first in range(0, len(queries), step):
            found += self._by_partition(queries[first : first + step], k, spans)
        return found

    # Inside

    def _checked(self, queries: Vectors) -> Vectors:
        queries = np.ascontiguousarray(queries, np.float32)
        if queries.ndim != 2 or queries.shape[1] != self.rows.dimension:
            raise InputError(
                f"queries of shape {queries.shape} can't be compared with vectors of {self.rows.dimension} numbers",
                fix="encode queries and documents with the same encoder",
            )
        if not np.isfinite(queries).all() or np.abs(queries).max(initial=0.0) > 1e18:
            raise InputError("a query's vector is not finite or far too long", fix="encode the query again")
        return queries

    def _margins(self, queries: Vectors) -> NDArray[np.float64]:
        # n·u·|x|·|y| bounds the rounding error of a dot product of length n; once for the border, once for the row;
        # two more roundings where stored rows are widened
        lengths: NDArray[np.float64] = np.linalg.norm(queries.astype(np.float64), axis=1)
        return 2 * (self.rows.dimension + 2) * 2.0**-24 * self.rows.longest * lengths

    def _blocks(self, queries: int, allowed: Indices | None) -> list[slice | Indices]:
        """The rows to search, a bounded number at a time."""
        total = len(self) if allowed is None else len(allowed)
        step = min(max(_CELLS // max(1, queries), _LEAST_ROWS), _MOST_ROWS)
        spans = [slice(start, min(start + step, total)) for start in range(0, total, step)]
        return [span if allowed is None else allowed[span] for span in spans]

    def _nearest(self, queries: Vectors, k: int, allowed: Indices | None) -> list[Ranking]:
        threads = default_threads()
        batches = [_Batch(queries[at : at + _AT_ONCE], k, self, threads) for at in range(0, len(queries), _AT_ONCE)]
        blocks = self._blocks(min(len(queries), _AT_ONCE), allowed)
        with ThreadPoolExecutor(threads) as pool:
            if batches and blocks:
                self._offer_all(batches, blocks, threads, pool)
            parts = [each for batch in batches for each in batch.parts]
            ranked: list[list[Ranking]] = [[] for _ in parts]

            def settle(number: int) -> None:
                part, selection = parts[number]
                ranked[number] = self._settle(part, selection, k, allowed, 1 if len(parts) > 1 else threads)

            _shared(pool, [partial(settle, number) for number in range(len(parts))])
            return [ranking for each in ranked for ranking in each]

    def _offer_all(
        self, batches: list[_Batch], blocks: list[slice | Indices], threads: int, pool: ThreadPoolExecutor
    ) -> None:
        """Let every batch see its scores for every block."""
        buffer = np.empty(len(batches[0].queries) * max(map(_length, blocks)), np.float32)
        narrow = self.rows.storage != "float32"
        piece = _WIDENED if narrow and len(batches) == 1 else _MOST_ROWS
        room = np.empty((min(piece, len(self)), self.rows.dimension), np.float32) if narrow else None
        for which in blocks:
            places = np.arange(which.start, which.stop) if isinstance(which, slice) else which
            for start in range(0, len(places), piece):
                end = min(start + piece, len(places))
                rows = self._widened(_part(which, start, end), room, threads, pool)
                for batch in batches:
                    scores = buffer[: len(batch.queries) * len(places)].reshape(len(batch.queries), len(places))
                    np.matmul(batch.queries, rows.T, out=scores[:, start:end])
                    if end == len(places):
                        _shared(pool, batch.offers(places, scores))

    def _widened(self, which: slice | Indices, room: Vectors | None, threads: int, pool: ThreadPoolExecutor) -> Vectors:
        """These rows as 32-bit floats: in place, or in the room, where each thread puts its share."""
        if room is None:
            return self.rows.block(which)
        count = _length(which)
        ends = [count * part // threads for part in range(threads + 1)]
        _shared(
            pool,
            [partial(self.rows.block, _part(which, start, end), room[start:end]) for start, end in pairwise(ends)],
        )
        return room[:count]

    def _settle(
        self, queries: Vectors, selection: TopKSelection, k: int, allowed: Indices | None, threads: int = 0
    ) -> list[Ranking]:
        """Score the candidates exactly, and rank."""
        wide = queries.astype(np.float64)
        pairs = selection.finish()
        scores = self.rows.dots(pairs.places, wide, pairs.owners, threads=threads)
        ranked = rankings(pairs.owners, pairs.places, scores, len(queries), k)
        for number in np.flatnonzero(selection.crowded):
            ranked[number] = self._one_by_one(wide[number : number + 1], k, allowed)
        return ranked

    def _one_by_one(self, query: NDArray[np.float64], k: int, allowed: Indices | None) -> Ranking:
        """The nearest rows by scoring all of them exactly: for collections with masses of equal rows."""
        best = Ranking.empty()
        places = np.arange(len(self)) if allowed is None else allowed
        for start in range(0, len(places), _EXACT_BLOCK):
            here = places[start : start + _EXACT_BLOCK]
            scores = self.rows.dots(here, query, np.zeros(len(here), np.int64))
            joined, values = np.concatenate([best.indices, here]), np.concatenate([best.scores, scores])
            order = np.argsort(joined)
            best = top_k(joined[order], values[order], k)
        return best

    def _by_partition(self, queries: Vectors, k: int, spans: list[tuple[int, int]]) -> list[Rankings]:
        """Rankings of a batch of queries in each of these stretches of rows."""
        most = max(_CELLS // max(1, len(queries)), _LEAST_ROWS)
        candidates: dict[int, QueryRows] = {}
        lists: dict[int, QueryRankings] = {}
        margins = self._margins(queries)
        for first, last in _together(spans, most):
            places = _places(spans[first:last])
            if len(places) > most:
                lists[first] = QueryRankings.of(self._nearest(queries, k, places))
                continue
            adjacent = len(places) == spans[last - 1][1] - spans[first][0]
            block = self.rows.block(slice(spans[first][0], spans[last - 1][1]) if adjacent else places)
            scores = queries @ block.T
            done = 0
            for part, (start, end) in enumerate(spans[first:last], first):
                pairs = _within(scores[:, done : (done := done + end - start)], k, margins)
                if len(pairs.owners) > 4 * len(queries) * k + 4096:  # masses of equal rows
                    pairs = self._trimmed(queries, k, pairs, start)
                candidates[part] = QueryRows(pairs.owners, pairs.places + start)
        if candidates:
            owners, places = map(np.concatenate, zip(*candidates.values(), strict=True))
            exact = self.rows.dots(places, queries.astype(np.float64), owners)
            done = 0
            for part, pairs in candidates.items():
                here = slice(done, done := done + len(pairs.owners))
                lists[part] = QueryRankings.sorted(pairs, exact[here], len(queries), k)
        return joined([lists[part] for part in range(len(spans))], len(queries))

    def _trimmed(self, queries: Vectors, k: int, pairs: QueryRows, start: int) -> QueryRows:
        """Only the best `k` of a partition's candidates, scored exactly at once."""
        exact = self.rows.dots(pairs.places + start, queries.astype(np.float64), pairs.owners)
        ranked = rankings(pairs.owners, pairs.places, exact, len(queries), k)
        owners = np.repeat(np.arange(len(queries)), [len(each.indices) for each in ranked])
        return QueryRows(owners, np.concatenate([each.indices for each in ranked]))


class _Batch:
    """Queries of one matrix product, and the selections among its scores, one for each thread."""

    def __init__(self, queries: Vectors, k: int, dense: DenseSearcher, threads: int) -> None:
        self.queries = queries
        step = max(_LEAST_APART, -(-len(queries) // threads))
        parts = [queries[at : at + step] for at in range(0, len(queries), step)]
        self.parts = [(part, TopKSelection(len(part), k, dense._margins(part), dense.rows.reaching)) for part in parts]

    def offers(self, places: Indices, scores: Vectors) -> list[Job]:
        """What lets each selection see its scores of one block."""
        ends = np.cumsum([len(part) for part, _ in self.parts])
        shares = np.split(scores, ends[:-1])
        return [
            partial(selection.offer, np.arange(len(mine)), places, mine)
            for (_, selection), mine in zip(self.parts, shares, strict=True)
        ]


def _shared(pool: ThreadPoolExecutor, jobs: Sequence[Job]) -> None:
    """Do these at the same time, the first of them here."""
    others = [pool.submit(job) for job in jobs[1:]]
    try:
        for job in jobs[:1]:
            job()
    finally:
        wait(others)
    for other in others:
        other.result()


def _length(which: slice | Indices) -> int:
    return int(which.stop - which.start) if isinstance(which, slice) else len(which)


def _part(which: slice | Indices, start: int, end: int) -> slice | Indices:
    return slice(which.start + start, which.start + end) if isinstance(which, slice) else which[start:end]


def _together(spans: list[tuple[int, int]], max_rows: int) -> Iterator[tuple[int, int]]:
    """Split the stretches into blocks of at most `max_rows` rows, each of which one product serves."""
    first = total = 0
    for number, (start, end) in enumerate(spans):
        if number > first and total + end - start > max_rows:
            yield first, number
            first, total = number, 0
        total += end - start
    if spans:
        yield first, len(spans)


def _places(spans: list[tuple[int, int]]) -> Indices:
    """The rows of these stretches."""
    return np.concatenate([np.arange(start, end) for start, end in spans])


def _within(scores: Vectors, k: int, margins: NDArray[np.float64]) -> QueryRows:
    """Every row that could be among the best `k` of a small partition, for each query."""
    spare = scores.shape[1] - k
    if spare <= 0:
        everyone, everything = np.indices(scores.shape)
        return QueryRows(everyone.ravel(), everything.ravel())
    bars = np.partition(scores, spare, axis=1)[:, spare] - margins
    found, columns = np.nonzero(scores >= bars[:, None])
    return QueryRows(found, columns)
