"""The best k of scores that come in blocks, for many queries at once, without keeping the scores.

Matrix products give scores with rounding errors, so what is kept are candidates: everything that could be among the
best k within a margin. Each block is first reduced to maxima of small groups; only groups whose maximum reaches a
query's bar are looked into. The bar (the k-th best so far, less the margin) rises as more is seen, so that little is
looked at twice and memory stays bounded whatever the collection's size.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.topk import Floats, Indices, Ranking

__all__ = ["Pairs", "Selection", "rankings"]

_GROUP = 16
_SPARE = 8  # groups for each result wanted, so that few hold two of them
_FEW = 64
_LEAST_KEPT = 1 << 18
_MOST_KEPT = 1 << 23


class Pairs(NamedTuple):
    """Rows that belong to queries: `owners[i]` is the number of the query, `places[i]` the row."""

    owners: Indices
    places: Indices


class Selection:
    """Candidates for the best `k` of each of `count` queries.

    `margins` bound, for each query, how far two scores can be off together. A query with more candidates than memory
    should hold (masses of equal rows) is dropped and named in `crowded`: its scores must be compared one by one.
    """

    def __init__(self, count: int, k: int, margins: Floats) -> None:
        self._k = k
        self._margins = margins
        self._bars = np.full(count, -np.inf, np.float32)
        self._kept: list[tuple[Indices, Indices, NDArray[np.float32]]] = []
        self._pending = 0
        self._limit = max(2 * count * k, _LEAST_KEPT)
        self.crowded = np.zeros(count, bool)

    def offer(self, owners: Indices, places: Indices, scores: NDArray[np.float32]) -> None:
        """Scores of some queries (rows, by `owners`) for some of the collection (columns, at `places`)."""
        columns = scores.shape[1]
        size = min(_GROUP, columns // (_SPARE * self._k))
        if size < 2:
            self._first_bars(owners, scores)
            self._take(owners, places, scores)
        else:
            # a group is every width-th column, so that maxima are taken of whole stretches at a time
            width = columns // size
            grouped = scores[:, : size * width].reshape(len(scores), size, width)
            maxima = grouped.max(axis=1)
            self._first_bars(owners, maxima)
            rows, groups = _where(maxima >= self._bars[owners][:, None])
            inside = grouped[rows, :, groups]
            found, members = _where(inside >= self._bars[owners[rows]][:, None])
            at = groups[found] + members * width
            self._keep(owners[rows[found]], places[at], inside[found, members])
            self._take(owners, places[size * width :], scores[:, size * width :])
        if self._pending > self._limit:
            self._compress()

    def finish(self) -> Pairs:
        """The candidates, sorted by query."""
        self._compress()
        if not self._kept:
            return Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
        owners, places, _ = self._kept[0]
        return Pairs(owners, places)

    def _first_bars(self, owners: Indices, values: NDArray[np.float32]) -> None:
        """The k-th best of what is seen first, maxima of groups or single scores, is a bar that k rows reach."""
        new = np.flatnonzero(np.isneginf(self._bars[owners]))
        spare = values.shape[1] - self._k
        if len(new) and spare >= 0:
            borders = np.partition(values[new], spare, axis=1)[:, spare]
            self._raise(owners[new], borders)

    def _raise(self, owners: Indices, borders: NDArray[np.float32]) -> None:
        below = np.nextafter(
            (borders.astype(np.float64) - self._margins[owners]).astype(np.float32), np.float32(-np.inf)
        )
        self._bars[owners] = np.maximum(self._bars[owners], below)

    def _take(self, owners: Indices, places: Indices, scores: NDArray[np.float32]) -> None:
        rows, columns = _where(scores >= self._bars[owners][:, None])
        self._keep(owners[rows], places[columns], scores[rows, columns])

    def _keep(self, owners: Indices, places: Indices, scores: NDArray[np.float32]) -> None:
        if len(owners):
            self._kept.append((owners, places, scores))
            self._pending += len(owners)

    def _compress(self) -> None:
        """Raise every bar to what has been seen, and drop what is below it."""
        if not self._kept:
            return
        owners, places, scores = (np.concatenate(part) for part in zip(*self._kept, strict=True))
        order = np.argsort(owners, kind="stable")
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


def _where(mask: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Rows and columns of what is true; for a sparse mask much quicker than asking for both."""
    return np.divmod(np.flatnonzero(mask), max(1, mask.shape[1]))


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
