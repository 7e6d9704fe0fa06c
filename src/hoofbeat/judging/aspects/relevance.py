"""How relevant each passage that was shown is to its question: a grade from 0 to 10, asked passage by passage.

The borders are those of R2MED's grading: 8 and more is relevant, 5 to 7 partly, 4 and less irrelevant. A passage is
graded even where the answer failed: it was shown all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hoofbeat.judging.aspect import Aspect, JudgeReply, JudgeRequest
from hoofbeat.models import ChatRequest
from hoofbeat.records import Answer, Failure, Passage, Question
from hoofbeat.window import beginning, room_for

_RELEVANT, _PARTLY = 8, 5
_PROMPT_TOKENS = 700


class _Relevance(Aspect, frozen=True, kw_only=True):
    def passage_request(self, question: Question, passage: Passage, window: int | None) -> ChatRequest:
        """The call that grades one passage; of one that does not fit the window, the beginning is graded."""
        prompt = self.template
        beside = (question.full_text, question.reference)
        room = max(600, room_for(window, prompt=_PROMPT_TOKENS, output=prompt.max_tokens, beside=beside))
        return prompt.request(
            {"question": question.full_text, "reference": question.reference, "passage": beginning(passage.text, room)}
        )

    def ask(self, question: Question | None, answer: Answer, window: int | None) -> list[JudgeRequest]:
        """One call for each passage with text."""
        if question is None:
            failure = Failure(kind="input", message="the question is not in the folder", attempts=0)
            return [JudgeRequest(failure=failure, passage=each.id) for each in answer.evidence]
        empty = Failure(kind="input", message="the passage is empty", attempts=0)
        return [
            JudgeRequest(request=self.passage_request(question, each, window), passage=each.id)
            if each.text.strip()
            else JudgeRequest(failure=empty, passage=each.id)
            for each in answer.evidence
        ]

    def read(self, value: Mapping[str, Any]) -> JudgeReply:
        """The grade and its label."""
        grade = float(value["grade"])
        return JudgeReply(label=self.label_of(grade), score=grade, reasoning=str(value["reason"]).strip())

    def label_of(self, score: float) -> str:
        """The label of a grade."""
        return "relevant" if score >= _RELEVANT else "partly" if score >= _PARTLY else "irrelevant"


RELEVANCE = _Relevance(
    name="relevance",
    summary="how relevant each passage shown to the model is, from 0 to 10",
    title="Relevance of the passages",
    labels=("relevant", "partly", "irrelevant"),
    scale=(0.0, 10.0),
    takes="passages",
    order=80,
    prompt="relevance",
    prompt_role="relevance",
    graded=True,
)
