from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.retrieval.index import dense_kernels
from hoofbeat.retrieval.index.dense_kernels import compiled, plain, reaching, widening
from hoofbeat.retrieval.index.vector_storage import VectorRows


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    """What was found out about numba in another test is forgotten."""
    caches = compiled, dense_kernels._kernel, reaching, widening
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


def pairs(kind: str, dimension: int) -> tuple[NDArray[np.generic], NDArray[np.int64], NDArray[np.float64]]:
    rng = np.random.default_rng(dimension)
    rows = (rng.standard_normal((50, dimension)) * 40).astype(kind)
    queries = rng.standard_normal((9, dimension)).astype(np.float32).astype(np.float64)
    rows[7:9] = 0
    queries[3] = -np.abs(queries[3])
    return rows, rng.integers(0, 50, 700), queries


@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("dimension", [1, 7, 8, 9, 96, 127, 128, 129, 136, 137, 255, 384, 768, 1001])
def test_numba_gives_the_bits_of_numpy(dimension: int, kind: str) -> None:
    pytest.importorskip("numba")
    rows, places, queries = pairs(kind, dimension)
    owners = np.arange(700) % 9
    fast = compiled(dimension)
    assert fast is not None
    by_numpy = np.array([(queries[owner] * rows[place]).sum() for place, owner in zip(places, owners, strict=True)])
    assert plain(rows, places, queries, owners).tobytes() == by_numpy.tobytes()
    assert fast(rows, places, queries, owners).tobytes() == by_numpy.tobytes()
    rows.flags.writeable = False  # as rows are that lie in a file
    assert fast(rows, places[::-1], queries, owners[::-1]).tobytes() == by_numpy[::-1].tobytes()
    assert len(fast(rows, places[:0], queries, owners[:0])) == len(plain(rows, places[:0], queries, owners[:0])) == 0


def test_another_order_of_summing_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(dense_kernels, "_LEAF", 64)
    assert compiled(384) is None
    assert compiled(48) is not None


def test_without_numba_there_is_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compiled(384) is None
    assert reaching() is None
    assert widening() is None
    assert VectorRows(np.ones((2, 3), np.float32), "float16", fast=True).block(slice(0, 2)).tolist() == [[1, 1, 1]] * 2


@pytest.mark.parametrize("store", ["float16", "int8"])
@pytest.mark.parametrize("which", [slice(3, 290), np.array([299, 0, 7, 7])])
def test_numba_widens_to_the_same_bits(store: str, which: slice | NDArray[np.int64]) -> None:
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    table = (rng.standard_normal((300, 33)) * 10.0 ** rng.integers(-7, 3, (300, 1))).astype(np.float32)
    table[5] = 0
    kinds: tuple[bool, ...] = (False, True)
    slow, fast = (VectorRows(table, store, fast=each).block(which) for each in kinds)  # type: ignore[arg-type]
    assert slow.tobytes() == fast.tobytes()
    assert slow.any()


@pytest.mark.parametrize("width", [1, 63, 64, 65, 1000])
def test_numba_finds_what_reaches_a_bar_as_numpy_does(width: int) -> None:
    pytest.importorskip("numba")
    rng = np.random.default_rng(width)
    scores = rng.standard_normal((9, width)).astype(np.float32)
    bars = np.array([-np.inf, np.inf, 0, 0.5, 1, 2, 3, scores[7, 0], scores[8, -1]], np.float32)
    find = reaching()
    assert find is not None
    rows, columns, values = find(scores, bars)
    expected = np.nonzero(scores >= bars[:, None])
    assert (rows.tolist(), columns.tolist()) == (expected[0].tolist(), expected[1].tolist())
    assert values.tobytes() == scores[expected].tobytes()
    assert len(rows) >= width  # the first row's bar is reached by all
