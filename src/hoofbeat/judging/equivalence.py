"""Is the answer's main recommendation that of the gold answer? One call a judgment; what can't be judged is said so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from hoofbeat.answering.run import Run, count_outcomes
from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Judgment, Question
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl

__all__ = ["Judged", "equivalence_request", "judge_equivalence", "write_judgments"]

KIND = "judgments"


def equivalence_request(question: Question, answer: Answer) -> ChatRequest:
    """The call that judges one answer."""
    values = {"question": question.full_text, "reference": question.answer, "answer": answer.text}
    return load_prompt("equivalence").request(values)


def judge_equivalence(
    model: Model, questions: Sequence[Question], answers: Sequence[Answer], *, progress: Progress = SILENT
) -> list[Judgment]:
    """Judge every answer. An answer that failed, or a question without gold, is unscored without a call."""
    by_id = {question.id: question for question in questions}

    async def work(answer: Answer) -> Judgment:
        base = Judgment(
            question=answer.question,
            model=answer.model,
            condition=answer.condition,
            sample=answer.sample,
            judge=model.spec,
        )
        question = by_id.get(answer.question)
        if answer.failure is not None:
            why = Failure(kind=answer.failure.kind, message=f"no answer: {answer.failure.message}", attempts=0)
            return msgspec.structs.replace(base, failure=why)
        if question is None or not question.answer:
            why = Failure(kind="input", message="the question has no gold answer", attempts=0)
            return msgspec.structs.replace(base, failure=why)
        outcome = await model.chat_json(equivalence_request(question, answer))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        label, reason = str(outcome.value["label"]), str(outcome.value["reason"]).strip()
        return msgspec.structs.replace(base, label=label, reasoning=reason, calls=outcome.calls)

    return model.run(answers, work, title="judging", progress=progress)


class Judged:
    """An opened folder of judgments, with the questions and answers that were judged."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.questions: list[Question] = list(read_jsonl(artefact.file("questions.jsonl"), Question))
        self.answers: list[Answer] = list(read_jsonl(artefact.file("answers.jsonl"), Answer))
        self.judgments: list[Judgment] = list(read_jsonl(artefact.file("judgments.jsonl"), Judgment))

    @staticmethod
    def open(path: Path) -> Judged:
        """Open a folder of judgments."""
        return Judged(open_artefact(path, KIND))


def write_judgments(
    target: Path, run: Run, judgments: Sequence[Judgment], model: Model, *, command: Sequence[str] = ()
) -> Artefact:
    """Write a folder of judgments that stands on its own: questions and answers are in it too."""
    prompt = load_prompt("equivalence")
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", run.questions)
        write_jsonl(draft.path / "answers.jsonl", run.answers)
        write_jsonl(draft.path / "judgments.jsonl", judgments)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"judged by {model.spec}",
                command=list(command),
                inputs=[run.artefact.reference()],
                settings={"aspect": "equivalence", "positive": "equivalent"},
                models={**run.artefact.manifest.models, "judge": model.identity},
                prompts={**run.artefact.manifest.prompts, "judge": prompt.label},
                counts=count_outcomes(item.failure.kind if item.failure else None for item in judgments),
                cost=model.cost,
            )
        )
    return open_artefact(target, KIND)
