"""How relevant each passage that was shown is to its question: a grade from 0 to 10, asked passage by passage.

The borders are those of R2MED's grading: 8 and more is relevant, 5 to 7 partly, 4 and less irrelevant. A passage is
graded whether or not the answer came through: it was shown all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoofbeat.judging.aspects import Asked, Aspect, Said
from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Passage, Question
from hoofbeat.window import beginning, room_for

__all__ = ["RELEVANCE", "relevance_label"]

_RELEVANT, _PARTLY = 8, 5
_PROMPT_TOKENS = 700


def relevance_label(grade: float) -> str:
    """The label of a grade."""
    return "relevant" if grade >= _RELEVANT else "partly" if grade >= _PARTLY else "irrelevant"


def relevance_request(question: Question, passage: Passage, window: int | None) -> ChatRequest:
    """The call that grades one passage; of one that does not fit the window, the beginning is graded."""
    prompt = load_prompt("relevance")
    beside = (question.full_text, question.answer)
    room = max(600, room_for(window, prompt=_PROMPT_TOKENS, output=prompt.max_tokens, beside=beside))
    return prompt.request(
        {"question": question.full_text, "reference": question.answer, "passage": beginning(passage.text, room)}
    )


def _ask(question: Question | None, answer: Answer, window: int | None) -> list[Asked]:
    if question is None:
        failure = Failure(kind="input", message="the question is not in the folder", attempts=0)
        return [Asked(failure=failure, passage=each.id) for each in answer.evidence]
    return [
        Asked(request=relevance_request(question, each, window), passage=each.id)
        if each.text.strip()
        else Asked(failure=Failure(kind="input", message="the passage is empty", attempts=0), passage=each.id)
        for each in answer.evidence
    ]


def _read(value: Mapping[str, Any]) -> Said:
    grade = float(value["grade"])
    return Said(label=relevance_label(grade), score=grade, reasoning=str(value["reason"]).strip())


RELEVANCE = Aspect(
    name="relevance",
    labels=("relevant", "partly", "irrelevant"),
    prompt="relevance",
    ask=_ask,
    read=_read,
    graded=True,
    label_of=relevance_label,
)
