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

__all__ = ["AddRows", "ImpactRows", "Scratch", "Single", "View", "add_rows", "compiled"]

Single = NDArray[np.float32]

_WIDE = 1 << 24  # postings; that is 128 MiB of wide positions if all terms are asked for

View = tuple[NDArray[np.intp] | NDArray[np.int32] | None, Single]
"""A term's row as numpy adds it: positions and impacts, or None and the impacts of all texts."""


class ImpactRows(NamedTuple):
    """The rows of an index: sparse ones as texts and impacts between `starts`, those of frequent terms as `dense` too.

    `slots[t]` is where term `t` stands in `dense`, or -1. `views` are the rows that numpy has added before.
    """

    starts: Indices
    texts: NDArray[np.int32]
    impacts: Single
    slots: NDArray[np.int32]
    dense: NDArray[np.float32]
    views: dict[int, View]

    @property
    def wide(self) -> bool:
        """Whether views keep positions as wide as numpy wants them: where there are not too many."""
        return len(self.texts) <= _WIDE

    def view(self, term: int) -> View:
        """Take a row out, and keep it for the next time."""
        row, slot = slice(self.starts[term], self.starts[term + 1]), self.slots[term]
        if slot >= 0:
            view: View = (None, self.dense[slot])
        elif self.wide:
            view = (self.texts[row].astype(np.intp), self.impacts[row])
        else:
            view = (self.texts[row], self.impacts[row])
        self.views[term] = view
        return view


class Scratch(NamedTuple):
    """Room for the scores of one query and what it takes to add them up, used again for the next one."""

    scores: Single
    products: Single
    places: NDArray[np.intp]

    @classmethod
    def of(cls, texts: int) -> Scratch:
        """Room for so many texts."""
        return cls(np.empty(texts, np.float32), np.empty(texts, np.float32), np.empty(texts, np.intp))


AddRows = Callable[[Scratch, ImpactRows, NDArray[np.int64], Single], None]


def add_rows(scratch: Scratch, rows: ImpactRows, terms: NDArray[np.int64], weights: Single) -> None:
    """Set the scores to the sum of the terms' rows, each times its weight, in the order given."""
    scores, products, places = scratch
    scores.fill(0)
    known, add, add_at, narrow = rows.views.get, np.add, np.add.at, not rows.wide
    for term, weight in zip(terms.tolist(), weights.tolist(), strict=True):
        texts, impacts = known(term) or rows.view(term)
        if weight != 1:
            impacts = np.multiply(impacts, weight, out=products[: len(impacts)])
        if texts is None:
            add(scores, impacts, out=scores)
        elif narrow:
            widened = places[: len(texts)]
            widened[:] = texts
            add_at(scores, widened, impacts)
        else:
            add_at(scores, texts, impacts)


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

    def add_rows_fast(scratch: Scratch, rows: ImpactRows, terms: NDArray[np.int64], weights: Single) -> None:
        fast(scratch.scores, *rows[:-1], terms, weights)

    return add_rows_fast
