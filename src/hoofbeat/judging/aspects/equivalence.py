"""Is the answer's main recommendation that of the gold answer? One call per judgment."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.criteria import empty_judgment
from hoofbeat.judging.votes import ask_judge, decide
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Judgment, Question

SWAPPED_PROMPT = "equivalence-swapped"
"""The same question with the answer before the reference, for the probe of order."""

EQUIVALENCE = Aspect(
    name="equivalence",
    summary="whether the main recommendation matches the gold answer",
    labels=("equivalent", "mismatch"),
    positive="equivalent",
    takes="text",
    default=True,
    order=70,
    prompt="equivalence",
    prompt_role="judge",
)


def swapped_request(question: Question, answer: Answer) -> ChatRequest:
    """The call that shows the answer before the reference."""
    return load_prompt(SWAPPED_PROMPT).request(EQUIVALENCE.values(question, answer, None))


def judge_equivalence(
    model: Model, questions: Sequence[Question], answers: Sequence[Answer], *, progress: Progress = SILENT
) -> list[Judgment]:
    """Judge every answer. One that failed or is empty, or a question without gold, is unscored without a call."""
    by_id = {question.id: question for question in questions}
    votes = ask_judge(model, EQUIVALENCE, by_id, answers, progress=progress)
    return [
        decide(empty_judgment(answer, EQUIVALENCE.name, model.spec), EQUIVALENCE, [vote for _, vote in cast])
        for answer, cast in zip(answers, votes, strict=True)
    ]
