"""Edit similarity: 1 less the share of characters that must be changed."""

from __future__ import annotations

from hoofbeat.benchmarks.text_overlap import edit_similarity
from hoofbeat.judging.scorers import Scorer

EDIT = Scorer(
    name="edit",
    summary="share of characters that are the same (edit distance)",
    method="normalised Levenshtein similarity of characters, words only",
    score=edit_similarity,
    order=50,
)
