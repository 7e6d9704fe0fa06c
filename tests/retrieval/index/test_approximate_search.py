"""Approximate search against exact search."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.dense_search import ApproximateSearcher, DenseSearcher, Hnsw, Ivf, approximate
from tests.retrieval.index.test_dense_search import same, unit_rows

KINDS = ["ivf", "hnsw"]


def clustered(rows: int, seed: int) -> NDArray[np.float32]:
    """Rows around a hundred centres, as texts are."""
    rng = np.random.default_rng(seed)
    near = unit_rows(100, 32, 7)[rng.integers(0, 100, rows)] + 0.1 * rng.normal(size=(rows, 32))
    vectors: NDArray[np.float32] = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def built(kind: str, vectors: NDArray[np.float32], store: str = "float32") -> ApproximateSearcher:
    if kind == "hnsw":
        pytest.importorskip("faiss")
    index = DenseSearcher.over(vectors, search=kind, store=store)
    assert isinstance(index, ApproximateSearcher)
    return index


@pytest.mark.parametrize("store", ["float32", "float16", "int8"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_found_is_scored_exactly_and_most_is_found(kind: str, store: str) -> None:
    vectors, queries = clustered(3000, 1), clustered(40, 2)
    index, exact = built(kind, vectors, store), DenseSearcher(vectors, store)
    hits = total = 0
    for found, right in zip(index.search(queries, 10), exact.search(queries, 10), strict=True):
        score_of = dict(zip(right.indices.tolist(), right.scores.tolist(), strict=True))
        assert len(found.indices) == 10
        assert (np.diff(found.scores) <= 0).all()
        for place, score in zip(found.indices.tolist(), found.scores.tolist(), strict=True):
            hits += place in score_of
            assert score_of.get(place, score) == score
        total += 10
    assert hits / total > 0.9
    assert index.measure(queries) == pytest.approx(hits / total, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_recall_is_measured_when_it_is_built(kind: str) -> None:
    index = built(kind, clustered(2000, 1))
    assert 0.9 < index.recall <= 1
    described = index.describe()
    assert described["search"] == kind
    assert described["recall@10"] == round(index.recall, 4)
    assert described["recall measured on"] == "200 rows, seed 0"
    index.measure(clustered(50, 3), k=100, seed=4)
    assert index.describe()["recall measured on"] == "50 queries, seed 4"
    assert "recall@100" in index.describe()


def test_too_few_probes_are_seen_in_the_recall() -> None:
    vectors = unit_rows(4000, 32, 1)  # no clusters: the hardest case
    low, high = (approximate(vectors, spec).recall for spec in ("ivf:200/1", "ivf:200/100"))
    assert low < 0.6 < 0.9 < high
    assert approximate(vectors, "ivf:200/200").recall == 1


def test_all_lists_give_exact_search() -> None:
    vectors, queries = unit_rows(700, 24, 1), unit_rows(20, 24, 2)
    same(Ivf(vectors, lists=30, probes=30).search(queries, 15), DenseSearcher(vectors).search(queries, 15))


@pytest.mark.parametrize("kind", KINDS)
def test_a_subset_is_searched_exactly(kind: str) -> None:
    vectors, queries = unit_rows(1000, 32, 1), unit_rows(10, 32, 2)
    allowed = np.arange(0, 1000, 50)
    index, exact = built(kind, vectors), DenseSearcher(vectors)
    same(index.search(queries, 10, allowed), exact.search(queries, 10, allowed))
    for one, other in zip(
        index.search_partitions(queries, 3, np.array([0, 400, 1000])),
        exact.search_partitions(queries, 3, np.array([0, 400, 1000])),
        strict=True,
    ):
        same(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_search(kind: str) -> None:
    vectors, queries = unit_rows(3000, 16, 1), unit_rows(30, 16, 2)
    one, other = built(kind, vectors), built(kind, vectors)
    same(one.search(queries, 10), other.search(queries, 10))
    assert one.describe() == other.describe()


def test_another_seed_clusters_otherwise() -> None:
    vectors, queries = unit_rows(3000, 16, 1), unit_rows(30, 16, 2)
    found = [Ivf(vectors, lists=100, probes=2, seed=seed).search(queries, 10) for seed in (0, 1)]
    assert [r.indices.tolist() for r in found[0]] != [r.indices.tolist() for r in found[1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_tiny_collections(kind: str, rows: int) -> None:
    index = built(kind, unit_rows(rows, 8, 1) if rows else np.empty((0, 8), np.float32))
    assert [len(ranking.indices) for ranking in index.search(unit_rows(2, 8, 2), 10)] == [rows, rows]
    assert index.recall == 1


def test_short_lists_are_made_up_for() -> None:
    index = Ivf(unit_rows(300, 8, 1), lists=100, probes=1)
    assert {len(ranking.indices) for ranking in index.search(unit_rows(9, 8, 2), 50)} == {50}
    assert math.isnan(index.recall), "not measured yet"


def test_equal_rows_cluster_too() -> None:
    index = approximate(np.repeat(unit_rows(2, 8, 1), 50, axis=0), "ivf")
    assert index.recall == 1


@pytest.mark.parametrize("spec", ["", "flat", "ivf:", "ivf:10", "ivf:10/0", "ivf:0/0", "ivf:10/11", "hnsw:0", "hnsw:x"])
def test_an_unknown_search_is_a_usage_error(spec: str) -> None:
    with pytest.raises(UsageError):
        DenseSearcher.over(unit_rows(10, 8, 1), search=spec)


def test_without_faiss_the_command_to_install_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(UsageError, match="needs faiss") as caught:
        Hnsw(unit_rows(10, 8, 1))
    assert caught.value.fix is not None
    assert "pip install 'hoofbeat[ann]'" in caught.value.fix
