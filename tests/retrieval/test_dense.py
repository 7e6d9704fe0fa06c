from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.retrieval import dense as dense_module
from hoofbeat.retrieval.dense import Dense


def unit_rows(rows: int, dimension: int, seed: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@pytest.mark.parametrize("allowed", [None, [0, 5, 6, 100, 399], list(range(0, 400, 2))])
def test_exact_against_sorting_everything(allowed: list[int] | None) -> None:
    vectors, queries = unit_rows(400, 48, 1), unit_rows(13, 48, 2)
    rankings = Dense(vectors).search(queries, 10, None if allowed is None else np.array(allowed))
    for query, ranking in zip(queries.astype(np.float64), rankings, strict=True):
        scores = vectors.astype(np.float64) @ query
        expected = sorted(range(400) if allowed is None else allowed, key=lambda row: -scores[row])[:10]
        assert ranking.indices.tolist() == expected
        assert ranking.scores == pytest.approx(scores[expected], rel=1e-12)


def test_equal_vectors_tie_and_keep_their_order() -> None:
    vectors = np.repeat(unit_rows(7, 33, 3), 31, axis=0)
    for ranking in Dense(vectors).search(unit_rows(5, 33, 4), 45):
        assert len(set(ranking.scores.tolist())) == 2
        assert ranking.indices.tolist() == [
            *range(b := int(ranking.indices[0]), b + 31),
            *range(c := int(ranking.indices[31]), c + 14),
        ]


def test_ranking_does_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    index, queries = Dense(unit_rows(500, 64, 5)), unit_rows(9, 64, 6)
    together = index.search(queries, 20)
    monkeypatch.setattr(dense_module, "_BATCH_CELLS", 500)
    for one, other in zip(together, index.search(queries, 20), strict=True):
        assert one.indices.tolist() == other.indices.tolist()
        assert one.scores.tolist() == other.scores.tolist()


def test_nothing_to_search() -> None:
    queries = unit_rows(2, 8, 7)
    assert [len(ranking.indices) for ranking in Dense(np.empty((0, 8), np.float32)).search(queries, 3)] == [0, 0]
    assert len(Dense(unit_rows(4, 8, 8)).search(queries, 3, np.empty(0, np.int64))[0].indices) == 0
    with pytest.raises(UsageError, match="0 results"):
        Dense(unit_rows(4, 8, 8)).search(queries, 0)
