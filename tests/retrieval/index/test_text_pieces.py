from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hoofbeat.retrieval.index import analysis
from hoofbeat.retrieval.index.analysis import PieceTable, cut

TEXTS = st.lists(st.text(max_size=60) | st.text(alphabet="ab \n\t\x00\x1f.é心😀", max_size=60), max_size=8)


def split(text: str) -> list[str]:
    return re.split(r"[\x00-\x20]", text)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=3))
@example([["abcdefgh", "abcdefghi", "abcdefghijklmno", "abcdefghijklmnop", "abcdefghijklmnoq"] * 2])
@example([["心心心心心 心心心心心心", "\ud800 x", ""], ["", "心心心心心心 \ud800"]])
def test_pieces_get_numbers_in_the_order_they_are_told(blocks: list[list[str]]) -> None:
    table = PieceTable()
    told: list[str] = []
    for texts in blocks:
        found = cut(texts)
        assert found.sizes.tolist() == [len(split(text)) for text in texts]
        numbers, new = table.number(found)
        told += new
        assert [told[number] for number in numbers] == [piece for text in texts for piece in split(text)]
    assert len(set(told)) == len(told) == len(table)


@pytest.mark.parametrize("mix", [None, 0], ids=["spread", "all in one slot"])
def test_many_pieces_and_any_hash_are_told_apart(mix: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if mix is not None:
        monkeypatch.setattr(analysis, "_MIX", np.zeros(2, np.uint64))
    words = [f"{number}{'x' * (number % 20)}" for number in range(20_000 if mix is None else 300)]
    table = PieceTable()
    first, new = table.number(cut(words))
    assert [new[number] for number in first] == words
    again, none = table.number(cut(words[::-1]))
    assert none == []
    assert again.tolist() == first.tolist()[::-1]
    assert len(table) == len(words)
