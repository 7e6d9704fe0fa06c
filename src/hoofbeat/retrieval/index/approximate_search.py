"""Approximate dense search, when asked for, with its recall measured against exact search and said aloud.

    ivf                 as many lists as twice the root of the rows; a 16th of them searched, 16 at least
    ivf:LISTS/PROBES    so many lists, so many of them searched for each query
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval.index.dense_search import DenseSearcher
from hoofbeat.retrieval.index.topk import Indices, Ranking, check_k
from hoofbeat.retrieval.index.topk_selection import TopKSelection, rankings

__all__ = ["ApproximateSearcher", "Hnsw", "Ivf", "approximate", "check_search"]

Vectors = NDArray[np.float32]

_SPEC = re.compile(r"(ivf)(?::(\d{1,7})/(\d{1,7}))?|(hnsw)(?::(\d{1,7}))?")
_SAMPLE = 200
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
        index = Hnsw(vectors, store, effort=int(match[5] or 128), progress=progress)
    index.measure(seed=seed)
    return index


def check_search(search: str) -> None:
    """Refuse what is no dense search."""
    if search != "exact":
        _written(search)


def _written(search: str) -> re.Match[str]:
    match = _SPEC.fullmatch(search)
    if not match:
        raise UsageError(
            f"there is no dense search {search!r}", fix="choose one of: exact, ivf, ivf:LISTS/PROBES, hnsw, hnsw:EFFORT"
        )
    if match[2] and not 1 <= int(match[3]) <= int(match[2]):
        raise UsageError(
            f"{int(match[3])} of {int(match[2])} lists can't be searched", fix="write ivf:LISTS/PROBES, 1 or more each"
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
        with progress.task("clustering vectors", _ROUNDS + 1) as task:
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
            with progress.task("building a graph", len(self)) as task:
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
