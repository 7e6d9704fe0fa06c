"""Judgments that need no model: the choice against the gold option, and the scores of texts against the gold answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from hoofbeat.judging.aspects import answer_text, blank, unanswered
from hoofbeat.judging.bertscore import BertScorer
from hoofbeat.judging.scorers import edit_similarity, exact_match, fuzzy_match, rouge_l
from hoofbeat.records import Answer, Failure, Judgment, Question

__all__ = ["CHOICE_LABELS", "SCORERS", "judge_choice", "score_answers", "score_bertscore"]

CHOICE_LABELS = ("correct", "incorrect")

_Scorer = Callable[[str, str], float]
SCORERS: dict[str, tuple[str, _Scorer]] = {
    "exact": ("exact match of normalised texts", exact_match),
    "fuzzy": ("rapidfuzz token_sort_ratio of normalised texts", fuzzy_match),
    "rouge-l": ("ROUGE-L F1, no stemming", lambda text, reference: rouge_l(text, reference).f),
    "edit": ("normalised Levenshtein similarity of characters, words only", edit_similarity),
}
"""Each scorer's name, what it is in words (the `judge` of its judgments), and the function."""


def judge_choice(question: Question | None, answer: Answer) -> Judgment:
    """Whether the option that was chosen is the gold one; unscored where none could be read for sure."""
    base = blank(answer, "choice", "choice against the gold option")
    if (failure := unanswered(question, answer)) is not None or question is None:
        return replace(base, failure=failure)
    known = question.options or answer.options
    if known and question.answer not in known:
        why = Failure(kind="input", message="the gold answer is not among the options", attempts=0)
        return replace(base, failure=why)
    right = answer.choice == question.answer
    return replace(base, label="correct" if right else "incorrect", reasoning=answer.reading)


def score_answers(aspect: str, questions: Mapping[str, Question], answers: Sequence[Answer]) -> list[Judgment]:
    """The scores of one scorer (not BERTScore), an answer each."""
    judge, scorer = SCORERS[aspect]
    judgments = []
    for answer in answers:
        question = questions.get(answer.question)
        base = blank(answer, aspect, judge)
        if (failure := unanswered(question, answer)) is not None or question is None:
            judgments.append(replace(base, failure=failure))
        else:
            judgments.append(replace(base, score=scorer(answer_text(answer), question.answer)))
    return judgments


def score_bertscore(scorer: BertScorer, questions: Mapping[str, Question], answers: Sequence[Answer]) -> list[Judgment]:
    """BERTScore of each answer, as three aspects: `bertscore` (F1), `bertscore-p` and `bertscore-r`."""
    pairs: dict[int, tuple[str, str]] = {}
    failures: dict[int, Failure] = {}
    for place, answer in enumerate(answers):
        question = questions.get(answer.question)
        if (failure := unanswered(question, answer)) is not None:
            failures[place] = failure
        elif question is not None:
            pairs[place] = (answer_text(answer), question.answer)
    scores = dict(zip(pairs, scorer.scores(list(pairs.values())), strict=True))
    judgments = []
    for place, answer in enumerate(answers):
        score = scores.get(place)
        values = (None, None, None) if score is None else (score.f1, score.precision, score.recall)
        judgments += [
            replace(blank(answer, aspect, scorer.name), score=value, failure=failures.get(place))
            for aspect, value in zip(("bertscore", "bertscore-p", "bertscore-r"), values, strict=True)
        ]
    return judgments
