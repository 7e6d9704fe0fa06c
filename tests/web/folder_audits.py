"""Audits to browse: the handbooks' planted answers and relations, and once more with some of the labels changed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from hoofbeat import teaching
from hoofbeat.audit import AuditSource
from hoofbeat.audit.audit_folder import PACK, PAIRS
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.audit.source_citations import check_citations
from hoofbeat.corpus import Corpus
from hoofbeat.prompts import load_pack
from hoofbeat.prompts.packs import encode_pack
from hoofbeat.recipes.teaching_questions import teaching_patient_questions
from hoofbeat.records import Answer, Comparison, Document, Failure, Passage, Question
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.audit.comparison_rows import comparison_frame

__all__ = ["JUDGE", "hand_written_audit", "passages_of"]

JUDGE = "openai:judge-1"
SILENT = "NOT ADDRESSED: this handbook does not answer the question."


def passages_of(document: Document) -> tuple[Passage, ...]:
    """The sections of a document as passages."""
    return tuple(
        Passage(
            id=f"{document.id}#{number}",
            document=document.id,
            text=document.section_text(section),
            start=section.body,
            end=section.end,
            heading=section.heading,
            page=section.page,
        )
        for number, section in enumerate(document.sections)
        if document.section_text(section).strip()
    )


def _source_answer(gold: teaching.PatientGold, model: str, passages: Sequence[Passage]) -> Answer:
    headings = [quote.heading for quote in gold.evidence]
    first = [passage for passage in passages if passage.heading in headings]
    shown = (*first, *[passage for passage in passages if passage not in first][: max(0, 3 - len(first))])
    base = Answer(
        question=gold.question,
        model=model,
        condition="source",
        source=gold.source,
        evidence=shown,
        absent=gold.absent,
        text=gold.answer or SILENT,
    )
    if gold.absent:
        return base
    quote = gold.evidence[0]
    checked = check_citations(quote.heading, quote.quote, gold.answer, shown)
    return replace(base, citations=checked.citations, trace=checked.steps, warnings=checked.warnings)


def _comparisons(questions: Sequence[Question], answers: Sequence[Answer], noise: float, seed: int) -> list[Comparison]:
    """The planted relations; of those that were judged, a share of `noise` get another label, and one is lost."""
    rng = random.Random(seed)
    pack = load_pack("transplant")
    rated = {label.name for label in pack.labels if label.significance}
    planted = {(each.question, each.a, each.b): each for each in teaching.relations()}
    made: list[Comparison] = []
    for question in questions:
        for a, b in combinations(sorted(each.source for each in answers if each.question == question.id), 2):
            known = planted[question.id, a, b]
            silent = known.label == pack.absent
            label = known.label
            if not silent and rng.random() < noise:
                label = rng.choice([each.name for each in pack.labels if each.name not in (label, pack.absent)])
            serious = label in rated
            made.append(
                Comparison(
                    question=question.id,
                    a=a,
                    b=b,
                    label=label,
                    reasoning=known.why,
                    topic=known.topic if serious else None,
                    significance=(known.significance or "low") if serious else None,
                    judge="" if silent else JUDGE,
                    basis="absent" if silent else "judged",
                )
            )
    if noise:
        failure = Failure(kind="timeout", message="no complete answer in 60 s", attempts=3)
        first = next(place for place, each in enumerate(made) if each.basis == "judged")
        lost = made[first]
        made[first] = Comparison(question=lost.question, a=lost.a, b=lost.b, judge=JUDGE, failure=failure)
    return made


def hand_written_audit(target: Path, corpus: Corpus, model: str, *, noise: float, seed: int) -> Artefact:
    """An audit of the handbooks in which a share of `noise` of the judged pairs have another label than planted."""
    pack = load_pack("transplant")
    questions = teaching_patient_questions()
    documents = {document.id: document for document in corpus}
    shown = {id: passages_of(document) for id, document in documents.items()}
    answers = [_source_answer(gold, model, shown[gold.source]) for gold in teaching.patient_gold()]
    comparisons = _comparisons(questions, answers, noise, seed)
    sources = [
        AuditSource(id=each.id, title=each.title, facets={**each.facets, "organ": each.id.rpartition("-")[2]})
        for each in documents.values()
    ]
    kinds = TableEnums.of(
        questions=[question.id for question in questions],
        sources=[source.id for source in sources],
        labels=[label.name for label in pack.labels],
        levels=pack.significance_levels,
        judges=[JUDGE],
    )
    failed = sum(bool(each.failure) for each in comparisons)
    with create(target, replace_kind="audit") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "sources.jsonl", sources)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_bytes(draft.path / PACK, encode_pack(pack))
        write_parquet(draft.path / PAIRS, comparison_frame(comparisons, kinds))
        draft.finish(
            Manifest(
                kind="audit",
                title=f"{len(sources)} sources, {len(questions)} questions",
                command=["hoofbeat", "audit", "handbooks", "teaching"],
                inputs=[corpus.artefact.reference()],
                settings={"line": "hero", "pack": f"{pack.name}@{pack.fingerprint}", "mode": "full"},
                models={"answer": model, "judge": JUDGE},
                prompts={"answer-source": "answer-source@aa", "absence": "absence@bb", "compare": "compare@cc"},
                counts=Counts(
                    kept=len(comparisons) - failed, failed=failed, failures={"timeout": failed} if failed else {}
                ),
                cost=Cost(calls=440, tokens_in=610_000, tokens_out=38_000, money=0.41),
            )
        )
    return open_artefact(target, "audit")
