"""What is particular to documents and passages, fusion and shared indexes; the contract of all lines stands apart."""

from __future__ import annotations

import numpy as np
import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Model
from hoofbeat.records import Document, Hit
from hoofbeat.retrieval.hero.hero_signals import load_expansions
from hoofbeat.retrieval.index.topk import Ranking
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.line import cost_bound, parse
from hoofbeat.retrieval.retriever import Retriever
from hoofbeat.retrieval.stage_roles import RankedUnits, SearchQuery
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


@pytest.mark.parametrize("line", LINES)
def test_fewer_results_are_the_top_of_more(line: str) -> None:
    retriever = over(line, *TEXTS, per_document=2)
    query = [("q", "kidney transplant fever")]
    for search in (retriever.search, retriever.search_passages):
        (few,), (many,) = search(query, 2), search(query, 6)
        assert few == many[:2]


@pytest.mark.parametrize("line", LINES)
def test_passages_of_some_documents(line: str) -> None:
    retriever = over(line, *TEXTS, per_document=2)
    (found,) = retriever.search_passages([("q", "kidney transplant")], 9, documents={"d0", "d2"})
    assert {"p0", "p1", "p5"} <= {hit.passage for hit in found} <= {"p0", "p1", "p4", "p5"}


def test_passages_with_one_id_are_refused() -> None:
    twice = passages("a b", "c d", per_document=2)
    twice[1] = twice[0]
    with pytest.raises(InputError, match="'p0'"):
        Retriever.over(twice, "bm25", encoder=lambda _: HashedWords())


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
    indexes = IndexSet.of_passages(passages(*TEXTS), encoder=lambda _: encoder)
    for line in ("dense", "bm25 + dense", "bm25[k1=1.2] + dense"):
        assert Retriever(indexes, line).search([("q", "zebra")], 1)[0][0].document == "d3"
    assert encoder.calls == 1 + 3
    cut = indexes.collection()
    assert cut.bm25(0.9, 0.4) is cut.bm25(0.9, 0.4)
    assert cut.bm25(0.9, 0.4).postings is cut.bm25(1.2, 0.4).postings


def test_indexes_are_built_when_needed() -> None:
    def refuse(spec: str) -> HashedWords:
        raise AssertionError(f"{spec} is not needed")

    retriever = Retriever.over(passages(*TEXTS), "bm25", encoder=refuse)
    assert documents(retriever.search([("q", "zebra")], 1)[0]) == ["d3"]
    with pytest.raises(AssertionError, match="minilm"):
        Retriever(retriever.indexes, "dense").search([("q", "zebra")], 1)


def test_two_level_maxp_is_the_best_of_every_pair_of_pieces() -> None:
    texts = ["zebra stripes", "kidney stones", "zebra kidney"]
    query = "zebra zebra stripes kidney stones"
    (whole,) = over("dense[qchunk=words:2]", *texts).search([("q", query)], 3)
    encoder = HashedWords()
    pieces = encoder.encode(["zebra zebra", "stripes kidney", "stones"])
    best = (pieces @ encoder.encode(texts).T).max(axis=0)
    assert [hit.document for hit in whole] == [f"d{number}" for number in (-best).argsort(kind="stable")]
    assert [hit.score for hit in whole] == pytest.approx(sorted(best, reverse=True), abs=1e-6)


def test_first_and_sum_pool_otherwise() -> None:
    texts = ["horse", "zebra zebra", "zebra", "zebra"]
    found = {
        pool: documents(over(f"bm25[pool={pool}]", *texts, per_document=2).search([("q", "zebra")], 2)[0])
        for pool in ("max", "sum", "first")
    }
    assert found == {"max": ["d0", "d1"], "sum": ["d1", "d0"], "first": ["d1"]}


def test_a_fusion_s_constant_changes_its_scores() -> None:
    (hits,) = over("bm25 +[k=1] dense", *TEXTS).search([("q", "zebra")], 1)
    assert hits[0].score == pytest.approx(1 / 2 + 1 / 2)


def test_the_order_in_which_a_reranker_left_ties_survives_measuring() -> None:
    query = SearchQuery(id="q", text="zebra")
    units = np.arange(8)
    found = RankedUnits(query, Ranking(units, np.linspace(0.1, 0.01, 8)), units, {})
    after = found.reordered("rerank", [0.0, 1.0, 0.0, 1.0, 0.0])
    assert after.ranking.indices.tolist() == [1, 3, 0, 2, 4, 5, 6, 7]
    single = after.ranking.scores.astype(np.float32)
    assert (np.diff(single) < 0).all()
    assert after.via["rerank"].scores.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_the_most_calls_count_what_serves_other_stages() -> None:
    assert cost_bound(parse("lamer[with=bm25 > rerank@50] > bm25")).calls == 1 + 50
    alone = cost_bound(parse("search-o1[turns=4]")).calls
    assert cost_bound(parse("search-o1[turns=4] > bm25 > rerank@10")).calls == alone + 10 * (4 + 1)
    assert cost_bound(parse("bm25 + dense")).calls == 0


def test_a_stage_that_stands_in_two_parts_is_named_by_its_part() -> None:
    """HERO has a signal `bm25` of its own, over other words: it must not pass for the ranker beside it."""
    texts = [*TEXTS, "my scar itches", "the wound and the incision"]
    query = [("q", "scar")]
    found = [Document(id=f"d{number}", title="", text=text) for number, text in enumerate(texts)]
    indexes = IndexSet(found, encoder=lambda _: HashedWords())
    (plain,) = Retriever(indexes, "bm25").search(query, 9)
    alone = {hit.document: (hit.rank, hit.score) for hit in plain}
    for line in ("bm25 + hero", "hero + bm25"):
        (hits,) = Retriever(indexes, line).search(query, 9)
        assert {hit.document: hit.via["bm25"] for hit in hits if "bm25" in hit.via} == alone
        assert "d7" in {hit.document for hit in hits if "bm25 in hero" in hit.via}


def test_what_hero_uses_is_recorded() -> None:
    indexes = IndexSet([Document(id="d", title="", text="zebra")], encoder=lambda _: HashedWords())
    retriever = Retriever(indexes, "hero[rerank=yesno]")
    described = retriever.describe()
    assert described["expansions"] == load_expansions().fingerprint
    assert list(described["rerankers"]) == ["hero[rerank=yesno]"]  # type: ignore[call-overload]
    assert "rerank-yesno" in retriever.prompts
    assert "notes" not in described
    retriever.search([("q", "zebra")], 1)
    assert retriever.describe()["notes"] == ["hero[rerank=yesno]: it reranks only evidence per source, so not here"]
    plain = Retriever(indexes, "hero[expand=none]").describe()
    assert not {"expansions", "rerankers"} & set(plain)


def test_hero_s_settings_are_checked_before_any_work() -> None:
    with pytest.raises(UsageError, match="at least one must be above 0"):
        over("hero[dense=0,bm25=0,sections=0,titles=0]", *TEXTS)


def test_what_a_line_names_is_loaded_before_any_work() -> None:
    asked: list[str] = []

    def load(spec: str) -> HashedWords:
        asked.append(f"encoder {spec}")
        return HashedWords()

    def model(spec: str) -> Model:
        asked.append(f"model {spec}")
        raise UsageError("no such model")

    indexes = IndexSet([Document(id="d", title="", text="zebra")], encoder=load)
    with pytest.raises(UsageError, match="no such model"):
        Retriever(indexes, "lamer[model=writer,with=bm25 > rerank@5] > dense[encoder=mine]", model=model).prepare()
    assert asked == ["encoder mine", "model "]
