from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.retrieval.index import dense_kernels, dense_search
from hoofbeat.retrieval.index.dense_search import DenseSearcher
from hoofbeat.retrieval.index.topk import Ranking
from hoofbeat.retrieval.index.vector_storage import VectorRows, check_storage

STORES = ["float32", "float16", "int8"]


def unit_rows(rows: int, dimension: int, seed: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(rows, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def as_stored(vectors: NDArray[np.float32], store: str) -> NDArray[np.float64]:
    """The numbers a storage should hold, worked out apart from it."""
    if store == "int8":
        scale = (np.abs(vectors).max(axis=1, keepdims=True) / np.float32(127)).astype(np.float32)
        rounded: NDArray[np.float64] = np.rint(vectors / scale).astype(np.float64) * scale
        return rounded
    return vectors.astype(store).astype(np.float64)


def same(one: list[Ranking], other: list[Ranking]) -> None:
    """The same rows with the same scores, to the last bit."""
    assert [ranking.indices.tolist() for ranking in one] == [ranking.indices.tolist() for ranking in other]
    assert [ranking.scores.tobytes() for ranking in one] == [ranking.scores.tobytes() for ranking in other]


@pytest.fixture(params=["as is", "small blocks"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as it is, and once with blocks so small that every bound is crossed."""
    if request.param == "small blocks":
        for name, value in {"_QUERIES": 5, "_AT_ONCE": 3, "_LEAST_APART": 1, "_CELLS": 1, "_LEAST_ROWS": 37}.items():
            monkeypatch.setattr(dense_search, name, value)
        monkeypatch.setattr(dense_kernels, "_LEAST_KEPT", 1)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("k", [1, 10, 150, 1000])
@pytest.mark.parametrize("allowed", [None, [0, 5, 6, 100, 399], list(range(0, 400, 2))])
def test_exact_against_sorting_everything(allowed: list[int] | None, k: int, store: str) -> None:
    vectors, queries = unit_rows(400, 48, 1), unit_rows(13, 48, 2)
    stored = as_stored(vectors, store)
    rankings = DenseSearcher(vectors, store).search(queries, k, None if allowed is None else np.array(allowed))
    for query, ranking in zip(queries.astype(np.float64), rankings, strict=True):
        scores = stored @ query
        expected = sorted(range(400) if allowed is None else allowed, key=lambda row: -scores[row])[:k]
        assert ranking.indices.tolist() == expected
        assert ranking.scores == pytest.approx(scores[expected], rel=1e-12)


@pytest.mark.parametrize("store", STORES)
def test_a_large_collection_in_ascending_order(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst order there is: every block is better than all before it."""
    monkeypatch.setattr(dense_kernels, "_LEAST_KEPT", 100)
    monkeypatch.setattr(dense_search, "_MOST_ROWS", 1000)
    vectors = unit_rows(30_000, 16, 9)
    vectors = np.ascontiguousarray(vectors[np.argsort(vectors[:, 0])])
    queries = np.eye(16, dtype=np.float32)[:2]
    stored = as_stored(vectors, store)
    for query, ranking in zip(queries, DenseSearcher(vectors, store).search(queries, 25), strict=True):
        scores = stored @ query.astype(np.float64)
        np.testing.assert_array_equal(ranking.indices, np.lexsort((np.arange(30_000), -scores))[:25])


@pytest.mark.parametrize("every", [1, 2, 16, 20])
def test_a_sample_that_deceives_loses_nothing(every: int) -> None:
    """The rows that a guess looks at are the best ones, so the guess is far too high."""
    vectors = unit_rows(4000, 16, 9)
    order = np.argsort(-vectors[:, 0], kind="stable")
    placed = np.empty_like(vectors)
    places = np.concatenate([np.arange(start, 4000, every) for start in range(every)])
    placed[places] = vectors[order]
    (ranking,) = DenseSearcher(placed).search(np.eye(16, dtype=np.float32)[:1], 1000)
    np.testing.assert_array_equal(ranking.indices, places[:1000])


@pytest.mark.usefixtures("blocks")
def test_equal_vectors_tie_and_keep_their_order() -> None:
    vectors = np.repeat(unit_rows(7, 33, 3), 31, axis=0)
    for ranking in DenseSearcher(vectors).search(unit_rows(5, 33, 4), 45):
        assert len(set(ranking.scores.tolist())) == 2
        assert ranking.indices.tolist() == [
            *range(b := int(ranking.indices[0]), b + 31),
            *range(c := int(ranking.indices[31]), c + 14),
        ]


@pytest.mark.parametrize("store", STORES)
def test_masses_of_equal_rows_stay_within_memory(monkeypatch: pytest.MonkeyPatch, store: str) -> None:
    monkeypatch.setattr(dense_kernels, "_LEAST_KEPT", 64)
    monkeypatch.setattr(dense_kernels, "_MOST_KEPT", 64)
    vectors = np.repeat(unit_rows(2, 24, 3), 4000, axis=0)
    queries = np.vstack([unit_rows(3, 24, 4), np.zeros((1, 24), np.float32)])
    index = DenseSearcher(vectors, store)
    for allowed in (None, np.arange(1, 8000, 3)):
        places = np.arange(8000) if allowed is None else allowed
        found = index.search(queries, 5, allowed)
        assert found[3].indices.tolist() == places[:5].tolist()
        assert not found[3].scores.any()
        for query, ranking in zip(queries[:3], found[:3], strict=True):
            first = 0 if as_stored(vectors[[0, 4000]], store).dot(query).argmax() == 0 else 4000
            assert ranking.indices.tolist() == places[places >= first][:5].tolist()
    same(index.search_partitions(queries, 5, np.array([0, 8000]))[3], [index.search(queries[3:], 5)[0]])


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("k", [7, 300, 2000])
def test_neither_batch_nor_threads_nor_numba_change_a_bit(
    monkeypatch: pytest.MonkeyPatch, k: int, store: str, fast: bool
) -> None:
    vectors, queries = unit_rows(3000, 100, 5), unit_rows(41, 100, 6)
    vectors[1000:1100] = vectors[17]  # ties
    monkeypatch.setenv("HOOFBEAT_THREADS", "1")
    one_by_one = [
        ranking for query in queries for ranking in DenseSearcher(vectors, store, fast=False).search(query[None], k)
    ]
    index = DenseSearcher(vectors, store, fast=fast)
    same(index.search(queries, k), one_by_one)
    monkeypatch.setenv("HOOFBEAT_THREADS", "3")
    monkeypatch.setattr(dense_search, "_AT_ONCE", 30)
    same(index.search(queries, k), one_by_one)
    same(index.search(queries[::-1], k), one_by_one[::-1])


def test_ranking_does_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    index, queries = DenseSearcher(unit_rows(500, 64, 5)), unit_rows(9, 64, 6)
    together = index.search(queries, 20)
    monkeypatch.setattr(dense_search, "_QUERIES", 1)
    monkeypatch.setattr(dense_search, "_CELLS", 1)
    monkeypatch.setattr(dense_search, "_LEAST_ROWS", 60)
    same(together, index.search(queries, 20))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("k", [1, 4, 90])
@pytest.mark.parametrize(
    "bounds", [[0, 400], [0, 1, 1, 5, 60, 400], list(range(0, 401, 8)), [7, 20, 333], [0, 0], [0, *range(390, 401)]]
)
def test_partitions_equal_searching_each_subset(store: str, k: int, bounds: list[int]) -> None:
    index, queries = DenseSearcher(unit_rows(400, 24, 10), store), unit_rows(7, 24, 11)
    found = index.search_partitions(queries, k, np.array(bounds))
    assert [len(parts) for parts in found] == [len(bounds) - 1] * 7
    for part in range(len(bounds) - 1):
        allowed = np.arange(bounds[part], bounds[part + 1])
        same([parts[part] for parts in found], index.search(queries, k, allowed))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("parts", [[], [0], [4], [1, 2, 3], [0, 2, 4], [0, 1, 2, 3, 4]])
def test_some_partitions_are_the_same_as_among_all(store: str, parts: list[int]) -> None:
    index, queries = DenseSearcher(unit_rows(400, 24, 10), store), unit_rows(7, 24, 11)
    bounds = np.array([3, 20, 20, 60, 65, 399])
    everything = index.search_partitions(queries, 6, bounds)
    found = index.search_parts(queries, 6, bounds, parts)
    assert [len(each.edges) for each in found] == [len(parts) + 1] * 7
    for each, among_all in zip(found, everything, strict=True):
        same([each.ranking(place) for place in range(len(parts))], [among_all[part] for part in parts])


@pytest.mark.parametrize("parts", [[-1, 0], [1, 0], [0, 0], [2]])
def test_partitions_that_are_not_there_are_refused(parts: list[int]) -> None:
    with pytest.raises(UsageError, match="partitions to search must ascend from 0 to 1"):
        DenseSearcher(unit_rows(10, 8, 1)).search_parts(unit_rows(1, 8, 2), 3, np.array([0, 5, 10]), parts)


@pytest.mark.parametrize("bounds", [[], [0, 5, 3], [-1, 4], [0, 11], [[0, 1]]])
def test_bounds_that_cant_be_are_refused(bounds: list[int]) -> None:
    with pytest.raises(UsageError, match="bounds of partitions"):
        DenseSearcher(unit_rows(10, 8, 1)).search_partitions(unit_rows(1, 8, 2), 3, np.array(bounds))


def test_vectors_on_disk_are_searched_where_they_lie(tmp_path: Path) -> None:
    vectors, queries = unit_rows(300, 16, 1), unit_rows(3, 16, 2)
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    index = DenseSearcher(mapped)
    assert np.shares_memory(index.rows.block(slice(0, 300)), mapped)
    same(index.search(queries, 9), DenseSearcher(vectors).search(queries, 9))


def test_narrow_storage_takes_a_half_and_a_quarter() -> None:
    sizes = [VectorRows(unit_rows(1000, 384, 1), check_storage(store)).nbytes for store in STORES]
    assert sizes == [1_536_000, 768_000, 388_000]
    assert DenseSearcher(unit_rows(3, 8, 1), "int8").describe() == {"search": "exact", "store": "int8"}
    with pytest.raises(UsageError, match="'int4'") as caught:
        DenseSearcher(unit_rows(3, 8, 1), "int4")
    assert caught.value.fix == "choose one of: float32, float16, int8"


def test_every_half_is_widened_as_numpy_does() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    half = every[np.isfinite(every)].reshape(-1, 8)
    rows = VectorRows(half.astype(np.float32), "float16")
    np.testing.assert_array_equal(
        rows.block(slice(0, len(half))).view(np.int32), half.astype(np.float32).view(np.int32)
    )


def test_rows_of_zeros_can_be_stored() -> None:
    for store in STORES:
        (ranking,) = DenseSearcher(np.zeros((3, 8), np.float32), store).search(unit_rows(1, 8, 1), 2)
        assert (ranking.indices.tolist(), ranking.scores.tolist()) == ([0, 1], [0, 0])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_numbers_that_are_none_are_refused(store: str, bad: float) -> None:
    vectors, queries = unit_rows(20, 8, 1), unit_rows(2, 8, 2)
    vectors[13, 3] = bad
    with pytest.raises(InputError, match="not finite"):
        DenseSearcher(vectors, store)
    queries[1, 1] = bad
    with pytest.raises(InputError, match="query's vector is not finite"):
        DenseSearcher(unit_rows(20, 8, 1), store).search(queries, 3)


def test_vectors_and_queries_must_fit() -> None:
    with pytest.raises(InputError, match="vectors of 8 numbers"):
        DenseSearcher(unit_rows(20, 8, 1)).search(unit_rows(2, 9, 1), 3)
    with pytest.raises(InputError, match="table of rows"):
        DenseSearcher(np.zeros(4, np.float32))


def test_nothing_to_search() -> None:
    queries = unit_rows(2, 8, 7)
    for store in STORES:
        empty = DenseSearcher(np.empty((0, 8), np.float32), store)
        assert [len(ranking.indices) for ranking in empty.search(queries, 3)] == [0, 0]
        assert [len(parts[0].indices) for parts in empty.search_partitions(queries, 3, np.array([0, 0]))] == [0, 0]
    assert DenseSearcher(unit_rows(4, 8, 8)).search(queries[:0], 3) == []
    assert len(DenseSearcher(unit_rows(4, 8, 8)).search(queries, 3, np.empty(0, np.int64))[0].indices) == 0
    with pytest.raises(UsageError, match="0 results"):
        DenseSearcher(unit_rows(4, 8, 8)).search(queries, 0)
    with pytest.raises(UsageError, match="0 results"):
        DenseSearcher(unit_rows(4, 8, 8)).search_partitions(queries, 0, np.array([0, 4]))
