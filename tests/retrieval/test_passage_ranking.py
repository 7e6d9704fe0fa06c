"""Pooling of passages to documents, checked against the plain definition on random scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.topk import Ranking, top_k
from hoofbeat.retrieval.passage_ranking import Pool, PooledRanking, best_of, check_pool, pool_documents

SCORES = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=4), min_size=1, max_size=6)


def pooled(scores: list[list[int]], k: int, pool: Pool) -> PooledRanking:
    """Documents with the scores of their passages, pooled through the same door as a search."""
    flat = np.array([score for document in scores for score in document], np.float64)
    owner = np.repeat(np.arange(len(scores)), [len(document) for document in scores])

    def search(numbers: list[int], depth: int) -> list[Ranking]:
        return [top_k(np.arange(len(flat)), flat, depth) for _ in numbers]

    return pool_documents(search, 1, k, owner, len(scores), pool)[0]


@given(SCORES, st.integers(1, 8))
def test_max_and_sum_are_what_they_say(scores: list[list[int]], k: int) -> None:
    for pool, combine in (("max", max), ("sum", sum)):
        found = pooled(scores, k, check_pool(pool))
        expected = sorted(range(len(scores)), key=lambda number: (-combine(scores[number]), number))[:k]
        values = [combine(scores[number]) for number in expected]
        assert found.ranking.scores.tolist() == values
        if pool == "sum":
            assert found.ranking.indices.tolist() == expected
        flat = [score for document in scores for score in document]
        starts = np.cumsum([0, *map(len, scores)])
        for document, place in zip(found.ranking.indices, found.passages, strict=True):
            assert starts[document] <= place < starts[document + 1]
            assert flat[place] == max(scores[document])


@given(st.lists(SCORES, min_size=1, max_size=3).filter(lambda runs: len({len(run) for run in runs}) == 1))
def test_two_levels_of_max(runs: list[list[list[int]]]) -> None:
    k = 3
    found = best_of([pooled(run, k, "max") for run in runs], k)
    best = [max(max(run[number]) for run in runs) for number in range(len(runs[0]))]
    assert found.ranking.scores.tolist() == sorted(best, reverse=True)[:k]
    assert [best[number] for number in found.ranking.indices] == found.ranking.scores.tolist()


def test_an_unknown_pooling_is_said() -> None:
    with pytest.raises(UsageError, match="no pooling 'mean'"):
        check_pool("mean")
