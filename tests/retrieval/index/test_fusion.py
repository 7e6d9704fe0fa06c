from __future__ import annotations

import numpy as np
import pytest

from hoofbeat.retrieval.index.topk import Ranking, rrf_shares, score_shares, summed_shares


def ranking(*indices: int) -> Ranking:
    return Ranking(np.array(indices, np.int64), np.linspace(9, 1, len(indices)))


def by_rank(rankings: list[Ranking], k: int, weights: tuple[float, ...] = (1, 1, 1), constant: int = 60) -> Ranking:
    shares = [rrf_shares(len(each.indices), weight, constant) for each, weight in zip(rankings, weights, strict=False)]
    return summed_shares(rankings, shares, k)


def test_sum_of_weighted_reciprocal_ranks() -> None:
    fused = by_rank([ranking(4, 2, 9), ranking(2, 7)], 10, (1, 2))
    scores = dict(zip(fused.indices.tolist(), fused.scores.tolist(), strict=True))
    assert scores == pytest.approx({2: 1 / 62 + 2 / 61, 7: 2 / 62, 4: 1 / 61, 9: 1 / 63})
    assert fused.indices.tolist() == [2, 7, 4, 9]


def test_ties_keep_the_order_of_the_collection_and_k_cuts() -> None:
    fused = by_rank([ranking(8, 3), ranking(3, 8)], 1)
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
        fused = by_rank(rankings, 20, constant=depth)
        scores = dict(zip(fused.indices.tolist(), fused.scores.tolist(), strict=True))
        assert scores[0] == scores[1] == scores[2]


def test_nothing_to_fuse() -> None:
    assert len(by_rank([], 5).indices) == 0
    assert len(by_rank([ranking(), ranking()], 5).indices) == 0


def test_scores_are_brought_to_0_to_1_within_the_depth() -> None:
    scores = np.array([12.0, 7.0, 2.0, 1.0])
    assert score_shares(scores, 2, 1000).tolist() == pytest.approx([2, 12 / 11, 2 / 11, 0])
    assert score_shares(scores, 1, 3).tolist() == pytest.approx([1, 0.5, 0, 0])  # what lies deeper changes nothing
    assert score_shares(np.array([3.0]), 0.5, 1000).tolist() == [0.5]
    assert score_shares(np.array([3.0, 3.0, 3.0]), 1, 2).tolist() == [1, 1, 0]
    assert len(score_shares(np.zeros(0), 1, 5)) == 0
    for largest in (1.7e308, np.inf):  # of a reranker behind an endpoint: their difference is no number
        assert score_shares(np.array([largest, 0, -largest]), 1, 5).tolist() == [1, 0.5, 0]


def test_a_clear_lead_counts_by_scores_and_not_by_rank() -> None:
    clear = Ranking(np.array([1, 2, 3, 4]), np.array([20.0, 5.0, 4.0, 3.0]))
    close = Ranking(np.array([2, 3, 1, 4]), np.array([0.52, 0.51, 0.50, 0.10]))
    assert by_rank([clear, close], 4).indices[0] == 2
    shares = [score_shares(each.scores, 1, 1000) for each in (clear, close)]
    assert summed_shares([clear, close], shares, 4).indices.tolist() == [1, 2, 3, 4]
