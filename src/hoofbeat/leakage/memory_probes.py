"""What a model shows of having seen a benchmark: how likely it finds its texts, and how much of them it gives back.

Three probes a question, all at temperature 0:

- likelihood: log-probabilities of the question's second half after its first, and of the reference texts after the
  question and `Answer:`, where the model's endpoint gives any;
- continuation: the model is shown the first half and asked to go on; what comes is set against the true rest;
- rationale: the model answers and explains; that is set against the reference explanation.

Each is measured again on a control (`leakage_text`). Rows (`leakage_rows`) say what was
measured; what it means is for `findings`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.benchmarks.text_overlap import edit_similarity, longest_run, overlap_words, rouge_l
from hoofbeat.leakage.canaries import Canary, matched_digits
from hoofbeat.leakage.leakage_figures import (
    PROBES,
    CanaryProbe,
    ContinuationOverlap,
    LikelihoodRow,
    MeasuredText,
    OverlapProbe,
    OverlapRow,
)
from hoofbeat.leakage.leakage_text import LeakageItem, first_words, strip_repeated_beginning
from hoofbeat.models import ChatRequest, Estimate, Likelihood, Model
from hoofbeat.models.requests import likelihood_content, request_key
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure

ORIGINAL = "original"
"""The edition of a modified benchmark that keeps the wording of before the modification."""

LOWEST_SHARE = 0.2
"""Min-K%: the share of tokens, the least likely ones, whose mean log-probability is taken."""

_NO_TEXT = "the question is too short to split"
_NO_REFERENCE = "the question has neither an explanation nor an answer to compare with"


class LikelihoodText(Struct, frozen=True, kw_only=True):
    """One text to be scored: which it is, of what question, what stands before it. `control` is empty for its own."""

    question: str
    text: MeasuredText
    control: str
    context: str
    continuation: str


# Likelihoods


def likelihood_texts(items: Sequence[LeakageItem], edition: str = "") -> list[LikelihoodText]:
    """Every text to be scored, its own before its control. `edition` names the other edition, if there is one.

    Of a modified question and its `original`, the original is the text that may have been seen, and the modified one
    its control, whichever of them is being asked.
    """
    by_id = {item.question.id: item for item in items}
    texts: list[LikelihoodText] = []
    for item in items:
        name = item.question.id
        if item.rest and item.edition_rest:
            mine, other = (item.first, item.rest), (item.edition_first, item.edition_rest)
            if edition == ORIGINAL:
                mine, other = other, mine
            label = "modified edition" if edition == ORIGINAL else f"edition {edition}"
            texts += [_text(name, "question", "", *mine), _text(name, "question", label, *other)]
        elif item.rest:
            texts.append(_text(name, "question", "", item.first, item.rest))
            if item.shuffled:
                texts.append(_text(name, "question", "sentences shuffled", item.first, item.shuffled))
        partner = by_id.get(item.partner)
        for kind, words in (("reference", item.reference), ("explanation", item.explanation)):
            if words:
                texts.append(_text(name, kind, "", _asked(item), words))
                if partner:
                    texts.append(_text(name, kind, "after another question", _asked(partner), words))
    return texts


def _asked(item: LeakageItem) -> str:
    return f"{item.question.full_text}\n\nAnswer:"


def _text(question: str, text: str, control: str, context: str, words: str) -> LikelihoodText:
    kind: MeasuredText = "question" if text == "question" else "reference" if text == "reference" else "explanation"
    return LikelihoodText(question=question, text=kind, control=control, context=context, continuation=f" {words}")


def measure_likelihoods(
    model: Model, texts: Sequence[LikelihoodText], *, progress: Progress = SILENT
) -> list[LikelihoodRow]:
    """Score every text; where the endpoint gives no log-probabilities, one call finds out and no more are made."""

    async def work(text: LikelihoodText) -> LikelihoodRow:
        base = LikelihoodRow(question=text.question, model=model.spec, text=text.text, control=text.control)
        result = await model.loglikelihood(text.context, text.continuation)
        return replace(base, failure=result) if isinstance(result, Failure) else _measured(base, text, result)

    if not texts:
        return []
    rows = model.run(texts[:1], work, title="first likelihood", progress=progress)
    failure = rows[0].failure
    if failure is not None and failure.kind == "unsupported":
        return rows + [_without(model, text, replace(failure, attempts=0)) for text in texts[1:]]
    return rows + model.run(texts[1:], work, title="likelihoods", progress=progress)


def _without(model: Model, text: LikelihoodText, failure: Failure) -> LikelihoodRow:
    return LikelihoodRow(
        question=text.question, model=model.spec, text=text.text, control=text.control, failure=failure
    )


def _measured(base: LikelihoodRow, text: LikelihoodText, result: Likelihood) -> LikelihoodRow:
    if not result.logprobs:
        return replace(base, failure=Failure(kind="garbled", message="no token was scored"))
    count = max(1, round(LOWEST_SHARE * len(result.logprobs)))
    lowest = sorted(result.logprobs)[:count]
    return replace(
        base,
        tokens=len(result.logprobs),
        total=result.total,
        lowest=sum(lowest) / count,
        zlib=len(zlib.compress(text.continuation.strip().encode(), 9)),
    )


# Generated texts


def overlap_request(item: LeakageItem, probe: OverlapProbe) -> ChatRequest | None:
    """The call of a probe; None where the question has nothing to compare its outcome with."""
    if probe == "continuation":
        if not item.rest:
            return None
        room = len(item.rest) // 3 + 16
        return load_prompt("leakage-continue").request({"beginning": item.first}, max_tokens=room)
    if not (item.explanation or item.reference):
        return None
    return load_prompt("leakage-rationale").request({"question": item.question.full_text})


def probe_overlaps(
    model: Model, items: Sequence[LeakageItem], probe: OverlapProbe, *, progress: Progress = SILENT
) -> list[OverlapRow]:
    """Let a model continue, or explain, every question, and measure what comes against reference and control."""
    by_id = {item.question.id: item for item in items}

    async def work(item: LeakageItem) -> OverlapRow:
        base = OverlapRow(question=item.question.id, model=model.spec, probe=probe)
        request = overlap_request(item, probe)
        if request is None:
            why = _NO_TEXT if probe == "continuation" else _NO_REFERENCE
            return replace(base, failure=Failure(kind="input", message=why, attempts=0))
        outcome = await model.chat(request)
        if isinstance(outcome, Failure):
            return replace(base, failure=outcome)
        text = outcome.reply.text.strip()
        if not overlap_words(text):
            failure = Failure(kind="unreadable", message="the model wrote no words")
            return replace(base, failure=failure, calls=outcome.calls)
        return replace(_compared(base, item, by_id.get(item.partner), text), calls=outcome.calls)

    return model.run(items, work, title=f"{probe} probe", progress=progress)


def _compared(base: OverlapRow, item: LeakageItem, partner: LeakageItem | None, text: str) -> OverlapRow:
    """A continuation is read from where it adds something, and no further than the true rest is long.

    So repeating the beginning, or going on for longer, is not held to be remembering less.
    """
    reference, against = _reference(item, base.probe)
    other = _reference(partner, base.probe)[0] if partner else ""

    added = strip_repeated_beginning(text, item.first) if base.probe == "continuation" else text

    def read(up_to: str) -> str:
        return first_words(added, len(overlap_words(up_to))) if base.probe == "continuation" else text

    run = longest_run(added, reference)
    return replace(
        base,
        text=text,
        reference=reference,
        against=against,
        own=overlap_of(read(reference), reference),
        control=overlap_of(read(other), other) if other else None,
        partner=item.partner if other else "",
        shared=added[run.a[0] : run.a[1]],
    )


def _reference(item: LeakageItem, probe: OverlapProbe) -> tuple[str, str]:
    if probe == "continuation":
        return item.rest, "rest"
    return (item.explanation, item.explanation_from) if item.explanation else (item.reference, "answer")


def overlap_of(text: str, reference: str) -> ContinuationOverlap:
    """How much of a reference a generated text gives back."""
    rouge = rouge_l(text, reference)
    return ContinuationOverlap(
        rouge_p=rouge.precision,
        rouge_r=rouge.recall,
        rouge_f=rouge.f,
        edit=edit_similarity(text, reference),
        run=longest_run(text, reference).words,
    )


# Canaries


def canary_request(canary: Canary) -> ChatRequest:
    """The call that asks for the rest of a canary."""
    return load_prompt("leakage-canary").request({"beginning": f"canary GUID {canary.first}"})


def probe_canaries(model: Model, canaries: Sequence[Canary], *, progress: Progress = SILENT) -> list[CanaryProbe]:
    """Ask a model for the rest of each canary."""

    async def work(canary: Canary) -> CanaryProbe:
        base = CanaryProbe(
            model=model.spec, name=canary.name, first=canary.first, hidden=len(canary.rest.replace("-", ""))
        )
        outcome = await model.chat(canary_request(canary))
        if isinstance(outcome, Failure):
            return replace(base, failure=outcome)
        text = outcome.reply.text.strip()
        return replace(base, matched=matched_digits(canary, text), text=text[:200], calls=outcome.calls)

    return model.run(canaries, work, title="canaries", progress=progress)


# Cost


def estimate_leakage(
    model: Model,
    items: Sequence[LeakageItem],
    canaries: Sequence[Canary],
    texts: Sequence[LikelihoodText],
    probes: Sequence[str] = PROBES,
) -> Estimate:
    """What all probes would cost; a likelihood counts as one call, however the endpoint computes it."""
    asked = [
        request for item in items for probe in PROBES if probe in probes and (request := overlap_request(item, probe))
    ]
    chats = model.estimate([*asked, *map(canary_request, canaries)])
    keys = {
        request_key(model.identity, "loglikelihood", likelihood_content(t.context, t.continuation, exact=False))[0]: (
            len(t.context) + len(t.continuation)
        )
        // 4
        for t in texts
    }
    known = model.ledger.known(list(keys))
    tokens = sum(count for key, count in keys.items() if key not in known)
    money = model.price.of(tokens, 0) if model.price else None
    return chats + Estimate(calls=len(keys) - len(known), cached=len(known), tokens_in=tokens, max_money=money)
