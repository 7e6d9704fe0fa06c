from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.corpus.qrels import read_qrels
from hoofbeat.errors import UsageError
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.retrieval.index import lexical_search
from hoofbeat.retrieval.index.analysis import ENGLISH
from hoofbeat.retrieval.index.chunking import whole
from hoofbeat.retrieval.index.lexical_search import Bm25, Postings
from hoofbeat.retrieval.index.topk import Ranking, positive_top_k, top_k
from hoofbeat.retrieval.retriever import Retriever
from tests.helpers import shared_data
from tests.retrieval.support import HashedWords, beir_documents, beir_queries

WORDS = st.sampled_from(["heart", "liver", "kidney", "fever", "cough", "zebra"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=25)


def naive_scores(texts: list[str], query: str, k1: float, b: float, *, weighted: bool = False) -> list[float]:
    """BM25 straight from its formula; a weighted query's terms count with the weight they would have in a text."""
    analysed = [ENGLISH.terms(text) for text in texts]
    average = sum(map(len, analysed)) / len(texts) or 1.0

    def weight(term: str, terms: list[str]) -> float:
        df = sum(term in other for other in analysed)
        tf = terms.count(term)
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        return idf * tf / (tf + k1 * (1 - b + b * len(terms) / average)) if tf else 0.0

    asked = [term for term in ENGLISH.terms(query) if any(term in terms for terms in analysed)]
    shares = {term: weight(term, asked) if weighted else count for term, count in Counter(asked).items()}
    return [sum(share * weight(term, terms) for term, share in shares.items()) for terms in analysed]


def agrees(ranking: Ranking, reference: list[float], places: Iterable[int], k: int) -> bool:
    """Whether a ranking is the `k` best of these places by reference scores, but for rounding."""
    matching = [place for place in places if reference[place] > 0]
    best = sorted((reference[place] for place in matching), reverse=True)[:k]
    found = ranking.indices.tolist()
    order = sorted(zip((-ranking.scores).tolist(), found, strict=True))
    return (
        set(found) <= set(matching)
        and [place for _, place in order] == found
        and ranking.scores.tolist() == pytest.approx(best, rel=1e-5)
        and [reference[place] for place in found] == pytest.approx(best, rel=1e-5)
    )


@settings(deadline=None)
@given(
    TEXTS,
    st.lists(WORDS, max_size=10).map(" ".join),
    st.integers(1, 8),
    st.sampled_from([(0.9, 0.4), (1.2, 0.75), (0.0, 0.0)]),
    st.booleans(),
    st.data(),
)
def test_exact_against_the_formula(
    texts: list[str], query: str, k: int, parameters: tuple[float, float], weighted: bool, data: st.DataObject
) -> None:
    allowed = data.draw(st.none() | st.lists(st.integers(0, len(texts) - 1), unique=True).map(sorted))
    reference = naive_scores(texts, query, *parameters, weighted=weighted)
    index = Bm25(Postings.build(texts), *parameters)
    within = None if allowed is None else np.array(allowed, np.int64)
    (ranking,) = index.search([query], k, within, weighted=weighted)
    assert agrees(ranking, reference, range(len(texts)) if allowed is None else allowed, k)


def zipf(rng: np.random.Generator, words: int) -> str:
    return " ".join(f"w{word}" for word in rng.zipf(1.5, words) if word < 500)


def sample(texts: int, queries: int = 40) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(7)
    return [zipf(rng, 20) for _ in range(texts)], [zipf(rng, 30) for _ in range(queries)]


def flat(rankings: Iterable[Ranking]) -> list[tuple[list[int], list[float]]]:
    return [(ranking.indices.tolist(), ranking.scores.tolist()) for ranking in rankings]


@pytest.mark.parametrize("weighted", [False, True])
def test_how_rows_are_kept_and_subsets_searched_changes_nothing(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, queries = sample(300)
    postings = Postings.build(texts)
    allowed = np.array([3, 17, 40, 41, 200, 299])
    results = []
    for sparse, wide in ((1, 0), (10**9, 10**9)):
        for dense, if_few, budget in ((0, 0, 0), (4, 8, 0), (4, 8, 20_000), (0, 10**9, 10**9), (10**9, 10**9, 0)):
            monkeypatch.setattr(lexical_search, "_SPARSE", sparse)
            monkeypatch.setattr(lexical_search, "_DENSE", dense)
            monkeypatch.setattr(lexical_search, "_DENSE_IF_FEW", if_few)
            monkeypatch.setattr(lexical_search, "_FEW_BYTES", budget)
            monkeypatch.setattr(lexical_search, "_WIDE", wide)
            index = Bm25(postings)
            results.append(
                [
                    *flat(index.search(queries, 50, weighted=weighted)),
                    *flat(index.search(queries, 5, allowed, weighted=weighted)),
                ]
            )
    assert all(result == results[0] for result in results)
    few = results[0][len(queries) :]
    assert {place for places, _ in few for place in places} <= set(allowed.tolist())
    assert any(places for places, _ in few)


@pytest.mark.parametrize("weighted", [False, True])
def test_batches_threads_and_numba_change_nothing(weighted: bool) -> None:
    texts, queries = sample(3000)
    postings = Postings.build(texts)
    plain = Bm25(postings, fast=False)
    expected = flat(plain.search(queries, 100, weighted=weighted))
    assert flat(ranking for query in queries for ranking in plain.search([query], 100, weighted=weighted)) == expected
    assert flat(Bm25(postings, fast=True, threads=1).search(queries, 100, weighted=weighted)) == expected
    assert flat(Bm25(postings, fast=True, threads=3).search(queries, 100, weighted=weighted)) == expected


def test_frequent_terms_are_kept_for_every_text_while_few_bytes_do(monkeypatch: pytest.MonkeyPatch) -> None:
    frequencies = np.array([1, 40, 13, 26, 100, 20, 13])
    assert lexical_search._frequent(frequencies, 100).tolist() == [1, 2, 3, 4, 5, 6]
    for rows, expected in ((0, [1, 3, 4]), (3, [1, 3, 4]), (4, [1, 3, 4, 5]), (5, [1, 2, 3, 4, 5])):
        monkeypatch.setattr(lexical_search, "_FEW_BYTES", rows * 400)
        assert lexical_search._frequent(frequencies, 100).tolist() == expected


def test_compiled_rows_are_added_as_plain_ones_are() -> None:
    fast = lexical_search.compiled()
    if fast is None:
        pytest.skip("numba is not installed")
    texts, queries = sample(3000)
    index = Bm25(Postings.build(texts), fast=False)
    one, other = lexical_search.Scratch.of(3000), lexical_search.Scratch.of(3000)
    bags = index._bags(queries)
    index._prepare(bags)
    for bag in bags:
        weights = np.linspace(0.1, 7, len(bag.terms)).astype(np.float32)
        lexical_search.add_rows(one, index._rows, bag.terms, weights)
        fast(other, index._rows, bag.terms, weights)
        assert one.scores.tobytes() == other.scores.tobytes()
        assert one.scores.any()


def test_the_order_of_a_querys_words_changes_nothing() -> None:
    texts, queries = sample(300)
    index = Bm25(Postings.build(texts))
    turned = [" ".join(reversed(query.split())) for query in queries]
    assert flat(index.search(queries, 50)) == flat(index.search(turned, 50))


def test_equal_texts_get_equal_scores() -> None:
    texts, queries = sample(100)
    rankings = Bm25(Postings.build(texts * 3)).search(queries, 300)
    for ranking in rankings:
        scores = dict(zip(ranking.indices.tolist(), ranking.scores.tolist(), strict=True))
        assert all(scores[place] == scores[place % 100] for place in scores)


PARTS = st.lists(TEXTS, min_size=1, max_size=5)


@settings(deadline=None)
@given(
    PARTS,
    st.lists(st.lists(WORDS, max_size=10).map(" ".join), max_size=3),
    st.integers(1, 5),
    st.sampled_from([(0.9, 0.4), (1.2, 0.75), (0.0, 0.0)]),
    st.booleans(),
    st.booleans(),
)
def test_partitions_are_searched_as_if_each_had_its_own_index(
    parts: list[list[str]], queries: list[str], k: int, parameters: tuple[float, float], weighted: bool, gap: bool
) -> None:
    sizes = [len(part) for part in parts]
    starts = np.cumsum([0, *sizes])
    partition_of = np.repeat(np.arange(len(parts)) * (1 + gap), sizes)
    postings = Postings.build([text for part in parts for text in part])
    whole_index = Bm25(postings, *parameters, partition_of=partition_of)
    found = whole_index.search_partitions(queries, k, weighted=weighted)
    assert len(found) == len(queries)
    assert all(len(rankings) == partition_of[-1] + 1 for rankings in found)
    for number, part in enumerate(parts):
        alone = Bm25(Postings.build(part), *parameters).search(queries, k, weighted=weighted)
        moved = [Ranking(ranking.indices + starts[number], ranking.scores) for ranking in alone]
        assert flat(rankings[number * (1 + gap)] for rankings in found) == flat(moved)
        allowed = np.arange(starts[number], starts[number + 1])
        assert flat(whole_index.search(queries, k, allowed, weighted=weighted)) == flat(moved)
    if gap:
        assert all(not len(rankings[place].indices) for rankings in found for place in range(1, len(rankings), 2))


def test_many_partitions_of_many_texts() -> None:
    texts, queries = sample(600)
    partition_of = np.sort(np.random.default_rng(3).integers(0, 40, 600))
    index = Bm25(Postings.build(texts), partition_of=partition_of)
    found = index.search_partitions(queries, 7)
    for number in range(40):
        places = np.flatnonzero(partition_of == number)
        alone = Bm25(Postings.build([texts[place] for place in places])).search(queries, 7)
        assert flat(rankings[number] for rankings in found) == [
            (places[ranking.indices].tolist(), ranking.scores.tolist()) for ranking in alone
        ]


def test_without_partitions_all_is_one() -> None:
    texts, queries = sample(50)
    index = Bm25(Postings.build(texts))
    assert [flat(one) for one in index.search_partitions(queries, 5)] == [
        [one] for one in flat(index.search(queries, 5))
    ]


@pytest.mark.parametrize("partition_of", [[0, 1], [1, 0, 2], [-1, 0, 0], [0.0, 0.5, 1.0], [[0, 0, 0]], "abc"])
def test_impossible_partitions_are_refused(partition_of: list[int]) -> None:
    with pytest.raises(UsageError, match="partition"):
        Bm25(Postings.build(["a b", "b", "c"]), partition_of=partition_of)


def test_nothing_to_search_and_nothing_to_search_for() -> None:
    (ranking,) = Bm25(Postings.build([])).search(["fever"], 3)
    assert not len(ranking.indices)
    assert Bm25(Postings.build([]), partition_of=[]).search_partitions(["fever"], 3) == [[]]
    index = Bm25(Postings.build(["fever", "", "the of"]))
    assert [len(found.indices) for found in index.search(["", "the", "zebra", "fever zebra"], 3)] == [0, 0, 0, 1]
    assert index.search([], 3) == []
    assert flat(index.search(["fever"], 3, np.empty(0, np.int64))) == [([], [])]
    with pytest.raises(UsageError, match="0 results"):
        index.search(["fever"], 0)


def test_long_pieces_and_many_pieces_are_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexical_search, "_MOST_PIECES", 2)
    monkeypatch.setattr(lexical_search, "_LONGEST_PIECE", 5)
    index = Bm25(Postings.build(["心不全心不全心不全", "fever cough"]))
    queries = ["fever", "cough", "心不全心不全心不全", "fever cough 心"] * 2
    assert [len(found.indices) for found in index.search(queries, 3)] == [1, 1, 1, 2] * 2


def test_repeated_query_terms_count() -> None:
    index = Bm25(Postings.build(["heart", "liver", "liver fever"]))
    once, twice = index.search(["heart", "heart heart"], 1)
    assert twice.scores[0] == pytest.approx(2 * once.scores[0])


def test_ties_go_to_the_earlier_text() -> None:
    (ranking,) = Bm25(Postings.build(["fever"] * 5 + ["cough"])).search(["fever"], 3)
    assert ranking.indices.tolist() == [0, 1, 2]


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 900), st.integers(1, 40), st.sampled_from([3, 20, 10**6]))
def test_best_positive_scores_are_those_of_a_full_sort(seed: int, size: int, k: int, distinct: int) -> None:
    array = np.random.default_rng(seed).integers(0, distinct, size).astype(np.float32)
    hits = np.flatnonzero(array)
    assert flat([positive_top_k(array, k)]) == flat([top_k(hits, array[hits].astype(np.float64), k)])


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
