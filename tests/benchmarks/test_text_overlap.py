"""Overlap measures against values computed by hand and against independent computations."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.benchmarks.text_overlap import edit_similarity, longest_run, overlap_words, rouge_l

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
