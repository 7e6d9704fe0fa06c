"""Why an answer is wrong: failure modes of answers that had the source before them, error types of diagnoses.

Both are asked of wrong answers only. A failure mode may have a second one beside it; an error type stands alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoofbeat.judging.aspects import Asked, Aspect, Said, answer_text, unanswered
from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Passage, Question
from hoofbeat.window import beginning, ending, room_for, size

__all__ = ["ERROR_TYPE", "ERROR_TYPES", "FAILURE_MODE", "FAILURE_MODES", "source_text"]

FAILURE_MODES = ("grounding", "objective", "qualifier", "granularity", "stage", "other")
ERROR_TYPES = ("omission", "context", "knowledge", "priority", "sequence")

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


def failure_mode_request(question: Question, answer: Answer, window: int | None) -> ChatRequest:
    """The call that asks how a wrong answer went wrong, with the source text that the answering model had."""
    prompt = load_prompt("failure-mode")
    text = answer_text(answer)
    beside = (question.full_text, question.answer, text)
    room = room_for(window, prompt=_PROMPT_TOKENS, output=prompt.max_tokens, beside=beside)
    return prompt.request(
        {
            "question": question.full_text,
            "reference": question.answer,
            "answer": text,
            "source": source_text(question, answer.evidence, room),
        }
    )


def error_type_request(question: Question, answer: Answer, window: int | None) -> ChatRequest:
    """The call that asks what kind of error led to a wrong answer; too long a reasoning loses its middle."""
    prompt = load_prompt("error-type")
    options = "\n".join(answer.options or question.options)
    text = answer_text(answer)
    written = answer.text if answer.protocol and answer.text.strip() != text else ""
    reasoning = "\n\n".join(part.strip() for part in (answer.reasoning, written) if part.strip())
    beside = (question.full_text, question.answer, options, text)
    room = max(600, room_for(window, prompt=_PROMPT_TOKENS, output=prompt.max_tokens, beside=beside))
    if size(reasoning) > room:
        reasoning = f"{beginning(reasoning, room // 2).rstrip()} {_CUT} {ending(reasoning, -(-room // 2)).lstrip()}"
    return prompt.request(
        {
            "question": question.full_text,
            "options": options,
            "reference": question.answer,
            "answer": text,
            "reasoning": reasoning,
        }
    )


def _ask_failure_mode(question: Question | None, answer: Answer, window: int | None) -> list[Asked]:
    if (failure := unanswered(question, answer)) is not None or question is None:
        return [Asked(failure=failure)]
    return [Asked(request=failure_mode_request(question, answer, window))]


def _ask_error_type(question: Question | None, answer: Answer, window: int | None) -> list[Asked]:
    if (failure := unanswered(question, answer)) is not None or question is None:
        return [Asked(failure=failure)]
    return [Asked(request=error_type_request(question, answer, window))]


def _read_failure_mode(value: Mapping[str, Any]) -> Said:
    label, second = str(value["label"]), str(value["secondary"])
    secondary = "" if second in {_NONE, label} else second
    return Said(label=label, secondary=secondary, reasoning=str(value["reason"]).strip())


def _read_error_type(value: Mapping[str, Any]) -> Said:
    return Said(label=str(value["label"]), reasoning=str(value["reason"]).strip())


FAILURE_MODE = Aspect(
    name="failure-mode",
    labels=FAILURE_MODES,
    prompt="failure-mode",
    ask=_ask_failure_mode,
    read=_read_failure_mode,
    explains=True,
)
ERROR_TYPE = Aspect(
    name="error-type",
    labels=ERROR_TYPES,
    prompt="error-type",
    ask=_ask_error_type,
    read=_read_error_type,
    explains=True,
)
