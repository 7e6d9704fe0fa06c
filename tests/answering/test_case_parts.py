"""The first part of a case: how much is kept, and that the question always stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.answering.case_parts import shorten
from hoofbeat.records import Question

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
