"""Scorers: judgments that need no judge. Each is one file; most compare the answer's text with the gold answer.

Where several answers are accepted, the best score counts.

Scores say how alike two texts are, not whether an answer is right: a long right answer shares little with a short gold
answer, and a wrong number changes one word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.judging.criteria import Criterion, answer_text, empty_judgment, no_answer_failure
from hoofbeat.records import Answer, Judgment, Question

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder

__all__ = ["ScoreAnswers", "Scorer", "ScoringContext", "scored"]

ScoreAnswers = Callable[[Sequence[Answer]], list[Judgment]]
"""Answers to their judgments."""


def _default_encoder() -> Encoder:
    from hoofbeat.models.encoder import load_encoder  # noqa: PLC0415 - most scorers need none

    return load_encoder()


class ScoringContext(Struct, frozen=True, kw_only=True):
    """What a scorer may use: the questions, and an encoder that is loaded when it is asked for.

    `idf` says whether words count by how rare they are among the gold answers; `layer` and `baseline` are BERTScore's.
    """

    questions: Mapping[str, Question]
    encoder: Callable[[], Encoder] = _default_encoder
    idf: bool = False
    layer: str = "auto"
    baseline: Path | None = None


class Scorer(Criterion, frozen=True, kw_only=True):
    """One scorer.

    `method` says what is measured, in words: it is the `judge` of its judgments. `score` gives the score of a text
    against a reference; a scorer that needs more than two texts overrides `prepare`. With `uses_encoder`
    the encoder is loaded before any judge is paid. `by_part` draws the score against how much of a case was shown.
    """

    extension_kind: ClassVar[str] = "scorer"
    extension_package: ClassVar[str] = "hoofbeat.judging.scorers"

    method: str
    score: Callable[[str, str], float] | None = None
    uses_encoder: bool = False
    by_part: bool = False

    def prepare(self, context: ScoringContext) -> ScoreAnswers:
        """A function that scores blocks of answers; what is costly to make is made here, once."""
        score = self.score
        if score is None:
            raise UsageError(
                f"the scorer {self.name} has neither a function `score` nor a method `prepare`",
                fix="give it one of them",
            )

        def judge(answer: Answer) -> Judgment:
            question = context.questions.get(answer.question)
            judgment = empty_judgment(answer, self.name, self.method)
            if (failure := no_answer_failure(question, answer)) is not None or question is None:
                return replace(judgment, failure=failure)
            return replace(judgment, score=max(score(answer_text(answer), right) for right in question.right_answers))

        return lambda answers: [judge(answer) for answer in answers]

    def settings(self, context: ScoringContext) -> dict[str, object]:  # noqa: ARG002
        """What a manifest records about how it scored."""
        return {}


def scored(scorer: Scorer, judgment: Judgment) -> Judgment:
    """A scorer's judgment, if it has a failure, a label or a finite score; plain functions keep to the scale."""
    if judgment.failure is not None or judgment.label:
        return judgment
    (low, high), score = scorer.scale, cast("object", judgment.score)
    number = score if isinstance(score, int | float) and not isinstance(score, bool) else math.nan
    if not math.isfinite(number) or (scorer.score is not None and not low <= number <= high):
        raise UsageError(
            f"the scorer {scorer.name} gave {str(score)[:60]!r} for the answer to {judgment.question}",
            fix=f"let it return a number from {low:g} to {high:g}, or set its `scale`",
        )
    return judgment
