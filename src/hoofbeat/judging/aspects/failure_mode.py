"""How a wrong answer went wrong although the source was before the model: failure modes, perhaps a second one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoofbeat.judging.aspect import Aspect, JudgeReply
from hoofbeat.records import Answer, Passage, Question
from hoofbeat.window import beginning, ending, room_for, size

_PROMPT_TOKENS = 1100
_NONE = "none"
_CUT = "[…]"


def source_text(question: Question, evidence: Sequence[Passage], room: int) -> str:
    """As much of the passages that were shown as fits: all of them, else the parts around the gold evidence.

    Where the question names no evidence in these passages, their beginning is shown. What is left out is marked.
    """
    texts = [passage.text.strip() for passage in evidence if passage.text.strip()]
    whole = "\n\n".join(texts)
    if size(whole) <= room:
        return whole
    if room < 200:
        return ""
    spans = [
        (passage, span.start - passage.start, span.end - passage.start)
        for span in question.evidence
        for passage in evidence
        if span.document == passage.document and passage.start <= span.start < passage.start + len(passage.text)
    ]
    if not spans:
        return f"{beginning(whole, room).rstrip()} {_CUT}"
    each = room // len(spans)
    parts = []
    for passage, start, end in spans:
        before = ending(passage.text[:start], (each - size(passage.text[start:end])) // 2)
        parts.append(f"{_CUT} {beginning(passage.text[start - len(before) :], each).strip()} {_CUT}")
    return "\n\n".join(dict.fromkeys(parts))


class _FailureMode(Aspect, frozen=True, kw_only=True):
    def values(self, question: Question, answer: Answer, window: int | None) -> dict[str, object]:
        """With the source text that the answering model had."""
        values = super().values(question, answer, window)
        output = self.template.max_tokens
        room = room_for(window, prompt=_PROMPT_TOKENS, output=output, beside=map(str, values.values()))
        return {**values, "source": source_text(question, answer.evidence, room)}

    def read(self, value: Mapping[str, Any]) -> JudgeReply:
        """The mode, and the second where there is another one."""
        label, second = str(value["label"]), str(value["secondary"])
        secondary = "" if second in {_NONE, label} else second
        return JudgeReply(label=label, secondary=secondary, reasoning=str(value["reason"]).strip())


FAILURE_MODE = _FailureMode(
    name="failure-mode",
    summary="why an answer is wrong although the model had the source",
    title="Failure modes",
    labels=("grounding", "objective", "qualifier", "granularity", "stage", "other"),
    order=90,
    prompt="failure-mode",
    prompt_role="failure-mode",
    explains=True,
    second_label=True,
    conditions=("oracle",),
    conditions_note="failure modes are judged only for answers with the source (condition oracle)",
)
