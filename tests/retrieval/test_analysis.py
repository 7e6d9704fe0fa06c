from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.analysis import ENGLISH, STOP_WORDS, Analyzer, Vocabulary


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The patient's kidneys were failing", ["patient", "kidnei", "were", "fail"]),
        ("0.5 mg of IL-6, 1,000 times", ["0.5", "mg", "il", "6", "1,000", "time"]),
        ("ﬁbrosis FIBROSIS", ["fibrosi", "fibrosi"]),
        ("snake_case O'Brien’s", ["snake", "case", "o'brien"]),
        ("心不全 und Übelkeit", ["心", "不", "全", "und", "übelkeit"]),
        ("the of and", []),
        ("", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert ENGLISH.terms(text) == terms


def test_lucene_stop_list_has_33_words() -> None:
    assert len(STOP_WORDS["lucene-english"]) == 33


def test_plain_analysis_keeps_words_as_they_stand() -> None:
    plain = Analyzer(lower_case=False, stop_words="none", stemmer="none")
    assert plain.terms("The Kidneys' s") == ["The", "Kidneys", "s"]
    assert plain.describe()["stemmer"] == "none"


def test_description_rebuilds_the_analysis() -> None:
    described = ENGLISH.describe()
    described.pop("unicode")
    assert Analyzer(**described) == ENGLISH  # type: ignore[arg-type]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="stemmer 'klingon'"):
        Analyzer(stemmer="klingon")
    with pytest.raises(UsageError, match="stop list 'klingon'"):
        Analyzer(stop_words="klingon")


@given(st.lists(st.text(alphabet="abcst' the", max_size=30), max_size=8), st.integers(0, 8))
def test_vocabulary_agrees_with_analyzer_in_any_blocks(texts: list[str], cut: int) -> None:
    vocabulary = Vocabulary(ENGLISH)
    blocks = [vocabulary.analyse(texts[:cut]), vocabulary.analyse(texts[cut:])]
    names = list(vocabulary.terms)
    found = [names[term] for block in blocks for term in block.terms]
    lengths = [int(length) for block in blocks for length in block.lengths]
    assert found == [term for text in texts for term in ENGLISH.terms(text)]
    assert lengths == [len(ENGLISH.terms(text)) for text in texts]
