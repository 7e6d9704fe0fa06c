"""Ranking measures with trec_eval's semantics, by the names ir_measures gives them; and runs as TREC writes them.

A measure is a named value (`nDCG@10`, `P(rel=2)@10`). As in trec_eval, a document counts as relevant from grade 1 (or
from `rel`), gains are the grades themselves (or, with `dcg='exp-log2'`, two to the power of the grade, less one), and
equal scores (in single precision) are ordered by document id, descending, whatever order the run was written in. A
question that was judged and has no hits counts 0. A line of a TREC run is a hit: question, Q0, document, rank, score,
tag.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from hoofbeat.corpus.qrels import trec_name
from hoofbeat.errors import InputError, UsageError, did_you_mean
from hoofbeat.records import Hit
from hoofbeat.store.files import lines, open_stream, text_of

TREC_RUN = "trec run"
"""The kind of input that is a run file of other software."""


def trec_run_lines(hits: Iterable[Hit], tag: str) -> Iterator[str]:
    """The run as TREC lines: question, Q0, document, rank, score, tag. Scores are written so that they read back."""
    for hit in hits:
        question, document = trec_name(hit.question), trec_name(hit.document)
        yield f"{question} Q0 {document} {hit.rank} {hit.score!r} {trec_name(tag)}"


def read_trec_run(path: Path) -> list[Hit]:
    """Read a TREC run, plain or gzipped; columns may be separated by any blanks, and blank lines are passed over."""
    hits = []
    with open_stream(path) as stream:
        for number, line in lines(stream):
            cells = text_of(line, number).split()
            if cells:
                hits.append(_hit(cells, number, path))
    return hits


def in_trec_order(hits: Sequence[Hit]) -> list[Hit]:
    """One question's hits with the ranks at which they are measured: ties may stand otherwise in a search's results."""
    order = trec_order([hit.document for hit in hits], [hit.score for hit in hits])
    return [
        hits[place] if hits[place].rank == rank else replace(hits[place], rank=rank)
        for rank, place in enumerate(order, start=1)
    ]


def trec_order(documents: Sequence[str], scores: ArrayLike) -> list[int]:
    """Places by score as trec_eval orders them: equal scores, in single precision, by document id, descending."""
    with np.errstate(over="ignore"):
        single = np.asarray(scores, np.float64).astype(np.float32)
    if np.all(single[1:] < single[:-1]):
        return list(range(len(documents)))
    by_id = sorted(
        range(len(documents)), key=lambda place: documents[place].encode("utf-8", "surrogatepass"), reverse=True
    )
    return [by_id[place] for place in np.argsort(-single[by_id], kind="stable")]


def _hit(cells: list[str], number: int, path: Path) -> Hit:
    try:
        question, _, document, rank, score, _ = cells
        hit = Hit(question=question, document=document, rank=int(rank), score=float(score))
        if math.isnan(hit.score):
            raise ValueError("the score is not a number")
    except ValueError as err:
        raise InputError(
            f"line {number} is not a line of a TREC run",
            where=str(path),
            fix="a line holds question, Q0, document, rank, score and tag",
        ) from err
    return hit


RANKINGS = "rankings"
"""The kind of folder that holds the rankings of one line."""

MeasureName = Literal["nDCG", "R", "P", "RR", "AP", "Success", "Judged"]
Gains = Literal["log2", "exp-log2"]
"""What a grade gains: itself, or two to its power less one; both are discounted by the logarithm of the rank."""

Qrels = Mapping[str, Mapping[str, int]]
"""Question id to document id to grade."""

_NAMES: dict[str, MeasureName] = {
    "ndcg": "nDCG", "r": "R", "recall": "R", "p": "P", "precision": "P", "rr": "RR", "mrr": "RR", "ap": "AP",
    "map": "AP", "success": "Success", "judged": "Judged",
}  # fmt: skip
_GAINS: dict[str, Gains] = {"log2": "log2", "exp-log2": "exp-log2"}
_NEEDS_CUTOFF = frozenset({"P", "R", "Success"})
_MEASURE = re.compile(r"([A-Za-z]+)\s*(?:\(([^()]*)\)\s*)?(?:@\s*([1-9]\d{0,8}))?")
_SETTING = re.compile(r"""\s*(\w+)\s*=\s*(?:(\d{1,6})|'([^']*)'|"([^"]*)")\s*""")
_USE = "use for example nDCG@10, R@100, P(rel=2)@10, RR, AP, Success@5 or Judged@10"


class Measure(Struct, frozen=True):
    """A named measure with the cutoff it looks at (None: the whole ranking).

    `rel` is the grade from which a document is relevant; `dcg` says what a grade gains and matters to nDCG only.
    """

    name: MeasureName
    cutoff: int | None = None
    rel: int = 1
    dcg: Gains = "log2"

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Read `nDCG@10`, `R@100`, `P(rel=2)@10`, `RR`; case does not matter, `Recall`, `MRR` and `MAP` are understood.

        `str()` of what was read is the name as ir_measures writes it.
        """
        match = _MEASURE.fullmatch(text.strip())
        name = _NAMES.get(match[1].lower()) if match else None
        if match is None or name is None:
            guess = did_you_mean(match[1], dict.fromkeys(_NAMES.values())) if match else ""
            raise UsageError(f"unknown measure {text!r}", fix=f"{guess}{_USE}")
        if match[3] is None and name in _NEEDS_CUTOFF:
            raise UsageError(f"the measure {text} needs a cutoff", fix=f"write for example {name}@10")
        rel, dcg = _settings(name, match[2] or "", text)
        return cls(name, int(match[3]) if match[3] else None, rel, dcg)

    def __str__(self) -> str:
        settings = f"(rel={self.rel})" if self.rel != 1 else f"(dcg='{self.dcg}')" if self.dcg != "log2" else ""
        return self.name + settings + ("" if self.cutoff is None else f"@{self.cutoff}")

    def value(self, grades: Sequence[int | None], judged: Collection[int]) -> float:
        """The measure of one ranking: the grade at each rank (None where unjudged), and all grades of the question."""
        top = grades[: self.cutoff]
        found = [grade is not None and grade >= self.rel for grade in top]
        match self.name:
            case "nDCG":
                ideal = _dcg(sorted(judged, reverse=True)[: self.cutoff], judged, self.dcg)
                return _dcg(top, judged, self.dcg) / ideal if ideal else 0.0
            case "R":
                return sum(found) / self._relevant(judged)
            case "P":
                return sum(found) / (self.cutoff or max(len(grades), 1))
            case "RR":
                return next((1 / rank for rank, relevant in enumerate(found, start=1) if relevant), 0.0)
            case "AP":
                ranks = [rank for rank, relevant in enumerate(found, start=1) if relevant]
                return math.fsum(seen / rank for seen, rank in enumerate(ranks, start=1)) / self._relevant(judged)
            case "Success":
                return float(any(found))
            case "Judged":
                return sum(grade is not None for grade in top) / max(len(top), 1)

    def _relevant(self, judged: Collection[int]) -> int:
        """How many documents there are to find; 1 where there is none, so that nothing is divided by nothing."""
        return max(sum(grade >= self.rel for grade in judged), 1)


def _settings(name: MeasureName, text: str, whole: str) -> tuple[int, Gains]:
    """The settings between a measure's brackets: `rel`, or for nDCG `dcg`."""
    rel, dcg = 1, _GAINS["log2"]
    allowed = {"nDCG": "dcg", "Judged": ""}.get(name, "rel")
    for part in text.split(",") if text.strip() else ():
        match = _SETTING.fullmatch(part)
        if match is None or match[1] != allowed:
            has = f"the only setting of {name} is {allowed}" if allowed else f"{name} has no settings"
            raise UsageError(f"the measure {whole!r} has a setting {part.strip()!r} that can't be read", fix=has)
        words = match[3] if match[3] is not None else match[4]
        if allowed == "rel" and match[2] and int(match[2]) >= 1:
            rel = int(match[2])
        elif allowed == "dcg" and words in _GAINS:
            dcg = _GAINS[words]
        else:
            fix = "rel is a grade of 1 or more" if allowed == "rel" else f"dcg is one of {', '.join(map(repr, _GAINS))}"
            raise UsageError(f"the measure {whole!r} can't have {part.strip()}", fix=fix)
    return rel, dcg


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
        if math.isnan(hit.score):
            raise InputError(
                f"the score of {hit.document!r} for question {hit.question!r} is not a number",
                fix="check the retriever that wrote the run",
            )
        scores[hit.document] = hit.score
    per_question: dict[str, dict[str, float]] = {}
    for question, judged in qrels.items():
        found = run.get(question, {})
        names = list(found)
        grades = [judged.get(names[place]) for place in trec_order(names, list(found.values()))]
        per_question[question] = {str(measure): measure.value(grades, judged.values()) for measure in chosen}
    n = len(per_question)
    return Evaluation(
        n=n,
        means={str(m): math.fsum(row[str(m)] for row in per_question.values()) / n if n else 0.0 for m in chosen},
        per_question=per_question,
        without_hits=sum(question not in run for question in qrels),
        unjudged=sum(question not in qrels for question in run),
    )


def _dcg(grades: Iterable[int | None], judged: Collection[int], dcg: Gains) -> float:
    """Discounted gain; exponential gains are given in units of the highest grade's, so that none is too large."""
    highest = max([0, *judged])
    gains: Iterable[float] = (max(grade or 0, 0) for grade in grades)
    if dcg == "exp-log2":
        gains = (2.0 ** (gain - highest) - 2.0**-highest for gain in gains)
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1) if gain > 0)
