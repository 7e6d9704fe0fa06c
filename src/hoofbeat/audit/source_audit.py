"""The audit: every source answers every question it is asked, and every pair of answers is compared.

Answers and pairs are made block by block. Each block of answers is written before the next is planned, with all its
evidence; only what is compared (who says what) stays in memory. A block of pairs is some questions with a few thousand
pairs to judge. Its rows are written aside as one Parquet part, and the parts become one table at the end. Judgments are
in the ledger before they are used, so a command that is killed and started again asks only for the rest and writes the
same bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from hoofbeat.audit.answers_by_source import WINDOW, answer_from_sources
from hoofbeat.audit.answers_file import decide_absence
from hoofbeat.audit.audit_doubts import WARNINGS, audit_doubts
from hoofbeat.audit.audit_folder import ECONOMY, KIND, ORDER, PACK, PAIRS, POSITIONS, Audit, OrderProbe
from hoofbeat.audit.audit_plan import AuditPlan
from hoofbeat.audit.economy.economy_audit import CarriedLabels, prepare_economy
from hoofbeat.audit.economy.positions import PROMPT
from hoofbeat.audit.judge_votes import Judges, judge_roles
from hoofbeat.audit.pair_judge import PairJudge, judge_pairs, judge_texts
from hoofbeat.audit.pair_plan import Claim, PairPlan, PairVerdict, pair_frame, plan_pairs
from hoofbeat.audit.pair_table import PartWriter, TableEnums
from hoofbeat.audit.source_citations import count_citations
from hoofbeat.audit.source_names import source_dates
from hoofbeat.errors import BatchPending
from hoofbeat.judging.canary import PROMPT as CANARY
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.models import Model
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.model import model_facts
from hoofbeat.progress import SILENT, Progress, Task, Within
from hoofbeat.prompts import load_prompt
from hoofbeat.prompts.packs import encode_pack
from hoofbeat.records import Answer, Question
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl
from hoofbeat.window import LIMITED_BY_WINDOW

if TYPE_CHECKING:
    import polars

__all__ = [
    "Audit",
    "AuditPlan",
    "audit_sources",
]

_ASKED = 8192  # pairs to judge in a block
_ASKED_OF_A_BATCH = 50_000
_PAIRS = 500_000  # pairs of any kind in a block


class PairTally:
    """How many pairs there are, by label, by how they came to it, and by what went wrong."""

    def __init__(self) -> None:
        self.pairs = 0
        self.labels: Counter[str] = Counter()
        self.bases: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.scanned = 0

    def add(self, frame: polars.DataFrame) -> None:
        """Count the rows of a part."""
        self.pairs += frame.height
        for name, counter in (("label", self.labels), ("basis", self.bases), ("failure", self.failures)):
            counts = frame[name].drop_nulls().value_counts()
            counter.update(dict(zip(counts[name].cast(str).to_list(), counts["count"].to_list(), strict=True)))

    def metrics(self) -> dict[str, object]:
        """The counts for a manifest."""
        found: dict[str, object] = {
            "labels": dict(sorted(self.labels.items())),
            "basis": dict(sorted(self.bases.items())),
        }
        return {**found, "label_only": self.scanned} if self.scanned else found


PairToProbe = tuple[Question, tuple[str, str], tuple[str, str], str]
"""A judged pair: the question, its sources, its texts in the order the judge saw them, and the label."""


def judge_all(
    judge: PairJudge,
    questions: Sequence[Question],
    claims: Mapping[str, Sequence[Claim]],
    kinds: TableEnums,
    target: Path,
    *,
    economy: CarriedLabels | None = None,
    draw: ReservoirSample[PairToProbe] | None = None,
    progress: Progress = SILENT,
) -> PairTally:
    """Judge every pair of every question and write the table; pairs with a call of their own are offered to `draw`.

    With a batch folder the calls that exchange the answers travel with the comparisons, for the pairs that will be
    drawn if no comparison fails. In economy the positions of the answers decide which pairs are asked.
    """
    tally = PairTally()
    parts = PartWriter(target.with_name(f"{target.name}.parts"))
    pending: list[BatchPending] = []
    batched = any(isinstance(model.backend, BatchBackend) for model in judge.models)
    size = _ASKED_OF_A_BATCH if batched else _ASKED
    ahead: ReservoirSample[PairToProbe] | None = None
    if draw is not None and batched and economy is None:
        ahead = ReservoirSample(draw.size, draw.seed)
    ordered = sorted(questions, key=lambda each: each.id)
    plans = (economy.plan(each) if economy else plan_pairs(each, claims.get(each.id, ())) for each in ordered)
    total = sum(len(each) * (len(each) - 1) // 2 for each in claims.values())
    with progress.task("comparing sources", total) as task:
        for block in _blocks(plans, size):
            if ahead is not None:
                for plan in block:
                    for a, b in plan.asked:
                        offer_to_probe(ahead, plan, a, b, "")
            try:
                frame = _judge_block(judge, block, kinds, economy, draw, tally, task)
            except BatchPending as err:
                pending.append(err)
                continue
            tally.add(frame)
            parts.add(frame)
    if pending and ahead is not None:
        try:
            probe_order(judge, ahead, progress=progress)
        except BatchPending as err:
            pending.append(err)
    stop_if_pending(pending)
    parts.finish(target, kinds)
    return tally


def _blocks(plans: Iterator[PairPlan], size: int) -> Iterator[list[PairPlan]]:
    block: list[PairPlan] = []
    asked = pairs = 0
    for plan in plans:
        block.append(plan)
        asked += len(plan.asked)
        pairs += len(plan.a)
        if asked >= size or pairs >= _PAIRS:
            yield block
            block, asked, pairs = [], 0, 0
    if block:
        yield block


def _judge_block(
    judge: PairJudge,
    block: Sequence[PairPlan],
    kinds: TableEnums,
    economy: CarriedLabels | None,
    draw: ReservoirSample[PairToProbe] | None,
    tally: PairTally,
    task: Task,
) -> polars.DataFrame:
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    known = economy.known if economy else {}
    judged = [known.get(plan.question.id, {}) for plan in block]
    told = sum(pair in mine for plan, mine in zip(block, judged, strict=True) for pair in plan.asked)
    task.advance(sum(len(plan.a) - len(plan.asked) for plan in block) + told)

    def heard(plan: PairPlan, a: int, b: int, verdict: PairVerdict) -> None:
        tally.scanned += verdict.scanned
        if draw is not None and verdict.failure is None:
            offer_to_probe(draw, plan, a, b, verdict.label)

    said = judge_pairs(judge, block, known=judged, progress=Within(task))
    for plan, verdicts in zip(block, said, strict=True):
        for (a, b), verdict in zip(plan.asked, verdicts, strict=True):
            heard(plan, a, b, verdict)
    return polars.concat(
        [pair_frame(plan, verdicts, judge.pack, kinds, judge.name) for plan, verdicts in zip(block, said, strict=True)]
    )


def offer_to_probe(draw: ReservoirSample[PairToProbe], plan: PairPlan, a: int, b: int, label: str) -> None:
    """Offer a judged pair to the draw of those that are judged again with their answers exchanged."""
    sources = plan.claims[min(a, b)].source, plan.claims[max(a, b)].source
    draw.offer((plan.question.id, *sources, 0), (plan.question, sources, (plan.texts[a], plan.texts[b]), label))


def probe_order(
    judge: PairJudge, draw: ReservoirSample[PairToProbe], *, progress: Progress = SILENT
) -> list[OrderProbe]:
    """Judge the drawn pairs again with their answers exchanged."""
    drawn = draw.drawn()
    items = [(question, second, first) for question, _, (first, second), _ in drawn]
    said = judge_texts(judge, items, title="exchanging the answers", progress=progress)
    return [
        OrderProbe(
            question=question.id,
            a=a,
            b=b,
            label=label,
            swapped=verdict.label,
            failure=f"{verdict.failure.kind}: {verdict.failure.message}" if verdict.failure else "",
        )
        for (question, (a, b), _, label), verdict in zip(drawn, said, strict=True)
    ]


def stop_if_pending(pending: Sequence[BatchPending]) -> None:
    """Stop where answers of a batch are still to come, once every request of this round is written."""
    if pending:
        raise BatchPending.together(pending)


T = TypeVar("T")
_BLOCK = 1024
_BLOCK_OF_A_BATCH = 50_000
_encode = msgspec.json.Encoder().encode


class AnswerTally:
    """What was answered: by outcome, by how evidence was found, and what is wrong with citations."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.routes: Counter[str] = Counter()
        self.citations: Counter[str] = Counter()
        self.limited: Counter[str] = Counter()

    def add(self, answers: Sequence[Answer]) -> None:
        """Count a block."""
        for answer in answers:
            if answer.failure is not None:
                self.failures[answer.failure.kind] += 1
            self.outcomes["failed" if answer.failure else "silent" if answer.absent else "addressed"] += 1
            for step in answer.trace[:1]:
                if step.what.startswith("route: "):
                    self.routes[step.what.removeprefix("route: ")] += 1
            self.limited.update(step.what for step in answer.trace if step.stage == WINDOW)
        self.citations.update(count_citations(answers))

    def metrics(self) -> dict[str, object]:
        """The counts for a manifest."""
        named = {
            "answers": self.outcomes,
            "routes": self.routes,
            "citations": self.citations,
            LIMITED_BY_WINDOW: self.limited,
        }
        found: dict[str, object] = {
            name: dict(sorted(counter.items())) for name, counter in named.items() if counter.total()
        }
        return {**found, "answer_failures": dict(sorted(self.failures.items()))} if self.failures else found


def answer_all_sources(
    plan: AuditPlan, model: Model, target: Path, *, progress: Progress = SILENT
) -> tuple[dict[str, list[Claim]], AnswerTally]:
    """Write every answer of the plan, in order; returns what is compared of them, question by question."""
    tally = AnswerTally()
    claims: dict[str, list[Claim]] = {}
    dates = source_dates(plan.sources)
    pending: list[BatchPending] = []
    with target.open("wb") as stream, progress.task("answering from each source", plan.size) as task:
        for block in _answered(plan, model, pending, task):
            for answer in block:
                stream.write(_encode(answer))
                stream.write(b"\n")
                claims.setdefault(answer.question, []).append(Claim.of(answer, plan.pack, dates))
            tally.add(block)
        stream.flush()
        os.fsync(stream.fileno())
    stop_if_pending(pending)
    return claims, tally


def _answered(plan: AuditPlan, model: Model, pending: list[BatchPending], task: Task) -> Iterator[list[Answer]]:
    size = _BLOCK_OF_A_BATCH if isinstance(model.backend, BatchBackend) else _BLOCK
    if plan.given is not None:
        questions = {question.id: question for question in plan.own_questions}
        mine = (answer for answer in plan.given if answer.question in questions)
        for given in in_blocks(mine, size):
            try:
                yield decide_absence(model, questions, given, plan.pack, progress=Within(task))
            except BatchPending as err:
                pending.append(err)
        return
    for planned in in_blocks(plan.each_planned(model), size):
        try:
            yield answer_from_sources(model, planned, plan.pack, max_tokens=plan.max_tokens, progress=Within(task))
        except BatchPending as err:
            pending.append(err)


def in_blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    stream = iter(items)
    while block := list(islice(stream, size)):
        yield block


def audit_sources(
    plan: AuditPlan,
    model: Model,
    judge: Judges,
    target: Path,
    *,
    inputs: Sequence[InputRef],
    command: Sequence[str] = (),
    line_cost: Callable[[], Cost] = Cost,
    trial: Mapping[str, object] | None = None,
    progress: Progress = SILENT,
) -> Artefact:
    """Run the audit, or a shard of it, and write its folder.

    Of several judges the majority decides. `line_cost` says, when all is done, what models cost that the retriever line
    asked. `trial` are the figures of a trial of the judge, which the manifest keeps.
    """
    questions = plan.own_questions
    pair_judge = PairJudge(judge, plan.pack, canary=plan.canary)
    with create(target, replace_kind=KIND) as draft:
        folder = draft.path
        write_jsonl(folder / "questions.jsonl", questions)
        write_jsonl(folder / "sources.jsonl", plan.sources)
        write_bytes(folder / PACK, encode_pack(plan.pack))
        claims, answered = answer_all_sources(plan, model, folder / "answers.jsonl", progress=progress)
        draw: ReservoirSample[PairToProbe] | None = ReservoirSample(plan.probe, plan.seed) if plan.probe else None
        carried = None
        if plan.economy is not None:
            carried = prepare_economy(plan.economy, pair_judge, questions, claims, plan.seed, progress=progress)
        compared = judge_all(
            pair_judge,
            questions,
            claims,
            kinds_of(plan, pair_judge),
            folder / PAIRS,
            economy=carried,
            draw=draw,
            progress=progress,
        )
        metrics: dict[str, object] = {**answered.metrics(), **compared.metrics()}
        if draw is not None:
            write_jsonl(folder / ORDER, probe_order(pair_judge, draw, progress=progress))
        if carried is not None:
            write_jsonl(folder / ECONOMY, carried.probes)
            write_jsonl(folder / POSITIONS, carried.held_positions())
            metrics["economy"] = carried.metrics(len(pair_judge.models))
        alone = {question.id for question in plan.uncompared} & {question.id for question in questions}
        if alone:
            metrics["uncompared"] = len(alone)
        if trial is not None:
            metrics["trial"] = dict(trial)
        roles = {"answer": model, **judge_roles(judge)}
        doubts = audit_doubts(
            {role: each.identity for role, each in roles.items()},
            answered.citations,
            judged=compared.labels.total() - compared.labels[plan.pack.absent],
            pairs=compared.pairs,
            questions=len(questions),
        )
        if doubts:
            metrics[WARNINGS] = list(doubts)
        sorter = [plan.economy.sorter] if plan.economy else []
        used = {id(each): each for each in (model, *pair_judge.models, *sorter)}
        cost = sum((each.cost for each in used.values()), line_cost())
        draft.finish(_manifest(plan, model, judge, inputs, command, compared, metrics, cost))
    return open_artefact(target, KIND)


def kinds_of(plan: AuditPlan, judge: PairJudge) -> TableEnums:
    """The values of the table's columns: those of the whole plan, so that the tables of shards fit together."""
    return TableEnums.of(
        questions=(question.id for question in plan.questions),
        sources=(source.id for source in plan.sources),
        labels=[label.name for label in plan.pack.labels],
        levels=plan.pack.significance_levels,
        judges=[judge.name],
    )


def _manifest(
    plan: AuditPlan,
    model: Model,
    judge: Judges,
    inputs: Sequence[InputRef],
    command: Sequence[str],
    compared: PairTally,
    metrics: dict[str, object],
    cost: Cost,
) -> Manifest:
    roles = {"answer": model, **judge_roles(judge), **({"sort": plan.economy.sorter} if plan.economy else {})}
    settings: dict[str, object] = {
        **plan.settings,
        "pack": f"{plan.pack.name}@{plan.pack.fingerprint}",
        "mode": "economy" if plan.economy else "full",
        "plan": plan.fingerprint(model, judge),
        **model_facts(roles),
    }
    if plan.economy is not None:
        settings["economy"] = plan.economy.describe()
    if plan.probe:
        settings["probe_order"] = plan.probe
    if plan.canary:
        settings["canary"] = True
    if plan.shard is not None:
        settings["shard"] = str(plan.shard)
        settings["questions"] = len(plan.questions)
    failed = compared.failures.total()
    stages: tuple[str, ...] = (
        ("absence", "compare")
        if plan.given is not None
        else ("answer-source", "answer-source-again", "absence", "compare")
    )
    if plan.economy is not None:
        stages = (*stages, PROMPT)
    return Manifest(
        kind=KIND,
        title=title_of(len(plan.sources), len(plan.own_questions)),
        command=list(command),
        inputs=list(inputs),
        settings=settings,
        seeds={"sample": plan.seed} if plan.probe or plan.economy else {},
        models={role: each.identity for role, each in roles.items()},
        prompts={
            **{name: plan.pack.prompt(name).label for name in stages},
            **({CANARY: load_prompt(CANARY).label} if plan.canary else {}),
        },
        counts=Counts(
            kept=compared.pairs - failed,
            rejected=sum(plan.left_out.values()),
            failed=failed,
            reasons=dict(plan.left_out),
            failures=dict(sorted(compared.failures.items())),
        ),
        cost=cost,
        metrics=metrics,
    )


def title_of(sources: int, questions: int) -> str:
    """What an audit is called: how much it holds."""
    return f"{sources} source{'s' * (sources != 1)}, {questions} question{'s' * (questions != 1)}"
