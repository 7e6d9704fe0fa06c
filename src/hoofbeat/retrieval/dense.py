"""Exact dense search: every vector is compared, so a result can be reproduced and a subset loses nothing.

Matrix products round differently with the batch's shape and the number of threads. They only choose the candidates,
with a margin for their rounding; the candidates are then scored one by one in double precision. So a ranking depends
on the vectors alone, and equal vectors always have equal scores.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.topk import Indices, Ranking, check_k, top_k

__all__ = ["Dense"]

_BATCH_CELLS = 1 << 24

Vectors = NDArray[np.float32]


class Dense:
    """Dot-product search over the rows of a float32 matrix, known by their positions."""

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self._longest = float(np.linalg.norm(self.vectors, axis=1).max(initial=0.0))

    def search(self, queries: Vectors, k: int, allowed: Indices | None = None) -> list[Ranking]:
        """The `k` rows nearest to each query; `allowed` (ascending positions) restricts the search."""
        check_k(k)
        rows = self.vectors if allowed is None else self.vectors[allowed]
        positions = np.arange(len(rows)) if allowed is None else allowed
        if not len(rows):
            return [Ranking.empty() for _ in queries]
        rankings: list[Ranking] = []
        batch = max(1, _BATCH_CELLS // len(rows))
        for first in range(0, len(queries), batch):
            part = np.asarray(queries[first : first + batch], np.float32)
            approximate = part @ rows.T
            rankings += [
                self._exact(query, rows, positions, scores, k) for query, scores in zip(part, approximate, strict=True)
            ]
        return rankings

    def _exact(self, query: Vectors, rows: Vectors, positions: Indices, scores: Vectors, k: int) -> Ranking:
        candidates = np.arange(len(rows))
        if len(rows) > k:
            border = float(np.partition(scores, len(rows) - k)[len(rows) - k])
            # n·u·|x|·|y| bounds the rounding error of a dot product of length n; once for the border, once for the row
            margin = 2 * len(query) * 2.0**-24 * self._longest * float(np.linalg.norm(query))
            candidates = np.flatnonzero(scores >= border - margin)
        exact = _dot(rows[candidates], query)
        return top_k(positions[candidates], exact, k)


def _dot(rows: Vectors, query: Vectors) -> NDArray[np.float64]:
    """Dot products in double precision, each row summed by itself in one fixed order."""
    wide = query.astype(np.float64)
    parts: Sequence[NDArray[np.float64]] = [
        (rows[first : first + 4096] * wide).sum(axis=1) for first in range(0, len(rows), 4096)
    ]
    return np.concatenate(parts) if parts else np.empty(0)
