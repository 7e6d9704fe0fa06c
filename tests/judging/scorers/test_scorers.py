"""Scores without a model: by hand, against another implementation, and what must hold for any texts."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hoofbeat.benchmarks.text_overlap import edit_similarity, rouge_l
from hoofbeat.judging.scorers import Scorer, ScoringContext
from hoofbeat.judging.scorers.choice import judge_choice
from hoofbeat.judging.scorers.exact import EXACT, exact_match
from hoofbeat.records import AcceptedAnswer, Answer, Failure, Question
from hoofbeat.registry import registry
from hoofbeat.text import for_exact_match, fuzzy_match
from tests.judging.folders import QUESTIONS, chose, said

CONTEXT = ScoringContext(questions={each.id: each for each in QUESTIONS})
SCORES = {each.name: each.score for each in registry.all(Scorer) if each.score is not None}
TEXTS = st.text(max_size=60)
WORDS = ["drain", "the", "abscess", "give", "no", "steroids", "before", "a", "biopsy", "of", "node", "5", "mg", "twice"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Beta-Blocker.", "beta blocker"),
        ("50mg", "50 mg"),
        ("1.5 mg, daily", "1.5 mg daily"),
        ("−5 °C", "-5 ° c"),
        ("< 3 %", "< 3 %"),
        ("ﬁbrosis", "fibrosis"),
        ("vitamin b12", "vitamin b12"),
        ("…!", ""),
    ],
)
def test_normalising_keeps_what_matters(text: str, expected: str) -> None:
    assert for_exact_match(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Plasma exchange.", "the plasma  exchange", 1.0),
        ("1.5 mg", "15 mg", 0.0),
        ("-5", "5", 0.0),
        ("> 5", "< 5", 0.0),
        ("", "", 0.0),
        ("...", "!", 0.0),
    ],
)
def test_exact_is_after_normalising(one: str, other: str, same: float) -> None:
    assert exact_match(one, other) == same


def test_fuzzy_sorts_the_words_first() -> None:
    assert fuzzy_match("exchange of plasma", "Plasma, of exchange") == 1.0
    # sorted: "cd ab" and "ab ce" -> "ab cd" and "ab ce": the common subsequence "ab c" has 4 of 5 characters each
    assert fuzzy_match("cd ab", "ab ce") == pytest.approx(2 * 4 / 10)


def test_rouge_l_by_hand() -> None:
    # the/gunman/police: 3 words in order, of 5 in the text and 4 in the reference
    measured = rouge_l("the gunman kill the police", "police the gunman police")
    assert measured == pytest.approx((3 / 5, 3 / 4, 2 * 0.6 * 0.75 / 1.35))
    assert rouge_l("", "words") == (0.0, 0.0, 0.0)


def test_edit_similarity_by_hand() -> None:
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("Same words", "same   words!") == 1.0


def test_rouge_l_is_that_of_rouge_score() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"], use_stemmer=False)
    draw = random.Random(3)
    for _ in range(300):
        text, reference = (" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(2))
        theirs = scorer.score(reference, text)["rougeL"]
        assert rouge_l(text, reference) == pytest.approx((theirs.precision, theirs.recall, theirs.fmeasure))


@given(TEXTS, TEXTS)
def test_scores_are_shares_and_know_themselves(one: str, other: str) -> None:
    words = f"{one} word"
    for name, score in SCORES.items():
        assert 0.0 <= score(one, other) <= 1.0
        assert score(one, other) == pytest.approx(score(other, one)), name
        assert score(words, words) == pytest.approx(1.0)


def test_what_has_no_answer_has_no_score() -> None:
    failed = Answer(
        question="bath", model="m", condition="closed", failure=Failure(kind="timeout", message="late", attempts=2)
    )
    answers = [said("Not for four weeks"), failed, said(" "), said("Yes", question="open"), said("?", question="gone")]
    scored = EXACT.prepare(CONTEXT)(answers)
    assert scored[0].score == 1.0
    assert [each.score for each in scored[1:]] == [None] * 4
    assert [each.failure.kind if each.failure else "" for each in scored] == ["", "timeout", "input", "input", "input"]
    assert {each.aspect for each in scored} == {"exact"}
    assert all(each.label == "" for each in scored)


def test_a_choice_is_scored_by_its_option() -> None:
    drug = QUESTIONS[1]
    assert judge_choice(drug, chose("Rituximab")).label == "correct"
    assert judge_choice(drug, chose("Aspirin")).label == "incorrect"
    unread = judge_choice(drug, chose(None, reading="two options are named"))
    assert unread.label == ""
    assert unread.failure is not None
    assert "two options are named" in unread.failure.message
    foreign = judge_choice(
        Question(id="drug", text="?", answer="Zinc", options=("Rituximab", "Aspirin")), chose("Aspirin")
    )
    assert foreign.failure is not None
    assert "not among the options" in foreign.failure.message


def test_a_choice_is_what_scorers_read() -> None:
    (scored,) = EXACT.prepare(CONTEXT)([chose("Rituximab")])
    assert scored.score == 1.0


def test_the_best_of_all_accepted_answers_counts() -> None:
    accepted = (AcceptedAnswer(text="Wait a month", by=("human:a",)), AcceptedAnswer(text="Aspirin"))
    both = {each.id: replace(each, accepted=accepted) for each in QUESTIONS}
    assert EXACT.prepare(ScoringContext(questions=both))([said("wait a month.")])[0].score == 1
    assert EXACT.prepare(CONTEXT)([said("wait a month.")])[0].score == 0
    assert judge_choice(both["drug"], chose("Aspirin")).label == "correct"
    assert judge_choice(both["drug"], chose("None")).label == "incorrect"
    assert not both["open"].right_answers, "without an answer nothing is accepted beside it"
