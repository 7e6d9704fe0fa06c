"""Small invented artefacts of every kind, written with the store's own functions: what the report tests look at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import polars
from msgspec.structs import replace

from hoofbeat import teaching
from hoofbeat.audit import AuditSource
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.corpus.corpus import ImportRejection
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.records import (
    Answer,
    Comparison,
    Document,
    Failure,
    Figure,
    Hit,
    Judgment,
    Passage,
    Question,
    Section,
    Span,
)
from hoofbeat.store import Artefact, Cost, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_parquet, write_tsv
from tests.audit.comparison_rows import comparison_frame

HOSTILE = (
    '<script>window.owned=1</script>"><img src=x onerror="window.owned=2"><svg onload=window.owned=3>'
    "\u202egnp.exe\u202c \u2066hidden\u2069 \x07 {{ 7*7 }} </title></style><style>body{display:none}</style> "
    "[x](javascript:alert(1)) | `tick` " + "W" * 400
)

ANSWERER = "embedded:qwen2.5-coder-1.5b"
JUDGE = "openai:judge-1"


def finish(
    target: Path,
    manifest: Manifest,
    tables: dict[str, Sequence[object]],
    frames: dict[str, polars.DataFrame] | None = None,
) -> Artefact:
    with create(target, replace_kind=manifest.kind) as draft:
        for name, frame in (frames or {}).items():
            write_parquet(draft.path / name, frame)
        for name, records in tables.items():
            write_jsonl(draft.path / name, records)
        draft.finish(manifest)
    return open_artefact(target)


def case_questions() -> list[Question]:
    made = []
    for case in teaching.cases():
        if case.question is None:
            continue
        made.append(
            Question(
                id=case.id.replace("hbt-case", "case"),
                text=case.question.text,
                context=case.question.context,
                answer=case.question.answer,
                documents=(case.id,),
                evidence=tuple(
                    Span(document=case.id, start=1200, end=1200 + len(quote), quote=quote)
                    for quote in case.question.evidence
                ),
                facets={"specialty": case.specialty, "rare": "rare" if case.rare else "not rare"},
            )
        )
    return made


def corpus(target: Path, documents: Sequence[Document] | None = None) -> Artefact:
    found = documents
    if found is None:
        found = [
            Document(
                id=case.id,
                title=case.title,
                text=f"{case.title}\n{case.diagnosis}. {case.significance}" * 20,
                sections=(Section(heading="Case", level=1, start=0, body=5, end=900, role="case"),),
                figures=(Figure(id="f1", label="Figure 1"),) * (index % 3),
                facets={"specialty": case.specialty, "kind": "case report"},
                licence="CC BY 4.0" if index % 4 else "",
            )
            for index, case in enumerate(teaching.cases())
        ]
    rejected = [
        ImportRejection(source="scans/letter-12.pdf", reason="no text: letter-12"),
        ImportRejection(source="cases/copy-of-03.xml", reason="same content as hbt-case-03.xml"),
    ]
    manifest = Manifest(
        kind="corpus",
        title="teaching cases (invented)",
        command=["hoofbeat", "corpus", "import", "cases", "-o", "cases corpus"],
        inputs=[InputRef(name=f"{document.id}.xml", sha256=f"{n:064x}") for n, document in enumerate(found, start=7)],
        counts=Counts(kept=len(found), rejected=2, reasons={"no text": 1, "same content": 1}),
    )
    return finish(target, manifest, {"documents.jsonl": found, "rejected.jsonl": rejected})


def benchmark(target: Path, questions: Sequence[Question] | None = None) -> Artefact:
    found = case_questions() if questions is None else questions
    manifest = Manifest(
        kind="benchmark",
        title="teaching questions",
        command=["hoofbeat", "build", "ogcare", "cases"],
        counts=Counts(
            kept=len(found),
            rejected=9,
            failed=2,
            reasons={"the decisive step is in the question": 4, "no decisive step": 3, "answer not supported": 2},
            failures={"schema": 2},
        ),
        models={"writer": ANSWERER},
        prompts={"write": "ogcare-write@4f1c0b7d2a91"},
        cost=Cost(calls=66, tokens_in=81_220, tokens_out=9_120, money=0.0312),
    )
    return finish(target, manifest, {"questions.jsonl": found})


def rankings(
    target: Path, line: str, quality: float, *, seed: int = 1, searched: str = "cases", bed: str = "", shared: int = 1
) -> Artefact:
    """An invented ranking; `shared` questions in a row have the same documents."""
    rng = random.Random(seed)
    questions = case_questions()
    questions = [
        replace(each, documents=questions[place - place % shared].documents) for place, each in enumerate(questions)
    ]
    metrics: dict[str, object] = {}
    rows: list[tuple[str, str, float]] = []
    for measure, lift in (("nDCG@10", 0.0), ("R@1", -0.15), ("R@10", 0.15), ("R@100", 0.25), ("RR", -0.03)):
        values = [min(1.0, max(0.0, rng.gauss(quality + lift, 0.2))) for _ in questions]
        rows += [(question.id, measure, value) for question, value in zip(questions, values, strict=True)]
        span = bootstrap_mean(values)
        mean = sum(values) / len(values)
        metrics[measure] = {"value": mean, "low": span.low, "high": span.high, "n": len(values)}
    hits = [Hit(question=q.id, document=q.documents[0], rank=r, score=1 / r) for q in questions for r in (1, 2, 3)]
    with create(target, replace_kind="rankings") as draft:
        write_jsonl(draft.path / "hits.jsonl", hits)
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_tsv(draft.path / "queries.tsv", ("query", "measure", "value"), rows)
        draft.finish(
            Manifest(
                kind="rankings",
                title=line,
                command=["hoofbeat", "retrieve", "benchmark", "--with", line],
                inputs=[
                    InputRef(name="benchmark", sha256="b" * 64, kind="benchmark"),
                    InputRef(name=searched, sha256=searched.encode().hex().ljust(64, "0"), kind="corpus"),
                ],
                settings={"line": line, "top": 100, **({"bed": bed} if bed else {})},
                seeds={"bootstrap": 0},
                counts=Counts(kept=len(questions)),
                metrics=metrics,
            )
        )
    return open_artefact(target)


def answered(
    condition: str, rate: float = 0.5, model: str = ANSWERER, *, failing: float = 0.0, seed: int = 3
) -> list[Answer]:
    rng = random.Random(f"{seed}{condition}{model}")
    made = []
    for number, question in enumerate(case_questions()):
        passages = tuple(
            Passage(
                id=f"{question.documents[0]}#{k}",
                document=question.documents[0],
                heading="Discussion",
                text=f"Passage {k}. {question.context[: 300 * k]}",
                end=300,
            )
            for k in range(1, 4)
        )
        base = Answer(
            question=question.id,
            model=model,
            condition=condition,
            evidence=() if condition == "closed" else passages,
        )
        if rng.random() < failing:
            kinds = ("refusal", "truncated")
            failure = Failure(kind=kinds[number % 2], message="the answer stopped early")  # type: ignore[arg-type]
            made.append(Answer(question=question.id, model=model, condition=condition, failure=failure))
            continue
        text = question.answer if rng.random() < rate else "Start supportive care, consult the specialist and observe."
        made.append(Answer(question=base.question, model=model, condition=condition, text=text, evidence=base.evidence))
    return made


def judged(
    target: Path,
    answers: Sequence[Answer],
    *,
    questions: Sequence[Question] | None = None,
    failing: float = 0.02,
    judge: str = JUDGE,
    inputs: Sequence[InputRef] = (),
) -> Artefact:
    rng = random.Random(5)
    gold = {question.id: question.answer for question in case_questions()}
    judgments = []
    for answer in answers:
        base = Judgment(question=answer.question, model=answer.model, condition=answer.condition, judge=judge)
        if answer.failure:
            judgments.append(replace(base, failure=Failure(kind=answer.failure.kind, message="no answer")))
        elif rng.random() < failing:
            judgments.append(replace(base, failure=Failure(kind="unreadable", message="no label in the output")))
        else:
            right = answer.text == gold.get(answer.question, "")
            reason = (
                "Both recommend the same drug, dose and timing."
                if right
                else "The reference starts a specific treatment; the answer only observes."
            )
            judgments.append(replace(base, label="equivalent" if right else "mismatch", reasoning=reason))
    manifest = Manifest(
        kind="judgments",
        title=f"judged by {judge}",
        command=["hoofbeat", "judge", "run", "--model", judge],
        inputs=list(inputs) or [InputRef(name="run", sha256="c" * 64, kind="run")],
        settings={"aspect": "equivalence", "positive": "equivalent"},
        models={"answer": answers[0].model if answers else ANSWERER, "judge": judge},
        prompts={"answer-closed": "answer-closed@91aa03c4de10", "judge": "equivalence@77b0f2c1aa34"},
        counts=Counts(kept=len(judgments)),
        cost=Cost(calls=len(judgments), tokens_in=48_000, tokens_out=4_100, money=0.0204),
    )
    tables: dict[str, Sequence[object]] = {
        "questions.jsonl": case_questions() if questions is None else questions,
        "answers.jsonl": answers,
        "judgments.jsonl": judgments,
    }
    return finish(target, manifest, tables)


def run(target: Path, answers: Sequence[Answer], questions: Sequence[Question] | None = None) -> Artefact:
    manifest = Manifest(
        kind="run",
        title=f"answers of {ANSWERER}",
        command=["hoofbeat", "answer", "benchmark", "--condition", "closed"],
        models={"answer": ANSWERER},
        settings={"conditions": ["closed"], "samples": 1, "limit": None},
        counts=Counts(kept=len(answers)),
        cost=Cost(calls=len(answers), tokens_in=20_000, tokens_out=2_000),
    )
    asked = case_questions() if questions is None else questions
    return finish(target, manifest, {"questions.jsonl": asked, "answers.jsonl": answers})


def planted() -> dict[tuple[str, str, str], str]:
    return {(item.question, item.a, item.b): item.label for item in teaching.relations()}


def audit(target: Path, *, limit: int = 24, noise: float = 0.2, failing: float = 0.02) -> Artefact:
    rng = random.Random(11)
    truth = {(item.question, item.a, item.b): item for item in teaching.relations()}
    labels = ("Consistent", "Complementary", "Divergent", "Contradictory")
    questions = [
        Question(id=q.id, text=q.text, facets={"group": q.group, "topics": list(q.topics)})
        for q in teaching.patient_questions()[:limit]
    ]
    gold = [item for item in teaching.patient_gold() if item.question in {q.id for q in questions}]
    sources = sorted({item.source for item in teaching.patient_gold()})
    answers = [
        Answer(
            question=item.question,
            model=ANSWERER,
            condition="source",
            source=item.source,
            text=item.answer or "NOT ADDRESSED: this handbook does not answer the question.",
            absent=item.absent,
            citations=tuple(quote.heading for quote in item.evidence),
        )
        for item in gold
    ]
    comparisons = []
    for question in questions:
        asked = sorted(answer.source for answer in answers if answer.question == question.id)
        for a, b in combinations(asked, 2):
            known = truth[question.id, a, b]
            if rng.random() < failing:
                failure = Failure(kind="timeout", message="no complete answer in 60 s", attempts=3)
                comparisons.append(Comparison(question=question.id, a=a, b=b, judge=JUDGE, failure=failure))
                continue
            label = known.label if known.label == "Absent" or rng.random() > noise else rng.choice(labels)
            serious = label in ("Divergent", "Contradictory")
            comparisons.append(
                Comparison(
                    question=question.id,
                    a=a,
                    b=b,
                    judge=JUDGE,
                    label=label,
                    basis="absent" if label == "Absent" else "judged",
                    reasoning=known.why,
                    topic=known.topic if label not in ("Absent", "Consistent") else None,
                    significance=(known.significance or "low") if serious else None,
                )
            )
    manifest = Manifest(
        kind="audit",
        title=f"{len(sources)} sources, {len(questions)} questions",
        command=["hoofbeat", "audit", "handbooks", "teaching", "--model", ANSWERER, "--judge", JUDGE],
        inputs=[InputRef(name="handbooks", sha256="d" * 64, kind="corpus")],
        settings={"line": "bm25 + dense", "passages": 5, "whole_up_to": 80000, "pack": "transplant@0011aabbccdd"},
        models={"answer": ANSWERER, "judge": JUDGE},
        prompts={"answer-source": "answer-source@aa", "absence": "absence@bb", "compare": "compare@cc"},
        counts=Counts(kept=len(comparisons)),
        cost=Cost(calls=440, tokens_in=610_000, tokens_out=38_000, money=0.41),
    )
    titles = {name: name.removeprefix("hb-").replace("-", " ").title() + " transplant handbook" for name in sources}
    tables: dict[str, Sequence[object]] = {
        "questions.jsonl": questions,
        "sources.jsonl": [AuditSource(id=name, title=titles[name], facets={}) for name in sources],
        "answers.jsonl": answers,
    }
    kinds = TableEnums.of(
        questions=[question.id for question in questions], sources=sources, labels=("Absent", *labels),
        levels=("low", "medium", "high"), judges=[JUDGE],
    )  # fmt: skip
    return finish(target, manifest, tables, {"comparisons.parquet": comparison_frame(comparisons, kinds)})


def study(folder: Path) -> list[Path]:
    """A whole invented study: one artefact of each kind, and several rankings and judgments."""
    lines = (("bm25", 0.62), ("dense", 0.55), ("bm25 + dense", 0.71), ("bm25 + dense > rerank@100", 0.78))
    ranked = [rankings(folder / f"rankings-{n}", line, q, seed=n) for n, (line, q) in enumerate(lines, start=1)]
    closed, top = answered("closed", 0.3, failing=0.1), answered("bm25 + dense @3", 0.55)
    made = [
        corpus(folder / "cases"),
        benchmark(folder / "benchmark"),
        *ranked,
        judged(folder / "judged", [*closed, *top]),
        judged(folder / "judged-oracle", answered("oracle", 0.85, failing=0.05)),
        audit(folder / "audit"),
    ]
    return [artefact.path for artefact in made]
