"""Rankings of other software: TREC runs, measured on the same questions as the lines beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.findings.ranking_measures import TREC_RUN, in_trec_order, read_trec_run
from hoofbeat.records import Hit
from hoofbeat.retrieval.rankings.test_collection import TestCollection
from hoofbeat.store import InputRef
from hoofbeat.store.artefact import file_reference

Scores = dict[str, dict[str, float]]


class TrecRun(Struct, frozen=True, kw_only=True):
    """What a run file ranks for the questions there are, best first, and what a reader of its measures must know."""

    name: str
    hits: dict[str, list[Hit]]
    source: InputRef
    notes: tuple[str, ...] = ()


def read_trec_runs(paths: Sequence[Path], collection: TestCollection, top: int) -> list[TrecRun]:
    """Read run files; the same name twice gets a number."""
    runs = [_read(path, collection, top) for path in paths]
    seen: dict[str, int] = {}
    named = []
    for run in runs:
        seen[run.name] = seen.get(run.name, 0) + 1
        name = run.name if seen[run.name] == 1 else f"{run.name} {seen[run.name]}"
        named.append(TrecRun(name=name, hits=run.hits, source=run.source, notes=run.notes))
    return named


def _read(path: Path, collection: TestCollection, top: int) -> TrecRun:
    scores = _scores(path)
    asked = {question.id for question in collection.questions}
    kept = {question: found for question, found in scores.items() if question in asked}
    if not kept:
        some = f"; the first of it is {next(iter(scores))!r}" if scores else ""
        raise InputError(
            f"the run ranks nothing for any of these questions{some}",
            where=str(path),
            fix=f"check that its question ids are those of {collection.name}",
        )
    ranked = {document for found in kept.values() for document in found}
    unknown = len(ranked - collection.ids)
    if unknown == len(ranked):
        raise InputError(
            f"none of the documents of the run is in {collection.name}; one of them is {min(ranked)!r}",
            where=str(path),
            fix="check that it ranks these documents, by their ids",
        )
    deepest = max(map(len, kept.values()))
    told = (
        (len(scores) - len(kept), "questions of the run are not asked here; they are left out"),
        (len((asked & collection.qrels.keys()) - kept.keys()), "questions are not in the run; they count 0"),
        (unknown, "documents of the run are not in the collection; they count as not relevant"),
    )
    notes = [f"{count} {words}" for count, words in told if count]
    if deepest > top:
        notes.append(f"the run ranks up to {deepest} documents; the first {top} count, as for the lines")
    return TrecRun(
        name=f"run:{path.name.removesuffix('.gz').rpartition('.')[0] or path.name}",
        hits={question: _hits(question, found, top) for question, found in kept.items()},
        source=file_reference(path, TREC_RUN),
        notes=tuple(notes),
    )


def _scores(path: Path) -> Scores:
    scores: Scores = {}
    for hit in read_trec_run(path):
        found = scores.setdefault(hit.question, {})
        if hit.document in found:
            raise InputError(
                f"the run ranks {hit.document!r} twice for question {hit.question!r}",
                where=str(path),
                fix="keep the best of a document's passages, a line a document",
            )
        found[hit.document] = hit.score
    return scores


def _hits(question: str, found: dict[str, float], top: int) -> list[Hit]:
    """In the order in which trec_eval reads a run: by score, not by the ranks that are written there."""
    hits = [Hit(question=question, document=document, rank=0, score=score) for document, score in found.items()]
    return in_trec_order(hits)[:top]
