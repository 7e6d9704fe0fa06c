"""The inner loop of dense search, dot products of pairs: by numpy, or compiled where numba (the extra `fast`) is there.

A product of two numbers of single precision is exact in double precision, so a dot product depends on nothing but the
order in which products are added. The compiled loop adds them in numpy's order (halves, down to leaves of at most 128
numbers, each summed in eight lanes), so both give the same bits. Whether they do is tried out before it is used.

The best k of many scores are chosen block by block, for many queries at once, without keeping the scores. Matrix
products give scores with rounding errors, so what is kept are candidates: everything that could be among the best k
within a margin. The first block gives every query a bar that k rows reach (less the margin); only what reaches it is
kept. The bar rises to the k-th best so far as more is seen, so little is looked at twice and memory stays bounded
whatever the collection's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, Rankings

Dots = Callable[[NDArray[Any], Indices, Floats, Indices], Floats]
"""The dot product of each of some rows, by their places, with the query that its owner names."""

Widen = Callable[[NDArray[Any], NDArray[np.float32] | None, NDArray[np.float32]], None]
"""Put rows of 16-bit floats, or of 8-bit integers with their scales, into a table of 32-bit floats."""

Reaching = Callable[[NDArray[np.float32], NDArray[np.float32]], tuple[Indices, Indices, NDArray[np.float32]]]
"""Row, column and value of every score in a table that reaches its row's bar, row by row."""

_PAIRS = 256
_LEAF = 128
_LANES = 8
_DEEPEST = 64
_STRETCH = 64  # scores that are compared together


def plain(rows: NDArray[Any], places: Indices, queries: Floats, owners: Indices) -> Floats:
    """The dot products, a few pairs at a time, which stay in the processor's cache."""
    scores = np.empty(len(places), np.float64)
    products = np.empty((min(_PAIRS, len(places)), rows.shape[1]), np.float64)
    for start in range(0, len(places), _PAIRS):
        here = slice(start, start + _PAIRS)
        some = products[: len(places[here])]
        np.copyto(some, rows[places[here]])
        some *= queries[owners[here]]
        np.add.reduce(some, axis=1, out=scores[here])
    return scores


class _Leaves(NamedTuple):
    """How numpy sums this number of values: stretches that are summed by themselves, and after each of them how often
    the last two sums are added up."""

    starts: Indices
    sizes: Indices
    merges: Indices

    @classmethod
    def of(cls, count: int) -> _Leaves:
        starts, sizes, merges = list[int](), list[int](), list[int]()

        def divide(start: int, size: int, closes: int) -> None:
            if size <= _LEAF:
                starts.append(start)
                sizes.append(size)
                merges.append(closes)
                return
            half = size // 2 - size // 2 % _LANES
            divide(start, half, 0)
            divide(start + half, size - half, closes + 1)

        divide(0, count, 0)
        return cls(*(np.array(each, np.int64) for each in (starts, sizes, merges)))


@cache
def compiled(dimension: int) -> Dots | None:
    """The same as `plain` for rows of that length, letting other threads run; None where numba is not installed or sums
    otherwise than numpy does."""
    fast = _kernel()
    if fast is None:
        return None
    leaves = _Leaves.of(dimension)

    def dots(rows: NDArray[Any], places: Indices, queries: Floats, owners: Indices) -> Floats:
        scores = np.empty(len(places), np.float64)
        narrow = places.astype(np.min_scalar_type(len(rows)))  # small numbers sort faster
        order = np.argsort(narrow, kind="stable")  # each row is fetched once, from memory in its order
        fast(np.asarray(rows), places, queries, owners, order, scores, *leaves)
        return scores

    return dots if _agree(dots, dimension) else None


def _agree(dots: Dots, dimension: int) -> bool:
    """Whether it gives numpy's bits for rows of all sorts."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((32, dimension)).astype(np.float32)
    rows[:4] *= np.float32(1e-30)
    rows[4:8] = 0
    queries = np.concatenate([rows[::3], -np.abs(rows[::5])]).astype(np.float64)
    places, owners = (each.ravel() for each in np.indices((len(rows), len(queries))))
    one, other = (each(rows, places, queries, owners) for each in (plain, dots))
    return one.tobytes() == other.tobytes()


@cache
def _kernel() -> Callable[..., None] | None:
    try:
        from numba import njit  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None

    def loop(
        rows: Any, places: Any, queries: Any, owners: Any, order: Any, scores: Any, starts: Any, sizes: Any, merges: Any
    ) -> None:
        length = rows.shape[1]
        products = np.empty(length, np.float64)
        sums = np.empty(_DEEPEST, np.float64)
        for pair in order:
            row, query = rows[places[pair]], queries[owners[pair]]
            for at in range(length):
                products[at] = row[at] * query[at]
            depth = 0
            for leaf in range(len(starts)):
                start, size = starts[leaf], sizes[leaf]
                end = start + size - size % _LANES
                if size < _LANES:
                    total = -0.0
                else:
                    for at in range(np.uint64(start + _LANES), np.uint64(end)):
                        products[at] += products[at - np.uint64(_LANES)]
                    total = ((products[end - 8] + products[end - 7]) + (products[end - 6] + products[end - 5])) + (
                        (products[end - 4] + products[end - 3]) + (products[end - 2] + products[end - 1])
                    )
                for at in range(end, start + size):
                    total += products[at]
                sums[depth] = total
                depth += 1
                for _ in range(merges[leaf]):
                    depth -= 1
                    sums[depth - 1] += sums[depth]
            scores[pair] = 0.0 + sums[0]

    fast: Callable[..., None] = njit(nogil=True, cache=True)(loop)
    return fast


@cache
def widening() -> Widen | None:
    """Widens rows in one go, letting other threads run; None where numba is not installed."""
    try:
        from numba import njit  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None

    def halves(half: Any, bits: Any, wide: Any) -> None:
        for number in range(len(half)):
            own, out, floats = half[number], bits[number], wide[number]
            for at in range(len(own)):  # the sign, 5 bits of exponent and 10 of fraction to their places
                out[at] = (np.int32(own[at]) << np.int32(13)) & np.int32(-0x7000_2000)
            for at in range(len(own)):
                floats[at] *= np.float32(2.0**112)

    def steps(step: Any, scale: Any, wide: Any) -> None:
        for number in range(len(step)):
            own, floats, by = step[number], wide[number], scale[number]
            for at in range(len(own)):
                floats[at] = np.float32(own[at]) * by

    fast_halves, fast_steps = (njit(nogil=True, cache=True)(each) for each in (halves, steps))

    def widen(narrow: NDArray[Any], scale: NDArray[np.float32] | None, wide: NDArray[np.float32]) -> None:
        if scale is None:
            fast_halves(narrow.view(np.int16), wide.view(np.int32), wide)
        else:
            fast_steps(narrow, scale, wide)

    return widen


@cache
def reaching() -> Reaching | None:
    """Finds the scores that reach their bars, letting other threads run; None where numba is not installed.

    Stretches are counted first, which a processor does many at a time; only those that hold something are looked into.
    """
    try:
        from numba import njit  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None

    def count(scores: Any, bars: Any, counts: Any) -> Any:
        total = 0
        for row in range(len(scores)):
            own, bar = scores[row], bars[row]
            for stretch in range(counts.shape[1]):
                some, here = own[stretch * _STRETCH : (stretch + 1) * _STRETCH], 0
                for at in range(len(some)):
                    if some[at] >= bar:
                        here += 1
                counts[row, stretch] = here
                total += here
        return total

    def fill(scores: Any, bars: Any, counts: Any, rows: Any, columns: Any, values: Any) -> None:
        done = 0
        for row in range(len(scores)):
            own, bar = scores[row], bars[row]
            for stretch in range(counts.shape[1]):
                at, until = stretch * _STRETCH, done + counts[row, stretch]
                while done < until:
                    if own[at] >= bar:
                        rows[done], columns[done], values[done] = row, at, own[at]
                        done += 1
                    at += 1

    fast_count, fast_fill = (njit(nogil=True, cache=True)(each) for each in (count, fill))

    def reach(scores: NDArray[np.float32], bars: NDArray[np.float32]) -> tuple[Indices, Indices, NDArray[np.float32]]:
        counts = np.empty((len(scores), -(-scores.shape[1] // _STRETCH)), np.int32)
        total = int(fast_count(scores, bars, counts))
        rows, columns, values = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.float32)
        fast_fill(scores, bars, counts, rows, columns, values)
        return rows, columns, values

    return reach


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
