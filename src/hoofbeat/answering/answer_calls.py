"""Questions to answers: the plan is made first, so that what is asked, shown and left out is fixed before a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from hoofbeat.answering.answerers import GREEDY, SamplingSettings
from hoofbeat.answering.choice_reader import read_choice
from hoofbeat.answering.conditions import (
    BASELINES,
    FREE,
    SCORING,
    letter_options,
    likelihood_context,
    likelihood_continuation,
    most_likely,
)
from hoofbeat.models import CallResult, ChatRequest, Image, Model
from hoofbeat.models.requests import likelihood_content, request_key
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Prompt, load_prompt
from hoofbeat.records import Answer, Failure, OptionLikelihood, Passage, Question
from hoofbeat.window import OUTPUT_CUT, fit_passages, nothing_fits, room_for

__all__ = [
    "GREEDY",
    "PROMPT_TOKENS",
    "PlannedAnswer",
    "SamplingSettings",
    "answer_all",
    "blank_answer",
    "complete_answer",
    "fit",
    "likelihood_calls",
    "plan_answers",
    "prompt_for",
    "request_for",
]

PROMPT_TOKENS = 400
"""What the prompts that ask questions take of a window."""


class PlannedAnswer(Struct, frozen=True, kw_only=True):
    """One answer to be made: the question, how it is asked, and what will be shown.

    `shown` is the question's text as asked, where that is not all of it; `options` are in the order shown. With a
    `failure` nothing is asked: what should have been shown could not be had.
    """

    question: Question
    condition: str
    sample: int = 0
    protocol: str = FREE
    options: tuple[str, ...] = ()
    shown: str | None = None
    passages: tuple[Passage, ...] = ()
    dropped: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()
    instruction: str = "best"
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def text(self) -> str:
        """The question as asked, without its options."""
        return self.question.full_text if self.shown is None else self.shown

    @property
    def shows_documents(self) -> bool:
        """Whether the model is told of documents, be it that none was found."""
        return not self.condition.startswith(("closed", "images", "first ", *BASELINES))


def plan_answers(
    questions: Sequence[Question],
    condition: str,
    shown: Mapping[str, Sequence[Passage]],
    *,
    window: int | None,
    samples: int = 1,
    failures: Mapping[str, Failure] | None = None,
) -> list[PlannedAnswer]:
    """Plan one condition in free text: what fits the model's window is shown, what does not is recorded as dropped.

    `failures` are the questions whose retrieval failed.
    """
    planned = []
    for question in questions:
        output = load_prompt("answer-evidence").max_tokens
        found = shown.get(question.id, ())
        kept, dropped = fit(found, question.full_text, window, output)
        failure = (failures or {}).get(question.id) or nothing_fits(found, kept, window)
        planned += [
            PlannedAnswer(
                question=question, condition=condition, sample=sample, passages=kept, dropped=dropped, failure=failure
            )
            for sample in range(samples)
        ]
    return planned


def fit(
    passages: Sequence[Passage], question: str, window: int | None, output_tokens: int
) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """The leading passages that fit whole into the window beside the question, and the ids of the others."""
    return fit_passages(passages, room_for(window, prompt=PROMPT_TOKENS, output=output_tokens, beside=[question]))


# The call


def prompt_for(protocol: str, instruction: str, *, documents: bool) -> Prompt:
    """The prompt file that a plan is asked with; option likelihood has none."""
    name = "answer-letter" if protocol == "letter" else "answer-evidence" if documents else "answer-closed"
    return load_prompt(f"{name}-brief" if instruction == "brief" else name)


def request_for(planned: PlannedAnswer, sampling: SamplingSettings = GREEDY) -> ChatRequest:
    """The call a plan leads to; a plan by option likelihood leads to those of `likelihood_calls` instead."""
    prompt = prompt_for(planned.protocol, planned.instruction, documents=planned.shows_documents)
    given = {
        "question": planned.text,
        "options": letter_options(planned.options),
        "passages": planned.passages if planned.shows_documents else (),
    }
    request = prompt.request(
        {name: given[name] for name in prompt.variables},
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        seed=sampling.seed if sampling.temperature else None,
        sample=planned.sample,
    )
    if not planned.images:
        return request
    *before, last = request.messages
    shown = msgspec.structs.replace(last, images=planned.images)
    return msgspec.structs.replace(request, messages=(*before, shown))


def likelihood_calls(planned: PlannedAnswer) -> list[tuple[str, str]]:
    """Context and continuation of every option."""
    context = likelihood_context(planned.text, planned.passages)
    return [(context, likelihood_continuation(option)) for option in planned.options]


# The answer


def answer_all(
    model: Model,
    planned: Sequence[PlannedAnswer],
    *,
    name: str = "",
    sampling: SamplingSettings = GREEDY,
    progress: Progress = SILENT,
) -> list[Answer]:
    """Make every planned answer; a call that fails, or brings no text, leaves an answer with its failure.

    `name` is what the answers call the model, where that is not its spec.
    """

    async def work(item: PlannedAnswer) -> Answer:
        base = blank_answer(item, name or model.spec)
        if base.failure is not None:
            return base
        if item.protocol in SCORING:
            return await _measured(model, item, base)
        request = request_for(item, sampling)
        outcome = await model.chat(request)
        if isinstance(outcome, Failure):
            return _failed(model, base, request, outcome)
        return complete_answer(base, outcome)

    return model.run(planned, work, title="answering", progress=progress)


def blank_answer(item: PlannedAnswer, name: str) -> Answer:
    """What is known of an answer before it is asked for; with its failure where it can't be asked for."""
    failure = item.failure
    if failure is not None and failure.kind not in ("input", "context-overflow"):
        why = f"nothing was retrieved: {failure.kind}: {failure.message}"
        failure = Failure(kind="input", message=why, attempts=0)
    return Answer(
        question=item.question.id,
        model=name,
        condition=item.condition,
        sample=item.sample,
        protocol=item.protocol,
        options=item.options,
        evidence=item.passages,
        dropped=item.dropped,
        warnings=item.warnings,
        failure=failure,
    )


def complete_answer(base: Answer, outcome: CallResult) -> Answer:
    """An answer with what the model said, and with the option it chose where it was to choose one."""
    reply = outcome.reply
    text, cut = reply.text.strip(), reply.finish == "length"
    base = msgspec.structs.replace(base, calls=outcome.calls, usage=reply.usage)
    if not text:
        why = "the output limit was reached before the answer began" if cut else "the model wrote nothing"
        return msgspec.structs.replace(base, failure=Failure(kind="truncated" if cut else "unreadable", message=why))
    warnings = (*base.warnings, OUTPUT_CUT) if cut else base.warnings
    return with_choice(msgspec.structs.replace(base, text=text, reasoning=reply.reasoning, warnings=warnings))


def with_choice(answer: Answer) -> Answer:
    """An answer by letter with the option that its text chooses, or with why none can be read."""
    if answer.protocol != "letter":
        return answer
    found = read_choice(answer.text, answer.options)
    return msgspec.structs.replace(answer, choice=found.choice, reading=found.words)


def _failed(model: Model, base: Answer, request: ChatRequest, failure: Failure) -> Answer:
    """A failed answer; where there is a reply (a refusal, reasoning alone), it names the ledger's entry."""
    images = any(message.images for message in request.messages)
    if images and failure.kind == "bad-request" and "image" in failure.message.lower():
        failure = msgspec.structs.replace(failure, kind="unsupported")
    calls: tuple[str, ...] = ()
    if failure.kind in ("refusal", "truncated"):
        key = request_key(model.identity, "chat", request.content())[0]
        calls = (key,) if model.ledger.get(key) is not None else ()
    return msgspec.structs.replace(base, failure=failure, calls=calls)


async def _measured(model: Model, item: PlannedAnswer, base: Answer) -> Answer:
    """An answer by option likelihood: every option is measured, or the answer fails.

    Its usage stays empty: no endpoint says what a measurement took, and protocols share their calls.
    """
    found: list[OptionLikelihood] = []
    calls: list[str] = []
    for option, (context, continuation) in zip(item.options, likelihood_calls(item), strict=True):
        result = await model.loglikelihood(context, continuation)
        if isinstance(result, Failure):
            return msgspec.structs.replace(base, failure=result, calls=tuple(calls))
        if not math.isfinite(result.total):
            why = f"the endpoint returned the log-probability {result.total} for the option {option[:80]!r}"
            return msgspec.structs.replace(base, failure=Failure(kind="unsupported", message=why), calls=tuple(calls))
        size = len(option.encode("utf-8", "replace"))
        found.append(OptionLikelihood(option=option, total=result.total, tokens=len(result.tokens), bytes=size))
        content = likelihood_content(context, continuation, exact=False)
        calls.append(request_key(model.identity, "loglikelihood", content)[0])
    choice, reading = most_likely(found, item.protocol)
    return msgspec.structs.replace(
        base,
        text=choice or "",
        choice=choice,
        reading=reading,
        likelihoods=tuple(found),
        calls=tuple(calls),
    )
