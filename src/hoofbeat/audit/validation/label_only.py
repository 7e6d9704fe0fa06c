"""An ablation of the judge's call: a sample of pairs judged in one structured call, and with the label alone.

Label-only judging asks for the label first, and for the rest in a later call that is told the label. It is the natural
other way to judge a pair, and cheaper. The same model judges each pair both ways; with `order`, it also judges each
pair with its two answers exchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement, compare_protocols
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_folder import ABLATION, ValidationFolder, write_tables
from hoofbeat.audit.pair_judge import PairJudge, comparison_request
from hoofbeat.audit.pair_plan import Claim, PairVerdict, asked_order
from hoofbeat.audit.sample_records import PairJudgedTwice, PairLabel, SampledPair
from hoofbeat.audit.source_names import source_dates
from hoofbeat.audit.validation.packets import answers_of, draw_pairs
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import ChatRequest, Estimate, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, RelationLabel
from hoofbeat.records import Failure, Question
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact

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
    dates = source_dates(audit.sources)
    found = []
    for pair in sorted(pairs, key=lambda each: each.key):
        claims = [Claim.of(answers[pair.question, side], audit.pack, dates) for side in (pair.a, pair.b)]
        if asked_order(claims[0].text, claims[1].text)[0] != claims[0].text:
            claims.reverse()
        a, b = (claim.shown() for claim in claims)
        reference = references.get(pair.key, "")
        found.append(PairToJudgeTwice(pair=pair, question=questions[pair.question], a=a, b=b, reference=reference))
    return found


def label_request(question: Question, a: str, b: str, pack: Pack) -> ChatRequest:
    """The call for the label alone."""
    prompt = pack.prompt("compare-label")
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["classification"]["enum"] = [label.name for label in pack.choices]
    values = {
        "question": question.full_text,
        "answer_a": a,
        "answer_b": b,
        "labels": pack.choices,
        "decision": pack.decision.strip(),
        "reader": pack.reader,
    }
    return prompt.request(values, schema=schema)


def details_request(question: Question, a: str, b: str, label: RelationLabel, pack: Pack) -> ChatRequest:
    """The later call for topic and significance, which is told the label."""
    prompt = pack.prompt("compare-details")
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
        return _of_verdict(await judge.judge(comparison_request(item.question, a, b, pack), model))

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


def ablation_sample(
    audit: Audit, per_label: int, seed: int, validated: Path | None, progress: Progress
) -> tuple[list[PairToJudgeTwice], dict[str, int], list[InputRef]]:
    """The pairs to judge, all judged pairs by label, and the inputs."""
    labels = {label.name: per_label for label in audit.pack.judged}
    drawn, counts = draw_pairs(audit, labels, seed=seed, judged=True, progress=progress)
    inputs = [audit.artefact.reference()]
    references: dict[tuple[str, str, str], str] = {}
    if validated is not None:
        folder = ValidationFolder.open(validated)
        if folder.artefact.manifest.inputs[0].sha256 != inputs[0].sha256:
            raise InputError(
                "this validation is of another audit",
                where=str(validated),
                fix="name a validation of this audit",
            )
        inputs.append(folder.artefact.reference())
        drawn, references = _labelled(folder, audit.pack.absent)
    if not drawn:
        raise UsageError(
            "there are no judged pairs to judge again", where=str(audit.artefact.path), fix="name another audit"
        )
    return pairs_to_judge(audit, drawn, references), counts, inputs


def _labelled(folder: ValidationFolder, absent: str) -> tuple[list[SampledPair], dict[tuple[str, str, str], str]]:
    """The judged pairs that people have a reference for; absent ones and same texts never go to a judge."""
    pairs, references = [], {}
    for each in folder.pairs:
        rated = each.rated
        if each.reference.label is None or rated.judge == absent or rated.basis in {"absent", "same"}:
            continue
        pair = SampledPair(
            question=rated.question,
            a=rated.a,
            b=rated.b,
            label=rated.judge,
            significance=rated.judge_significance,
            basis=rated.basis,
        )
        pairs.append(pair)
        references[pair.key] = each.reference.label
    return pairs, references


def ablate_judge(
    audit: Audit,
    items: Sequence[PairToJudgeTwice],
    counts: Mapping[str, int],
    model: Model,
    target: Path,
    *,
    seed: int,
    settings: Mapping[str, object],
    inputs: Sequence[InputRef],
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> tuple[Artefact, ProtocolAgreement]:
    """Judge the pairs both ways and write the folder; `counts` are all judged pairs of the audit by label."""
    rows, costs = judge_both_ways(model, items, audit.pack, order=bool(settings["order"]), progress=progress)
    domain, levels = RelationLabels.of(audit.pack.labels), audit.pack.significance_levels
    figures = compare_protocols(rows, counts, domain, levels, costs, seed=seed)
    failures: dict[str, int] = {}
    for row in rows:
        failure = row.structured.failure or row.label_only.failure
        if failure:
            failures[failure.kind] = failures.get(failure.kind, 0) + 1
    failed = sum(failures.values())
    base = {"pack": audit.artefact.manifest.settings.get("pack", ""), "audit": audit.artefact.path.name}
    with create(target, replace_kind=ABLATION) as draft:
        write_tables(draft.path, rows, figures)
        draft.finish(
            Manifest(
                kind=ABLATION,
                title=f"{len(rows)} pairs judged both ways",
                command=list(command),
                inputs=list(inputs),
                settings={**base, **settings},
                seeds={"draw": seed, "bootstrap": seed},
                models={"judge": model.identity},
                prompts={name: audit.pack.prompt(name).label for name in PROMPTS},
                counts=Counts(kept=len(rows) - failed, failed=failed, failures=dict(sorted(failures.items()))),
                cost=model.cost,
                costs=dict(costs),
                metrics=_summary(figures),
            )
        )
    return open_artefact(target, ABLATION), figures


def _summary(found: ProtocolAgreement) -> dict[str, object]:
    """The key figures for the manifest."""
    people = found.people
    return {
        "pairs": found.pairs,
        "agreement": found.agreement.accuracy if found.agreement.n else None,
        "kappa": found.agreement.kappa,
        "kept": {row.label: row.kept_share for row in found.shifts},
        "significance_kappa": found.significance.kappa,
        "flip_rates": {row.protocol: row.rate for row in found.flips},
        "people": {
            "n": people.n,
            "structured": people.structured.agreement.accuracy,
            "label_only": people.label_only.agreement.accuracy,
            "p": people.p,
        }
        if people
        else None,
    }
