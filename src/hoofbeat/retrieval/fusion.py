"""Reciprocal rank fusion: rankings are joined by rank alone, so their scores need not be comparable."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.topk import Floats, Ranking, top_k

__all__ = ["RRF_K", "reciprocal_rank_fusion", "rrf_shares"]

RRF_K = 60
"""The usual constant (Cormack, Clarke and Büttcher 2009)."""


def rrf_shares(length: int, weight: float = 1.0, constant: int = RRF_K) -> Floats:
    """What each rank from 1 to `length` contributes: weight / (constant + rank)."""
    return weight / (constant + np.arange(1, length + 1))


def reciprocal_rank_fusion(
    rankings: Sequence[Ranking], k: int, *, weights: Sequence[float] | None = None, constant: int = RRF_K
) -> Ranking:
    """The `k` best by the sum of weight / (constant + rank) over the rankings; ties in the collection's order.

    Shares are added from the smallest up, so that the same shares give the same sum whichever rankings they come from.
    """
    if weights is not None and len(weights) != len(rankings):
        raise UsageError(f"{len(rankings)} rankings and {len(weights)} weights", fix="give one weight for each ranking")
    if not rankings:
        return Ranking.empty()
    shares = [
        rrf_shares(len(ranking.indices), weight, constant)
        for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True)
    ]
    everything = np.concatenate([ranking.indices for ranking in rankings])
    indices, place = np.unique(everything, return_inverse=True)
    scores: Floats = np.zeros(len(indices))
    added = np.concatenate(shares)
    smallest_first = np.argsort(added, kind="stable")
    np.add.at(scores, place[smallest_first], added[smallest_first])
    return top_k(indices, scores, k)
