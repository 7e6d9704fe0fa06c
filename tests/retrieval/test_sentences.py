from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.retrieval.index.chunking import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He had fever. She did not.", ["He had fever.", "She did not."]),
        ("Given i.v. Dr. Who saw it (Fig. 2). Then pain.", ["Given i.v. Dr. Who saw it (Fig. 2).", "Then pain."]),
        ("Smith et al. Reported it. J. B. Smith agreed.", ["Smith et al. Reported it.", "J. B. Smith agreed."]),
        ("Potassium was 6.8 mmol/L. It fell.", ["Potassium was 6.8 mmol/L.", "It fell."]),
        ("1. Findings were normal. 2. Rest.", ["1. Findings were normal.", "2. Rest."]),
        ("Room no. 5 was empty. No. Never.", ["Room no. 5 was empty.", "No.", "Never."]),
        ("Why? Because! Yes.", ["Why?", "Because!", "Yes."]),
        ("He said “no.” Then he left.", ["He said “no.”", "Then he left."]),
        ("Heading\n\nText without stop\n\nmore", ["Heading", "Text without stop", "more"]),
        ("心不全です。治療は？はい。", ["心不全です。", "治療は？", "はい。"]),
        ("", []),
        (" \n ", []),
        ("no stop", ["no stop"]),
        ("E. coli grew. e. g. this stays.", ["E. coli grew. e. g. this stays."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet='aA. 1!?\n。)"', max_size=80), st.integers(0, 20), st.integers(0, 80))
def test_no_character_is_lost_and_spans_follow_each_other(text: str, start: int, end: int) -> None:
    start, end = min(start, len(text)), min(max(start, end), len(text))
    spans = sentence_spans(text, start, end)
    covered = {place for begin, stop in spans for place in range(begin, stop)}
    assert len(covered) == sum(stop - begin for begin, stop in spans)
    assert all(start <= begin < stop <= end for begin, stop in spans)
    assert all(place in covered for place in range(start, end) if not text[place].isspace())
