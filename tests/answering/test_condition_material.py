"""What each condition shows a question with, over real documents and a real search."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from hoofbeat.answering import condition_material as pictures
from hoofbeat.answering.condition_material import check_images, images_of, same_title, shorten, source_warnings
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.models import Image
from hoofbeat.records import Document, Passage, Question
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
    assert bare.warnings == ("the question has no case to shorten",)


def test_baselines_leave_out_the_question_or_its_case(library: DocumentStore) -> None:
    question = Question(id="q", context="A case.", text="Which?", options=("Gout", "Sepsis"), answer="Gout")
    bare = prepare(parse_condition("options"), [question], library).show(question)
    assert bare.text is not None
    assert "Which?" not in bare.text
    assert prepare(parse_condition("question"), [question], library).show(question).text == "Which?"
    with pytest.raises(InputError, match="separate case"):
        prepare(parse_condition("question"), [Question(id="q", text="Which?")], library)


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


CASE = "A man of 40 came. He had fever for 3.5 days! Was he ill before? He was not."
CASED = Question(id="q", context=CASE, text="What is the diagnosis?")


@pytest.mark.parametrize(
    ("percent", "shown", "kept"),
    [
        (1, "A", 1),
        (20, "A man of 40", 4),
        (50, "A man of 40 came. He had fever for 3.5", 11),
        (100, CASE, 22),
    ],
)
def test_tokens_of_the_context(percent: int, shown: str, kept: int) -> None:
    assert shorten(CASED, percent) == (f"{shown}\n\nWhat is the diagnosis?", kept, 22)


@pytest.mark.parametrize(("percent", "kept"), [(1, 1), (25, 1), (49, 1), (50, 2), (75, 3), (99, 3), (100, 4)])
def test_sentences_of_the_context(percent: int, kept: int) -> None:
    ends = [0, 17, 44, 63, len(CASE)]
    found = shorten(CASED, percent, by_sentences=True)
    assert found == (f"{CASE[: ends[kept]]}\n\nWhat is the diagnosis?", kept, 4)


def test_without_a_context_the_last_sentence_that_asks_stays() -> None:
    question = Question(id="q", text="One two three. Four five? Six seven eight. Nine ten.")
    assert shorten(question, 100).text == question.text
    assert shorten(question, 10).text == "One Four five?"
    assert shorten(question, 60).text == "One two three. Four five? Six seven"
    assert shorten(question, 34, by_sentences=True).text == "One two three. Four five?"


def test_a_question_at_the_end_stays_there() -> None:
    question = Question(id="q", text='She fell and broke a hip. She waited. "What next?"')
    assert shorten(question, 20).text == 'She fell "What next?"'
    assert shorten(question, 100).text == question.text


def test_without_a_question_mark_the_last_sentence_stays() -> None:
    question = Question(id="q", text="She fell. She waited long. Name the next step.")
    assert shorten(question, 50, by_sentences=True).text == "She fell. Name the next step."


def test_a_question_without_a_case_is_left_as_it_is() -> None:
    assert shorten(Question(id="q", text="What next?"), 20) == ("What next?", 0, 0)
    assert shorten(Question(id="q", text=""), 20).of == 0


def test_ideographs_are_a_token_each() -> None:
    question = Question(id="q", context="患者四十歳男性発熱持続", text="診断は？")
    assert shorten(question, 50).text == "患者四十歳\n\n診断は？"


@given(st.text(max_size=300), st.integers(1, 100), st.booleans())
def test_more_percent_never_show_less(context: str, percent: int, by_sentences: bool) -> None:
    question = Question(id="q", context=context, text="Why?")
    some, more = (shorten(question, p, by_sentences=by_sentences) for p in (percent, 100))
    assert some.text.endswith("Why?")
    assert some.kept <= more.kept == more.of
    assert more.text.startswith(some.text.removesuffix("\n\nWhy?")) or not context


@given(st.text(max_size=200), st.integers(1, 100), st.booleans())
def test_any_text_can_be_shortened(text: str, percent: int, by_sentences: bool) -> None:
    question = Question(id="q", text=text)
    assert len(shorten(question, percent, by_sentences=by_sentences).text) <= len(text) + 1


QUOTED_TITLE = "Caplacizumab without plasma exchange: a case of immune TTP"
QUESTION = Question(id="q", text="What next?", documents=("source",))
DOCUMENTS = {
    "source": Document(id="source", title=QUOTED_TITLE, text="The report itself."),
    "quoting": Document(id="quoting", title="A review", text=f"See 12. {QUOTED_TITLE.upper()}\u2014J Invented 2024."),
    "broken": Document(id="broken", title="Another", text=QUOTED_TITLE.replace(" ", "\n  ").replace(":", " –")),
    "copy": Document(id="copy", title="Caplacizumab without plasma exchange - a case of immune TTP.", text="Copied."),
    "near": Document(
        id="near", title="Caplacizumab with plasma exchange in TTP", text="Plasma exchange, a case of TTP."
    ),
    "part": Document(id="part", title="X", text=f"{QUOTED_TITLE}s"),
}


def warned(*read: str, question: Question = QUESTION, own: bool = False) -> tuple[str, ...]:
    passages = [Passage(id=f"{name}#0", document=name, text="A piece that says nothing.") for name in read]
    return source_warnings(question, passages, DOCUMENTS.get, own=own)


def test_the_title_is_found_however_it_is_set() -> None:
    assert warned("near", "quoting", "broken", "copy", "quoting") == (
        "read quoting, which quotes its source's title",
        "read broken, which quotes its source's title",
        "read copy, which has its source's title",
    )


def test_the_source_itself_is_noted_where_that_is_asked() -> None:
    assert warned("source") == ()
    assert warned("source", "near", own=True) == ("read its own source report: source",)


def test_what_only_resembles_the_title_is_no_sign() -> None:
    assert warned("near", "part") == ()


@pytest.mark.parametrize("title", ["", "Case report", "Gout in horses", "!!!"])
def test_a_title_that_says_nothing_is_not_looked_for(title: str) -> None:
    documents = {"s": Document(id="s", title=title, text=""), "d": Document(id="d", title=title, text=title)}
    read = [Passage(id="d#0", document="d", text=title)]
    question = Question(id="q", text="", documents=("s",))
    assert source_warnings(question, read, documents.get) == ()


def test_a_source_or_a_document_that_is_not_there_is_passed_over() -> None:
    assert warned("missing", "quoting", question=Question(id="q", text="", documents=("gone",))) == ()
    assert warned("missing", own=True) == ()


def test_titles_are_the_same_but_for_case_accents_and_a_letter() -> None:
    assert same_title("Étude of a Rare Case", "etude of a rare case!")
    assert same_title("A rare case of gouty tophi", "A rare case of gouty tophus")
    assert not same_title("A rare case of gout", "A common case of sepsis")
    assert not same_title("", "")


PNG = b"\x89PNG\r\n\x1a\n" + b"invented"


@pytest.fixture
def bench_with_images(tmp_path: Path) -> Artefact:
    (tmp_path / "secret.png").write_bytes(PNG)
    with create(tmp_path / "bench") as draft:
        (draft.path / "images").mkdir()
        files = {
            "a.png": PNG,
            "b.jpg": b"\xff\xd8\xff\xe0 invented",
            "c.gif": b"GIF89a invented",
            "d.webp": b"RIFF\x00\x00\x00\x00WEBP",
            "text.png": b"<svg onload='x'/>",
        }
        for name, content in files.items():
            (draft.path / "images" / name).write_bytes(content)
        (draft.path / "images" / "link.png").write_bytes(PNG)
        draft.finish(Manifest(kind="benchmark"))
    artefact = open_artefact(tmp_path / "bench")
    (artefact.path / "images" / "link.png").unlink()
    (artefact.path / "images" / "link.png").symlink_to(tmp_path / "secret.png")
    return artefact


def asked(*images: str) -> Question:
    return Question(id="q", text="What is seen?", images=images)


def test_the_kind_is_told_by_the_bytes(bench_with_images: Artefact) -> None:
    names = ("images/a.png", "images/b.jpg", "images/c.gif", "images/d.webp")
    check_images(bench_with_images, [asked(*names)])
    found = images_of(bench_with_images, asked(*names))
    assert not isinstance(found, str)
    assert [image.media_type for image in found] == ["image/png", "image/jpeg", "image/gif", "image/webp"]
    assert found[0] == Image.of(PNG, "image/png")


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.png", "images/../../secret.png", "/etc/passwd", "\\\\host\\share.png", "images\\a.png", ""),
        *("images/a.png\x00", "images/link.png", "images/\n.png"),
    ],
)
def test_tricks_with_paths_are_refused(bench_with_images: Artefact, name: str) -> None:
    with pytest.raises(HostileInputError, match="outside its folder"):
        check_images(bench_with_images, [asked("images/a.png"), asked(name)])


@pytest.mark.parametrize("name", ["images/none.png", "manifest.json", "questions.jsonl"])
def test_what_the_manifest_does_not_list_is_not_read(bench_with_images: Artefact, name: str) -> None:
    with pytest.raises(InputError, match="which is not in the benchmark"):
        check_images(bench_with_images, [asked(name)])


def test_what_is_no_image_is_said(bench_with_images: Artefact, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        images_of(bench_with_images, asked("images/text.png"))
        == "the image images/text.png is not a PNG, JPEG, GIF or WebP file"
    )
    assert images_of(bench_with_images, asked()) == "the question has no images"
    monkeypatch.setattr(pictures, "MAX_IMAGE", 5)
    assert "larger than" in str(images_of(bench_with_images, asked("images/a.png")))
