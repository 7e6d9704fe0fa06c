"""The judge's call taken apart: the label alone, and what else is wanted by a later call that is told the label.

It is the natural other way to judge a pair, and cheaper. Whether it says the same is asked on a sample of judged pairs,
each judged both ways by the same model; with `order`, each also with its two answers exchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.pair_judge import PairJudge, comparison_request
from hoofbeat.audit.pair_plan import PairVerdict, asked_order
from hoofbeat.audit.sample_records import PairJudgedTwice, PairLabel, SampledPair
from hoofbeat.audit.validation.packets import answers_of
from hoofbeat.models import ChatRequest, Estimate, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, RelationLabel, load_prompt
from hoofbeat.records import Failure, Question
from hoofbeat.store import Cost

PROMPTS = ("compare", "compare-label", "compare-details")


class PairToJudgeTwice(Struct, frozen=True, kw_only=True):
    """A pair to be judged both ways, with its texts and what people say of it, if they do."""

    pair: SampledPair
    question: Question
    a: str
    b: str
    reference: str = ""


def pairs_to_judge(
    audit: Audit, pairs: Sequence[SampledPair], references: dict[tuple[str, str, str], str]
) -> list[PairToJudgeTwice]:
    """The pairs by question and sources, each with its texts in the order in which the audit's judge was shown them."""
    questions = {question.id: question for question in audit.questions}
    answers = answers_of(audit, pairs)
    found = []
    for pair in sorted(pairs, key=lambda each: each.key):
        a, b = asked_order(answers[pair.question, pair.a].text, answers[pair.question, pair.b].text)
        reference = references.get(pair.key, "")
        found.append(PairToJudgeTwice(pair=pair, question=questions[pair.question], a=a, b=b, reference=reference))
    return found


def label_request(question: Question, a: str, b: str, pack: Pack) -> ChatRequest:
    """The call for the label alone."""
    prompt = load_prompt("compare-label")
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["classification"]["enum"] = [label.name for label in pack.judged]
    values = {
        "question": question.full_text,
        "answer_a": a,
        "answer_b": b,
        "labels": pack.judged,
        "reader": pack.reader,
    }
    return prompt.request(values, schema=schema)


def details_request(question: Question, a: str, b: str, label: RelationLabel, pack: Pack) -> ChatRequest:
    """The later call for topic and significance, which is told the label."""
    prompt = load_prompt("compare-details")
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["significance"]["enum"] = ["none", *pack.significance_levels]
    values = {
        "question": question.full_text,
        "answer_a": a,
        "answer_b": b,
        "label_name": label.name,
        "definition": label.definition.strip(),
        "reader": pack.reader,
        "significance_meaning": pack.significance_meaning.strip(),
        "schema_note": "Give it." if label.significance else "Write none.",
    }
    return prompt.request(values, schema=schema)


def judge_both_ways(
    model: Model, items: Sequence[PairToJudgeTwice], pack: Pack, *, order: bool = False, progress: Progress = SILENT
) -> tuple[list[PairJudgedTwice], dict[str, Cost]]:
    """Judge every pair both ways; and what each way cost, the exchanged calls apart."""
    judge = PairJudge(model, pack)

    async def structured(item: PairToJudgeTwice, exchanged: bool) -> PairLabel:
        a, b = (item.b, item.a) if exchanged else (item.a, item.b)
        return _of_verdict(await judge.judge(comparison_request(item.question, a, b, pack)))

    async def label_only(item: PairToJudgeTwice, exchanged: bool) -> PairLabel:
        a, b = (item.b, item.a) if exchanged else (item.a, item.b)
        return await _label_only(model, item.question, (a, b), pack, details=not exchanged)

    ways: dict[str, tuple[Callable[[PairToJudgeTwice, bool], Awaitable[PairLabel]], bool]] = {
        "structured": (structured, False),
        "label-only": (label_only, False),
    }
    if order:
        ways |= {"structured, exchanged": (structured, True), "label-only, exchanged": (label_only, True)}
    said: dict[str, list[PairLabel]] = {}
    costs: dict[str, Cost] = {}
    for name, (way, exchanged) in ways.items():
        before = model.cost

        async def work(
            item: PairToJudgeTwice,
            way: Callable[[PairToJudgeTwice, bool], Awaitable[PairLabel]] = way,
            no: bool = exchanged,
        ) -> PairLabel:
            return await way(item, no)

        said[name] = model.run(items, work, title=f"judging: {name}", progress=progress) if items else []
        costs[name] = _less(model.cost, before)
    return [
        PairJudgedTwice(
            pair=item.pair,
            structured=said["structured"][place],
            label_only=said["label-only"][place],
            structured_exchanged=said["structured, exchanged"][place] if order else None,
            label_only_exchanged=said["label-only, exchanged"][place] if order else None,
            reference=item.reference,
        )
        for place, item in enumerate(items)
    ], costs


def estimate_both(model: Model, items: Sequence[PairToJudgeTwice], pack: Pack, *, order: bool = False) -> Estimate:
    """What it would cost at most: every pair gets a label that asks for more."""
    wordy = max(
        (label for label in pack.judged if label.topic or label.significance),
        key=lambda label: len(label.definition),
        default=None,
    )
    requests: list[ChatRequest] = []
    for item in items:
        sides = [(item.a, item.b), *([(item.b, item.a)] if order else [])]
        for a, b in sides:
            requests += [comparison_request(item.question, a, b, pack), label_request(item.question, a, b, pack)]
        if wordy is not None:
            requests.append(details_request(item.question, item.a, item.b, wordy, pack))
    return model.estimate(requests)


async def _label_only(
    model: Model, question: Question, sides: tuple[str, str], pack: Pack, *, details: bool
) -> PairLabel:
    first = await model.chat_json(label_request(question, *sides, pack))
    if isinstance(first, Failure):
        return PairLabel(failure=first)
    label = pack.label(first.value["classification"])
    if not details or not (label.topic or label.significance):
        return PairLabel(label=label.name, calls=first.calls)
    second = await model.chat_json(details_request(question, *sides, label, pack))
    if isinstance(second, Failure):
        return PairLabel(label=label.name, details=second, calls=first.calls)
    level = second.value["significance"]
    return PairLabel(
        label=label.name,
        topic=str(second.value["topic"]).strip() or None if label.topic else None,
        significance=level if label.significance and level != "none" else None,
        calls=first.calls + second.calls,
    )


def _of_verdict(verdict: PairVerdict) -> PairLabel:
    return PairLabel(
        label=verdict.label,
        topic=verdict.topic,
        significance=verdict.significance,
        failure=verdict.failure,
        calls=verdict.calls,
    )


def _less(after: Cost, before: Cost) -> Cost:
    return Cost(
        calls=after.calls - before.calls,
        tokens_in=after.tokens_in - before.tokens_in,
        tokens_out=after.tokens_out - before.tokens_out,
        money=after.money - before.money,
    )
