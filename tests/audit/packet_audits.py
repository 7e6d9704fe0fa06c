"""An invented audit of any size with chosen labels, for tests of packets, validation and ablation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison, Failure, Question
from hoofbeat.store import Counts, Manifest, create
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.audit.comparison_rows import comparison_frame

PACK = load_pack("transplant")
LABELS = tuple(label.name for label in PACK.labels)
RATED = tuple(label.name for label in PACK.labels if label.significance)
PLACES = ("Alder", "Brook", "Cairn", "Dale", "Elm", "Fen")


def source_id(place: int) -> str:
    return f"hb-{PLACES[place].lower()}-kidney"


def an_audit(
    target: Path,
    labels: Sequence[str],
    *,
    texts: Mapping[tuple[str, str], str] | None = None,
    bases: Mapping[str, str] | None = None,
) -> Audit:
    """An audit whose pairs, question by question, have these labels in turn; an empty one is a failed comparison."""
    sources = [source_id(place) for place in range(len(PLACES))]
    pairs = list(combinations(sources, 2))
    questions = [
        Question(id=f"q{number:03d}", text=f"Invented question {number}?", facets={"group": "kidney"})
        for number in range(-(-len(labels) // len(pairs)))
    ]
    wanted = [(question.id, a, b) for question in questions for a, b in pairs][: len(labels)]
    answers = [
        Answer(
            question=question.id,
            model="m",
            condition="source",
            source=source,
            text=(texts or {}).get(
                (question.id, source), f"The Alder team of {question.id} and number {place} say: wait {place} weeks."
            ),
            absent=False,
        )
        for question in questions
        for place, source in enumerate(sources)
    ]
    comparisons = [
        Comparison(
            question=question,
            a=a,
            b=b,
            label=label,
            reasoning=f"Reasoning on {label}." if label else "",
            significance=PACK.significance_levels[number % 3] if label in RATED else None,
            topic="weeks" if label in RATED else None,
            judge="" if label == "Absent" else "judge-9000",
            basis=(bases or {}).get(label, "absent" if label == "Absent" else "judged"),
            failure=None if label else Failure(kind="timeout", message="no answer in time"),
        )
        for number, ((question, a, b), label) in enumerate(zip(wanted, labels, strict=True))
    ]
    kinds = TableEnums.of(
        questions=(question.id for question in questions),
        sources=sources,
        labels=LABELS,
        levels=PACK.significance_levels,
        judges=["judge-9000"],
    )
    with create(target, replace_kind="audit") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(
            draft.path / "sources.jsonl",
            [
                AuditSource(id=name, title=f"{place} Transplant Handbook", facets={"institution": f"{place} Hospital"})
                for name, place in zip(sources, PLACES, strict=True)
            ],
        )
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_parquet(draft.path / "comparisons.parquet", comparison_frame(comparisons, kinds))
        draft.finish(
            Manifest(
                kind="audit",
                title="invented",
                settings={"pack": f"{PACK.name}@{PACK.fingerprint}"},
                models={"answer": "m", "judge": "judge-9000"},
                counts=Counts(kept=len(comparisons)),
            )
        )
    return Audit.open(target)


def in_turn(**counts: int) -> list[str]:
    """So many of each label, spread over the audit."""
    return [label for turn in range(max(counts.values())) for label, count in counts.items() if turn < count]
