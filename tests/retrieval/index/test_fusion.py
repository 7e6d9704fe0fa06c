from __future__ import annotations

import numpy as np
import pytest

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.topk import Ranking, reciprocal_rank_fusion


def ranking(*indices: int) -> Ranking:
    return Ranking(np.array(indices, np.int64), np.linspace(9, 1, len(indices)))


def test_sum_of_weighted_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([ranking(4, 2, 9), ranking(2, 7)], 10, weights=[1, 2])
    scores = dict(zip(fused.indices.tolist(), fused.scores.tolist(), strict=True))
    assert scores == pytest.approx({2: 1 / 62 + 2 / 61, 7: 2 / 62, 4: 1 / 61, 9: 1 / 63})
    assert fused.indices.tolist() == [2, 7, 4, 9]


def test_ties_keep_the_order_of_the_collection_and_k_cuts() -> None:
    fused = reciprocal_rank_fusion([ranking(8, 3), ranking(3, 8)], 1)
    assert fused.indices.tolist() == [3]


def test_the_same_shares_are_a_tie_whichever_rankings_they_come_from() -> None:
    ranks = [(1, 4, 6), (6, 1, 4), (4, 6, 1)]  # of three documents, each with every rank once
    for depth in (1, 20, 60):
        rankings = []
        for places in ranks:
            order = [9 + number for number in range(6)]
            for document, rank in enumerate(places):
                order[rank - 1] = document
            rankings.append(ranking(*order))
        fused = reciprocal_rank_fusion(rankings, 20, constant=depth)
        scores = dict(zip(fused.indices.tolist(), fused.scores.tolist(), strict=True))
        assert scores[0] == scores[1] == scores[2]


def test_nothing_to_fuse() -> None:
    assert len(reciprocal_rank_fusion([], 5).indices) == 0
    assert len(reciprocal_rank_fusion([ranking(), ranking()], 5).indices) == 0
    with pytest.raises(UsageError, match="weights"):
        reciprocal_rank_fusion([ranking(1)], 5, weights=[1, 2])
