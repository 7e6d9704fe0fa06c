"""Rankings: the best k of many scores, and fusion by reciprocal rank or by scores.

Highest scores come first, equal scores in the order of the collection. Rankings whose scores are not comparable can be
fused: by rank alone, or by scores brought to 0 to 1 in each ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import UsageError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_LANE = 64


class Ranking(NamedTuple):
    """Positions in a collection, best first, with their scores."""

    indices: Indices
    scores: Floats

    @classmethod
    def empty(cls) -> Ranking:
        """A ranking of nothing."""
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))


class Rankings(NamedTuple):
    """Rankings one after the other: the nth is `edges[n]:edges[n + 1]`.

    They are of one query in parts of a collection, or of several queries in one part.
    """

    indices: Indices
    scores: Floats
    edges: Indices

    @classmethod
    def of(cls, rankings: Sequence[Ranking], first: int = 0) -> Rankings:
        """These rankings, with positions counted from `first`: three arrays travel quicker than many."""
        none = Ranking.empty()
        indices, scores = (np.concatenate(part) for part in zip(none, *rankings, strict=True))
        return cls(indices + first, scores, np.cumsum([0, *(len(each.indices) for each in rankings)]))

    def ranking(self, number: int) -> Ranking:
        """The nth ranking."""
        part = slice(self.edges[number], self.edges[number + 1])
        return Ranking(self.indices[part], self.scores[part])


def top_k(indices: Indices, scores: Floats, k: int) -> Ranking:
    """The `k` best of `indices` (ascending) by `scores`; ties at the border go to the earlier ones."""
    if len(scores) > k:
        border = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > border)
        level = np.flatnonzero(scores == border)[: k - len(above)]
        chosen = np.sort(np.concatenate([above, level]))
        indices, scores = indices[chosen], scores[chosen]
    order = np.argsort(-scores, kind="stable")
    return Ranking(indices[order], scores[order])


def positive_top_k(scores: NDArray[np.float32], k: int) -> Ranking:
    """The `k` best among the positive scores of a whole collection.

    The scores are dealt out to lanes. Lanes whose best reaches a bound hold at least one score each that does, so the
    k-th best of the lanes' best is a lower bound for the k-th best score: few have to be looked at beyond it.
    """
    hits = np.flatnonzero(scores >= _bound(scores, k))
    return top_k(hits, scores[hits].astype(np.float64), k)


def _bound(scores: NDArray[np.float32], k: int) -> np.float32:
    """A positive number that the `k` best scores reach, as far as they are positive."""
    least = np.finfo(np.float32).smallest_subnormal
    depth = min(_LANE, len(scores) // (4 * k))
    if depth < 2:
        return least
    lanes = len(scores) // depth
    best = scores[: lanes * depth].reshape(depth, lanes).max(axis=0)
    return max(least, np.partition(best, lanes - k)[lanes - k])


def check_k(k: int) -> None:
    """Refuse a number of results that can't be meant."""
    if k < 1:
        raise UsageError(f"can't return {k} results", fix="ask for at least one: k ≥ 1")


RRF_K = 60
"""The usual constant (Cormack, Clarke and Büttcher 2009)."""


def rrf_shares(length: int, weight: float = 1.0, constant: int = RRF_K) -> Floats:
    """What each rank from 1 to `length` contributes: weight / (constant + rank)."""
    return weight / (constant + np.arange(1, length + 1))


_LARGEST = 1e300


def score_shares(scores: Floats, weight: float, depth: int) -> Floats:
    """What each place of a ranking adds to a fusion by scores: `weight` at the best, nothing from place `depth` on.

    Scores of rankings that all are alike, or of a single hit, add `weight` each.
    """
    if not len(scores):
        return np.zeros(0)
    bounded = np.clip(scores.astype(np.float64), -_LARGEST, _LARGEST)  # of two larger ones the difference is infinite
    best, last = float(bounded[0]), float(bounded[min(depth, len(scores)) - 1])
    if not best > last:
        return np.where(np.arange(len(scores)) < depth, weight, 0.0)
    return weight * np.clip((bounded - last) / (best - last), 0.0, 1.0)


def summed_shares(rankings: Sequence[Ranking], shares: Sequence[Floats], k: int) -> Ranking:
    """The `k` best by the sum of what each ranking adds for them; ties in the collection's order.

    Shares are added from the smallest up, so that the same shares give the same sum whichever rankings they come from.
    """
    if not rankings:
        return Ranking.empty()
    everything = np.concatenate([ranking.indices for ranking in rankings])
    indices, place = np.unique(everything, return_inverse=True)
    scores: Floats = np.zeros(len(indices))
    added = np.concatenate(shares)
    smallest_first = np.argsort(added, kind="stable")
    np.add.at(scores, place[smallest_first], added[smallest_first])
    return top_k(indices, scores, k)
