"""ROUGE-L: the longest common subsequence of words, as F1."""

from __future__ import annotations

from hoofbeat.benchmarks.text_overlap import rouge_l
from hoofbeat.judging.scorers import Scorer

ROUGE_L = Scorer(
    name="rouge-l",
    summary="F1 of the longest common subsequence of words",
    method="ROUGE-L F1, no stemming",
    score=lambda text, reference: rouge_l(text, reference).f,
    order=40,
)
