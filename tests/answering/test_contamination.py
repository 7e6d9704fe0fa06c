"""The source in disguise: its title elsewhere, a copy of it, and what is no sign of either."""

from __future__ import annotations

import pytest

from hoofbeat.answering.contamination import same_title, source_warnings
from hoofbeat.records import Document, Passage, Question

TITLE = "Caplacizumab without plasma exchange: a case of immune TTP"
QUESTION = Question(id="q", text="What next?", documents=("source",))
DOCUMENTS = {
    "source": Document(id="source", title=TITLE, text="The report itself."),
    "quoting": Document(id="quoting", title="A review", text=f"See 12. {TITLE.upper()}\u2014J Invented 2024."),
    "broken": Document(id="broken", title="Another", text=TITLE.replace(" ", "\n  ").replace(":", " –")),
    "copy": Document(id="copy", title="Caplacizumab without plasma exchange - a case of immune TTP.", text="Copied."),
    "near": Document(
        id="near", title="Caplacizumab with plasma exchange in TTP", text="Plasma exchange, a case of TTP."
    ),
    "part": Document(id="part", title="X", text=f"{TITLE}s"),
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
