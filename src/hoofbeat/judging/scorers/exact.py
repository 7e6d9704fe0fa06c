"""Exact match of normalised texts."""

from __future__ import annotations

from hoofbeat.judging.scorers import Scorer
from hoofbeat.judging.text_match import exact_match

EXACT = Scorer(
    name="exact",
    summary="1 where the texts are the same but for case, punctuation and articles",
    method="exact match of normalised texts",
    score=exact_match,
    order=20,
)
