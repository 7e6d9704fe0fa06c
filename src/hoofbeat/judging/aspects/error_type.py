"""What kind of error led to a wrong diagnosis: one error type, from the case, the options and the model's reasoning."""

from __future__ import annotations

from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.criteria import answer_text
from hoofbeat.records import Answer, Question
from hoofbeat.window import beginning, ending, room_for, size

_PROMPT_TOKENS = 1100
_MIN_ROOM = 600
_CUT = "[…]"


class _ErrorType(Aspect, frozen=True, kw_only=True):
    def values(self, question: Question, answer: Answer, window: int | None) -> dict[str, object]:
        """With options and reasoning; reasoning that is too long loses its middle."""
        text = answer_text(answer)
        values = {**super().values(question, answer, window), "options": "\n".join(answer.options or question.options)}
        written = answer.text if answer.protocol and answer.text.strip() != text else ""
        reasoning = "\n\n".join(part.strip() for part in (answer.reasoning, written) if part.strip())
        output = self.template.max_tokens
        beside = map(str, values.values())
        room = max(_MIN_ROOM, room_for(window, prompt=_PROMPT_TOKENS, output=output, beside=beside))
        if size(reasoning) > room:
            start, end = beginning(reasoning, room // 2), ending(reasoning, -(-room // 2))
            reasoning = f"{start.rstrip()} {_CUT} {end.lstrip()}"
        return {**values, "reasoning": reasoning}


ERROR_TYPE = _ErrorType(
    name="error-type",
    summary="what kind of error led to a wrong answer",
    title="Error types",
    labels=("omission", "context", "knowledge", "priority", "sequence"),
    order=95,
    prompt="error-type",
    prompt_role="error-type",
    explains=True,
)
