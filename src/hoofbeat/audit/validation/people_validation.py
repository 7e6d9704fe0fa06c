"""An audit's judge measured by people: what annotators gave back becomes the pairs and figures of a validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_figures import RatedPair, Validation, reference, validation
from hoofbeat.audit.findings.validation_folder import VALIDATION, ValidatedPair, write_tables
from hoofbeat.audit.sample_records import SampledPair
from hoofbeat.audit.validation.packet_labels import HumanLabels
from hoofbeat.audit.validation.packet_text import pair_code
from hoofbeat.audit.validation.packets import Packets, answers_of, label_counts
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import file_reference


def validate_audit(
    audit: Audit,
    given: HumanLabels,
    target: Path,
    *,
    files: Sequence[Path],
    packets: Packets | None = None,
    partial: bool = False,
    seed: int = 0,
    command: Sequence[str] = (),
) -> tuple[Artefact, Validation]:
    """Write the folder of a validation, and give its figures; `files` are those that the labels came from."""
    counts, unlabelled = label_counts(audit)
    pairs = validated_pairs(audit, given, counts)
    figures = validation(
        [pair.rated for pair in pairs],
        counts,
        RelationLabels.of(audit.pack.labels),
        audit.pack.significance_levels,
        unlabelled=unlabelled,
        seed=seed,
    )
    split = len([pair for pair in pairs if pair.reference.label is None])
    manifest = audit.artefact.manifest
    with create(target, replace_kind=VALIDATION) as draft:
        write_tables(draft.path, pairs, figures)
        draft.finish(
            Manifest(
                kind=VALIDATION,
                title=f"{len(given.annotators)} annotators, {len(pairs)} pairs",
                command=list(command),
                inputs=_inputs(audit, packets, files),
                settings={
                    "pack": manifest.settings.get("pack", ""),
                    "audit": audit.artefact.path.name,
                    "mode": audit.mode,
                    "partial": partial,
                    "notes": list(given.notes),
                },
                seeds={"bootstrap": seed},
                models={role: name for role, name in manifest.models.items() if role.partition(":")[0] == "judge"},
                counts=Counts(
                    kept=len(pairs) - split, rejected=split, reasons={"no reference": split} if split else {}
                ),
                metrics=_summary(figures),
            )
        )
    return open_artefact(target, VALIDATION), figures


def _inputs(audit: Audit, packets: Packets | None, files: Sequence[Path]) -> list[InputRef]:
    """The audit, the packets where they were named, and every file of labels."""
    inputs = [audit.artefact.reference(), *([packets.artefact.reference()] if packets else [])]
    return inputs + [file_reference(path, "labels") for path in files]


def _summary(found: Validation) -> dict[str, object]:
    """The key figures for the manifest."""
    judge = found.judge
    people = found.people.pairs[0] if found.people and len(found.people.pairs) == 1 else None
    return {
        "pairs": found.pairs,
        "references": found.references,
        "annotators_kappa": people.kappa.value if people else None,
        "annotators_alpha": found.people.nominal.value if found.people else None,
        "agreement": judge.agreement.accuracy if judge.agreement.n else None,
        "kappa": judge.agreement.kappa,
        "macro_f1": judge.f1.macro,
        "weighted_f1": judge.f1.weighted,
        "population_agreement": found.population.agreement,
        "significance_kappa": found.significance.agreement.kappa if found.significance else None,
        "corrected": {f"{rate.name} ({rate.scope})": rate.estimate for rate in found.corrected},
    }


def validated_pairs(audit: Audit, given: HumanLabels, counts: Mapping[str, int]) -> list[ValidatedPair]:
    """The sample as records: what people gave beside what the audit has."""
    questions = {question.id: question for question in audit.questions}
    answers = answers_of(audit, given.pairs)
    reasons = _reasons(audit, given.pairs)
    rated = [_rated(pair, given) for pair in given.pairs]
    known = [reference(row) for row in rated]
    labelled = [row.judge for row, said in zip(rated, known, strict=True) if said.label is not None]
    return [
        ValidatedPair(
            rated=row,
            reference=said,
            weight=counts[row.judge] / labelled.count(row.judge) if said.label is not None else None,
            question=questions[row.question].full_text,
            answer_a=answers[row.question, row.a].text,
            answer_b=answers[row.question, row.b].text,
            reasoning=reasons.get((row.question, row.a, row.b), ""),
            notes={
                who: each.note for who, each in given.labels.get((row.question, row.a, row.b), {}).items() if each.note
            },
        )
        for row, said in zip(rated, known, strict=True)
    ]


def _rated(pair: SampledPair, given: HumanLabels) -> RatedPair:
    said = given.labels.get(pair.key, {})
    settled = given.adjudicated.get(pair.key)
    return RatedPair(
        item=pair_code(*pair.key),
        question=pair.question,
        a=pair.a,
        b=pair.b,
        judge=pair.label,
        judge_significance=pair.significance,
        basis=pair.basis,
        labels={who: each.label for who, each in said.items()},
        significances={who: each.significance for who, each in said.items() if each.significance},
        adjudicated=settled.label if settled else "",
        adjudicated_significance=settled.significance if settled else None,
    )


def _reasons(audit: Audit, pairs: Sequence[SampledPair]) -> dict[tuple[str, str, str], str]:
    """The judge's reasoning on these pairs."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    wanted = {pair.key for pair in pairs}
    asked = polars.col("question").cast(polars.String).is_in(sorted({pair.question for pair in pairs}))
    rows = audit.frame(["question", "a", "b", "reasoning"]).filter(asked).collect()
    return {(q, a, b): reasoning or "" for q, a, b, reasoning in rows.iter_rows() if (q, a, b) in wanted}
