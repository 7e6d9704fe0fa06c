"""Fuzzy match: the characters of the sorted words of two normalised texts."""

from __future__ import annotations

from hoofbeat.judging.scorers import Scorer
from hoofbeat.text import fuzzy_match

FUZZY = Scorer(
    name="fuzzy",
    summary="how similar the words are, in any order",
    method="rapidfuzz token_sort_ratio of normalised texts",
    score=fuzzy_match,
    order=30,
)
