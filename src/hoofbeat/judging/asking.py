"""Putting an aspect of many answers to one judge: what it says becomes a vote, and so does what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.judging.aspects import Asked, Aspect
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Failure, Question, Vote

__all__ = ["Cast", "ask_judge", "put"]

Cast = tuple[str, Vote]
"""The passage that was judged (empty: the answer itself), and the vote."""


def ask_judge(
    model: Model,
    aspect: Aspect,
    questions: Mapping[str, Question],
    answers: Sequence[Answer],
    *,
    title: str = "judging",
    progress: Progress = SILENT,
) -> list[list[Cast]]:
    """What one judge says of each answer: a vote each, or one for each passage of it."""

    async def work(answer: Answer) -> list[Cast]:
        asked = aspect.ask(questions.get(answer.question), answer, model.context)
        return [(each.passage, await put(model, aspect, each)) for each in asked]

    return model.run(answers, work, title=title, progress=progress)


async def put(model: Model, aspect: Aspect, asked: Asked) -> Vote:
    """One vote: what the judge says, or why it says nothing."""
    if asked.request is None:
        return Vote(judge=model.spec, failure=asked.failure)
    outcome = await model.chat_json(asked.request)
    if isinstance(outcome, Failure):
        return Vote(judge=model.spec, failure=outcome)
    said = aspect.read(outcome.value)
    return Vote(
        judge=model.spec,
        label=said.label,
        secondary=said.secondary,
        score=said.score,
        reasoning=said.reasoning,
        calls=outcome.calls,
    )
