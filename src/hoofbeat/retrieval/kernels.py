"""The inner loop of BM25: adding the rows of a query's terms up, by numpy, or compiled where numba is installed.

Both add the same numbers of single precision in the same order, so scores are the same to the last bit. What numba
(the extra `fast`) changes is time: its loop reads half as much, and lets the queries of a batch run side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.topk import Indices

__all__ = ["AddRows", "Rows", "Scratch", "Single", "add_rows", "compiled"]

Single = NDArray[np.float32]


class Rows(NamedTuple):
    """The rows of an index: sparse ones as texts and impacts between `starts`, those of frequent terms as `dense` too.

    `slots[t]` is where term `t` stands in `dense`, or -1.
    """

    starts: Indices
    texts: NDArray[np.int32]
    impacts: Single
    slots: NDArray[np.int32]
    dense: NDArray[np.float32]


class Scratch(NamedTuple):
    """Room for the scores of one query and what it takes to add them up, used again for the next one."""

    scores: Single
    products: Single
    places: NDArray[np.intp]

    @classmethod
    def of(cls, texts: int) -> Scratch:
        """Room for so many texts."""
        return cls(np.empty(texts, np.float32), np.empty(texts, np.float32), np.empty(texts, np.intp))


AddRows = Callable[[Scratch, Rows, NDArray[np.int64], Single], None]


def add_rows(scratch: Scratch, rows: Rows, terms: NDArray[np.int64], weights: Single) -> None:
    """Set the scores to the sum of the terms' rows, each times its weight, in the order given."""
    scores, products, places = scratch
    scores.fill(0)
    begins, ends, slots = rows.starts[terms].tolist(), rows.starts[terms + 1].tolist(), rows.slots[terms].tolist()
    for begin, end, slot, weight in zip(begins, ends, slots, weights, strict=True):
        impacts = rows.impacts[begin:end] if slot < 0 else rows.dense[slot]
        if weight != 1:
            impacts = np.multiply(impacts, weight, out=products[: len(impacts)])
        if slot >= 0:
            np.add(scores, impacts, out=scores)
        else:
            texts = places[: end - begin]
            texts[:] = rows.texts[begin:end]
            np.add.at(scores, texts, impacts)


@cache
def compiled() -> AddRows | None:
    """The same as `add_rows`, compiled and letting other threads run; None where numba is not installed.

    It takes about half a second to get ready, which only much work makes up for.
    """
    try:
        from numba import njit  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None

    def loop(
        scores: Any, starts: Any, texts: Any, impacts: Any, slots: Any, dense: Any, terms: Any, weights: Any
    ) -> None:
        for text in range(len(scores)):
            scores[text] = 0
        for number in range(len(terms)):
            term, weight = terms[number], weights[number]
            slot = slots[term]
            if slot >= 0:
                row = dense[slot]
                for text in range(len(scores)):
                    scores[text] += weight * row[text]
            else:
                for place in range(starts[term], starts[term + 1]):
                    scores[texts[place]] += weight * impacts[place]

    fast = njit(nogil=True, cache=True)(loop)

    def add_rows_fast(scratch: Scratch, rows: Rows, terms: NDArray[np.int64], weights: Single) -> None:
        fast(scratch.scores, *rows, terms, weights)

    return add_rows_fast
