"""The folder of a leakage check: the questions, a row for each thing measured, a sheet, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hoofbeat.facets import facet_value
from hoofbeat.leakage.leakage_check import LeakagePlan, ModelProbes
from hoofbeat.leakage.leakage_figures import LeakageSummary
from hoofbeat.leakage.leakage_records import PROBES, LikelihoodRow
from hoofbeat.models import Model
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure
from hoofbeat.store import Artefact, Cost, InputRef, Manifest, create, open_artefact
from hoofbeat.store.atomic_files import write_bytes
from hoofbeat.store.manifest import count_outcomes
from hoofbeat.store.tables import write_jsonl, write_tsv

KIND = "leakage"

_PROMPTS = {"continuation": "leakage-continue", "rationale": "leakage-rationale", "canary": "leakage-canary"}


def write_leakage(
    target: Path,
    plan: LeakagePlan,
    probed: Mapping[str, ModelProbes],
    summary: LeakageSummary,
    *,
    models: Sequence[Model],
    inputs: Sequence[InputRef],
    settings: dict[str, object],
    parts: Sequence[str],
    seed: int,
    command: Sequence[str] = (),
) -> Artefact:
    """Write the folder: the questions, a row for each thing measured, and the summary."""
    likelihoods = [row for mine in probed.values() for row in mine.likelihoods]
    overlaps = [row for mine in probed.values() for row in mine.overlaps]
    prompts = {part: load_prompt(name).label for part, name in _PROMPTS.items() if part in parts}
    failures: list[Failure | None] = [row.failure for row in likelihoods]
    failures += [row.failure for row in overlaps] + [row.failure for row in summary.canaries]
    counts = count_outcomes(failure.kind if failure else None for failure in failures)
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", plan.questions)
        write_jsonl(draft.path / "likelihoods.jsonl", likelihoods)
        write_jsonl(draft.path / "overlaps.jsonl", overlaps)
        write_jsonl(draft.path / "near.jsonl", plan.near)
        write_jsonl(draft.path / "canaries.jsonl", plan.found)
        write_bytes(draft.path / "summary.json", msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
        write_tsv(draft.path / "questions.tsv", _HEADER, _sheet(plan, probed))
        draft.finish(
            Manifest(
                kind=KIND,
                title="leakage check of " + inputs[0].name,
                command=list(command),
                inputs=list(inputs),
                settings=settings,
                seeds={"controls": seed, "bootstrap": 0},
                models={f"probed: {model.spec}": model.identity for model in models},
                prompts=prompts,
                counts=msgspec.structs.replace(counts, kept=counts.kept or len(plan.questions)),
                cost=sum((model.cost for model in models), Cost()),
                costs={model.spec: model.cost for model in models},
                metrics=_metrics(summary),
            )
        )
    return open_artefact(target, KIND)


def _metrics(summary: LeakageSummary) -> dict[str, object]:
    """The figures over all questions, by model: what a script reads."""
    metrics: dict[str, object] = {"questions": summary.questions, "near-duplicates": summary.near}
    for row in summary.likelihoods:
        if not row.by:
            name = f"{row.model}: perplexity of the {row.text}"
            metrics[name] = msgspec.to_builtins(row.perplexity)
            metrics[f"{name}, control over own"] = msgspec.to_builtins(row.ratio)
    for each in summary.overlaps:
        if not each.by:
            metrics[f"{each.model}: ROUGE-L of the {each.probe}"] = msgspec.to_builtins(each.rouge)
            metrics[f"{each.model}: edit similarity of the {each.probe}"] = msgspec.to_builtins(each.edit)
            metrics[f"{each.model}: {each.probe} reproduced"] = msgspec.to_builtins(each.share)
    return metrics


_HEADER = (
    "question", "model", "specialty", "published",
    "question_perplexity", "question_control", "question_lowest",
    "reference_perplexity", "reference_control", "explanation_perplexity", "explanation_control",
    "continuation_rouge_l", "continuation_rouge_l_control", "continuation_edit", "continuation_run",
    "rationale_rouge_l", "rationale_rouge_l_control", "rationale_edit", "rationale_run", "near_duplicates",
)  # fmt: skip


def _sheet(plan: LeakagePlan, probed: Mapping[str, ModelProbes]) -> Iterator[tuple[object, ...]]:
    """One line a question and model."""
    near: dict[str, int] = {}
    for pair in plan.near:
        near[pair.question] = near.get(pair.question, 0) + 1
    for model, mine in probed.items():
        scored = {(row.question, row.text, bool(row.control)): row for row in mine.likelihoods}
        given = {(row.question, row.probe): row for row in mine.overlaps}
        for question in plan.questions:
            date = plan.dates[question.id]
            line: list[object] = [question.id, model, facet_value(question.facets, "specialty")]
            line.append("" if date is None else f"{date.year}-{date.month:02d}" if date.month else str(date.year))
            for text in ("question", "reference", "explanation"):
                line += [_perplexity(scored.get((question.id, text, control))) for control in (False, True)]
                if text == "question":
                    own = scored.get((question.id, text, False))
                    line.append(round(own.lowest, 4) if own and own.failure is None else None)
            for probe_name in PROBES:
                row = given.get((question.id, probe_name))
                own_overlap, control = (row.own, row.control) if row else (None, None)
                line += [
                    round(own_overlap.rouge_f, 4) if own_overlap else None,
                    round(control.rouge_f, 4) if control else None,
                    round(own_overlap.edit, 4) if own_overlap else None,
                    own_overlap.run if own_overlap else None,
                ]
            yield (*line, near.get(question.id, 0))


def _perplexity(row: LikelihoodRow | None) -> float | None:
    return round(row.perplexity, 3) if row and row.failure is None else None
