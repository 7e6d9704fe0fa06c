"""One contract for every retriever line, and what is particular to documents, fusion and shared indexes."""

from __future__ import annotations

import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Hit
from hoofbeat.retrieval.indexes import IndexSet
from hoofbeat.retrieval.retriever import Retriever
from tests.retrieval.support import HashedWords, passages

LINES = ["bm25", "bm25[k1=1.2,b=0.75]", "dense", "bm25 + dense", "bm25 + 2*dense", "(bm25 + dense) + 0.5*bm25"]
TEXTS = [
    "renal transplant rejection",
    "tacrolimus dose after kidney transplant",
    "fever and cough in children",
    "zebra stripes",
    "心不全の治療",
    "kidney kidney kidney stones",
]


def over(line: str, *texts: str, per_document: int = 1) -> Retriever:
    return Retriever.over(passages(*texts, per_document=per_document), line, encoder=lambda _: HashedWords())


def documents(hits: list[Hit]) -> list[str]:
    return [hit.document for hit in hits]


@pytest.fixture(params=LINES)
def line(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestContract:
    def test_finds_and_explains(self, line: str) -> None:
        retriever = over(line, *TEXTS)
        (hits,) = retriever.search([("q1", "tacrolimus for a kidney transplant")], 3)
        assert documents(hits)[0] == "d1"
        assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(hit.question == "q1" and hit.via for hit in hits)
        assert retriever.indexes.passage(hits[0].passage).text == TEXTS[1]
        assert retriever.describe()["line"] == line
        assert retriever.describe()["encoders"] == ({"minilm": "hashed-words"} if "dense" in line else {})

    def test_fewer_results_are_the_top_of_more(self, line: str) -> None:
        retriever = over(line, *TEXTS, per_document=2)
        query = [("q", "kidney transplant fever")]
        for search in (retriever.search, retriever.search_passages):
            (few,), (many,) = search(query, 2), search(query, 6)
            assert few == many[:2]

    def test_queries_without_words(self, line: str) -> None:
        found = over(line, *TEXTS).search([("a", ""), ("b", " \n"), ("c", "zebra")], 2)
        assert [documents(hits)[:1] for hits in found] == [[], [], ["d3"]]

    def test_empty_collection(self, line: str) -> None:
        assert over(line).search([("q", "zebra")], 5) == [[]]
        assert over(line).search_passages([("q", "zebra")], 5) == [[]]

    def test_no_queries(self, line: str) -> None:
        assert over(line, *TEXTS).search([], 5) == []

    def test_one_document(self, line: str) -> None:
        (hits,) = over(line, "zebra").search([("q", "zebra zebra")], 5)
        assert [(hit.document, hit.rank, hit.passage) for hit in hits] == [("d0", 1, "p0")]

    def test_other_scripts(self, line: str) -> None:
        (hits,) = over(line, *TEXTS).search([("q", "心不全")], 1)
        assert documents(hits) == ["d4"]

    def test_very_long_query(self, line: str) -> None:
        (hits,) = over(line, *TEXTS).search([("q", "zebra stripes " * 10_000)], 1)
        assert documents(hits) == ["d3"]

    def test_subset(self, line: str) -> None:
        retriever = over(line, *TEXTS, per_document=2)
        (hits,) = retriever.search([("q", "kidney transplant")], 9, documents=["d2"])
        assert documents(hits) == ["d2"]
        (found,) = retriever.search_passages([("q", "kidney transplant")], 9, documents={"d0", "d2"})
        assert {hit.passage for hit in found} <= {"p0", "p1", "p4", "p5"}
        assert {"p0", "p1", "p5"} <= {hit.passage for hit in found}
        assert retriever.search([("q", "kidney")], 9, documents=[]) == [[]]
        with pytest.raises(UsageError, match="'nowhere'"):
            retriever.search([("q", "kidney")], 9, documents=["nowhere"])

    def test_duplicate_passages(self, line: str) -> None:
        twice = [*passages("a b", "c d"), *passages("e f")]
        with pytest.raises(InputError, match="'p0'"):
            Retriever.over(twice, line, encoder=lambda _: HashedWords())

    def test_equal_passages_keep_their_order(self, line: str) -> None:
        (hits,) = over(line, *["same words"] * 9).search([("q", "same words")], 4)
        assert documents(hits) == ["d0", "d1", "d2", "d3"]

    def test_impossible_number_of_results(self, line: str) -> None:
        with pytest.raises(UsageError, match="0 results"):
            over(line, *TEXTS).search([("q", "zebra")], 0)


def test_bm25_has_no_hits_without_shared_words() -> None:
    assert over("bm25", *TEXTS).search([("q", "hepatitis")], 5) == [[]]


@pytest.mark.parametrize("line", ["bm25", "dense"])
def test_documents_rank_by_their_best_passage(line: str) -> None:
    texts = ["zebra " * count + "horse " * (20 - count) for count in range(20, 0, -1)]
    retriever = over(line, *texts, "horse", "zebra stripes", per_document=11)
    (hits,) = retriever.search([("q", "zebra")], 2)
    (best,) = retriever.search_passages([("q", "zebra")], 22)
    first: dict[str, Hit] = {}
    for hit in best:
        first.setdefault(hit.document, hit)
    assert [(hit.document, hit.passage, hit.score) for hit in hits] == [
        (hit.document, hit.passage, hit.score) for hit in first.values()
    ]
    assert len(hits) == 2


def test_fusion_explains_each_stage() -> None:
    (hits,) = over("bm25 + 2*dense", *TEXTS).search([("q", "zebra kidney")], 6)
    for hit in hits:
        expected = sum(
            weight / (60 + hit.via[stage][0]) for stage, weight in (("bm25", 1), ("dense", 2)) if stage in hit.via
        )
        assert hit.score == pytest.approx(expected)
    assert "bm25" in hits[0].via
    assert any("bm25" not in hit.via for hit in hits)


def test_nested_fusion_names_the_inner_one() -> None:
    (hits,) = over("(bm25 + dense) + dense", *TEXTS).search([("q", "zebra")], 1)
    assert set(hits[0].via) == {"bm25", "dense", "bm25 + dense"}


def test_lines_share_indexes() -> None:
    encoder = HashedWords()
    indexes = IndexSet(passages(*TEXTS), encoder=lambda _: encoder)
    for line in ("dense", "bm25 + dense", "bm25[k1=1.2] + dense"):
        assert Retriever(indexes, line).search([("q", "zebra")], 1)[0][0].document == "d3"
    assert encoder.calls == 1 + 3
    assert indexes.bm25(0.9, 0.4) is indexes.bm25(0.9, 0.4)
    assert indexes.bm25(0.9, 0.4).postings is indexes.bm25(1.2, 0.4).postings


def test_indexes_are_built_when_needed() -> None:
    def refuse(spec: str) -> HashedWords:
        raise AssertionError(f"{spec} is not needed")

    retriever = Retriever.over(passages(*TEXTS), "bm25", encoder=refuse)
    assert documents(retriever.search([("q", "zebra")], 1)[0]) == ["d3"]
    with pytest.raises(AssertionError, match="minilm"):
        Retriever(retriever.indexes, "dense").search([("q", "zebra")], 1)
