from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hoofbeat import teaching
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import load_encoder
from hoofbeat.models.encoder import Encoder
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Failure, Section
from hoofbeat.retrieval.analysis import ENGLISH
from hoofbeat.retrieval.chunking import Chunking, cut
from hoofbeat.retrieval.collection import PassageCollection
from hoofbeat.retrieval.expansion import Added, Expansions, Group, load_expansions
from hoofbeat.retrieval.hero import SPEC, Evidence, Hero, HeroSettings, HeroTrace, explain
from hoofbeat.retrieval.hero_layers import Layout
from hoofbeat.retrieval.hero_parents import Parents, Unit
from hoofbeat.retrieval.line import Stage, parse
from hoofbeat.retrieval.stages import SearchQuery, Tools
from hoofbeat.retrieval.topk import Ranking
from tests.helpers import needs_weights
from tests.retrieval.support import HashedWords

LONG = HeroSettings(route=0, fallback=False)
"""Every source is searched, and what was found is shown."""


def laid_out(id: str, *sections: tuple[int, str, str], title: str = "A handbook") -> Document:
    """A document of sections given by level, heading and text."""
    text, laid = "", []
    for level, heading, words in sections:
        start, body = len(text), len(text) + len(heading) + 1
        text += f"{heading}\n{words}\n\n"
        laid.append(Section(heading=heading, level=level, start=start, body=body, end=body + len(words), page=level))
    return Document(id=id, title=title, text=text, sections=tuple(laid))


def filler(word: str, count: int) -> str:
    """So many words, all different, that begin alike."""
    return " ".join(f"{word}{number}" for number in range(count))


# Children by number: fluids 0-1 | wound 2 | bathing 3 | sport 4 | pets 5
BOOK = laid_out(
    "book",
    (1, "Fluids", f"water {filler('cup', 199)}"),
    (1, "Your skin", ""),
    (2, "Wound", "Keep the incision dry. A plaster is enough."),
    (2, "Bathing", "No tub for six weeks. Showers are fine."),
    (1, "Sport", "Walk every day. No swimming for six weeks."),
    (1, "Pets", "The cat may stay. Somebody else empties the tray."),
)


def collections(
    documents: Sequence[Document], encoder: Encoder | None = None
) -> tuple[PassageCollection, PassageCollection, PassageCollection]:
    found = encoder or HashedWords()
    children, sections, headings = (
        PassageCollection(
            [passage for document in documents for passage in cut(document, Chunking.parse(how))],
            encoder=lambda _: found,
        )
        for how in ("words:160/32", "sections", "headings")
    )
    return children, sections, headings


def hero(*documents: Document, settings: HeroSettings = LONG, room: int | None = None) -> Hero:
    return Hero({each.id: each for each in documents}, *collections(documents), settings, room=room)


def ask(text: str, id: str = "q") -> SearchQuery:
    return SearchQuery(id=id, text=text)


def one(found: Hero, text: str, document: str = "book") -> Evidence:
    (evidence,) = found.evidence([ask(text)], document)
    return evidence


def signal(evidence: Evidence, name: str) -> list[tuple[str, int]]:
    (found,) = [each for each in evidence.trace.signals if each.name == name]
    return [(place.passage.partition("#")[2], place.rank) for place in found.best]


def only(**weights: float) -> HeroSettings:
    """One signal, and children as they were found."""
    none = {"dense": 0.0, "bm25": 0.0, "sections": 0.0, "titles": 0.0}
    return msgspec.structs.replace(LONG, expand="none", parents=False, **{**none, **weights})


class ByWord:
    """A reranker that likes texts with a word in them; where the query says `fail` it fails."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.seen: list[list[str]] = []

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: Tools
    ) -> list[list[float] | Failure]:
        self.seen += [list(each) for each in texts]
        failure = Failure(kind="timeout", message="too slow")
        return [
            failure if "fail" in query.text else [float(text.count(self.word)) for text in each]
            for query, each in zip(queries, texts, strict=True)
        ]


class NoTools:
    progress: Progress = SILENT

    def model(self, spec: str) -> object:
        raise AssertionError("no model is needed")

    def search(self, line: str, queries: Sequence[SearchQuery], k: int) -> object:
        raise AssertionError("no other search is needed")


def with_reranker(reranker: ByWord, **settings: object) -> Hero:
    chosen = msgspec.structs.replace(LONG, rerank="yesno", **settings)
    return Hero({"book": BOOK}, *collections([BOOK]), chosen, rerank=reranker, tools=NoTools())  # type: ignore[arg-type]


# The document model


def test_children_know_their_section_and_headings_without_text_stand_for_what_is_below_them() -> None:
    layout = Layout(*collections([BOOK]))
    assert layout.section_of.tolist() == [0, 0, 2, 3, 4, 5]
    assert list(zip(*map(np.ndarray.tolist, layout.navigation), strict=True)) == [
        (0, 2), (2, 2), (2, 3), (3, 4), (4, 5), (5, 6)
    ]  # fmt: skip
    parents = Parents(layout, {"book": BOOK})
    assert list(zip(*map(np.ndarray.tolist, parents.navigation), strict=True)) == [
        (0, 2), (2, 4), (2, 3), (3, 4), (4, 5), (5, 6)
    ]  # fmt: skip
    assert parents.headings == ["Fluids", "Wound", "Bathing", "Sport", "Pets"]


def test_section_hits_become_child_hits_by_hand() -> None:
    parents = Parents(Layout(*collections([BOOK])), {"book": BOOK})
    ranking, ranks = parents.navigation.ranking(Ranking(np.array([3, 1, 0]), np.array([9.0, 5.0, 1.0])))
    # Bathing first, then all of "Your skin" (wound, and bathing again, which stays first), then both of fluids
    assert ranking.indices.tolist() == [3, 2, 0, 1]
    assert ranks.tolist() == [1, 2, 3, 3]
    assert ranking.scores.tolist() == [9.0, 5.0, 1.0, 1.0]


def test_collections_of_different_documents_are_refused() -> None:
    children, sections, headings = collections([BOOK])
    other = collections([laid_out("other", (1, "A", "b"))])
    with pytest.raises(UsageError, match="different documents"):
        Layout(children, other[1], headings)
    longer = collections([laid_out("book", (1, "A", "b"), (1, "C", "d"))])
    with pytest.raises(UsageError, match="sections and headings differ"):
        Layout(children, sections, longer[2])


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
        "book#3": pytest.approx(1 / 11 + 0.5 / 11),
        "book#2": pytest.approx(1 / 12 + 0.5 / 12 + 0.25 / 11),
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


def test_expansion_brings_the_other_words_of_a_group_once() -> None:
    table = Expansions(
        [Group(terms=["flu", "influenza"], narrower=["grippe"]), Group(terms=["flu jab", "flu vaccine"])]
    )
    assert table.added("Is the FLU bad?") == (Added(matched="flu", terms=("influenza",)),)
    assert table.added("grippe") == (Added(matched="grippe", terms=("flu", "influenza")),)
    assert table.added("flu jabs now") == (Added(matched="flu jab", terms=("flu vaccine",)),)
    assert table.added("influenza or flu, flu") == ()
    assert table.added("") == table.added("of the") == table.added("nothing here") == ()


def test_the_shipped_table_is_readable_and_every_entry_can_match() -> None:
    table = load_expansions()
    assert table.added("Is ibuprofen ok?")[-1].terms == ("NSAID", "anti-inflammatory")
    assert {"CMV"} <= {term for each in table.added("cytomegalovirus") for term in each.terms}
    assert len(table.fingerprint) == 12


def test_expansion_on_and_off() -> None:
    text = "Where did my wound tape go, must I use a plaster on the scar?"
    on, off = one(hero(BOOK), text), one(hero(BOOK, settings=msgspec.structs.replace(LONG, expand="none")), text)
    assert on.trace.added == (Added(matched="wound", terms=("incision",)),)
    assert on.trace.searched == f"{text} incision"
    assert (off.trace.added, off.trace.searched) == ((), text)
    assert on.trace.signals != off.trace.signals


def test_what_a_query_writer_wrote_is_searched() -> None:
    written = SearchQuery(id="q", text="animals?", lexical="cat", dense=("tray cat", "cat stay"))
    (evidence,) = hero(BOOK).evidence([written], "book")
    assert evidence.trace.query == "animals?"
    assert evidence.trace.searched.startswith("cat")
    assert signal(evidence, "dense")[0] == signal(evidence, "bm25")[0] == ("5", 1)


# Reranking


def test_reranking_reorders_the_best_and_leaves_the_rest_below() -> None:
    plain = one(hero(BOOK), "no tub for six weeks").trace
    assert [place.passage for place in plain.fused][:2] == ["book#3", "book#4"]
    reranker = ByWord("swimming")
    evidence = one(with_reranker(reranker, depth=2, parents=False), "no tub for six weeks")
    assert [len(each) for each in reranker.seen] == [2]
    assert reranker.seen[0][0].startswith("Bathing\n")  # a child is read under its heading
    assert [(place.passage, place.rank, place.score) for place in evidence.trace.reranked] == [
        ("book#4", 1, 1.0),
        ("book#3", 2, 0.0),
    ]
    assert evidence.trace.fused == plain.fused
    shown = [shown.child for shown in evidence.trace.shown]
    assert shown[:2] == ["book#4", "book#3"]
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


def units(*ordered: int, top: int = 5, parents: bool = True, neighbours: int = 1, span: int = 6000) -> list[Unit]:
    found = Parents(Layout(*collections([BOOK])), {"book": BOOK})
    return found.units(ordered, top, parents=parents, neighbours=neighbours, span=span)


def test_children_bring_their_section_and_its_neighbours() -> None:
    assert units(3, top=1) == [Unit(3, 2, 2, 5)]
    assert units(3, top=1, neighbours=0) == [Unit(3, 2, 3, 4)]
    assert units(3, top=1, neighbours=2) == [Unit(3, 2, 0, 6)]
    assert units(1, top=1, neighbours=0) == [Unit(1, 0, 0, 2)]
    assert units(1, 0, parents=False) == [Unit(1, 0, 1, 2), Unit(0, 0, 0, 1)]


def test_sections_that_were_found_themselves_are_nobodys_neighbour() -> None:
    # bathing and pets both want sport: the better one gets it
    assert units(3, 5, top=2) == [Unit(3, 2, 2, 5), Unit(5, 4, 5, 6)]
    assert units(3, 4, top=2) == [Unit(3, 2, 2, 4), Unit(4, 3, 4, 6)]
    everything = units(3, 4, 0, 1, 5, 2)
    assert sorted(child for unit in everything for child in range(unit.lo, unit.hi)) == [0, 1, 2, 3, 4, 5]
    assert [unit.home for unit in everything] == [2, 3, 0, 4, 1]


def test_neighbours_must_fit_and_stay_in_their_document() -> None:
    fits = len("Keep the incision dry. A plaster is enough.\n\nBathing\nNo tub for six weeks. Showers are fine.")
    assert units(2, top=1, span=fits) == [Unit(2, 1, 2, 4)]
    assert units(2, top=1, span=fits - 1) == [Unit(2, 1, 2, 3)]
    books = [laid_out(name, (1, "Only", f"words of {name}")) for name in ("a", "b", "c")]
    found = Parents(Layout(*collections(books)), {each.id: each for each in books})
    assert found.units([1], 5, parents=True, neighbours=3, span=6000) == [Unit(1, 1, 1, 2)]


def test_a_long_section_is_cut_around_the_child() -> None:
    book = laid_out("book", (1, "Before", "short"), (1, "Long", filler("word", 2000)), (1, "After", "short"))
    found = Parents(Layout(*collections([book])), {"book": book})
    chunks = len(found.starts) - 2
    wide = found.units([8, 9, 14, 1], 5, parents=True, neighbours=1, span=5000)
    assert all(found.passage(unit).end - found.passage(unit).start <= 5000 for unit in wide)
    assert wide[0].lo < 8 < wide[0].hi - 1  # both sides of the child
    assert wide[0].lo <= 9 < wide[0].hi  # so the second child is shown already
    assert [unit.child for unit in wide] == [8, 14, 1]
    for one_unit, other in pairwise(sorted(wide, key=lambda unit: unit.lo)):
        assert one_unit.hi <= other.lo
    # a child longer than the span is shown by itself
    assert found.units([chunks], 5, parents=True, neighbours=1, span=1) == [Unit(chunks, 1, chunks, chunks + 1)]


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


# Routes


def test_a_short_source_is_shown_whole_without_a_search() -> None:
    encoder = HashedWords()
    short = HeroSettings(route=len(BOOK.text))
    found = Hero({"book": BOOK}, *collections([BOOK], encoder), short)
    (evidence,) = found.evidence([ask("the tub")], "book")
    assert (evidence.route, evidence.sufficient, encoder.calls) == ("whole", True, 0)
    assert [passage.heading for passage in evidence.passages] == ["Fluids", "Wound", "Bathing", "Sport", "Pets"]
    assert (evidence.trace.signals, evidence.trace.shown) == ((), ())
    longer = Hero({"book": BOOK}, *collections([BOOK], encoder), msgspec.structs.replace(short, route=short.route - 1))
    assert longer.evidence([ask("the tub")], "book")[0].route != "whole"
    assert encoder.calls > 0


def test_a_source_that_its_reader_cannot_be_shown_whole_is_searched() -> None:
    assert one(hero(BOOK, settings=HeroSettings(), room=len(BOOK.text)), "the tub").route == "whole"
    assert one(hero(BOOK, settings=HeroSettings(), room=len(BOOK.text) - 1), "the tub").route == "retrieved"


def test_weak_evidence_falls_back_to_the_whole_source_where_it_fits() -> None:
    weak = "quantum chromodynamics of the tub"
    settings = HeroSettings(route=0, enough=0.6)
    assert one(hero(BOOK, settings=settings), "no tub for six weeks, showers fine").route == "retrieved"
    evidence = one(hero(BOOK, settings=settings), weak)
    assert (evidence.route, evidence.sufficient) == ("fallback", False)
    assert [passage.heading for passage in evidence.passages] == ["Fluids", "Wound", "Bathing", "Sport", "Pets"]
    assert evidence.trace.shown  # what was found is kept
    assert evidence.trace.sufficiency is not None
    assert set(evidence.trace.sufficiency.missing) == {"quantum", "chromodynam"}
    off = one(hero(BOOK, settings=msgspec.structs.replace(settings, fallback=False)), weak)
    assert (off.route, off.sufficient) == ("retrieved", False)
    assert [each.id for each in off.passages] == [each.passage for each in evidence.trace.shown]
    for small in (
        hero(BOOK, settings=msgspec.structs.replace(settings, fits=len(BOOK.text) - 1)),
        hero(BOOK, settings=settings, room=len(BOOK.text) - 1),
    ):
        assert one(small, weak).route == "retrieved"
        assert "fit" in one(small, weak).reason


def test_sufficiency_by_hand() -> None:
    settings = msgspec.structs.replace(LONG, dense=0.0, top=1, neighbours=0)
    trace = one(hero(BOOK, settings=settings), "tub zebra").trace
    assert trace.sufficiency is not None
    in_one, in_none = np.log1p(5.5 / 1.5), np.log1p(6.5 / 0.5)  # of six children
    assert trace.sufficiency.coverage == pytest.approx(in_one / (in_one + in_none))
    assert trace.sufficiency.score == trace.sufficiency.coverage
    assert (trace.sufficiency.similarity, trace.sufficiency.missing) == (None, ("zebra",))
    both = one(hero(BOOK, settings=msgspec.structs.replace(settings, dense=1.0)), "tub zebra").trace.sufficiency
    assert both is not None
    assert both.similarity is not None
    assert both.score == pytest.approx((both.similarity + both.coverage) / 2)


def test_a_word_that_was_added_covers_the_one_that_brought_it() -> None:
    trace = one(hero(BOOK, settings=msgspec.structs.replace(LONG, dense=0.0)), "scar").trace
    assert trace.sufficiency is not None
    assert trace.sufficiency.coverage == 1.0  # the book says wound and incision
    alone = one(hero(BOOK, settings=msgspec.structs.replace(LONG, dense=0.0, expand="none")), "scar").trace
    assert alone.sufficiency is not None
    assert alone.sufficiency.coverage == 0.0


# Odd sources and queries


@pytest.mark.parametrize(
    "document",
    [
        Document(id="odd", title="Tub", text=""),
        Document(id="odd", title="", text=""),
        Document(id="odd", title="Tub", text=" \n\t "),
        Document(id="odd", title="", text="a tub and no section"),
        laid_out("odd", (1, "", "a tub under no heading")),
        laid_out("odd", (1, "Tub", "")),
        laid_out("odd", (1, "Tub", ""), (2, "Deeper", ""), (1, "End", "")),
        laid_out("odd", (3, "入浴", "お風呂は六週間いけません"), (1, "Tub", "tub")),
        laid_out("odd", (1, "Tub", "tub " * 5000)),
    ],
)
def test_odd_documents(document: Document) -> None:
    whole, searched = (
        one(hero(BOOK, document, settings=settings), "tub 風呂", "odd") for settings in (HeroSettings(), LONG)
    )
    assert whole.route == "whole"
    for evidence in (whole, searched):
        for passage in [*evidence.passages, *evidence.parts]:
            assert passage.text == document.text[passage.start : passage.end]
            assert passage.document == "odd"
        assert explain(evidence)
    shown = "\n".join(passage.text for passage in whole.passages)
    for own in [document.section_text(section) for section in document.sections] or [document.text]:
        assert own.strip() in shown
    assert len(searched.passages) <= 5


def test_empty_queries_and_failed_ones_are_not_searched() -> None:
    failure = Failure(kind="refusal", message="would not write")
    queries = [ask("", "a"), ask(" \n", "b"), SearchQuery(id="c", text="tub", failure=failure), ask("of the", "d")]
    empty, blank, failed, stopped = hero(BOOK, settings=HeroSettings(route=0)).evidence(queries, "book")
    for evidence in (empty, blank):
        assert (evidence.route, evidence.passages, evidence.sufficient) == ("retrieved", (), False)
        assert evidence.reason == "the query has no words"
        assert evidence.trace.signals == ()
    assert (failed.failure, failed.passages) == (failure, ())
    assert stopped.trace.sufficiency is not None
    assert stopped.trace.sufficiency.coverage == 0.0
    assert hero(BOOK).evidence([], "book") == []
    assert [len(each.ranking.indices) for each in hero(BOOK).rank(queries[:3], 3)] == [0, 0, 0]


def test_unknown_sources_are_refused_at_once() -> None:
    with pytest.raises(UsageError, match="'nobook'"):
        hero(BOOK).evidence_all([ask("tub")], [["nobook"]])
    with pytest.raises(UsageError, match="1 queries and 0 lists"):
        hero(BOOK).evidence_all([ask("tub")], [])


def test_no_sources_at_all() -> None:
    nothing = Hero({}, *collections([]), LONG)
    assert list(nothing.evidence_all([ask("tub")])) == []
    assert len(nothing.rank([ask("tub")], 3)[0].ranking.indices) == 0


# All sources at once


def test_all_at_once_is_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(3)
    names = ["water", "tub", "cat", "swim", "plaster", "walk", "tray", "shower", "incision", "week"]

    def text() -> str:
        return " ".join(rng.choice(names, size=int(rng.integers(0, 400))))

    books = [
        laid_out(f"d{number}", *((int(rng.integers(1, 4)), f"{rng.choice(names)}", text()) for _ in range(8)))
        for number in range(20)
    ]
    encoder = HashedWords()
    found = Hero({each.id: each for each in books}, *collections(books, encoder), LONG)
    queries = [ask(" ".join(rng.choice(names, size=3)), f"q{number}") for number in range(70)]
    wanted = [[books[n].id for n in sorted(set(rng.integers(0, 20, size=12).tolist()))] for _ in queries]
    before = found.evidence(queries[:1], "d0")[0].trace  # the index is built
    calls = encoder.calls
    together = list(found.evidence_all(queries, wanted))
    assert encoder.calls == calls + 1  # all questions in one go
    assert [(each.question, each.document) for each in together] == [
        (query.id, source) for query, sources in zip(queries, wanted, strict=True) for source in sources
    ]
    alone = {(each.question, each.document): each for book in books for each in found.evidence(queries, book.id)}
    for each in together:
        assert each.trace == alone[each.question, each.document].trace
        assert each.passages == alone[each.question, each.document].passages
    assert before == alone["q0", "d0"].trace


# Ranking a corpus


def test_as_a_ranker_of_a_whole_corpus() -> None:
    others = [laid_out(f"other{number}", (1, "Tea", filler("leaf", 50))) for number in range(4)]
    found = hero(others[0], BOOK, *others[1:])
    (ranked,) = found.rank([ask("tub showers")], 3)
    children = collections([others[0], BOOK, *others[1:]])[0]
    assert children.passages[int(ranked.ranking.indices[0])].id == "book#3"
    assert list(ranked.via) == ["dense", "bm25", "sections", "titles"]
    assert (np.diff(ranked.ranking.scores) <= 0).all()
    allowed = np.arange(children.bounds[2], children.bounds[4])
    (within,) = found.rank([ask("leaf3 tub")], 10, allowed)
    assert set(within.ranking.indices.tolist()) <= set(allowed.tolist())
    assert len(within.ranking.indices) == 2
    (shallow,) = found.rank([ask("tub showers")], 10, depth=1)
    assert len(shallow.via["dense"].indices) == 1
    with pytest.raises(UsageError, match="results"):
        found.rank([ask("tub")], 0)


# Settings, trace and text


def test_the_stage_gives_the_settings() -> None:
    known = {"hero": SPEC}
    plain = parse("hero", known)
    assert isinstance(plain, Stage)
    assert HeroSettings.of(plain) == HeroSettings()
    assert str(plain) == "hero"
    stage = parse("hero[route=0,expand=none,titles=0,rerank=yesno,parents=off,fallback=off,enough=0.2]", known)
    assert isinstance(stage, Stage)
    assert HeroSettings.of(stage) == HeroSettings(
        route=0, expand="none", titles=0.0, rerank="yesno", parents=False, fallback=False, enough=0.2
    )
    with pytest.raises(UsageError, match="expand"):
        parse("hero[expand=magic]", known)
    assert [option.name for option in SPEC.options] == list(HeroSettings.__struct_fields__)


@pytest.mark.parametrize(
    "wrong",
    [
        {"dense": 0.0, "bm25": 0.0, "sections": 0.0, "titles": 0.0},
        {"dense": -1.0},
        {"bm25": float("nan")},
        {"top": 0},
        {"span": 0},
        {"neighbours": -1},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="HERO"):
        HeroSettings(**wrong)  # type: ignore[arg-type]


def test_traces_come_back_from_json() -> None:
    reranked = one(with_reranker(ByWord("tub")), "the tub and the wound")
    for evidence in (
        reranked,
        one(hero(BOOK, settings=HeroSettings()), "the tub"),
        one(hero(BOOK, settings=HeroSettings(route=0)), "quantum zebra"),
        one(with_reranker(ByWord("tub")), "fail the tub"),
    ):
        assert msgspec.json.decode(msgspec.json.encode(evidence.trace), type=HeroTrace) == evidence.trace


def test_explaining_shows_every_layer() -> None:
    text = explain(one(with_reranker(ByWord("tub")), "the tub\x1b[2J and the wound"))
    for words in (
        "route    retrieved",
        "wound → incision, scar",
        "dense, weight 1",
        "titles, weight 0.5",
        "fused by reciprocal rank",
        "reranked",
        "evidence",
        "Bathing (",
        "from book#3",
        "strength",
    ):
        assert words in text
    assert "\x1b" not in text
    assert "route    whole" in explain(one(hero(BOOK, settings=HeroSettings()), "tub"))


# The teaching handbooks, with the real encoder


@cache
def handbooks(folder: Path) -> list[Document]:
    import_corpus(teaching.handbook_files(), folder)
    return list(Corpus.open(folder).documents())


@pytest.fixture(scope="module")
def teaching_hero(tmp_path_factory: pytest.TempPathFactory) -> Callable[[HeroSettings], Hero]:
    needs_weights("minilm")
    documents = handbooks(tmp_path_factory.mktemp("handbooks") / "corpus")
    made = collections(documents, load_encoder("minilm"))
    return lambda settings: Hero({each.id: each for each in documents}, *made, settings)


def _squashed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_teaching_handbooks(teaching_hero: Callable[[HeroSettings], Hero]) -> None:
    """Short handbooks are shown whole, the long one is searched; searched, all give up what is planted in them."""
    queries = [ask(each.text, each.id) for each in teaching.patient_questions()]
    gold = {(each.question, each.source): each for each in teaching.patient_gold()}
    routes: dict[str, set[str]] = {}
    for evidence in teaching_hero(HeroSettings()).evidence_all(queries):
        routes.setdefault(evidence.document, set()).add(evidence.route)
    assert routes.pop("hb-brook-kidney") <= {"retrieved", "fallback"}
    assert all(each == {"whole"} for each in routes.values())
    found, weak, silent = 0, 0, 0
    planted = [each for each in gold.values() if not each.absent]
    for evidence in teaching_hero(LONG).evidence_all(queries):
        each = gold.get((evidence.question, evidence.document))
        if each is None:
            continue
        shown = _squashed(" ".join(passage.text for passage in evidence.passages))
        if each.absent:
            silent += not evidence.sufficient
        else:
            found += all(_squashed(quote.quote) in shown for quote in each.evidence)
            weak += not evidence.sufficient
    assert found == len(planted)
    assert weak <= 0.1 * len(planted)
    assert silent >= 0.5 * (len(gold) - len(planted))


@pytest.mark.slow
def test_teaching_layers_switch_what_they_should(teaching_hero: Callable[[HeroSettings], Hero]) -> None:
    query = [ask("Is ibuprofen all right, or which pain killer can I take?")]

    def trace(**changed: object) -> HeroTrace:
        settings = msgspec.structs.replace(HeroSettings(), **changed)
        return teaching_hero(settings).evidence(query, "hb-brook-kidney")[0].trace

    base = trace()
    assert (base.route, base.sufficient) == ("retrieved", True)
    assert {each.matched for each in base.added} >= {"ibuprofen"}
    assert trace(expand="none").added == ()
    assert trace(parents=False).fused == base.fused
    assert all(
        each.passage != other.passage for each, other in zip(trace(parents=False).shown, base.shown, strict=True)
    )
    assert all(not each.neighbours for each in trace(neighbours=0).shown)
    assert len(trace(top=2).shown) == 2
    assert trace(enough=1.0).route == "fallback"
    assert trace(enough=1.0, fallback=False).route == "retrieved"
    assert trace(route=100_000).route == "whole"
    assert ENGLISH.terms("ibuprofen")[0] not in (base.sufficiency.missing if base.sufficiency else ())
