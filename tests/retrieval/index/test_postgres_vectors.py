"""Vectors in a real PostgreSQL with pgvector: the ranking of a local search, loaded once, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.models.encoder import Encoder
from hoofbeat.progress import Task
from hoofbeat.records import Document
from hoofbeat.retrieval.index import postgres_vectors
from hoofbeat.retrieval.index.dense_search import ApproximateSearcher, DenseSearcher
from hoofbeat.retrieval.index.postgres_vectors import LoadedVectors, open_table
from hoofbeat.retrieval.index.topk import Ranking
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.retriever import Retriever
from tests.postgres import new_postgres_url, restart_postgres
from tests.retrieval.support import HashedWords


@pytest.fixture(scope="module")
def url() -> str:
    return new_postgres_url()


def rows_with_ties(seed: int, count: int = 700, dimension: int = 48) -> np.ndarray:
    """Unit vectors, of which many are equal and many differ by the last bit of a number only."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[100:220] = rows[0]
    rows[300:360] = np.nextafter(rows[1], np.float32(2)) * (rng.random((60, dimension)) > 0.5) + rows[1] * 0
    rows[400:460] = rows[2]
    rows[400:460:2, 5] = np.nextafter(rows[2, 5], np.float32(2))
    return rows


def opened(store: str, rows: np.ndarray, search: str = "exact", key: str = "") -> DenseSearcher:
    make = lambda: LoadedVectors(rows, np.arange(len(rows)), "null")  # noqa: E731
    found, owners, facts = open_table(store, [key or rows.tobytes()], "test", make, search=search)
    assert owners.tolist() == list(range(len(rows)))
    assert facts == "null"
    return found


def same(one: list[Ranking], other: list[Ranking]) -> bool:
    return len(one) == len(other) and all(
        a.indices.tolist() == b.indices.tolist() and a.scores.tobytes() == b.scores.tobytes()
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_exact_search_is_the_local_one_bit_for_bit(url: str, storage: str) -> None:
    rows = rows_with_ties(1)
    local, there = DenseSearcher(rows, storage), opened(f"{url}#{storage}", rows)
    queries = np.concatenate([rows[:6], rows_with_ties(2)[500:506], np.zeros((1, 48), np.float32)])
    for k in (1, 10, 150, 2000):
        assert same(local.search(queries, k), there.search(queries, k))
    allowed = np.flatnonzero(np.random.default_rng(3).random(len(rows)) > 0.7)
    assert same(local.search(queries, 20, allowed), there.search(queries, 20, allowed))
    bounds = np.array([0, 150, 150, 420, 700])
    for one, other in zip(
        local.search_partitions(queries, 7, bounds), there.search_partitions(queries, 7, bounds), strict=True
    ):
        assert same(one, other)
    assert there.describe()["store"] == storage
    assert str(there.describe()["table"]).startswith("hoofbeat_vectors_")


@pytest.mark.parametrize("storage", ["float32", "float16"])
def test_a_graph_says_its_recall_and_is_exact_in_some_documents(url: str, storage: str) -> None:
    rows = rows_with_ties(4)
    local, there = DenseSearcher(rows, storage), opened(f"{url}#{storage}", rows, "hnsw:40")
    assert isinstance(there, ApproximateSearcher)
    assert there.recall > 0.8
    queries = rows_with_ties(5)[500:520]
    assert there.measure(queries) > 0.8
    described = there.describe()
    assert (described["search"], described["effort"], described["recall measured on"]) == (
        "hnsw",
        40,
        "20 queries, seed 0",
    )
    allowed = np.arange(90, 300)
    assert same(local.search(queries, 20, allowed), there.search(queries, 20, allowed))
    assert len(there.search(queries[:1], 300)[0].indices) == 300, "more than the effort"


def test_a_restart_of_the_server_between_searches_is_not_noticed(url: str) -> None:
    rows = rows_with_ties(6, 480)
    exact, graph = opened(url, rows), opened(url, rows, "hnsw")
    before = exact.search(rows[:3], 5), graph.search(rows[:3], 5)
    restart_postgres()
    assert same(exact.search(rows[:3], 5), before[0])
    assert same(graph.search(rows[:3], 5), before[1])


class NarrowWords(HashedWords):
    """Reads twelve words only, so that longer passages have several vectors."""

    window = 12


def documents() -> list[Document]:
    words = ["fever", "murmur", "culture", "echo", "valve", "renal", "cardiac", "dose", "rash", "liver", "sepsis"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(words, 8 + 7 * (number % 4))) for number in range(40)]
    return [Document(id=f"d{number:02}", title="", text=text) for number, text in enumerate([*texts, texts[3]])]


def test_a_line_is_the_same_and_its_collection_is_loaded_once(url: str) -> None:
    asked = [("1", "fever with murmur"), ("2", "renal dose")]

    def search(store: str) -> tuple[list[object], int]:
        encoder = NarrowWords()

        def load(_: str) -> Encoder:
            return encoder

        retriever = Retriever(IndexSet(documents(), encoder=load), f"dense[store={store},chunk=whole]")
        hits = retriever.search(asked, 12)
        return [(hit.passage, hit.score) for each in hits for hit in each], encoder.texts

    local, local_texts = search("float32")
    first, first_texts = search(url)
    second, second_texts = search(url)
    assert local == first == second
    assert first_texts == local_texts
    assert second_texts == len(asked), "only the queries"


def test_a_load_that_breaks_leaves_nothing(url: str) -> None:
    class Breaking:
        @contextmanager
        def task(self, title: str, total: int | None) -> Iterator[Task]:
            raise KeyboardInterrupt

    rows = rows_with_ties(7, 480)
    make = lambda: LoadedVectors(rows, np.arange(len(rows)), "null")  # noqa: E731
    with pytest.raises(KeyboardInterrupt):
        open_table(url, ["breaks"], "test", make, progress=Breaking())
    assert len(opened(url, rows, key="breaks").search(rows[:1], 3)[0].indices) == 3


def test_a_server_without_pgvector_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_vectors, "_EXTENSION", "vector_that_is_not_installed")
    with pytest.raises(UsageError, match="no pgvector") as caught:
        opened(url, rows_with_ties(1))
    assert "CREATE EXTENSION vector" in str(caught.value)


def test_an_old_pgvector_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_vectors, "_MIN_VERSION", (99, 0))
    with pytest.raises(UsageError, match="or newer is needed"):
        opened(url, rows_with_ties(1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("store=postgresql://u:secret@h/d", "contains a password"),
        ("store=postgresql://u@h/d#int8", "can't store vectors as int8"),
        ("store=float8", "can't be stored as"),
        ("store=postgresql://u@127.0.0.1:1/d", "can't be reached"),
        ("store=postgresql://u@127.0.0.1:1/d,search=ivf", "exact or hnsw"),
    ],
)
def test_what_is_wrong_with_a_store_is_said(options: str, words: str) -> None:
    with pytest.raises(HoofbeatError, match=words) as caught:
        Retriever(IndexSet(documents(), encoder=lambda _: HashedWords()), f"dense[{options}]").search([("1", "x")], 3)
    assert "secret" not in str(caught.value)
