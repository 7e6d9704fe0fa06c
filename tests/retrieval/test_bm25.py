from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.findings.ranking import evaluate, read_qrels
from hoofbeat.retrieval import bm25 as bm25_module
from hoofbeat.retrieval.analysis import ENGLISH
from hoofbeat.retrieval.bm25 import Bm25, Postings
from hoofbeat.retrieval.chunking import whole
from hoofbeat.retrieval.retriever import Retriever
from tests.helpers import shared_data
from tests.retrieval.support import HashedWords, beir_documents, beir_queries

WORDS = st.sampled_from(["heart", "liver", "kidney", "fever", "cough", "zebra"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=25)


def naive_scores(texts: list[str], query: str, k1: float, b: float) -> list[float]:
    """BM25 straight from its formula."""
    analysed = [ENGLISH.terms(text) for text in texts]
    average = sum(map(len, analysed)) / len(texts) or 1.0
    scores = []
    for terms in analysed:
        counts = Counter(terms)
        score = 0.0
        for term in ENGLISH.terms(query):
            df = sum(term in other for other in analysed)
            tf = counts[term]
            if tf:
                idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
                score += idf * tf / (tf + k1 * (1 - b + b * len(terms) / average))
        scores.append(score)
    return scores


@given(
    TEXTS,
    st.lists(WORDS, max_size=10).map(" ".join),
    st.integers(1, 8),
    st.sampled_from([(0.9, 0.4), (1.2, 0.75), (0.0, 0.0)]),
    st.data(),
)
def test_exact_against_the_formula(
    texts: list[str], query: str, k: int, parameters: tuple[float, float], data: st.DataObject
) -> None:
    allowed = data.draw(st.none() | st.lists(st.integers(0, len(texts) - 1), unique=True).map(sorted))
    reference = naive_scores(texts, query, *parameters)
    index = Bm25(Postings.build(texts), *parameters)
    (ranking,) = index.search([query], k, None if allowed is None else np.array(allowed, np.int64))
    matching = [place for place in (allowed if allowed is not None else range(len(texts))) if reference[place] > 0]
    expected = sorted(matching, key=lambda place: (-round(reference[place], 5), place))[:k]
    assert list(ranking.indices) == expected
    assert ranking.scores == pytest.approx([reference[place] for place in expected], rel=1e-6)


def test_blocks_and_sparse_subsets_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    texts = [" ".join(f"w{word}" for word in rng.zipf(1.5, 20) if word < 500) for _ in range(300)]
    queries = [" ".join(f"w{word}" for word in rng.zipf(1.5, 30) if word < 500) for _ in range(20)]
    allowed = np.array([3, 17, 40, 41, 200, 299])
    whole_index = Bm25(Postings.build(texts))
    monkeypatch.setattr(bm25_module, "_BLOCK", 7)
    monkeypatch.setattr(bm25_module, "_BATCH", 11)
    in_blocks = Bm25(Postings.build(texts))
    sparse = in_blocks.search(queries, 5, allowed)
    monkeypatch.setattr(bm25_module, "_SPARSE", 10**9)
    full = in_blocks.search(queries, 5, allowed)
    for one, other in [
        *zip(whole_index.search(queries, 50), in_blocks.search(queries, 50), strict=True),
        *zip(sparse, full, strict=True),
    ]:
        assert one.indices.tolist() == other.indices.tolist()
        assert one.scores.tolist() == other.scores.tolist()
    assert {int(place) for ranking in sparse for place in ranking.indices} <= set(allowed.tolist())
    assert any(len(ranking.indices) for ranking in sparse)


def test_repeated_query_terms_count() -> None:
    index = Bm25(Postings.build(["heart", "liver", "liver fever"]))
    once, twice = index.search(["heart", "heart heart"], 1)
    assert twice.scores[0] == pytest.approx(2 * once.scores[0])


def test_ties_go_to_the_earlier_text() -> None:
    (ranking,) = Bm25(Postings.build(["fever"] * 5 + ["cough"])).search(["fever"], 3)
    assert ranking.indices.tolist() == [0, 1, 2]


@pytest.mark.parametrize(("k1", "b"), [(-1, 0.4), (0.9, 1.5), (math.inf, 0.4), (math.nan, 0.4)])
def test_impossible_parameters_are_refused(k1: float, b: float) -> None:
    with pytest.raises(UsageError, match="k1"):
        Bm25(Postings.build(["x"]), k1, b)


@pytest.mark.parametrize(("name", "published"), [("scifact", 0.679), ("nfcorpus-preprocessed", 0.322)])
def test_published_quality(name: str, published: float) -> None:
    folder = shared_data(f"retrieval/{name}")
    texts = [passage for document in beir_documents(folder) for passage in whole(document)]
    found = Retriever.over(texts, "bm25", encoder=lambda _: HashedWords()).search(beir_queries(folder), 100)
    result = evaluate((hit for hits in found for hit in hits), read_qrels(folder / "qrels" / "test.tsv"), ["nDCG@10"])
    assert result.means["nDCG@10"] == pytest.approx(published, abs=0.006)
