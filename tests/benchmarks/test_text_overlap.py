"""Overlap measures against values computed by hand and against independent computations."""

from __future__ import annotations

import random
import re
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.benchmarks import QuoteMatch, find_quote, locate
from hoofbeat.benchmarks.text_overlap import edit_similarity, longest_run, overlap_words, rouge_l
from hoofbeat.records import Document, Span
from hoofbeat.text import for_quote_matching
from tests.helpers import shared_data
from tests.recipes.reports import report_texts

words = st.text(alphabet="ab ", max_size=12)


def lcs(a: list[str], b: list[str]) -> int:
    """The textbook table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def edits(a: str, b: str) -> int:
    """The textbook table."""
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        line, above = [i], line
        for j, y in enumerate(b, start=1):
            line.append(min(line[j - 1] + 1, above[j] + 1, above[j - 1] + (x != y)))
    return line[-1]


def test_rouge_l_by_hand() -> None:
    # "the cat sat" in "The cat on the mat sat.": three words in order, of three and of six.
    assert rouge_l("the cat sat", "The cat on the mat sat.") == pytest.approx((1.0, 0.5, 2 / 3))
    # police killed the gunman / police kill the gunman: police, the, gunman.
    assert rouge_l("police kill the gunman", "police killed the gunman") == pytest.approx((0.75, 0.75, 0.75))
    # the gunman kill police: only "the gunman" is in order.
    assert rouge_l("the gunman kill police", "police killed the gunman") == pytest.approx((0.5, 0.5, 0.5))


def test_edit_similarity_by_hand() -> None:
    assert edit_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert edit_similarity("Fever, chills.", "fever chills") == 1.0  # punctuation and capitals never differ
    assert edit_similarity("abc", "xyz") == 0.0


def test_texts_without_words_share_nothing() -> None:
    assert rouge_l("", "words") == (0.0, 0.0, 0.0)
    assert rouge_l("...", "...") == (0.0, 0.0, 0.0)
    assert edit_similarity("", "") == 0.0
    assert longest_run("", "a").words == 0


def test_words_are_letters_and_digits_in_lower_case() -> None:
    assert overlap_words("HbA1c 7.5%, TNF-α_2 Ménière") == ["hba1c", "7", "5", "tnf", "α", "2", "ménière"]


@given(words, words)
def test_rouge_l_agrees_with_the_table(a: str, b: str) -> None:
    common = lcs(a.split(), b.split())
    found = rouge_l(a, b)
    assert found.precision == pytest.approx(common / len(a.split()) if common else 0)
    assert found.recall == pytest.approx(common / len(b.split()) if common else 0)
    assert found.f == pytest.approx(2 * common / (len(a.split()) + len(b.split())) if common else 0)


@given(words, words)
def test_edit_similarity_agrees_with_the_table(a: str, b: str) -> None:
    one, other = " ".join(a.split()), " ".join(b.split())
    expected = 1 - edits(one, other) / max(len(one), len(other)) if one and other else 0
    assert edit_similarity(a, b) == pytest.approx(expected)
    assert edit_similarity(a, b) == edit_similarity(b, a)


def test_the_longest_run_is_found_in_both_texts() -> None:
    a, b = "He had a FEVER of 39, and chills.", "On day two: fever of 39 and pain, a fever."
    run = longest_run(a, b)
    assert run.words == 4
    assert a[slice(*run.a)] == "FEVER of 39, and"
    assert b[slice(*run.b)] == "fever of 39 and"


def test_long_texts_need_little_memory() -> None:
    text = " ".join(f"word{n % 997}" for n in range(20_000))
    tracemalloc.start()
    rouge_l(text, text[1000:])
    edit_similarity(text, text[1000:])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000_000  # a table of 20,000 by 20,000 cells would be 400 million


TEXT = (
    "Case. A 54-year-old man’s fever rose to 38.5 °C on day 2; the “left” knee was aspi-\nrated. Cultures showed no "
    "growth.\n\nDiscussion. The ﬁndings – Sjo\u0308gren’s aside – suggest gout. He was not given colchicine 0.5 mg, "
    "however, and the inﬂammation settled within two weeks of rest, ice and a short course of oral prednisolone at a "
    "dose of 30 mg daily."
)
DOCUMENT = Document(id="d", title="", text=TEXT)


def found(quote: str, **more: object) -> QuoteMatch:
    result = find_quote(DOCUMENT, quote, **more)  # type: ignore[arg-type]
    assert result is not None, quote
    for span in result.spans:
        assert span.quote == TEXT[span.start : span.end]
        assert span.document == "d"
    return result


@pytest.mark.parametrize(
    ("quote", "how", "there"),
    [
        ("suggest gout", "exact", "suggest gout"),
        ("Suggest  GOUT.", "loose", "suggest gout"),
        ('the "left" knee was aspirated', "loose", "the “left” knee was aspi-\nrated"),
        ("The findings - Sjögren's aside", "loose", "The ﬁndings – Sjo\u0308gren’s aside"),
        ("the find\u00adings - Sjogren", "loose", "The ﬁndings – Sjo\u0308gren"),
        ("“suggest gout,”", "loose", "suggest gout"),
        ("A 54-year-old man's fever rose to 38.5 °C", "loose", "A 54-year-old man’s fever rose to 38.5 °C"),
        ("settled within two weeks of rest, ice and short course of", "fuzzy", None),
        ("the inflamation settled within two weeks of rest", "fuzzy", None),
        ("settled within two weeks of rest, ice and a short course of oral predni", "fuzzy", None),
    ],
)
def test_the_characters_of_the_source_are_found(quote: str, how: str, there: str | None) -> None:
    result = found(quote)
    assert result.how == how
    assert result.score == 1.0 if how != "fuzzy" else 0.9 <= result.score < 1
    if there is not None:
        assert [span.quote for span in result.spans] == [there]
    else:
        (span,) = result.spans
        assert not TEXT[span.start - 1].isalnum()
        assert not TEXT[span.end].isalnum()


def test_a_word_that_the_model_cut_is_taken_whole() -> None:
    assert found("short course of oral predni").spans[0].quote == "short course of oral prednisolone"


@pytest.mark.parametrize("dots", ["...", " … ", " [...] ", ". . .", " (…) ", "...."])
def test_an_ellipsis_joins_parts_in_order(dots: str) -> None:
    result = found(f"fever rose to 38.5 °C{dots}suggest gout{dots}30 mg daily")
    assert [span.quote for span in result.spans] == ["fever rose to 38.5 °C", "suggest gout", "30 mg daily"]
    assert find_quote(DOCUMENT, f"suggest gout{dots}fever rose to 38.5") is None


def test_an_ellipsis_at_the_ends_is_none() -> None:
    assert [span.quote for span in found("...suggest gout...").spans] == ["suggest gout"]


@pytest.mark.parametrize(
    "quote",
    [
        "", "  ", "...", "“”", "§", "the knee was replaced by an orthopaedic surgeon", "indings", "gou", "ever rose",
        "fever rose to 39.5 °C on day 2",  # another number
        "colchicine 5 mg, however, and the inflammation settled",  # another dose
        "Cultures showed growth.",  # the denial left out
        "He was given colchicine 0.5 mg, however, and the",
        "The findings did not suggest gout",
        'the "right" knee was aspirated. Cultures showed no growth',  # the other side
        "the inflammation settled within two weeks of rest, hyperice and a short course",
    ],
)  # fmt: skip
def test_what_the_source_does_not_say_is_not_found(quote: str) -> None:
    assert find_quote(DOCUMENT, quote) is None


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("She received 12.5 mg prednisolone daily.", "5 mg prednisolone daily"),
        ("She received 12.5 mg prednisolone daily.", "5 MG prednisolone daily"),
        ("She received 12,500 units of heparin.", "500 units of heparin"),
        ("All of them: the titre was 1.5 overall.", "the titre was 1"),
        ("All of them: the titre was 1.5 overall.", "The Titre was 1"),
        ("The bath was cooled to -5 °C for an hour.", "5 °C for an hour"),
        ("The bath was cooled to \u22125 °C for an hour.", "5 °C for an hour"),
        ("The bath was warmed to 5 °C for an hour.", "-5 °C for an hour"),
        ("Cultures grew 10⁵ colonies of the germ.", "grew 105 colonies"),
        ("Cultures grew 10^5 colonies of the germ.", "5 colonies of the germ"),
        ("This was a non-malignant lesion of the neck.", "malignant lesion of the neck"),
        ("This was a Non‑malignant lesion of the neck.", "malignant lesion of the neck"),
        ("This was a non-\nmalignant lesion of the neck.", "malignant lesion of the neck"),
        ("A non small cell carcinoma was found there.", "small cell carcinoma was found there"),
        ("She was sent home with pre-eclampsia and rest.", "eclampsia and rest"),
        ("He took anti-inflammatory drugs for a week.", "inflammatory drugs for a week"),
    ],
)
def test_a_number_or_a_word_is_taken_whole(text: str, quote: str) -> None:
    document = Document(id="x", title="", text=text)
    assert find_quote(document, quote) is None
    assert locate(document, quote) is None


@pytest.mark.parametrize(
    ("text", "quote", "how"),
    [
        ("It was 12.5 mg, later 5 mg in all.", "5 mg in all", "exact"),
        ("Neither non-malignant nor malignant lesion.", "malignant lesion", "exact"),
        ("Give 10-15 mg, not 20 mg.", "15 mg", "exact"),
        ("It was given in 2019. 5 men came.", "given in 2019", "exact"),
        ("On day 2, 14 of them left.", "14 of them left", "exact"),
        ("The bath was cooled to -5 °C for an hour.", "-5 °C for an hour", "exact"),
        ("The bath was cooled to \u22125 °C for an hour.", "-5 °C for an hour", "loose"),
        ("The bath was cooled to -5 °C for an hour.", "-5 °C for one hour", "fuzzy"),
        ("Doses: - 5 mg at noon.", "- 5 mg at NOON", "loose"),
        ("Cultures grew 10⁵ colonies; SpO₂ fell, BMI 31 kg/m².", "10^5 colonies; SpO2 fell, BMI 31 kg/m2", "loose"),
        ("This was a non-malignant lesion of the neck.", "non-malignant lesion", "exact"),
        ("Anon came the rain, pre- and post-operative.", "came the rain", "exact"),
        ("Anon came the rain, pre- and post-operative.", "and post-operative", "exact"),
    ],
)
def test_a_whole_number_or_word_is_still_found(text: str, quote: str, how: str) -> None:
    result = find_quote(Document(id="x", title="", text=text), quote)
    assert result is not None
    assert result.how == how
    assert "".join(span.quote for span in result.spans) in text


def test_only_the_part_asked_for_is_searched() -> None:
    cut = TEXT.index("Discussion")
    assert find_quote(DOCUMENT, "suggest gout", within=(0, cut)) is None
    assert find_quote(DOCUMENT, "SUGGEST gout", within=(cut, len(TEXT))) is not None
    assert find_quote(DOCUMENT, "suggest gowt at last", within=(0, cut)) is None
    inside = TEXT.index("suggest") + 3
    assert find_quote(DOCUMENT, "gest gout", within=(inside, len(TEXT))) is None
    assert find_quote(DOCUMENT, "gout", within=(50, 50)) is None
    assert find_quote(DOCUMENT, "gout", within=(-5, 10_000)) is not None


def test_the_threshold_is_a_parameter() -> None:
    changed = "the inflammations settle within two weeks of resting and icing"
    assert find_quote(DOCUMENT, changed, min_score=0.95) is None
    assert find_quote(DOCUMENT, changed, min_score=0.75) is not None
    assert find_quote(DOCUMENT, "the inflamation settled within", min_score=1.0) is None


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=200), st.text(max_size=40))
def test_whatever_is_found_are_characters_of_the_text(text: str, quote: str) -> None:
    result = find_quote(Document(id="x", title="", text=text), quote, min_score=0.7)
    if result is not None:
        for span in result.spans:
            assert span.start < span.end
            assert text[span.start : span.end] == span.quote


@settings(deadline=None, max_examples=150)
@given(st.text(max_size=300))
def test_a_folded_text_keeps_its_places(text: str) -> None:
    folded = for_quote_matching(text)
    assert len(folded.text) == len(folded.starts)
    assert list(folded.starts) == sorted(folded.starts)
    assert all(0 <= start < len(text) for start in folded.starts)


@pytest.mark.parametrize(
    "quote", ["(a+)+$" * 50, "[" * 3000, ".*" * 2000, "\\" * 999, "-\n" * 2000 + "x", "a" * 50_000]
)
def test_hostile_quotes_are_harmless(quote: str) -> None:
    assert find_quote(Document(id="x", title="", text="a " * 20_000 + "-\n\n" * 20_000), quote) is None


def test_two_hundred_changed_quotes_in_a_long_document(capsys: pytest.CaptureFixture[str]) -> None:
    texts = report_texts(shared_data("case_reports.jsonl.gz"))
    words = " ".join(texts[:10]).split()[:20_000]
    document = Document(id="long", title="", text=" ".join(words))
    rng = random.Random(11)
    began, right, missed = time.perf_counter(), 0, 0
    for _ in range(200):
        first = rng.randrange(len(words) - 25)
        quote = words[first : first + 20]
        place = rng.randrange(1, 19)
        quote[place] = quote[place][:-1] if len(quote[place]) > 3 and quote[place].isalpha() else quote[place]
        result = find_quote(document, " ".join(quote))
        right += result is not None and words[first + 10] in result.spans[0].quote
        missed += find_quote(document, " ".join(rng.choices(words, k=20))) is None
    with capsys.disabled():
        print(f"\n200 changed quotes in 20,000 words: {right} found, {200 - missed} of 200 made-up ones found, "
              f"{time.perf_counter() - began:.2f} s")  # fmt: skip
    assert right >= 185  # a changed word that turns a sentence round is refused
    assert missed == 200


SOURCE_TEXT = "Day 1: fever.\n\nOn day 2 the joint\n was aspirated (38.5 °C).\u00a0Gout. Gout."


def document(text: str) -> Document:
    return Document(id="d", title="", text=text)


def test_an_exact_quote_is_found_where_it_first_stands() -> None:
    assert locate(document(SOURCE_TEXT), "Gout.") == Span(
        document="d", start=SOURCE_TEXT.index("Gout."), end=len(SOURCE_TEXT) - 6, quote="Gout."
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
    span = locate(document(SOURCE_TEXT), quote)
    assert span is not None
    assert span.quote == SOURCE_TEXT[span.start : span.end]
    assert span.quote.split() == quote.split()


@pytest.mark.parametrize(
    "quote", ["", "  \n ", "the knee was aspirated", "The joint was aspirated", "jointwas", "38x5", "Gout. Gout. Gout."]
)
def test_what_does_not_stand_there_is_not_found(quote: str) -> None:
    assert locate(document(SOURCE_TEXT), quote) is None


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
