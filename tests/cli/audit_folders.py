"""Audit folders for the commands that read them: of invented pairs, written as the audit writes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from hoofbeat.audit import AuditSource
from hoofbeat.audit.audit_folder import KIND, PAIRS
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.store import Counts, Manifest, create
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.audit.comparison_rows import comparison_frame

__all__ = ["LETTERS", "invented_pairs", "write_audit"]

LETTERS = {"-": "Absent", "c": "Consistent", "m": "Complementary", "d": "Divergent", "x": "Contradictory"}


def invented_pairs(labels: dict[str, str], sources: Sequence[str] = ("alder", "brook", "cairn")) -> list[Comparison]:
    """Question to the letters of its pairs, sources in order."""
    return [
        Comparison(
            question=question, a=a, b=b, label=LETTERS[mark], basis="absent" if mark == "-" else "judged",
            judge="" if mark == "-" else "judge", topic=f"time of {question}" if mark in "dx" else None,
            significance="medium" if mark in "dx" else None, reasoning="Invented.",
        )
        for question, marks in labels.items()
        for (a, b), mark in zip(combinations(sources, 2), marks, strict=True)
    ]  # fmt: skip


def write_audit(
    path: Path,
    comparisons: Sequence[Comparison],
    *,
    pack: str = "transplant",
    questions: Sequence[Question] = (),
    answers: Sequence[Answer] = (),
    settings: dict[str, object] | None = None,
) -> Path:
    """An audit folder of these pairs; a source answers what it is judged on, and is silent on the rest, if no
    `answers` are given."""
    domain = load_pack(pack)
    asked = sorted({item.question for item in comparisons})
    sources = sorted({name for item in comparisons for name in (item.a, item.b)})
    heard = {(item.question, name) for item in comparisons for name in (item.a, item.b) if item.label != domain.absent}
    kinds = TableEnums.of(
        questions=asked, sources=sources, labels=[label.name for label in domain.labels],
        levels=domain.significance_levels, judges=sorted({item.judge for item in comparisons if item.judge}),
    )  # fmt: skip
    known = {question.id: question for question in questions}
    said = answers or [
        Answer(question=q, model="m", condition="source", source=s, absent=(q, s) not in heard)
        for q in asked
        for s in sources
    ]
    with create(path, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", [known.get(q, Question(id=q, text=f"What of {q}?")) for q in asked])
        write_jsonl(draft.path / "sources.jsonl", [AuditSource(id=name, title=name, facets={}) for name in sources])
        write_jsonl(draft.path / "answers.jsonl", said)
        write_parquet(draft.path / PAIRS, comparison_frame(comparisons, kinds))
        draft.finish(
            Manifest(
                kind=KIND,
                settings={"pack": f"{domain.name}@{domain.fingerprint}", "mode": "full", **(settings or {})},
                models={"answer": "m", "judge": "judge"},
                counts=Counts(kept=len(comparisons)),
            )
        )
    return path
