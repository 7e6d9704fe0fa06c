"""Near-duplicates of questions: planted ones are found with their words, sources are told apart."""

from __future__ import annotations

import pytest

from hoofbeat.leakage.near_duplicates import MIN_SHINGLES, NearSearch
from hoofbeat.records import Document
from tests.leakage.leakage_model import invented_questions

QUESTIONS = invented_questions(8)
TEXTS = {question.id: question.context for question in QUESTIONS}
OWN = {question.id: question.documents for question in QUESTIONS}


def document(id: str, text: str) -> Document:
    return Document(id=id, title="Invented", text=text)


def corpus() -> list[Document]:
    return [document(q.documents[0], f"Report.\n\n{q.context}\n\nAnd so on.") for q in QUESTIONS]


def test_a_copy_in_another_document_is_found_and_the_own_source_is_not_one() -> None:
    copied = QUESTIONS[3].context
    planted = document("elsewhere", f"Quite another beginning. {copied[:220]} And another end.")
    near, own = NearSearch(TEXTS).in_documents([*corpus(), planted], OWN)
    [found] = near
    assert (found.question, found.where, found.other) == ("q-03", "document", "elsewhere")
    assert 0.3 <= found.score < 1
    assert planted.text[slice(*found.other_span)] == found.other_text
    assert copied[slice(*found.question_span)] == found.question_text == found.other_text
    assert found.run > 20
    assert {(row.question, row.score) for row in own} == {(name, 1.0) for name in TEXTS}


def test_the_score_is_the_share_of_five_word_runs() -> None:
    words = [f"w{n}" for n in range(24)]
    text, half = " ".join(words), " ".join(words[:14])
    [found] = NearSearch({"q": text}, threshold=0.4).in_documents([document("d", half)], {})[0]
    assert found.score == pytest.approx(10 / 20)  # ten of twenty runs of five words
    assert NearSearch({"q": text}, threshold=0.51).in_documents([document("d", half)], {})[0] == []


def test_two_questions_that_are_nearly_the_same_are_found_once() -> None:
    texts = {**TEXTS, "q-copy": TEXTS["q-05"].replace("Later came", "Afterwards came")}
    [found] = NearSearch(texts).among_themselves()
    assert {found.question, found.other} == {"q-05", "q-copy"}
    assert found.where == "question"


def test_another_benchmark_is_searched() -> None:
    other = {
        "theirs-1": TEXTS["q-02"].upper(),
        "theirs-2": "Something else altogether that nobody here has asked before now.",
    }
    [found] = NearSearch(TEXTS).in_benchmark(other, "their-bench")
    assert (found.question, found.where, found.other, found.score) == ("q-02", "their-bench", "theirs-1", 1.0)


def test_set_phrases_of_a_benchmark_make_no_duplicates() -> None:
    phrase = "Which of the following is the most likely primary diagnosis of this patient in the light of all findings?"
    texts = {f"q{n}": f"{phrase} {' '.join(f'x{n}y{k}' for k in range(20))}" for n in range(12)}
    search = NearSearch(texts, threshold=0.2)
    assert search.among_themselves() == []
    assert search.common > MIN_SHINGLES


def test_short_questions_are_counted_and_not_looked_for() -> None:
    search = NearSearch({"short": "What should be done next?", **TEXTS})
    assert search.too_short == 1
    assert search.in_documents([document("d", "What should be done next? Nothing.")], {})[0] == []


def test_nothing_to_look_for_or_in() -> None:
    assert NearSearch({}).in_documents([document("d", "Words.")], {}) == ([], [])
    assert NearSearch(TEXTS).in_documents([document("d", "")], {}) == ([], [])
