"""Is the answer's main recommendation that of the gold answer? One call a judgment; what can't be judged is said so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoofbeat.judging.asking import ask_judge
from hoofbeat.judging.aspects import Asked, Aspect, Said, answer_text, blank, unanswered
from hoofbeat.judging.voting import decide
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Judgment, Question

__all__ = ["EQUIVALENCE", "equivalence_request", "judge_equivalence"]


def equivalence_request(question: Question, answer: Answer, *, swapped: bool = False, sample: int = 0) -> ChatRequest:
    """The call that judges one answer; `swapped` shows the answer before the reference, `sample` asks once more."""
    values = {"question": question.full_text, "reference": question.answer, "answer": answer_text(answer)}
    return load_prompt("equivalence-swapped" if swapped else "equivalence").request(values, sample=sample)


def _ask(question: Question | None, answer: Answer, window: int | None) -> list[Asked]:  # noqa: ARG001 - nothing is cut
    if (failure := unanswered(question, answer)) is not None or question is None:
        return [Asked(failure=failure)]
    return [Asked(request=equivalence_request(question, answer))]


def _read(value: Mapping[str, Any]) -> Said:
    return Said(label=str(value["label"]), reasoning=str(value["reason"]).strip())


EQUIVALENCE = Aspect(name="equivalence", labels=("equivalent", "mismatch"), prompt="equivalence", ask=_ask, read=_read)


def judge_equivalence(
    model: Model, questions: Sequence[Question], answers: Sequence[Answer], *, progress: Progress = SILENT
) -> list[Judgment]:
    """Judge every answer. One that failed or is empty, or a question without gold, is unscored without a call."""
    by_id = {question.id: question for question in questions}
    said = ask_judge(model, EQUIVALENCE, by_id, answers, progress=progress)
    return [
        decide(blank(answer, EQUIVALENCE.name, model.spec), EQUIVALENCE, [vote for _, vote in cast])
        for answer, cast in zip(answers, said, strict=True)
    ]
