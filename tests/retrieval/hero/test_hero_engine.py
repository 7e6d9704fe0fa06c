from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hoofbeat import teaching
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import load_encoder
from hoofbeat.records import Document, Failure
from hoofbeat.retrieval.hero import hero_engine
from hoofbeat.retrieval.hero.hero_engine import Hero
from hoofbeat.retrieval.hero.hero_evidence import HeroTrace, explain
from hoofbeat.retrieval.hero.hero_signals import HeroSettings, QuestionCoverage
from hoofbeat.retrieval.index import vector_storage
from hoofbeat.retrieval.index.analysis import ENGLISH
from hoofbeat.retrieval.line import Stage, parse
from hoofbeat.retrieval.stage_roles import SearchQuery
from tests.helpers import needs_weights
from tests.retrieval.hero.hero_support import (
    BOOK,
    CHILD,
    LONG,
    ByWord,
    ask,
    collections,
    filler,
    hero,
    laid_out,
    one,
    with_reranker,
)
from tests.retrieval.support import HashedWords

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


@pytest.mark.parametrize(
    "question", ["no tub for six weeks", "tub water zebra", "cat", "of the", " ".join(BOOK.text.split())]
)
def test_the_strength_of_evidence_does_not_depend_on_the_other_sources(question: str) -> None:
    others = [laid_out(f"other{n}", (1, "Tub", "tub zebra week " * (40 * n + 1)), (1, "Six", "six")) for n in range(7)]
    settings = msgspec.structs.replace(LONG, top=2, neighbours=0)
    among = hero(*others[:3], BOOK, *others[3:], settings=settings)
    alone = one(hero(BOOK, settings=settings), question).trace.sufficiency
    assert alone is not None
    assert one(among, question).trace.sufficiency == alone
    (together,) = [each for each in among.evidence_all([ask(question)]) if each.document == "book"]
    assert together.trace.sufficiency == alone


def test_terms_are_rare_or_not_in_their_own_source() -> None:
    other = laid_out(
        "other",
        (1, "Tub", "tub in the small room"),
        (1, "Bath", "tub cat and two more words"),
        (1, "Tray", "tub and tray and soap"),
    )
    coverage = QuestionCoverage((children := collections([BOOK, other])[0]).bm25(0.9, 0.4).postings, children.bounds)
    weights = coverage.weights(coverage.concepts("tub cat zebra", []), [0, 1])

    def rarity(frequency: int, total: int) -> float:
        return float(np.log1p((total - frequency + 0.5) / (frequency + 0.5)))

    assert weights.tolist() == [
        [pytest.approx(rarity(1, 6)), pytest.approx(rarity(3, 3))],
        [pytest.approx(rarity(1, 6)), pytest.approx(rarity(1, 3))],
        [pytest.approx(rarity(0, 6)), pytest.approx(rarity(0, 3))],
    ]
    assert coverage.weights(coverage.concepts("tub cat zebra", []), [1]).tolist() == weights[:, 1:].tolist()
    assert coverage.weights([], [0, 1]).shape == (0, 2)


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


def many_books() -> tuple[list[Document], list[SearchQuery], list[list[str]]]:
    """Twenty documents, seventy questions, and to which of the documents each is put."""
    rng = np.random.default_rng(3)
    names = ["water", "tub", "cat", "swim", "plaster", "walk", "tray", "shower", "incision", "week"]

    def text() -> str:
        return " ".join(rng.choice(names, size=int(rng.integers(0, 400))))

    books = [
        laid_out(f"d{number}", *((int(rng.integers(1, 4)), f"{rng.choice(names)}", text()) for _ in range(8)))
        for number in range(20)
    ]
    queries = [ask(" ".join(rng.choice(names, size=3)), f"q{number}") for number in range(70)]
    wanted = [[books[n].id for n in sorted(set(rng.integers(0, 20, size=12).tolist()))] for _ in queries]
    return books, queries, wanted


def test_all_at_once_is_the_same_as_one_by_one() -> None:
    books, queries, wanted = many_books()
    encoder = HashedWords()
    found = Hero({each.id: each for each in books}, *collections(books, encoder), LONG)
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


@pytest.mark.parametrize("settings", [HeroSettings(route=0), msgspec.structs.replace(LONG, span=900, neighbours=2)])
def test_neither_batches_nor_threads_nor_company_change_a_byte(
    monkeypatch: pytest.MonkeyPatch, settings: HeroSettings
) -> None:
    books, queries, wanted = many_books()
    wanted = [wanted[number % 3] for number in range(len(queries))]  # many are put to the same sources

    def everything(order: list[int], compile_from: int) -> dict[tuple[str, str], bytes]:
        monkeypatch.setattr(vector_storage, "_COMPILE_FROM", compile_from)
        found = Hero({each.id: each for each in books}, *collections(books), settings)
        evidence = found.evidence_all([queries[n] for n in order], [wanted[n] for n in order])
        return {
            (each.question, each.document): msgspec.json.encode([each.trace, each.passages, each.parts])
            for each in evidence
        }

    monkeypatch.setenv("HOOFBEAT_THREADS", "1")
    plain = everything(list(range(70)), 1 << 40)
    monkeypatch.setenv("HOOFBEAT_THREADS", "3")
    monkeypatch.setattr(vector_storage, "_WORTH_THREADS", 1)
    for batch, order, compile_from in ((1, range(70), 1 << 40), (7, range(69, -1, -1), 0), (64, range(70), 0)):
        monkeypatch.setattr(hero_engine, "_BATCH", batch)
        assert everything(list(order), compile_from) == plain


# Ranking a corpus


def test_as_a_ranker_of_a_whole_corpus() -> None:
    others = [laid_out(f"other{number}", (1, "Tea", filler("leaf", 50))) for number in range(4)]
    found = hero(others[0], BOOK, *others[1:])
    (ranked,) = found.rank([ask("tub showers")], 3)
    children = collections([others[0], BOOK, *others[1:]])[0]
    assert children.passages[int(ranked.ranking.indices[0])].id == f"{CHILD}3"
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
    plain = parse("hero")
    assert isinstance(plain, Stage)
    assert HeroSettings.of(plain) == HeroSettings()
    assert str(plain) == "hero"
    stage = parse("hero[route=0,expand=none,titles=0,rerank=yesno,parents=off,fallback=off,enough=0.2]")
    assert isinstance(stage, Stage)
    assert HeroSettings.of(stage) == HeroSettings(
        route=0, expand="none", titles=0.0, rerank="yesno", parents=False, fallback=False, enough=0.2
    )
    with pytest.raises(UsageError, match="expand"):
        parse("hero[expand=magic]")
    assert [option.name for option in plain.options] == list(HeroSettings.__struct_fields__)


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
        "model    5 sections, 6 children",
        "Bathing: No tub for six weeks. Showers are fine.",
        "reranking by yesno, the best 20 children",
        "evidence",
        "Bathing (",
        f"from {CHILD}3",
        "strength",
    ):
        assert words in text
    assert "\x1b" not in text
    assert "reranking off: hero[rerank=…] names no cross-encoder or model" in explain(one(hero(BOOK), "tub"))
    whole = explain(one(hero(BOOK, settings=HeroSettings()), "tub"))
    assert "route    whole" in whole
    assert "reranking" not in whole


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
def test_a_teaching_handbook_alone_and_among_eight(
    teaching_hero: Callable[[HeroSettings], Hero], tmp_path_factory: pytest.TempPathFactory
) -> None:
    queries = [ask(each.text, each.id) for each in teaching.patient_questions()]
    book = min(handbooks(tmp_path_factory.mktemp("again") / "corpus"), key=lambda each: len(each.text))
    alone = Hero({book.id: book}, *collections([book], load_encoder("minilm")), LONG)
    among = [each for each in teaching_hero(LONG).evidence_all(queries) if each.document == book.id]
    for by_itself, beside in zip(alone.evidence(queries, book.id), among, strict=True):
        one_way, other = by_itself.trace.sufficiency, beside.trace.sufficiency
        assert one_way is not None
        assert other is not None
        assert (one_way.coverage, one_way.missing) == (other.coverage, other.missing)  # to the last bit
        # vectors of children are the encoder's, which may round by the batch
        assert one_way.score == pytest.approx(other.score, abs=1e-6)


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
