"""Questions to answers: the plan is made first, so that what is asked, shown and left out is fixed before a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Passage, Question

__all__ = ["GREEDY", "Planned", "Sampling", "answer_all", "fit", "plan_answers", "request_for"]

_CHARS_PER_TOKEN = 3.0
_PROMPT_TOKENS = 400
_FALLBACK_WINDOW = 8192
_FENCE_CHARS = 60
_HEADING_CHARS = 120  # no more of a heading is shown


class Sampling(Struct, frozen=True, kw_only=True):
    """How answers are drawn. Sample number n is drawn with the seed plus n; at temperature 0 all would be the same."""

    temperature: float = 0.0
    seed: int = 0


GREEDY = Sampling()


class Planned(Struct, frozen=True, kw_only=True):
    """One answer to be made: the question, how it is asked, and what will be shown.

    With a `failure` there is nothing to show: what should have been retrieved could not be, so nothing is asked.
    """

    question: Question
    condition: str
    sample: int = 0
    passages: tuple[Passage, ...] = ()
    dropped: tuple[str, ...] = ()
    failure: Failure | None = None


def plan_answers(
    questions: Sequence[Question],
    condition: str,
    shown: Mapping[str, Sequence[Passage]],
    *,
    window: int | None,
    samples: int = 1,
    failures: Mapping[str, Failure] | None = None,
) -> list[Planned]:
    """Plan one condition: what fits the model's window is shown, what does not is recorded as dropped.

    `failures` are the questions whose retrieval failed.
    """
    planned = []
    for question in questions:
        output = load_prompt("answer-evidence").max_tokens
        kept, dropped = fit(shown.get(question.id, ()), question.full_text, window, output)
        failure = (failures or {}).get(question.id)
        planned += [
            Planned(
                question=question, condition=condition, sample=sample, passages=kept, dropped=dropped, failure=failure
            )
            for sample in range(samples)
        ]
    return planned


def fit(
    passages: Sequence[Passage], question: str, window: int | None, output_tokens: int
) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """The leading passages that fit whole into the window, and the ids of the others.

    Where not even the first fits, its beginning is shown, and its id is recorded as cut.
    """
    room = int(((window or _FALLBACK_WINDOW) - output_tokens - _PROMPT_TOKENS) * _CHARS_PER_TOKEN) - len(question)
    kept: list[Passage] = []
    dropped: list[str] = []
    for passage in passages:
        around = _FENCE_CHARS + min(_HEADING_CHARS, len(passage.heading))
        size = len(passage.text) + around
        if size <= room and not dropped:
            kept.append(passage)
            room -= size
        elif not kept and not dropped and room > 200:
            text = passage.text[: room - around]
            kept.append(msgspec.structs.replace(passage, text=text, end=passage.start + len(text)))
            dropped.append(f"{passage.id} (cut)")
        else:
            dropped.append(passage.id)
    return tuple(kept), tuple(dropped)


def request_for(planned: Planned, sampling: Sampling = GREEDY) -> ChatRequest:
    """The call a plan leads to."""
    values: dict[str, object] = {"question": planned.question.full_text}
    if planned.condition == "closed":
        prompt = load_prompt("answer-closed")
    else:
        prompt = load_prompt("answer-evidence")
        values["passages"] = planned.passages
    seed = sampling.seed if sampling.temperature else None
    return prompt.request(values, temperature=sampling.temperature, seed=seed, sample=planned.sample)


def answer_all(
    model: Model, planned: Sequence[Planned], *, sampling: Sampling = GREEDY, progress: Progress = SILENT
) -> list[Answer]:
    """Make every planned answer; a call that fails, or brings no text, leaves an answer with its failure."""

    async def work(item: Planned) -> Answer:
        base = Answer(
            question=item.question.id,
            model=model.spec,
            condition=item.condition,
            sample=item.sample,
            evidence=item.passages,
            dropped=item.dropped,
        )
        if item.failure is not None:
            why = f"nothing was retrieved: {item.failure.kind}: {item.failure.message}"
            return msgspec.structs.replace(base, failure=Failure(kind="input", message=why, attempts=0))
        outcome = await model.chat(request_for(item, sampling))
        if isinstance(outcome, Failure):
            return msgspec.structs.replace(base, failure=outcome)
        text, reasoning = outcome.reply.text.strip(), outcome.reply.reasoning
        if not text:
            cut = outcome.reply.finish == "length"
            why = "the output limit was reached before the answer began" if cut else "the model wrote nothing"
            failure = Failure(kind="truncated" if cut else "unreadable", message=why)
            return msgspec.structs.replace(base, failure=failure, calls=outcome.calls)
        return msgspec.structs.replace(base, text=text, reasoning=reasoning, calls=outcome.calls)

    return model.run(planned, work, title="answering", progress=progress)
