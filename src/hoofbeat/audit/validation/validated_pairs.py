"""From an audit and what annotators gave back to the pairs of a validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.audit import Audit
from hoofbeat.audit.findings.validation_figures import Rated, reference
from hoofbeat.audit.findings.validation_folder import ValidatedPair
from hoofbeat.audit.sample_records import Drawn
from hoofbeat.audit.validation.packet_labels import HumanLabels
from hoofbeat.audit.validation.packet_text import pair_code
from hoofbeat.audit.validation.packets import answers_of

__all__ = ["validated_pairs"]


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


def _rated(pair: Drawn, given: HumanLabels) -> Rated:
    said = given.labels.get(pair.key, {})
    settled = given.adjudicated.get(pair.key)
    return Rated(
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


def _reasons(audit: Audit, pairs: Sequence[Drawn]) -> dict[tuple[str, str, str], str]:
    """The judge's reasoning on these pairs."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    wanted = {pair.key for pair in pairs}
    asked = polars.col("question").cast(polars.String).is_in(sorted({pair.question for pair in pairs}))
    rows = audit.frame(["question", "a", "b", "reasoning"]).filter(asked).collect()
    return {(q, a, b): reasoning or "" for q, a, b, reasoning in rows.iter_rows() if (q, a, b) in wanted}
