"""What each condition shows a question with, over real documents and a real search."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.answering import (
    Answerer,
    DocumentStore,
    PlannedAnswer,
    PromptSettings,
    parse_condition,
    plan_systems,
    plans,
    prepare,
)
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Question
from hoofbeat.retrieval import IndexSet
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from tests.retrieval.support import HashedWords

TITLE = "Colchicine in a horse keeper with gout"
PAGES = {
    "gout.md": f"# {TITLE}\n\n## Case\n\n" + "Tophi of the knee and gout. " * 30 + "Colchicine helped.",
    "lyme.md": "# Lyme arthritis\n\n## Case\n\nA tick bite and a swollen knee. Doxycycline helped.",
    "review.md": f"# A review of gout\n\n## Reports\n\nTophi and gout: {TITLE}, and others.",
}
GOUT = Question(
    id="g", text="Which drug for tophi and gout?", context="A man of 40. He has tophi.", documents=("gout",)
)
LYME = Question(id="l", text="A tick bite. Which drug?", documents=("lyme",), options=("Doxycycline", "Aspirin"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> DocumentStore:
    folder = tmp_path_factory.mktemp("shown")
    (folder / "in").mkdir()
    for name, text in PAGES.items():
        (folder / "in" / name).write_text(text, encoding="utf-8")
    corpus = Corpus(import_corpus([folder / "in"], folder / "corpus", workers=1))
    assert set(corpus.ids()) == {"gout", "lyme", "review"}
    return DocumentStore(corpus, IndexSet(corpus, encoder=lambda _: HashedWords()))


def planned(
    library: DocumentStore, text: str, *questions: Question, window: int | None = None, samples: int = 1
) -> list[PlannedAnswer]:
    condition = parse_condition(text)
    (system,) = plan_systems([Answerer(written="m", spec="m", samples=samples)], [condition], questions)
    return list(plans(system, prepare(condition, questions, library), window, PromptSettings()))


def test_closed_shows_the_question_alone(library: DocumentStore) -> None:
    (item,) = planned(library, "closed", GOUT)
    assert (item.text, item.passages, item.images, item.condition) == (GOUT.full_text, (), (), "closed")


def test_the_oracle_shows_the_source_whole(library: DocumentStore) -> None:
    (item,) = planned(library, "oracle", GOUT)
    (passage,) = item.passages
    assert passage.document == "gout"
    assert passage.text.endswith("Colchicine helped.")
    assert item.warnings == ()


def test_retrieved_passages_and_retrieved_documents(library: DocumentStore) -> None:
    (pieces,) = planned(library, "bm25 @3", GOUT)
    (reports,) = planned(library, "bm25 @2 documents", GOUT)
    assert len(pieces.passages) == 3
    assert {passage.document for passage in reports.passages} == {"gout", "review"}
    assert len(reports.passages) == 2
    (gout,) = [passage for passage in reports.passages if passage.document == "gout"]
    assert gout.text.endswith("Colchicine helped.")
    assert gout.text.count("Tophi of the knee") == 30
    assert (pieces.condition, reports.condition) == ("bm25 @3", "bm25 @2 documents")


def test_the_source_s_title_in_what_was_found_is_noted(library: DocumentStore) -> None:
    (item,) = planned(library, "bm25 @2 documents", GOUT)
    assert item.warnings == ("read review, which quotes its source's title",)


def test_what_was_dropped_was_not_read(library: DocumentStore) -> None:
    both = GOUT.full_text + " Tophi of the knee."
    asked = Question(id="q", text=both, documents=GOUT.documents)
    (item,) = planned(library, "bm25 @2 documents", asked, window=900)
    assert [passage.document for passage in item.passages] == ["gout"]
    assert any(name.startswith("review") for name in item.dropped)
    assert item.warnings == ()
    (whole,) = planned(library, "bm25 @2 documents", asked, window=4096)
    assert whole.warnings == ("read review, which quotes its source's title",)


def test_documents_that_do_not_fit_are_dropped_whole_and_recorded(library: DocumentStore) -> None:
    (wide,) = planned(library, "bm25 @2 documents", GOUT, window=4096)
    assert (len(wide.passages), wide.dropped) == (2, ())
    names = [passage.id for passage in wide.passages]
    (narrow,) = planned(library, "bm25 @2 documents", GOUT, window=900)
    assert [passage.id for passage in narrow.passages] == names[:1]
    assert narrow.dropped == (names[1],) or narrow.dropped == (f"{names[0]} (cut)", names[1])


def test_a_window_too_small_for_anything_is_a_failure_without_a_call(library: DocumentStore) -> None:
    for text in ("oracle", "bm25 @1", "bm25 @1 documents"):
        (item,) = planned(library, text, GOUT, window=300)
        assert item.failure is not None
        assert (item.failure.kind, item.failure.attempts, item.passages) == ("context-overflow", 0, ())


def test_the_beginning_of_the_case(library: DocumentStore) -> None:
    (item,) = planned(library, "first 50% of sentences", GOUT)
    assert item.text == "A man of 40.\n\nWhich drug for tophi and gout?"
    (bare,) = planned(library, "first 20%", Question(id="q", text="Which drug?"))
    assert bare.warnings == ("there is no case beside the question to be shortened",)


def test_the_protocol_follows_the_question_unless_it_is_named(library: DocumentStore) -> None:
    found = plan_systems([Answerer(written="m", spec="m")], [parse_condition("closed")], [GOUT, LYME])
    assert [(s.condition.name, [q.id for q in s.questions]) for s in found] == [
        ("closed, letter", ["l"]),
        ("closed", ["g"]),
    ]
    (item,) = planned(library, "closed", LYME)
    assert (item.protocol, set(item.options)) == ("letter", {"Doxycycline", "Aspirin"})
    (free,) = planned(library, "closed, free", LYME)
    assert (free.protocol, free.options) == ("", ())
    without, with_options = planned(library, "closed, letter", GOUT, LYME)
    assert with_options.failure is None
    assert without.failure is not None
    assert without.failure.message == "the question has no options"


def test_what_is_measured_is_measured_once(library: DocumentStore) -> None:
    assert len(planned(library, "closed, likelihood", LYME, samples=5)) == 1
    assert len(planned(library, "closed, letter", LYME, samples=5)) == 5


def test_a_source_that_is_not_there_is_that_question_s_failure(library: DocumentStore) -> None:
    lost = Question(id="x", text="Which?", documents=("gone",))
    nowhere = Question(id="y", text="Which?")
    fine, missing, without = planned(library, "oracle", GOUT, lost, nowhere)
    assert fine.failure is None
    assert missing.failure is not None
    assert without.failure is not None
    assert (missing.failure.kind, missing.failure.message) == ("input", "the corpus has no document gone")
    assert without.failure.message == "the question names no source document"
    with pytest.raises(InputError, match="no document gone"):
        planned(library, "oracle", lost)
    with pytest.raises(InputError, match="names its source"):
        planned(library, "oracle", nowhere)


@pytest.fixture
def bench(tmp_path: Path) -> Artefact:
    with create(tmp_path / "bench") as draft:
        (draft.path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n invented")
        draft.finish(Manifest(kind="benchmark"))
    return open_artefact(tmp_path / "bench")


def test_images_are_shown_under_their_own_condition_only(bench: Artefact) -> None:
    seen = Question(id="s", text="What is seen?", images=("a.png",))
    library = DocumentStore(None, images=bench)
    with_image, without = planned(library, "images", seen, LYME.__class__(id="n", text="Nothing?"))
    assert [image.media_type for image in with_image.images] == ["image/png"]
    assert without.failure is not None
    assert without.failure.message == "the question has no images"
    (text_only,) = planned(library, "closed", seen)
    assert text_only.images == ()
    with pytest.raises(InputError, match="no question of this benchmark has images"):
        planned(library, "images", Question(id="n", text="Nothing?"))
    with pytest.raises(HostileInputError):
        planned(library, "images", seen, Question(id="t", text="?", images=("../a.png",)))
