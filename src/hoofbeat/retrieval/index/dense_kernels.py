"""The inner loop of dense search, dot products of pairs: by numpy, or compiled where numba (the extra `fast`) is there.

A product of two numbers of single precision is exact in double precision, so a dot product depends on nothing but the
order in which products are added. The compiled loop adds them in numpy's order (halves, down to leaves of at most 128
numbers, each summed in eight lanes), so both give the same bits. Whether they do is tried out before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.index.topk import Floats, Indices

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
    """How numpy sums so many numbers: stretches that are summed by themselves, and after each of them how many times
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
        order = np.argsort(places, kind="stable")  # each row is fetched once, from memory in its order
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
