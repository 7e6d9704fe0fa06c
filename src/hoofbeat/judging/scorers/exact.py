"""Exact match of normalised texts."""

from __future__ import annotations

from hoofbeat.judging.scorers import Scorer
from hoofbeat.text import for_exact_match


def exact_match(text: str, reference: str) -> float:
    """1 where the normalised texts are the same, else 0; two texts without a word are not the same."""
    one = for_exact_match(text)
    return 1.0 if one and one == for_exact_match(reference) else 0.0


EXACT = Scorer(
    name="exact",
    summary="1 if the texts are the same apart from case, punctuation and articles",
    method="exact match of normalised texts",
    score=exact_match,
    order=20,
)
