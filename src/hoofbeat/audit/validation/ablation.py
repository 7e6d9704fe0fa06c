"""An ablation of the judge's call: a sample of pairs judged in one structured call, and with the label alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement, compare_protocols
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_folder import ABLATION, ValidationFolder, write_tables
from hoofbeat.audit.sample_records import SampledPair
from hoofbeat.audit.validation.label_only import PROMPTS, PairToJudgeTwice, judge_both_ways, pairs_to_judge
from hoofbeat.audit.validation.packets import draw_pairs
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact


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
                "people labelled pairs of another audit there",
                where=str(validated),
                fix="name a validation of this one",
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
                prompts={name: load_prompt(name).label for name in PROMPTS},
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
