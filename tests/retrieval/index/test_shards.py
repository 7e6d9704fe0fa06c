"""Shards: the same rankings as of one index, bit for bit, at any number of shards."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.errors import OutputError, UsageError
from hoofbeat.models.encoder import load_encoder
from hoofbeat.models.encoders.encoder_base import Encoder
from hoofbeat.models.encoders.vector_cache import cached_encoder
from hoofbeat.records import Document
from hoofbeat.retrieval.index.dense_search import DenseSearcher
from hoofbeat.retrieval.index.kept_parts import PartPlace, keeping_indexes
from hoofbeat.retrieval.index.lexical_search import Bm25, Postings
from hoofbeat.retrieval.index.shards import ShardEdges
from hoofbeat.retrieval.index_set import IndexSet, index_documents
from hoofbeat.retrieval.retriever import Retriever
from hoofbeat.store import Manifest, create, open_artefact
from tests.helpers import needs_weights
from tests.retrieval.hero.hero_support import laid_out
from tests.retrieval.index.test_window_pieces import ShortSighted
from tests.retrieval.support import HashedWords

WORDS = ["fever", "kidney", "transplant", "rejection", "zebra", "of", "tacrolimus", "rash"]
LINES = (
    "bm25",
    "bm25[query=weighted,chunk=words:8/2]",
    "dense",
    "dense[store=int8,chunk=words:8/2]",
    "dense[store=float16,pool=sum]",
    "bm25[pool=sum] + dense",
    "hero",
)
numbers = itertools.count()


def indexed(
    folder: Path, documents: Sequence[Document], shards: int, encoder: Callable[[str], Encoder] | None = None
) -> IndexSet:
    return IndexSet(
        documents,
        encoder=encoder or (lambda _: HashedWords()),
        place=PartPlace(folder),
        shards=shards,
        content=f"{next(numbers):024d}",
    )


def found(
    indexes: IndexSet, line: str, queries: Sequence[str], k: int = 10, documents: Sequence[str] | None = None
) -> bytes:
    """Everything a ranking says, with every bit of its scores, and the settings that a manifest records."""
    retriever = Retriever(indexes, line)
    asked = [(f"q{number}", text) for number, text in enumerate(queries)]
    hits = retriever.search(asked, k, documents)
    passages = retriever.search_passages(asked, k, documents)
    return msgspec.json.encode([hits, passages, retriever.describe()])


def a_document(number: int, words: Sequence[str]) -> Document:
    half = len(words) // 2
    sections = ((1, "History", " ".join(words[:half])), (2, "Course of zebra", " ".join(words[half:])))
    return laid_out(f"d{number}", *sections, title=f"Case {number % 3}")


COLLECTIONS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(
    COLLECTIONS,
    st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=8).map(" ".join), min_size=1, max_size=4),
    st.integers(2, 9),
    st.sampled_from(LINES),
    st.integers(1, 12),
    st.booleans(),
)
def test_rankings_are_the_same_at_any_number_of_shards(
    texts: list[list[str]], queries: list[str], shards: int, line: str, k: int, restricted: bool
) -> None:
    """Few words, so scores are often equal; fewer documents than shards, so some shards are empty."""
    documents = [a_document(number, words) for number, words in enumerate(texts)]
    some = [document.id for document in documents[::2]] if restricted else None
    folder = Path(tempfile.mkdtemp())
    try:
        one = found(indexed(folder, documents, 1), line, queries, k, some)
        assert found(indexed(folder, documents, shards), line, queries, k, some) == one
    finally:
        shutil.rmtree(folder)


def test_real_vectors_give_the_same_rankings(tmp_path: Path) -> None:
    needs_weights("minilm")
    encoder = cached_encoder(load_encoder("minilm"), tmp_path / "vectors")
    rng = np.random.default_rng(5)
    documents = [a_document(number, rng.choice([*WORDS, *map(str, range(90))], 30).tolist()) for number in range(24)]
    queries = ["fever after kidney transplant", "zebra rash", "tacrolimus 17 of 23"]
    for line in ("bm25 + dense", "hero"):
        one, *others = (
            found(indexed(tmp_path, documents, shards, lambda _: encoder), line, queries, 20) for shards in (1, 2, 3, 7)
        )
        assert all(other == one for other in others)


@pytest.mark.parametrize("shards", [2, 5])
def test_passages_longer_than_a_window_in_some_shards_only(tmp_path: Path, shards: int) -> None:
    long = " ".join(f"word{number % 61}" for number in range(700))
    documents = [
        Document(id=f"d{number}", title="", text=long[number:] if number in {1, 6} else f"word{number} zebra")
        for number in range(9)
    ]
    queries = ["word5 word6", "zebra word3"]
    one, other = (
        found(indexed(tmp_path, documents, count, lambda _: ShortSighted()), "dense[chunk=whole]", queries)
        for count in (1, shards)
    )
    assert one == other
    assert b"longer than window" in one


def test_the_evidence_of_each_source_is_the_same(tmp_path: Path) -> None:
    documents = [a_document(number, [*WORDS[number % 5 :], *WORDS] * 9) for number in range(7)]
    evidence = []
    for shards in (1, 3):
        retriever = Retriever(indexed(tmp_path, documents, shards), "hero[route=0]")
        names = [document.id for document in documents]
        given_evidence = retriever.evidence([("q", "zebra fever"), ("r", "kidney rash")], names)
        evidence.append(msgspec.json.encode([each.record() for each in given_evidence]))  # type: ignore[union-attr]
    assert evidence[0] == evidence[1]
    assert evidence[0].count(b"passages") > 7


def test_shards_hold_whole_documents_of_about_the_same_size() -> None:
    bounds = np.array([0, 4, 5, 6, 10, 11, 12])
    edges = ShardEdges.cut(bounds, 3)
    assert edges == ShardEdges((0, 4, 10, 12), (0, 1, 4, 6))
    assert ShardEdges.cut(np.array([0]), 2) == ShardEdges((0, 0, 0), (0, 0, 0))
    assert ShardEdges.cut(np.array([0, 9]), 3) == ShardEdges((0, 9, 9, 9), (0, 1, 1, 1))
    assert [number for number, _ in edges.searched(np.array([0, 3, 11]))] == [0, 2]
    assert edges.within(2, np.array([0, 3, 11])).tolist() == [1]


def test_a_shard_that_is_lost_or_damaged_is_built_again(tmp_path: Path) -> None:
    documents = [a_document(number, WORDS[number % 4 :]) for number in range(8)]
    first = indexed(tmp_path, documents, 3)
    expected = found(first, "bm25 + dense", ["fever zebra"])
    (lost,) = tmp_path.rglob("lexical-*-2-of-3")
    shutil.rmtree(lost)
    (damaged,) = tmp_path.rglob("lexical-*-1-of-3")
    (damaged / "texts.npy").write_bytes(b"")
    (vectors,) = tmp_path.rglob("vectors-*-3-of-3")
    (vectors / "owners.npy").unlink()
    again = IndexSet(
        documents,
        encoder=lambda _: HashedWords(),
        place=PartPlace(tmp_path),
        shards=3,
        content=vectors.parent.parent.name.partition("-")[2],
    )
    assert found(again, "bm25 + dense", ["fever zebra"]) == expected
    assert lost.is_dir()


def test_where_a_command_keeps_indexes_and_in_how_many_shards(tmp_path: Path) -> None:
    documents = [a_document(number, WORDS) for number in range(6)]
    with keeping_indexes(str(tmp_path / "shared"), shards=2):
        made = index_documents(documents, "a" * 24, encoder=lambda _: HashedWords())
        found(made, "bm25", ["fever"])
    assert len(list((tmp_path / "shared").rglob("lexical-*-of-2/manifest.json"))) == 3
    with pytest.raises(UsageError, match="can't have 0 shards"), keeping_indexes(shards=0):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="can't be stored there"), keeping_indexes(str(tmp_path / "file")):
        pass
    corpus = tmp_path / "corpus"
    with create(corpus, replace_kind="corpus") as draft:
        draft.finish(Manifest(kind="corpus", title="a corpus"))
    for inside in (corpus, corpus / "indexes"):
        with pytest.raises(OutputError, match="inside a Hoofbeat folder"), keeping_indexes(str(inside)):
            pass
    assert not open_artefact(corpus).verify()


def test_scores_of_a_shard_are_those_of_the_whole_collection() -> None:
    """The same numbers, from postings of a part of the texts and statistics of all."""
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 20))) for _ in range(300)]
    vectors = rng.standard_normal((300, 48)).astype(np.float32)
    whole, part = DenseSearcher(vectors), DenseSearcher(vectors[37:91])
    (all_rows,), (some,) = whole.search(vectors[:1], 300), part.search(vectors[:1], 54)
    scores = dict(zip(all_rows.indices.tolist(), all_rows.scores.tolist(), strict=True))
    assert [scores[place + 37] for place in some.indices.tolist()] == some.scores.tolist()
    index = Bm25(Postings.build(texts))
    alone = Bm25(Postings.build(texts[37:91]), whole=index._weigher.size)
    assert alone.idf is not None
    for name, number in alone.postings.vocabulary.terms.items():
        alone.idf[number] = index._weigher.idf(np.array([index.postings.vocabulary.terms[name]]))[0]
    (all_texts,), (own,) = index.search(["fever zebra rash"], 300), alone.search(["fever zebra rash"], 54)
    scores = dict(zip(all_texts.indices.tolist(), all_texts.scores.tolist(), strict=True))
    assert [scores[place + 37] for place in own.indices.tolist()] == own.scores.tolist()
    assert len(own.indices) > 40
