"""How the answers of two sources relate: five ordered labels, from absent to contradictory, with a structured record.

A pair with a silent side is Absent without a call. Every pair stands once, the lesser source first; answers that are
the same to the letter give the same request, which the ledger answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec

from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Answer, Comparison, Failure, Question

__all__ = ["compare_answers", "comparison_request", "pairs_of"]

Pair = tuple[Question, Answer, Answer]


def pairs_of(questions: Sequence[Question], answers: Sequence[Answer]) -> list[Pair]:
    """Every pair of sources that were asked the same question, in order."""
    by_question: dict[str, list[Answer]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer)
    return [
        (question, a, b)
        for question in questions
        for a, b in combinations(sorted(by_question.get(question.id, []), key=lambda item: item.source), 2)
    ]


def comparison_request(question: Question, a: str, b: str, pack: Pack) -> ChatRequest:
    """The call that compares two answers, with the pack's labels in its output contract."""
    prompt = load_prompt("compare")
    with_significance = " and ".join(label.name for label in pack.judged if label.significance)
    note = f"Give it for {with_significance} only, else none." if with_significance else "Always write none."
    values = {
        "question": question.full_text,
        "answer_a": a,
        "answer_b": b,
        "labels": pack.judged,
        "reader": pack.reader,
        "significance_meaning": pack.significance_meaning.strip(),
        "schema_note": note,
    }
    assert prompt.schema is not None
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["classification"]["enum"] = [label.name for label in pack.judged]
    schema["properties"]["significance"]["enum"] = ["none", *pack.significance_levels]
    return prompt.request(values, schema=schema)


def compare_answers(
    model: Model,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    pack: Pack,
    *,
    progress: Progress = SILENT,
) -> list[Comparison]:
    """Compare every pair of answers to each question."""

    async def work(pair: Pair) -> Comparison:
        question, a, b = pair
        base = Comparison(question=question.id, a=a.source, b=b.source, judge=model.spec)
        if a.absent or b.absent:
            return msgspec.structs.replace(base, label=pack.absent, judge="")
        for side in (a, b):
            if side.failure is not None:
                message = f"no answer of {side.source}: {side.failure.message}"
                why = Failure(kind=side.failure.kind, message=message, attempts=0)
                return msgspec.structs.replace(base, failure=why)
        outcome = await model.chat_json(comparison_request(question, a.text, b.text, pack))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        value = outcome.value
        label = pack.label(value["classification"])
        significance = value["significance"] if label.significance and value["significance"] != "none" else None
        return msgspec.structs.replace(
            base,
            label=label.name,
            reasoning=str(value["reasoning"]).strip(),
            topic=str(value["topic"]).strip() or None if label.topic else None,
            significance=significance,
            calls=outcome.calls,
        )

    return model.run(pairs_of(questions, answers), work, title="comparing sources", progress=progress)
