"""The best k of scores that come in blocks, for many queries at once, without keeping the scores.

Matrix products give scores with rounding errors, so what is kept are candidates: everything that could be among the
best k within a margin. The first block gives every query a bar that k rows reach (less the margin); only what reaches
it is kept. The bar rises to the k-th best so far as more is seen, so that little is looked at twice and memory stays
bounded whatever the collection's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.index.dense_kernels import Reaching
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, Rankings

_GROUP = 16
_SPARE = 8  # groups for each result wanted, so that few hold two of them
_SAMPLED = 50  # of the results wanted, for a guess that is seldom far off
_SURE = 2.5  # standard deviations
_FEW = 64
_LEAST_KEPT = 1 << 18
_MOST_KEPT = 1 << 23


class QueryRows(NamedTuple):
    """Rows that belong to queries: `owners[i]` is the number of the query, `places[i]` the row."""

    owners: Indices
    places: Indices


class TopKSelection:
    """Candidates for the best `k` of each of `count` queries.

    `margins` bound, for each query, how far two scores can be off together. A query with more candidates than memory
    should hold (masses of equal rows) is dropped and named in `crowded`: its scores must be compared one by one.
    `reaching` finds what reaches a bar, if there is something quicker than numpy.
    """

    def __init__(self, count: int, k: int, margins: Floats, reaching: Reaching | None = None) -> None:
        self._k = k
        self._reaching = reaching or _reaching
        self._margins = margins
        self._bars = np.full(count, -np.inf, np.float32)
        self._kept: list[tuple[Indices, Indices, NDArray[np.float32]]] = []
        self._pending = 0
        self._limit = max(2 * count * k, _LEAST_KEPT)
        self.crowded = np.zeros(count, bool)

    def offer(self, owners: Indices, places: Indices, scores: NDArray[np.float32]) -> None:
        """Scores of some queries (rows, by `owners`) for some of the collection (columns, at `places`)."""
        new = np.flatnonzero(np.isneginf(self._bars[owners]))
        if len(new) and scores.shape[1] >= self._k:
            self._raise(owners[new], _first_bars(scores if len(new) == len(scores) else scores[new], self._k))
        rows, columns, values = self._reaching(scores, self._bars[owners])
        if len(rows):
            self._kept.append((owners[rows], places[columns], values))
            self._pending += len(rows)
        if self._pending > self._limit:
            self._compress()

    def finish(self) -> QueryRows:
        """The candidates, sorted by query."""
        self._compress()
        if not self._kept:
            return QueryRows(np.empty(0, np.int64), np.empty(0, np.int64))
        owners, places, _ = self._kept[0]
        return QueryRows(owners, places)

    def _raise(self, owners: Indices, borders: NDArray[np.float32]) -> None:
        below = np.nextafter(
            (borders.astype(np.float64) - self._margins[owners]).astype(np.float32), np.float32(-np.inf)
        )
        self._bars[owners] = np.maximum(self._bars[owners], below)

    def _compress(self) -> None:
        """Raise every bar to what has been seen, and drop what is below it."""
        if not self._kept:
            return
        owners, places, scores = self._kept[0]
        if len(self._kept) > 1:
            owners, places, scores = (np.concatenate(part) for part in zip(*self._kept, strict=True))
            narrow = owners.astype(np.min_scalar_type(len(self._bars)))  # small numbers sort faster
            order = np.argsort(narrow, kind="stable")
            owners, places, scores = owners[order], places[order], scores[order]
        starts = np.searchsorted(owners, np.arange(len(self._bars) + 1))
        sizes = np.diff(starts)
        full = np.flatnonzero(sizes > self._k)
        borders = np.empty(len(full), np.float32)
        for number, owner in enumerate(full):
            part = scores[starts[owner] : starts[owner + 1]]
            spare = len(part) - self._k
            borders[number] = np.partition(part, spare)[spare]
        self._raise(full, borders)
        keep = scores >= self._bars[owners]
        if int(keep.sum()) > max(_MOST_KEPT, 4 * len(self._bars) * self._k):
            most = max(_MOST_KEPT // len(self._bars), 4 * self._k)
            self.crowded |= np.bincount(owners[keep], minlength=len(self._bars)) > most
            self._bars[self.crowded] = np.inf
            keep &= ~self.crowded[owners]
        self._kept = [(owners[keep], places[keep], scores[keep])]
        self._pending = len(self._kept[0][0])
        self._limit = max(2 * self._pending, self._limit)


def _reaching(scores: NDArray[np.float32], bars: NDArray[np.float32]) -> tuple[Indices, Indices, NDArray[np.float32]]:
    found = np.flatnonzero(scores >= bars[:, None])  # much quicker than asking for both places
    rows, columns = np.divmod(found, scores.shape[1])
    return rows, columns, scores.reshape(-1)[found]


def _first_bars(scores: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """A number for each row that at least `k` of its scores reach, and not many more.

    For few results that is the k-th best among maxima of groups. For many it is guessed from every n-th score and
    counted; only where the guess was too high the k-th best is looked for.
    """
    count, columns = scores.shape
    size = min(_GROUP, columns // (_SPARE * k))
    every = min(_GROUP, k // _SAMPLED)
    if size >= _GROUP // 2:
        # a group is every width-th column, so that maxima are taken of whole stretches at a time
        width = columns // size
        maxima = scores[:, : size * width].reshape(count, size, width).max(axis=1)
        return _kth(maxima, k)
    if every < 2:
        return _kth(scores, k)
    expected = k / every
    sample = np.ascontiguousarray(scores[:, ::every])
    bars = _kth(sample, min(sample.shape[1], int(expected + _SURE * expected**0.5) + 1))
    short = np.flatnonzero(np.count_nonzero(scores >= bars[:, None], axis=1) < k)
    if len(short):
        bars[short] = _kth(scores[short], k)
    return bars


def _kth(values: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """The k-th best of each row."""
    spare = values.shape[1] - k
    return np.partition(values, spare, axis=1)[:, spare].copy()


def rankings(owners: Indices, places: Indices, scores: Floats, count: int, k: int) -> list[Ranking]:
    """The best `k` of each of `count` owners: highest first, equal scores in the order of the collection."""
    if len(owners) < _FEW * count:  # many short lists are sorted at once, long ones quicker one by one
        order = np.lexsort((places, -scores, owners))
        best = None
    else:
        order = np.argsort(owners, kind="stable")
        best = _best
    owners, places, scores = owners[order], places[order], scores[order]
    starts = np.searchsorted(owners, np.arange(count + 1))
    ranked = []
    for start, end in pairwise(starts):
        here = Ranking(places[start:end], scores[start:end])
        ranked.append(best(here, k) if best else Ranking(here.indices[:k], here.scores[:k]))
    return ranked


def _best(found: Ranking, k: int) -> Ranking:
    order = np.argsort(-found.scores)
    ordered = found.scores[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((found.indices, -found.scores))
    return Ranking(found.indices[order[:k]], found.scores[order[:k]])


class QueryRankings(NamedTuple):
    """A ranking for each query, one after the other: how long each is, the rows and their scores."""

    counts: Indices
    places: Indices
    scores: Floats

    @classmethod
    def of(cls, ranked: Sequence[Ranking]) -> QueryRankings:
        """These rankings."""
        counts = np.array([len(each.indices) for each in ranked], np.int64)
        return cls(counts, *(np.concatenate(part) for part in zip(*ranked, strict=True)))

    @classmethod
    def sorted(cls, pairs: QueryRows, scores: Floats, count: int, k: int) -> QueryRankings:
        """The best `k` of each of `count` owners, as `rankings` orders them, for short lists of much the same length.

        The pairs come sorted by owner and place.
        """
        counts = np.bincount(pairs.owners, minlength=count)
        width = int(counts.max(initial=0))
        if count * width > 4 * (len(scores) + _FEW):
            return cls.of(rankings(*pairs, scores, count, k))
        starts = (np.cumsum(counts) - counts)[:, None]
        columns = np.arange(width)
        there = columns < counts[:, None]
        if len(scores) == count * width:
            table = -scores.reshape(count, width)
        else:
            table = np.full((count, width), np.inf)
            table[there] = -scores
        order = starts + np.argsort(table, axis=1, kind="stable")
        best = order[:, :k][there[:, :k]]
        return cls(np.minimum(counts, k), pairs.places[best], scores[best])


def joined(parts: Sequence[QueryRankings], count: int) -> list[Rankings]:
    """For each of `count` queries its rankings in all parts."""
    counts = np.array([part.counts for part in parts], np.int64).reshape(len(parts), count).T
    ends = np.cumsum(counts).reshape(counts.shape)
    total = int(counts.sum())
    places, scores = np.empty(total, np.int64), np.empty(total, np.float64)
    for part, end in zip(parts, ends.T, strict=True):
        shift = end - np.cumsum(part.counts)  # how far each ranking moves
        to = np.repeat(shift, part.counts) + np.arange(len(part.places))
        places[to], scores[to] = part.places, part.scores
    edges = np.concatenate([[0], ends.ravel()])
    found = []
    for number in range(count):
        own = edges[number * len(parts) : (number + 1) * len(parts) + 1]
        found.append(Rankings(places[own[0] : own[-1]], scores[own[0] : own[-1]], own - own[0]))
    return found
