"""How similar the wrong options of a question are to the right one, by BERTScore: CUPCase's figure 2.

Distractors that have nothing in common with the right option give it away; those that say the same in other words make
a question unfair. The scorer names encoder, layer and rescaling, as values of two encoders can't be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.judging.scorers.bertscore import BertScorer
from hoofbeat.records import Question

DISTRACTORS = "distractors.tsv"
"""The table of these scores in a folder of statistics."""


class DistractorScore(Struct, frozen=True, kw_only=True):
    """One distractor of a question against the right option."""

    set: str
    question: str
    option: str
    precision: float
    recall: float
    f1: float


def distractor_scores(name: str, questions: Sequence[Question], scorer: BertScorer) -> list[DistractorScore]:
    """Every distractor of every question with options, in order; `name` is the set's."""
    pairs = [
        (each, option)
        for each in questions
        if each.answer in each.options
        for option in each.options
        if option != each.answer
    ]
    scores = scorer.scores([(option, each.answer) for each, option in pairs])
    return [
        DistractorScore(
            set=name,
            question=each.id,
            option=option,
            precision=round(score.precision, 6),
            recall=round(score.recall, 6),
            f1=round(score.f1, 6),
        )
        for (each, option), score in zip(pairs, scores, strict=True)
    ]
