from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index import analysis
from hoofbeat.retrieval.index.analysis import ENGLISH, STOP_WORDS, Analyzer, Numberer

TEXTS = st.text(max_size=60) | st.text(alphabet="abcst0.5,'’ the\u00a0\u2028\n\x00Σσ\u0301\u00b4ﬁ心İ", max_size=40)
SPACED = Analyzer(pattern=r"[a-z]+(?: [a-z]+)?")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The patient's kidneys were failing", ["patient", "kidnei", "were", "fail"]),
        ("0.5 mg of IL-6, 1,000 times", ["0.5", "mg", "il", "6", "1,000", "time"]),
        ("ﬁbrosis FIBROSIS", ["fibrosi", "fibrosi"]),
        ("snake_case O'Brien’s", ["snake", "case", "o'brien"]),
        ("心不全 und Übelkeit", ["心", "不", "全", "und", "übelkeit"]),
        ("patient(s) S-100 us", ["patient", "s", "s", "100", "us"]),
        ("किडनी के बाद बुखार।", ["किडनी", "के", "बाद", "बुखार"]),
        ("الكُلى İzmir x\u0304", ["الكُلى", "i̇zmir", "x̄"]),
        ("the of and", []),
        ("", []),
        (" \n\t ", []),
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
    assert described.pop("unicode") == "NFKC"
    assert described["fields"] == "heading, text"
    assert Analyzer(**described) == ENGLISH  # type: ignore[arg-type]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="stemmer 'klingon'"):
        Analyzer(stemmer="klingon")
    with pytest.raises(UsageError, match="stop list 'klingon'"):
        Analyzer(stop_words="klingon")
    with pytest.raises(UsageError, match="not a regular expression"):
        Analyzer(pattern="(")


@settings(deadline=None)
@given(TEXTS)
def test_no_term_is_empty(text: str) -> None:
    assert all(ENGLISH.terms(text))


@pytest.mark.parametrize("analyzer", [ENGLISH, SPACED])
@settings(deadline=None)
@given(texts=st.lists(TEXTS, max_size=8), cut=st.integers(0, 8), remembered=st.sampled_from([1, 10**9]))
@example(texts=["half \ud800 of a character", "whole"], cut=0, remembered=1)
@example(texts=["ΑΣ\tΣΑ", "H\n\u0331 e\x1f\u0301", "x" * 40, "x" * 40], cut=3, remembered=10**9)
def test_numbering_agrees_with_the_analysis_in_any_blocks(
    analyzer: Analyzer, texts: list[str], cut: int, remembered: int
) -> None:
    numberer = Numberer(analyzer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "_REMEMBERED", remembered)
        blocks = [numberer.analyse(texts[:cut]), numberer.analyse(texts[cut:])]
    found = [numberer.names[term] for block in blocks for term in block.terms]
    lengths = [int(length) for block in blocks for length in block.lengths]
    assert len(numberer) == len(numberer.names)
    assert found == [term for text in texts for term in analyzer.terms(text)]
    assert lengths == [len(analyzer.terms(text)) for text in texts]


@settings(deadline=None)
@given(TEXTS)
def test_pieces_have_the_terms_of_the_text(text: str) -> None:
    for analyzer in (ENGLISH, SPACED):
        pieces = analyzer.pieces(text)
        assert [term for piece in pieces for term in analyzer.terms(piece)] == analyzer.terms(text)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=8))
def test_terms_in_order_keep_their_numbers(texts: list[str]) -> None:
    numberer = Numberer(ENGLISH)
    numberer.analyse(texts)
    names = numberer.names
    ordered, numbers = numberer.in_order()
    assert ordered == sorted({term for text in texts for term in ENGLISH.terms(text)})
    assert [names[number] for number in numbers] == ordered
