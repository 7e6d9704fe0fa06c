"""The chosen option against the gold option: right or wrong, without a judge."""

from __future__ import annotations

from msgspec.structs import replace

from hoofbeat.judging.criteria import empty_judgment, no_answer_failure
from hoofbeat.judging.scorers import ScoreAnswers, Scorer, ScoringContext
from hoofbeat.records import Answer, Failure, Judgment, Question


class _Choice(Scorer, frozen=True, kw_only=True):
    def prepare(self, context: ScoringContext) -> ScoreAnswers:
        """Scores each choice by its question's gold option."""
        return lambda answers: [judge_choice(context.questions.get(answer.question), answer) for answer in answers]


CHOICE = _Choice(
    name="choice",
    summary="whether the chosen option is the gold option",
    labels=("correct", "incorrect"),
    positive="correct",
    takes="choice",
    default=True,
    order=10,
    method="choice against the gold option",
)


def judge_choice(question: Question | None, answer: Answer) -> Judgment:
    """Whether the option that was chosen is the gold one; unscored where none could be read for sure."""
    judgment = empty_judgment(answer, CHOICE.name, CHOICE.method)
    if (failure := no_answer_failure(question, answer)) is not None or question is None:
        return replace(judgment, failure=failure)
    known = question.options or answer.options
    if known and question.answer not in known:
        why = Failure(kind="input", message="the gold answer is not among the options", attempts=0)
        return replace(judgment, failure=why)
    right, wrong = CHOICE.labels
    return replace(
        judgment, label=right if answer.choice in question.right_answers else wrong, reasoning=answer.reading
    )
