"""Small folders of answers and of audits to look at, of records written by hand; everything in them is invented."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hoofbeat.audit import AuditSource
from hoofbeat.audit.audit_folder import ORDER, PAIRS, OrderProbe
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison, Judgment, Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.audit.comparison_rows import comparison_frame

__all__ = ["a_judged", "a_run", "an_audit", "verdicts"]


def a_run(target: Path, questions: Sequence[Question], answers: Sequence[Answer]) -> Artefact:
    """A run of these answers."""
    with create(target, replace_kind="run") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "answers.jsonl", answers)
        draft.finish(Manifest(kind="run", title="A run", models={"answer": "m"}, counts=Counts(kept=len(answers))))
    return open_artefact(target)


def a_judged(
    target: Path,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    judgments: Sequence[Judgment],
    *,
    inputs: Sequence[InputRef] = (),
    title: str = "Judged",
    judge: str = "j",
) -> Artefact:
    """A folder of judgments."""
    with create(target, replace_kind="judgments") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "judgments.jsonl", judgments)
        models = {"answer": "m", "judge": judge}
        counts = Counts(kept=len(judgments))
        draft.finish(Manifest(kind="judgments", title=title, models=models, inputs=list(inputs), counts=counts))
    return open_artefact(target)


def verdicts(answers: Sequence[Answer], right: str) -> list[Judgment]:
    """A judgment of each answer that came: `+` in `right` is right, `-` wrong, in the order of the answers."""
    return [
        Judgment(
            question=answer.question,
            model=answer.model,
            condition=answer.condition,
            sample=answer.sample,
            judge="j",
            label="equivalent" if mark == "+" else "mismatch",
            reasoning=f"Invented reason {place}.",
        )
        for place, (answer, mark) in enumerate(zip(answers, right, strict=True))
        if not answer.failure
    ]


def an_audit(
    target: Path,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    comparisons: Sequence[Comparison],
    *,
    sources: Sequence[AuditSource] = (),
    probes: Sequence[OrderProbe] = (),
) -> Artefact:
    """An audit folder."""
    pack = load_pack("transplant")
    named = sources or [
        AuditSource(id=name, title=name, facets={}) for name in sorted({each.source for each in answers})
    ]
    kinds = TableEnums.of(
        questions=[question.id for question in questions],
        sources=[source.id for source in named],
        labels=[label.name for label in pack.labels],
        levels=pack.significance_levels,
        judges={each.judge for each in comparisons if each.judge},
    )
    with create(target, replace_kind="audit") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "sources.jsonl", named)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_parquet(draft.path / PAIRS, comparison_frame(comparisons, kinds))
        if probes:
            write_jsonl(draft.path / ORDER, probes)
        settings: dict[str, object] = {"pack": f"{pack.name}@{pack.fingerprint}", "mode": "full"}
        models, counts = {"answer": "m", "judge": "j"}, Counts(kept=len(comparisons))
        draft.finish(Manifest(kind="audit", title="An audit", settings=settings, models=models, counts=counts))
    return open_artefact(target)
