"""Ranking measures with trec_eval's semantics, and the files they are read from.

A measure is a named value (`nDCG@10`). As in trec_eval, a document counts as relevant from grade 1, gains are the
grades themselves, and equal scores (in single precision) are ordered by document id, descending, whatever order the
run was written in. A question that was judged and has no hits counts 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Hit
from hoofbeat.store.files import read_bytes
from hoofbeat.store.tables import read_tsv

__all__ = [
    "Evaluation",
    "Measure",
    "MeasureName",
    "Qrels",
    "evaluate",
    "ndcg",
    "precision",
    "read_qrels",
    "read_trec_run",
    "recall",
    "reciprocal_rank",
    "trec_run_lines",
]

MeasureName = Literal["nDCG", "R", "P", "RR"]

Qrels = Mapping[str, Mapping[str, int]]
"""Question id to document id to grade."""

_NAMES: dict[str, MeasureName] = {
    "ndcg": "nDCG",
    "r": "R",
    "recall": "R",
    "p": "P",
    "precision": "P",
    "rr": "RR",
    "mrr": "RR",
}
_MEASURE = re.compile(r"([A-Za-z]+)(?:@([1-9]\d{0,8}))?")


class Measure(Struct, frozen=True):
    """A named measure: `nDCG`, `R`, `P` or `RR`, with the cutoff it looks at (None: the whole ranking)."""

    name: MeasureName
    cutoff: int | None = None

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read `nDCG@10`, `R@100`, `P@10`, `RR`; case does not matter, `Recall` and `MRR` are understood too."""
        match = _MEASURE.fullmatch(text.strip())
        name = _NAMES.get(match[1].lower()) if match else None
        if match is None or name is None:
            raise UsageError(f"unknown measure {text!r}", fix="use for example nDCG@10, R@100, P@10 or RR")
        if match[2] is None and name in {"P", "R"}:
            raise UsageError(f"the measure {text} needs a cutoff", fix=f"write for example {name}@10")
        return cls(name, int(match[2]) if match[2] else None)

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    def value(self, grades: Sequence[int], judged: Collection[int]) -> float:
        """The measure of one ranking: the grade at each rank (0 where unjudged), and all grades of the question."""
        top = grades[: self.cutoff]
        found = sum(grade > 0 for grade in top)
        match self.name:
            case "nDCG":
                ideal = _dcg(sorted(judged, reverse=True)[: self.cutoff])
                return _dcg(top) / ideal if ideal else 0.0
            case "R":
                return found / max(sum(grade > 0 for grade in judged), 1)
            case "P":
                return found / (self.cutoff or max(len(grades), 1))
            case "RR":
                return next((1 / rank for rank, grade in enumerate(top, start=1) if grade > 0), 0.0)


def ndcg(k: int) -> Measure:
    """Normalised discounted cumulative gain of the first `k`."""
    return Measure("nDCG", k)


def recall(k: int) -> Measure:
    """The share of the relevant documents that stand among the first `k`."""
    return Measure("R", k)


def precision(k: int) -> Measure:
    """The share of the first `k` ranks that hold a relevant document."""
    return Measure("P", k)


reciprocal_rank = Measure("RR")
"""One over the rank of the first relevant document."""


class Evaluation(Struct, frozen=True, kw_only=True):
    """Measures of a run.

    `per_question` holds question → measure → value for every judged question, `means` their average over all `n` of
    them; `without_hits` counts judged questions with no hits (they count 0), `unjudged` questions of the run that no
    judgment mentions (they are left out).
    """

    n: int
    means: dict[str, float]
    per_question: dict[str, dict[str, float]]
    without_hits: int
    unjudged: int


def evaluate(hits: Iterable[Hit], qrels: Qrels, measures: Sequence[Measure | str]) -> Evaluation:
    """Measure a run against judgments, question by question and on average."""
    chosen = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in measures]
    run: dict[str, dict[str, float]] = {}
    for hit in hits:
        scores = run.setdefault(hit.question, {})
        if hit.document in scores:
            raise InputError(
                f"the document {hit.document!r} is ranked twice for question {hit.question!r}",
                fix="rank documents, not passages, to measure a run",
            )
        scores[hit.document] = hit.score
    per_question: dict[str, dict[str, float]] = {}
    for question, judged in qrels.items():
        grades = [judged.get(document, 0) for document in _trec_order(run.get(question, {}))]
        per_question[question] = {str(measure): measure.value(grades, judged.values()) for measure in chosen}
    n = len(per_question)
    return Evaluation(
        n=n,
        means={str(m): math.fsum(row[str(m)] for row in per_question.values()) / n if n else 0.0 for m in chosen},
        per_question=per_question,
        without_hits=sum(question not in run for question in qrels),
        unjudged=sum(question not in qrels for question in run),
    )


def _dcg(grades: Iterable[int]) -> float:
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _trec_order(scores: Mapping[str, float]) -> list[str]:
    by_id = sorted(scores, key=str.encode, reverse=True)
    return sorted(by_id, key=lambda document: -float(np.float32(scores[document])))


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Read judgments in BEIR's layout: a table with the columns query-id, corpus-id and score.

    A document that several assessors graded for one question keeps its highest grade.
    """
    qrels: dict[str, dict[str, int]] = {}
    for number, row in enumerate(read_tsv(path), start=2):
        try:
            question, document, grade = row["query-id"], row["corpus-id"], int(row["score"])
        except (KeyError, ValueError) as err:
            raise InputError(
                f"line {number} is no judgment: {err}",
                where=str(path),
                fix="the columns are query-id, corpus-id and score (a whole number), separated by tabs",
            ) from err
        grades = qrels.setdefault(question, {})
        grades[document] = max(grade, grades.get(document, grade))
    return qrels


def trec_run_lines(hits: Iterable[Hit], tag: str) -> Iterator[str]:
    """The run as TREC lines: question, Q0, document, rank, score, tag. Scores are written so that they read back."""
    for hit in hits:
        for name in (hit.question, hit.document, tag):
            if not name or len(name.split()) != 1 or name != name.strip():
                raise InputError(
                    f"a TREC run can't hold the name {name!r}", fix="use ids and a tag without spaces, or write JSONL"
                )
        yield f"{hit.question} Q0 {hit.document} {hit.rank} {hit.score!r} {tag}"


def read_trec_run(path: Path) -> list[Hit]:
    """Read a TREC run."""
    hits = []
    for number, line in enumerate(read_bytes(path).decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            question, _, document, rank, score, _ = line.split()
            hits.append(Hit(question=question, document=document, rank=int(rank), score=float(score)))
        except ValueError as err:
            raise InputError(
                f"line {number} is not a line of a TREC run",
                where=str(path),
                fix="a line holds question, Q0, document, rank, score and tag",
            ) from err
    return hits
