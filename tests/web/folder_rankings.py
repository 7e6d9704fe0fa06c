"""Rankings to browse: every question of the benchmark with a dozen cases in an order drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from hoofbeat.corpus import Corpus
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.records import Hit, Question
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_tsv

__all__ = ["MEASURES", "a_ranking", "hand_written_ranking"]

MEASURES = ("nDCG@10", "R@10", "RR")
_TOP = 12


def hand_written_ranking(
    target: Path, bench: Artefact, corpus: Corpus, questions: Sequence[Question], line: str, *, seed: int
) -> Artefact:
    """A ranking in which the source of a question comes early, late or not at all."""
    rng = random.Random(seed)
    names = sorted(corpus.ids())
    hits = []
    for question in questions:
        order = rng.sample(names, _TOP)
        source = question.documents[0]
        if source not in order and rng.random() < 0.8:
            order[min(_TOP - 1, int(rng.expovariate(0.6)))] = source
        hits += [_hit(question.id, name, rank, line, rng) for rank, name in enumerate(order, start=1)]
    grades = {question.id: dict.fromkeys(question.documents, 1) for question in questions}
    inputs = [bench.reference(), corpus.artefact.reference()]
    return a_ranking(target, questions, hits, grades, line=line, inputs=inputs)


def _hit(question: str, document: str, rank: int, line: str, rng: random.Random) -> Hit:
    stages = [stage.strip() for stage in line.split("+")]
    via = {stage: (max(1, rank + rng.randint(-2, 2)), round(20 / (rank + rng.random()), 4)) for stage in stages}
    return Hit(question=question, document=document, rank=rank, score=1 / (60 + rank), passage=f"{document}#1", via=via)


def a_ranking(
    target: Path,
    questions: Sequence[Question],
    hits: Sequence[Hit],
    grades: Mapping[str, Mapping[str, int]] | None = None,
    *,
    line: str = "bm25",
    inputs: Sequence[InputRef] = (),
    traces: Sequence[SearchQuery] = (),
) -> Artefact:
    """A rankings folder of these hits, measured where there are grades."""
    lost = {each.id: each.failure.kind for each in traces if each.failure is not None}
    judged = {name: each for name, each in (grades or {}).items() if name not in lost}
    result = evaluate(hits, judged, MEASURES)
    with create(target, replace_kind="rankings") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "hits.jsonl", hits)
        if traces:
            write_jsonl(draft.path / "traces.jsonl", traces)
        metrics: dict[str, object] = {}
        if judged:
            rows = [(name, measure, result.per_question[name][measure]) for name in judged for measure in MEASURES]
            write_tsv(draft.path / "queries.tsv", ("query", "measure", "value"), rows)
            for measure in MEASURES:
                span = bootstrap_mean([result.per_question[name][measure] for name in judged])
                value = {"value": result.means[measure], "low": span.low, "high": span.high, "n": len(judged)}
                metrics[measure] = value
        draft.finish(
            Manifest(
                kind="rankings",
                title=line,
                command=["hoofbeat", "retrieve", "bench", "--with", line],
                inputs=list(inputs),
                settings={"line": line, "bed": "bench", "top": _TOP},
                seeds={"bootstrap": 0},
                counts=Counts(
                    kept=len(questions) - len(lost), failed=len(lost), failures=dict.fromkeys(lost.values(), 1)
                ),
                metrics=metrics,
            )
        )
    return open_artefact(target, "rankings")
