"""Finding a quote in its source: the exact characters it stands on."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.benchmarks import locate
from hoofbeat.records import Document, Span

TEXT = "Day 1: fever.\n\nOn day 2 the joint\n was aspirated (38.5 °C).\u00a0Gout. Gout."


def document(text: str) -> Document:
    return Document(id="d", title="", text=text)


def test_an_exact_quote_is_found_where_it_first_stands() -> None:
    assert locate(document(TEXT), "Gout.") == Span(
        document="d", start=TEXT.index("Gout."), end=len(TEXT) - 6, quote="Gout."
    )


@pytest.mark.parametrize(
    "quote",
    [
        "the joint was aspirated",
        " the joint\n\n was\taspirated  ",
        "the\u00a0joint was aspirated",
        "joint was aspirated (38.5 °C).",
    ],
)
def test_other_white_space_does_not_matter(quote: str) -> None:
    span = locate(document(TEXT), quote)
    assert span is not None
    assert span.quote == TEXT[span.start : span.end]
    assert span.quote.split() == quote.split()


@pytest.mark.parametrize(
    "quote", ["", "  \n ", "the knee was aspirated", "The joint was aspirated", "jointwas", "38x5", "Gout. Gout. Gout."]
)
def test_what_does_not_stand_there_is_not_found(quote: str) -> None:
    assert locate(document(TEXT), quote) is None


def test_an_exact_place_counts_more_than_an_earlier_one_with_other_white_space() -> None:
    span = locate(document("no  bath. And no bath."), "no bath")
    assert span is not None
    assert (span.start, span.quote) == (14, "no bath")


def test_words_with_signs_of_regular_expressions_are_words() -> None:
    text = "Give 5 mg\n(max. [10]) *now*? + $2 \\d"
    span = locate(document(text), text.replace("\n", " "))
    assert span is not None
    assert span.quote == text


WHITE = st.text(" \n\t\u00a0\u2009", min_size=1, max_size=3)
WORD = st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=6).filter(
    lambda word: len(word.split()) == 1
)


@settings(deadline=None)
@given(st.lists(WORD, min_size=1, max_size=12), st.data())
def test_words_of_a_text_are_found_whatever_stands_between_them(words: list[str], data: st.DataObject) -> None:
    text = "".join(word + data.draw(WHITE) for word in words)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first + 1, len(words)))
    quote = "".join(word + data.draw(WHITE) for word in words[first:last])
    span = locate(document(text), quote)
    assert span is not None
    assert span.quote == text[span.start : span.end]
    assert span.quote.split() == words[first:last]


@settings(deadline=None)
@given(st.text(alphabet="ab \n", max_size=30), st.text(alphabet="ab \n", max_size=6))
def test_what_is_found_has_the_same_words_and_what_is_not_is_not_there(text: str, quote: str) -> None:
    span = locate(document(text), quote)
    if span is None:
        words = " ".join(quote.split())
        assert not words or not re.search(rf"\b{words}\b", " ".join(text.split()))
    else:
        assert span.quote == text[span.start : span.end]
        assert span.quote.split() == quote.split()


def test_a_quote_is_not_found_inside_a_word() -> None:
    assert locate(document("Give 15 mg daily."), "5 mg") is None
    span = locate(document("Give 15 mg, then 5 mg."), "5 mg")
    assert span is not None
    assert span.start == 17
