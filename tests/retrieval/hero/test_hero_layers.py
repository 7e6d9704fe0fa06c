from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.hero.hero_engine import Hero
from hoofbeat.retrieval.hero.hero_evidence import explain
from hoofbeat.retrieval.hero.hero_signals import ExpansionMatch
from hoofbeat.retrieval.hero.parent_sections import EvidenceUnit, HeroLayout, ParentSections
from hoofbeat.retrieval.index.topk import Ranking, Rankings
from hoofbeat.retrieval.stage_roles import SearchQuery
from tests.retrieval.hero.hero_support import (
    BOOK,
    CHILD,
    LONG,
    ByWord,
    NoTools,
    Prompted,
    ask,
    collections,
    filler,
    hero,
    laid_out,
    one,
    only,
    signal,
    with_reranker,
)
from tests.retrieval.support import HashedWords

# The document model


def test_children_know_their_section_and_headings_without_text_stand_for_what_is_below_them() -> None:
    layout = HeroLayout(*collections([BOOK]))
    assert layout.section_of.tolist() == [0, 0, 2, 3, 4, 5]
    assert list(zip(*map(np.ndarray.tolist, layout.navigation), strict=True)) == [
        (0, 2), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6)
    ]  # fmt: skip
    parents = ParentSections(layout, {"book": BOOK})
    assert list(zip(*map(np.ndarray.tolist, parents.navigation), strict=True)) == [
        (0, 2), (2, 4), (2, 3), (3, 4), (4, 5), (5, 6)
    ]  # fmt: skip
    assert parents.headings == ["Fluids", "Wound", "Bathing", "Sport", "Pets"]


def test_section_hits_become_child_hits_by_hand() -> None:
    parents = ParentSections(HeroLayout(*collections([BOOK])), {"book": BOOK})
    ranking, ranks = parents.navigation.ranking(Ranking(np.array([3, 1, 0]), np.array([9.0, 5.0, 1.0])))
    # Bathing first, then all of "Your skin" (wound, and bathing again, which stays first), then both of fluids
    assert ranking.indices.tolist() == [3, 2, 0, 1]
    assert ranks.tolist() == [1, 2, 3, 3]
    assert ranking.scores.tolist() == [9.0, 5.0, 1.0, 1.0]


def test_collections_of_different_documents_are_refused() -> None:
    children, sections, headings = collections([BOOK])
    other = collections([laid_out("other", (1, "A", "b"))])
    with pytest.raises(UsageError, match="different documents"):
        HeroLayout(children, other[1], headings)
    longer = collections([laid_out("book", (1, "A", "b"), (1, "C", "d"))])
    with pytest.raises(UsageError, match="sections and headings differ"):
        HeroLayout(children, sections, longer[2])


# The signals


def test_every_signal_alone_ranks_what_it_should() -> None:
    assert signal(one(hero(BOOK, settings=only(bm25=1)), "showers tub plaster"), "bm25") == [("3", 1), ("2", 2)]
    dense = signal(one(hero(BOOK, settings=only(dense=1)), "cat tray"), "dense")
    assert dense[0] == ("5", 1)
    assert [rank for _, rank in dense] == [1, 2, 3, 4, 5]
    # `water` stands in the first child of its section only, yet the section brings both
    assert signal(one(hero(BOOK, settings=only(sections=1)), "water"), "sections") == [("0", 1), ("1", 1)]
    # nothing under these headings says their words
    assert signal(one(hero(BOOK, settings=only(titles=1)), "skin"), "titles") == [("2", 1), ("3", 1)]
    assert signal(one(hero(BOOK, settings=only(titles=1)), "sport skin"), "titles") == [("4", 1), ("2", 2), ("3", 2)]


def test_fusion_is_the_weighted_sum_of_reciprocal_ranks() -> None:
    settings = msgspec.structs.replace(only(bm25=1, sections=0.5, titles=0.25), k=10)
    trace = one(hero(BOOK, settings=settings), "wound showers tub").trace
    fused = {place.passage: place.score for place in trace.fused}
    # bathing: first by BM25 and by sections; wound: second there (its heading is indexed with it), first by titles
    assert fused == {
        f"{CHILD}3": pytest.approx(1 / 11 + 0.5 / 11),
        f"{CHILD}2": pytest.approx(1 / 12 + 0.5 / 12 + 0.25 / 11),
    }


@pytest.mark.parametrize("name", ["dense", "bm25", "sections", "titles"])
def test_a_weight_of_zero_leaves_a_signal_out_and_no_other(name: str) -> None:
    text = "showers and a tub after sport"
    all_on = one(hero(BOOK), text).trace
    without = one(hero(BOOK, settings=msgspec.structs.replace(LONG, **{name: 0.0})), text).trace
    assert without.signals == tuple(each for each in all_on.signals if each.name != name)
    assert without.fused != all_on.fused


def test_statistics_are_those_of_the_source_itself() -> None:
    others = [laid_out(f"other{number}", (1, "Tub", "tub " * 50)) for number in range(30)]
    text = "no tub for six weeks"
    alone, among = one(hero(BOOK), text), one(hero(*others[:9], BOOK, *others[9:]), text)
    assert alone.trace.signals == among.trace.signals
    assert alone.trace.fused == among.trace.fused
    assert alone.passages == among.passages


# Expansion of the query


def test_expansion_on_and_off() -> None:
    text = "Where did my wound tape go, must I use a plaster on the scar?"
    on, off = one(hero(BOOK), text), one(hero(BOOK, settings=msgspec.structs.replace(LONG, expand="none")), text)
    assert on.trace.added == (ExpansionMatch(matched="wound", terms=("incision",)),)
    assert on.trace.searched == f"{text} incision"
    assert (off.trace.added, off.trace.searched) == ((), text)
    assert on.trace.signals != off.trace.signals


def test_what_a_query_writer_wrote_is_searched() -> None:
    written = SearchQuery(id="q", text="animals?", lexical="cat", dense=("tray cat", "cat stay"))
    (evidence,) = hero(BOOK).evidence([written], "book")
    assert evidence.trace.query == "animals?"
    assert evidence.trace.searched.startswith("cat")
    assert signal(evidence, "dense")[0] == signal(evidence, "bm25")[0] == ("5", 1)


def test_questions_are_encoded_as_queries_and_what_was_written_beside_them_as_documents() -> None:
    encoder = Prompted()
    found = Hero({"book": BOOK}, *collections([BOOK], encoder), only(dense=1))
    found.rank([ask("tub")], 1)  # the children are encoded
    assert all(text.startswith("D: ") for text in encoder.read[0])
    encoder.read.clear()
    queries = [
        ask("the cat"),
        SearchQuery(id="b", text="the tub", dense=("the tub", "no tub for weeks", "showers")),
        SearchQuery(id="c", text="the tray", dense=("who empties it",)),  # all there is to search for
        SearchQuery(id="d", text="sport", dense=("sport [SEP] walk", "sport [SEP] swim")),  # the question in each
    ]
    evidence = found.evidence(queries, "book")
    as_documents, as_queries = sorted(encoder.read)
    joined = ["Q: sport [SEP] walk", "Q: sport [SEP] swim"]
    assert as_queries == ["Q: the cat", "Q: the tub", "Q: who empties it", *joined]
    assert as_documents == ["D: no tub for weeks", "D: showers"]
    rows = [HashedWords().encode(texts) for texts in (as_queries, as_documents)]
    by_hand = np.array([rows[0][0], rows[0][1] + rows[1][0] + rows[1][1], rows[0][2], rows[0][3] + rows[0][4]])
    by_hand /= np.linalg.norm(by_hand, axis=1, keepdims=True)
    children = HashedWords().encode([f"D: {text}" for text in collections([BOOK])[0].texts()])
    for each, vector in zip(evidence, by_hand, strict=True):
        similarity = each.trace.sufficiency.similarity if each.trace.sufficiency else None
        assert similarity == pytest.approx(float((children @ vector).max()), abs=1e-6)
    encoder.read.clear()
    found.rank(queries, 3)
    assert sorted(encoder.read) == [as_documents, as_queries]


def test_words_that_were_added_belong_to_the_query() -> None:
    encoder = Prompted()
    found = Hero({"book": BOOK}, *collections([BOOK], encoder), LONG)
    found.rank([ask("my scar")], 1)
    assert encoder.read[1:] == [["Q: my scar wound incision"]]


def test_another_way_of_encoding_is_used_for_everything() -> None:
    encoder, seen = Prompted(), list[str]()

    def encode(texts: list[str]) -> NDArray[np.float32]:
        seen.extend(texts)
        return HashedWords().encode(texts)

    found = Hero({"book": BOOK}, *collections([BOOK], encoder), only(dense=1), encode=encode)
    found.evidence([SearchQuery(id="q", text="the tub", dense=("the tub", "showers"))], "book")
    assert sorted(seen) == ["showers", "the tub"]
    assert not any(text.startswith("Q: ") for texts in encoder.read for text in texts)


# Reranking


def test_reranking_reorders_the_best_and_leaves_the_rest_below() -> None:
    plain = one(hero(BOOK), "no tub for six weeks").trace
    assert [place.passage for place in plain.fused][:2] == [f"{CHILD}3", f"{CHILD}4"]
    reranker = ByWord("swimming")
    evidence = one(with_reranker(reranker, depth=2, parents=False), "no tub for six weeks")
    assert [len(each) for each in reranker.seen] == [2]
    assert reranker.seen[0][0].startswith("Bathing\n")  # a child is read under its heading
    assert [(place.passage, place.rank, place.score) for place in evidence.trace.reranked] == [
        (f"{CHILD}4", 1, 1.0),
        (f"{CHILD}3", 2, 0.0),
    ]
    assert evidence.trace.fused == plain.fused
    shown = [shown.child for shown in evidence.trace.shown]
    assert shown[:2] == [f"{CHILD}4", f"{CHILD}3"]
    assert shown[2:] == [place.passage for place in plain.fused][2:5]


def test_a_failed_reranking_is_a_failure_without_passages() -> None:
    found = with_reranker(ByWord("tub"))
    failed, fine = found.evidence([ask("fail the tub"), ask("the tub", "q2")], "book")
    assert failed.failure is not None
    assert (failed.passages, failed.parts, failed.sufficient) == ((), (), False)
    assert failed.trace.failure == failed.failure
    assert "timeout" in explain(failed)
    assert fine.failure is None
    assert fine.passages


@pytest.mark.parametrize("scores", [[float("nan")] * 20, [1.0]])
def test_scores_that_are_none_are_a_failure(scores: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    reranker = ByWord("tub")
    monkeypatch.setattr(reranker, "rerank", lambda queries, texts, tools: [scores[: len(each)] for each in texts])
    evidence = one(with_reranker(reranker), "the tub")
    assert evidence.failure is not None
    assert evidence.failure.kind == "unreadable"


def test_reranker_and_settings_must_agree() -> None:
    with pytest.raises(UsageError, match="rerank=none"):
        Hero({"book": BOOK}, *collections([BOOK]), LONG, rerank=ByWord("x"), tools=NoTools())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rerank=yesno"):
        Hero({"book": BOOK}, *collections([BOOK]), msgspec.structs.replace(LONG, rerank="yesno"))


# Back to parent sections


def units(
    *ordered: int, top: int = 5, parents: bool = True, neighbours: int = 1, span: int = 6000
) -> list[EvidenceUnit]:
    found = ParentSections(HeroLayout(*collections([BOOK])), {"book": BOOK})
    return found.units(ordered, top, parents=parents, neighbours=neighbours, span=span)


def test_children_bring_their_section_and_its_neighbours() -> None:
    assert units(3, top=1) == [EvidenceUnit(3, 2, 2, 5)]
    assert units(3, top=1, neighbours=0) == [EvidenceUnit(3, 2, 3, 4)]
    assert units(3, top=1, neighbours=2) == [EvidenceUnit(3, 2, 0, 6)]
    assert units(1, top=1, neighbours=0) == [EvidenceUnit(1, 0, 0, 2)]
    assert units(1, 0, parents=False) == [EvidenceUnit(1, 0, 1, 2), EvidenceUnit(0, 0, 0, 1)]


def test_sections_that_were_found_themselves_are_nobodys_neighbour() -> None:
    # bathing and pets both want sport: the better one gets it
    assert units(3, 5, top=2) == [EvidenceUnit(3, 2, 2, 5), EvidenceUnit(5, 4, 5, 6)]
    assert units(3, 4, top=2) == [EvidenceUnit(3, 2, 2, 4), EvidenceUnit(4, 3, 4, 6)]
    everything = units(3, 4, 0, 1, 5, 2)
    assert sorted(child for unit in everything for child in range(unit.lo, unit.hi)) == [0, 1, 2, 3, 4, 5]
    assert [unit.home for unit in everything] == [2, 3, 0, 4, 1]


def test_neighbours_must_fit_and_stay_in_their_document() -> None:
    fits = len("Keep the incision dry. A plaster is enough.\n\nBathing\nNo tub for six weeks. Showers are fine.")
    assert units(2, top=1, span=fits) == [EvidenceUnit(2, 1, 2, 4)]
    assert units(2, top=1, span=fits - 1) == [EvidenceUnit(2, 1, 2, 3)]
    books = [laid_out(name, (1, "Only", f"words of {name}")) for name in ("a", "b", "c")]
    found = ParentSections(HeroLayout(*collections(books)), {each.id: each for each in books})
    assert found.units([1], 5, parents=True, neighbours=3, span=6000) == [EvidenceUnit(1, 1, 1, 2)]


def test_a_long_section_is_cut_around_the_child() -> None:
    book = laid_out(
        "book",
        (1, "Before", "short, but not tiny, text"),
        (1, "Long", filler("word", 2600)),
        (1, "After", "short, but not tiny, text"),
    )
    found = ParentSections(HeroLayout(*collections([book])), {"book": book})
    chunks = len(found.starts) - 2
    wide = found.units([8, 9, 14, 1], 5, parents=True, neighbours=1, span=5000)
    assert all(found.passage(unit).end - found.passage(unit).start <= 5000 for unit in wide)
    assert wide[0].lo < 8 < wide[0].hi - 1  # both sides of the child
    assert wide[0].lo <= 9 < wide[0].hi  # so the second child is shown already
    assert [unit.child for unit in wide] == [8, 14, 1]
    for one_unit, other in pairwise(sorted(wide, key=lambda unit: unit.lo)):
        assert one_unit.hi <= other.lo
    # a child longer than the span is shown by itself
    assert found.units([chunks], 5, parents=True, neighbours=1, span=1) == [EvidenceUnit(chunks, 1, chunks, chunks + 1)]


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("top", [1, 3, 5])
@pytest.mark.parametrize("neighbours", [0, 1, 3])
@pytest.mark.parametrize("span", [1, 900, 2500, 6000])
def test_units_of_many_searches_are_those_of_each(parents: bool, top: int, neighbours: int, span: int) -> None:
    rng = np.random.default_rng(top + neighbours + span)
    books = [
        laid_out(f"d{number}", *((1, "Part", filler("w", int(rng.choice([0, 3, 60, 500])))) for _ in range(9)))
        for number in range(6)
    ]
    layout = HeroLayout(*collections(books))
    found = ParentSections(layout, {each.id: each for each in books})
    bounds = layout.children.bounds
    asked = []
    for _ in range(20):
        sources = np.flatnonzero(rng.random(6) < 0.6)
        ordered = [rng.permutation(np.arange(bounds[n], bounds[n + 1]))[: int(rng.integers(0, 12))] for n in sources]
        children = np.concatenate([np.empty(0, np.int64), *ordered])
        asked.append(Rankings(children, np.ones(len(children)), np.cumsum([0, *map(len, ordered)])))
    together = found.units_of_all(asked, top, parents, neighbours, span)
    assert sum(len(units.sizes) for units in together) > 20
    for rankings, units in zip(asked, together, strict=True):
        for number in range(len(rankings.edges) - 1):
            alone = found.units(rankings.ranking(number).indices.tolist(), top, parents, neighbours, span)
            assert units.units(number) == alone


def test_passages_are_exact_slices_under_their_parents_heading() -> None:
    evidence = one(hero(BOOK, settings=msgspec.structs.replace(LONG, top=1)), "tub showers bathing")
    (passage,) = evidence.passages
    assert passage.text == BOOK.text[passage.start : passage.end]
    assert (passage.heading, passage.page) == ("Bathing", 2)
    assert passage.text.startswith("Wound\nKeep the incision")  # a neighbour is shown with its heading
    assert passage.text.endswith("No swimming for six weeks.")
    assert evidence.trace.shown[0].neighbours == ("Wound", "Sport")
    assert [(part.heading, part.text) for part in evidence.parts] == [
        ("Bathing", "No tub for six weeks. Showers are fine."),
        ("Wound", "Keep the incision dry. A plaster is enough."),
        ("Sport", "Walk every day. No swimming for six weeks."),
    ]


@pytest.mark.parametrize("top", [1, 2, 5])
def test_no_more_passages_than_asked_for(top: int) -> None:
    for parents in (True, False):
        settings = msgspec.structs.replace(LONG, top=top, parents=parents)
        evidence = one(hero(BOOK, settings=settings), "water tub cat swimming plaster")
        assert len(evidence.passages) == len({each.id for each in evidence.passages}) == top
