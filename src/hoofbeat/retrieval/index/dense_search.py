"""Exact dense search: every vector is compared, so a result can be reproduced and a subset loses nothing.

Matrix products round differently with the batch's shape and the number of threads. They only choose the candidates,
with a margin for their rounding; the candidates are then scored one by one in double precision. So a ranking depends
on the stored vectors alone, and equal vectors always have equal scores. With 16-bit floats or 8-bit integers in store
this is exact search over the rounded vectors.

Approximate dense search, when asked for, with its recall measured against exact search and said aloud.

    ivf                 as many lists as twice the root of the rows; a 16th of them searched, 16 at least
    ivf:LISTS/PROBES    the number of lists, and how many of them are searched for each query
    hnsw                a graph by faiss (extra `ann`), effort 128
    hnsw:EFFORT         how many nodes are kept in view while searching; more finds more and takes longer

Both only choose candidates: those are scored exactly, as exact search scores them. A search within a subset is always
exact: on a small subset approximate indexes lose much of what there is (recall 0.7 where exact has 1).

Without queries, recall is measured on a sample of the rows. Rows find their like more easily than questions do (seen on
SciFact with MiniLM: 0.95 for rows, 0.92 for the claims): measure on the queries where they are at hand.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
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
from hoofbeat.retrieval.index.dense_kernels import QueryRankings, QueryRows, TopKSelection, joined, rankings
from hoofbeat.retrieval.index.topk import Indices, Ranking, Rankings, check_k, top_k
from hoofbeat.retrieval.index.vector_storage import VectorRows, check_storage

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
        """The search of that name: `exact`, `ivf`, `hnsw`; the approximate ones measure their recall."""
        if search == "exact":
            return DenseSearcher(vectors, store)

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
            raise UsageError(f"the bounds of partitions must ascend from 0 to at most {len(self)}", fix="check them")
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
            raise InputError("a query's vector is not finite or much too long", fix="encode the query again")
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


_SPEC = re.compile(r"(ivf)(?::(\d{1,7})/(\d{1,7}))?|(hnsw)(?::(\d{1,7}))?")
_SAMPLE = 200
_EFFORT = 128
_BATCH = 1024
_BLOCK = 8192
_ROUNDS = 10
_PER_LIST = 64
_NEIGHBOURS = 32
_BUILD_EFFORT = 80


def approximate(
    vectors: NDArray[Any], search: str, *, store: str = "float32", seed: int = 0, progress: Progress = SILENT
) -> ApproximateSearcher:
    """The approximate search of that name, built, its recall measured on a sample of the rows themselves."""
    match = _written(search)
    index: ApproximateSearcher
    if match[1]:
        lists, probes = int(match[2] or 0), int(match[3] or 0)
        index = Ivf(vectors, store, lists=lists, probes=probes, seed=seed, progress=progress)
    else:
        index = Hnsw(vectors, store, effort=approximate_settings(search)[1], progress=progress)
    index.measure(seed=seed)
    return index


def approximate_settings(search: str) -> tuple[str, int]:
    """Which approximate search this names, and the effort of a graph; an empty name for exact search."""
    if search == "exact":
        return "", 0
    match = _written(search)
    return match[1] or match[4], int(match[5] or _EFFORT)


def check_search(search: str) -> None:
    """Refuse an unknown kind of dense search."""
    if search != "exact" and _written(search)[0].startswith("hnsw"):
        _faiss()  # a missing extra is found before anything is indexed or asked


def _written(search: str) -> re.Match[str]:
    match = _SPEC.fullmatch(search)
    if not match:
        raise UsageError(
            f"there is no dense search {search!r}", fix="choose one of: exact, ivf, ivf:LISTS/PROBES, hnsw, hnsw:EFFORT"
        )
    if match[2] and not 1 <= int(match[3]) <= int(match[2]):
        raise UsageError(
            f"can't search {int(match[3])} of {int(match[2])} lists", fix="write ivf:LISTS/PROBES, both at least 1"
        )
    if match[5] and not int(match[5]):
        raise UsageError("an effort of 0 finds nothing", fix="write for example hnsw:128")
    return match


class ApproximateSearcher(DenseSearcher, ABC):
    """What approximate searches share: exact search over a subset, and the measured recall."""

    kind = ""

    def __init__(self, vectors: NDArray[Any], store: str = "float32") -> None:
        super().__init__(vectors, store)
        self.recalls: dict[int, float] = {}
        self.measured_on = ""

    @property
    def recall(self) -> float:
        """The measured recall of the ten best; not a number before it was measured."""
        return self.recalls.get(10, math.nan)

    @abstractmethod
    def settings(self) -> dict[str, object]:
        """What it was built with."""

    def describe(self) -> dict[str, object]:
        """How vectors are stored and searched, with the measured recall, as a manifest records it."""
        measured = {f"recall@{k}": round(recall, 4) for k, recall in sorted(self.recalls.items())}
        return {
            "search": self.kind,
            "store": self.rows.storage,
            **self.settings(),
            **measured,
            "recall measured on": self.measured_on,
        }

    def search(self, queries: Vectors, k: int, allowed: Indices | None = None) -> list[Ranking]:
        """About the `k` rows nearest to each query; with `allowed`, exactly those."""
        if allowed is not None:
            return super().search(queries, k, allowed)
        check_k(k)
        queries = self._checked(queries)
        found: list[Ranking] = []
        for first in range(0, len(queries), _BATCH):
            found += self._search(queries[first : first + _BATCH], k)
        return found

    def measure(self, queries: Vectors | None = None, k: int = 10, *, seed: int = 0) -> float:
        """The share of the `k` nearest rows that are found, on a seeded sample of queries (else of rows, each without
        itself); kept for `describe`. A row as near as the k-th counts as found."""
        rng = np.random.default_rng(seed)
        source = len(self) if queries is None else len(queries)
        chosen = np.sort(rng.choice(source, min(source, _SAMPLE), replace=False))
        if queries is None:
            asked, itself, more = self.rows.block(chosen), chosen, 1
        else:
            asked, itself, more = queries[chosen], np.full(len(chosen), -1), 0
        exact = super().search(asked, k + more)
        found = self.search(asked, k + more)
        shares = []
        for right, got, own in zip(exact, found, itself, strict=True):
            best = right.scores[right.indices != own][:k]
            if len(best):
                shares.append(float((got.scores[got.indices != own][:k] >= best[-1]).sum()) / len(best))
        self.recalls[k] = float(np.mean(shares)) if shares else 1.0
        self.measured_on = f"{len(chosen)} {'rows' if queries is None else 'queries'}, seed {seed}"
        return self.recalls[k]

    @abstractmethod
    def _search(self, queries: Vectors, k: int) -> list[Ranking]:
        """About the `k` rows nearest to each query of a batch."""


class Ivf(ApproximateSearcher):
    """Rows in lists around centres (spherical k-means on a seeded sample); the lists nearest to a query are searched.

    Where the lists searched hold fewer than `k` rows, more lists are searched.
    """

    kind = "ivf"

    def __init__(
        self,
        vectors: NDArray[Any],
        store: str = "float32",
        *,
        lists: int = 0,
        probes: int = 0,
        seed: int = 0,
        progress: Progress = SILENT,
    ) -> None:
        super().__init__(vectors, store)
        wanted = lists or max(1, round(2 * math.sqrt(len(self))))
        self.lists = min(wanted, max(1, len(self)))
        self.probes = min(probes or max(16, self.lists // 16), self.lists)
        self.seed = seed
        with progress.task("Cluster vectors", _ROUNDS + 1) as task:
            self._centres = self._cluster(task.advance)
            nearest = self._assign(np.arange(len(self)))
            task.advance()
        self._order = np.argsort(nearest, kind="stable")
        self._starts = np.searchsorted(nearest[self._order], np.arange(self.lists + 1))

    def settings(self) -> dict[str, object]:
        """Lists, probes and seed."""
        return {"lists": self.lists, "probes": self.probes, "seed": self.seed}

    def _cluster(self, advance: Any) -> Vectors:
        rng = np.random.default_rng(self.seed)
        if not len(self):
            return np.zeros((1, self.rows.dimension), np.float32)
        sample = np.sort(rng.choice(len(self), min(len(self), _PER_LIST * self.lists), replace=False))
        self._centres = self.rows.block(np.sort(rng.choice(sample, self.lists, replace=False))).copy()
        for _ in range(_ROUNDS):
            nearest = self._assign(sample)
            order = np.argsort(nearest, kind="stable")
            starts = np.searchsorted(nearest[order], np.arange(self.lists + 1))
            for number in range(self.lists):
                members = sample[order[starts[number] : starts[number + 1]]]
                if not len(members):  # an empty list starts anew from any row
                    members = rng.choice(sample, 1)
                mean = self.rows.block(members).mean(axis=0, dtype=np.float64)
                self._centres[number] = mean / (np.linalg.norm(mean) or 1.0)
            advance()
        return self._centres

    def _assign(self, places: Indices) -> Indices:
        """The centre nearest to each row."""
        nearest = np.empty(len(places), np.int64)
        for start in range(0, len(places), _BLOCK):
            rows = self.rows.block(places[start : start + _BLOCK])
            nearest[start : start + _BLOCK] = (rows @ self._centres.T).argmax(axis=1)
        return nearest

    def _probed(self, queries: Vectors, k: int) -> tuple[Indices, Indices]:
        """Pairs of query and list, sorted by list."""
        near = queries @ self._centres.T
        chosen = np.argpartition(-near, self.probes - 1, axis=1)[:, : self.probes]
        sizes = np.diff(self._starts)
        owners, lists = np.repeat(np.arange(len(queries)), self.probes), chosen.ravel()
        short = np.flatnonzero(sizes[chosen].sum(axis=1) < min(k, len(self)))
        if len(short):
            keep = ~np.isin(owners, short)
            every = [np.argsort(-near[number], kind="stable") for number in short]
            enough = [1 + int(np.searchsorted(np.cumsum(sizes[each]), min(k, len(self)))) for each in every]
            owners = np.concatenate([owners[keep], np.repeat(short, enough)])
            lists = np.concatenate([lists[keep], *[each[:most] for each, most in zip(every, enough, strict=True)]])
        order = np.argsort(lists, kind="stable")
        return owners[order], lists[order]

    def _search(self, queries: Vectors, k: int) -> list[Ranking]:
        if not len(self):
            return [Ranking.empty() for _ in queries]
        owners, lists = self._probed(queries, k)
        selection = TopKSelection(len(queries), k, self._margins(queries))
        starts = np.searchsorted(lists, np.arange(self.lists + 1))
        for number in np.unique(lists):
            asking = owners[starts[number] : starts[number + 1]]
            for at in range(int(self._starts[number]), int(self._starts[number + 1]), _BLOCK):
                places = self._order[at : min(at + _BLOCK, int(self._starts[number + 1]))]
                selection.offer(asking, places, queries[asking] @ self.rows.block(places).T)
        return self._settle(queries, selection, k, None)


class Hnsw(ApproximateSearcher):
    """A navigable graph of rows, by faiss. It is built on one thread: with several it would differ from run to run."""

    kind = "hnsw"

    def __init__(
        self, vectors: NDArray[Any], store: str = "float32", *, effort: int = 128, progress: Progress = SILENT
    ) -> None:
        faiss = _faiss()
        super().__init__(vectors, store)
        self.effort = effort
        self._index = faiss.IndexHNSWFlat(self.rows.dimension, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = _BUILD_EFFORT
        threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            with progress.task("Build the vector graph", len(self)) as task:
                for start in range(0, len(self), _BLOCK):
                    rows = self.rows.block(slice(start, start + _BLOCK))
                    self._index.add(np.ascontiguousarray(rows))
                    task.advance(len(rows))
        finally:
            faiss.omp_set_num_threads(threads)

    def settings(self) -> dict[str, object]:
        """Neighbours of a node, and the effort of building and searching."""
        return {"neighbours": _NEIGHBOURS, "build effort": _BUILD_EFFORT, "effort": self.effort}

    def _search(self, queries: Vectors, k: int) -> list[Ranking]:
        most = min(k, len(self))
        if not most:
            return [Ranking.empty() for _ in queries]
        # all that is in view is taken and scored exactly, so that in a small collection ties go by its order
        seen = min(max(self.effort, most), len(self))
        self._index.hnsw.efSearch = seen
        _, found = self._index.search(queries, seen)
        owners, columns = np.nonzero(found >= 0)
        places = found[owners, columns].astype(np.int64)
        scores = self.rows.dots(places, queries.astype(np.float64), owners)
        return rankings(owners, places, scores, len(queries), k)


def _faiss() -> Any:
    try:
        import faiss  # noqa: PLC0415 (an extra)
    except ImportError as err:
        raise UsageError(
            "hnsw search needs faiss, which is not installed",
            fix="pip install 'hoofbeat[ann]', or use search=exact or search=ivf",
        ) from err
    return faiss
