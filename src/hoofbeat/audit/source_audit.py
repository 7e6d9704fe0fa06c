"""The audit: every source answers every question it is asked, and every pair of answers is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hoofbeat.audit.answer_blocks import answer_all_sources
from hoofbeat.audit.audit_folder import ECONOMY, KIND, ORDER, PACK, PAIRS, Audit, AuditSource
from hoofbeat.audit.audit_plan import AuditPlan
from hoofbeat.audit.economy.economy_audit import check_economy
from hoofbeat.audit.pair_judge import PairJudge
from hoofbeat.audit.pair_judgments import PairTally, PairToProbe, judge_all, probe_order
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.prompts.packs import encode_pack
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.atomic_files import write_bytes
from hoofbeat.store.tables import write_jsonl

__all__ = ["Audit", "AuditPlan", "AuditSource", "audit_sources"]


def audit_sources(
    plan: AuditPlan,
    model: Model,
    judge: Model,
    target: Path,
    *,
    inputs: Sequence[InputRef],
    command: Sequence[str] = (),
    line_cost: Callable[[], Cost] = Cost,
    trial: Mapping[str, object] | None = None,
    progress: Progress = SILENT,
) -> Artefact:
    """Run the audit, or a shard of it, and write its folder.

    `line_cost` says, when all is done, what models cost that the retriever line asked. `trial` are the figures of a
    trial of the judge, which the manifest keeps.
    """
    questions = plan.own_questions
    pair_judge = PairJudge(judge, plan.pack)
    with create(target, replace_kind=KIND) as draft:
        folder = draft.path
        write_jsonl(folder / "questions.jsonl", questions)
        write_jsonl(folder / "sources.jsonl", plan.sources)
        write_bytes(folder / PACK, encode_pack(plan.pack))
        claims, answered = answer_all_sources(plan, model, folder / "answers.jsonl", progress=progress)
        draw: ReservoirSample[PairToProbe] | None = ReservoirSample(plan.probe, plan.seed) if plan.probe else None
        compared = judge_all(
            pair_judge,
            questions,
            claims,
            kinds_of(plan, judge),
            folder / PAIRS,
            economy=plan.economy,
            draw=draw,
            progress=progress,
        )
        metrics: dict[str, object] = {**answered.metrics(), **compared.metrics()}
        if draw is not None:
            write_jsonl(folder / ORDER, probe_order(pair_judge, draw, progress=progress))
        if plan.economy is not None:
            by_id = {question.id: question for question in questions}
            size, seed = plan.economy.check, plan.seed
            probes, check = check_economy(pair_judge, by_id, claims, folder / PAIRS, size, seed, progress=progress)
            write_jsonl(folder / ECONOMY, probes)
            metrics["economy"] = {
                "spread": check.spread,
                "exact": check.exact,
                "checked": check.n,
                "agree": check.agree,
                "unscored": check.unscored,
            }
        alone = {question.id for question in plan.uncompared} & {question.id for question in questions}
        if alone:
            metrics["uncompared"] = len(alone)
        if trial is not None:
            metrics["trial"] = dict(trial)
        cost = line_cost() + (model.cost if model is judge else model.cost + judge.cost)
        draft.finish(_manifest(plan, model, judge, inputs, command, compared, metrics, cost))
    return open_artefact(target, KIND)


def kinds_of(plan: AuditPlan, judge: Model) -> TableEnums:
    """The values of the table's columns: those of the whole plan, so that the tables of shards fit together."""
    return TableEnums.of(
        questions=(question.id for question in plan.questions),
        sources=(source.id for source in plan.sources),
        labels=[label.name for label in plan.pack.labels],
        levels=plan.pack.significance_levels,
        judges=[judge.spec],
    )


def _manifest(
    plan: AuditPlan,
    model: Model,
    judge: Model,
    inputs: Sequence[InputRef],
    command: Sequence[str],
    compared: PairTally,
    metrics: dict[str, object],
    cost: Cost,
) -> Manifest:
    settings: dict[str, object] = {
        **plan.settings,
        "pack": f"{plan.pack.name}@{plan.pack.fingerprint}",
        "mode": "economy" if plan.economy else "full",
        "plan": plan.fingerprint(model, judge),
    }
    if plan.economy is not None:
        settings["economy"] = plan.economy.describe()
    if plan.probe:
        settings["probe_order"] = plan.probe
    if plan.shard is not None:
        settings["shard"] = str(plan.shard)
        settings["questions"] = len(plan.questions)
    failed = compared.failures.total()
    stages = ("absence", "compare") if plan.given is not None else ("answer-source", "absence", "compare")
    return Manifest(
        kind=KIND,
        title=title_of(len(plan.sources), len(plan.own_questions)),
        command=list(command),
        inputs=list(inputs),
        settings=settings,
        seeds={"sample": plan.seed} if plan.probe or plan.economy else {},
        models={"answer": model.identity, "judge": judge.identity},
        prompts={name: load_prompt(name).label for name in stages},
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
