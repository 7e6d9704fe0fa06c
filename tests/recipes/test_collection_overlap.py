"""Weighted Jaccard overlap: bounds, symmetry, a case worked out by hand, and real collections."""

from __future__ import annotations

import gzip
import json

import pytest

from hoofbeat.recipes.pools.document_pool import overlap_rows, weighted_jaccard, word_shares
from hoofbeat.records import Document
from tests.helpers import shared_data


def _documents(*texts: str) -> list[Document]:
    return [Document(id=str(number), title="", text=text) for number, text in enumerate(texts)]


def test_shares_add_up_to_one() -> None:
    shares = word_shares(_documents("The liver, the LIVER.", "the heart"))
    assert shares == {"heart": pytest.approx(1 / 6), "liver": pytest.approx(2 / 6), "the": pytest.approx(3 / 6)}
    assert word_shares(_documents("", "...")) == {}


def test_worked_out_by_hand() -> None:
    a, b = {"x": 0.5, "y": 0.5}, {"y": 0.25, "z": 0.75}
    assert weighted_jaccard(a, b) == pytest.approx(0.25 / (0.5 + 0.5 + 0.75))
    assert weighted_jaccard(a, b) == weighted_jaccard(b, a)


def test_bounds() -> None:
    a = word_shares(_documents("a b c"))
    assert weighted_jaccard(a, a) == 1.0
    assert weighted_jaccard(a, word_shares(_documents("a b c", "c b a"))) == pytest.approx(1.0)  # size does not matter
    assert weighted_jaccard(a, word_shares(_documents("d e"))) == 0.0
    assert weighted_jaccard(a, {}) == 0.0


def test_a_tokenizers_pieces_can_be_counted() -> None:
    pairs = word_shares(_documents("abcd"), lambda text: [(n, n + 2) for n in range(1, len(text), 2)])
    assert set(pairs) == {"ab", "cd"}


def test_every_pair_stands_once() -> None:
    shares = {name: word_shares(_documents(text)) for name, text in (("p", "a b"), ("q", "a c"), ("r", "d"))}
    assert overlap_rows(shares) == [("p", "q", 0.3333, 1, 3), ("p", "r", 0.0, 0, 3), ("q", "r", 0.0, 0, 3)]


def test_halves_of_one_corpus_are_more_alike_than_two_corpora() -> None:
    reports, guidelines = [], []
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream:
        for _, line in zip(range(80), stream, strict=False):
            reports.append(Document(id="r", title="", text=json.loads(line)["text"]))
    with gzip.open(shared_data("guidelines.jsonl.gz")) as stream:
        for _, line in zip(range(40), stream, strict=False):
            row = json.loads(line)
            guidelines.append(Document(id="g", title="", text=" ".join(each["text"] for each in row["sections"])))
    one, two, other = word_shares(reports[:40]), word_shares(reports[40:]), word_shares(guidelines)
    within, across = weighted_jaccard(one, two), weighted_jaccard(one, other)
    assert 0.1 < across < within < 0.9
