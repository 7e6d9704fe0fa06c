"""What is searched in the end, and the judgments that name it.

A document that is doubtful for a question would count as wrong where it is found, so it leaves the collection for
everyone; only where it is a positive of another question it stays. Judgments hold positives (1) and verified negatives
(0) and nothing else: what is doubtful has no line in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from hoofbeat.benchmarks.benchmark_passages import COLLECTION_HEADER
from hoofbeat.corpus import Corpus
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.items import Item, Outcome
from hoofbeat.recipes.pools.collecting import Shelf
from hoofbeat.recipes.pools.overlap import OVERLAP_HEADER, overlap_rows, word_shares
from hoofbeat.recipes.steps import RecipeStep, whole

__all__ = ["searched_step"]

GRADES = {"positive": 1, "negative": 0}


def searched_step(
    name: str, shelf: Shelf, *, compare_with: Sequence[str] = (), by: Literal["tokens", "words"] = "tokens"
) -> RecipeStep:
    """Leave the table `collection`, and give every item its `qrels` and `positive_documents`.

    `compare_with` are folders of other corpora whose overlap with what is searched is measured.
    """

    def judge(items: Sequence[Item], context: RecipeContext) -> list[Outcome]:
        ids = _searched(items, context, shelf)
        if compare_with:
            _compare(context, shelf, compare_with, by)
        return [_judged(item, ids, shelf, context) for item in items]

    return whole(name, judge)


def _searched(items: Sequence[Item], context: RecipeContext, shelf: Shelf) -> set[str]:
    by_verdict: dict[str, set[str]] = {"positive": set(), "negative": set(), "discarded": set(), "failed": set()}
    for item in items:
        for each in item["pool"]:
            by_verdict[each["verdict"]].add(each["id"])
    doubtful = by_verdict["discarded"] | by_verdict["failed"] | {id for item in items for id in item["ungraded"]}
    removed = doubtful - by_verdict["positive"]
    pieces = [piece for piece in shelf.pieces(context) if piece.id not in removed]
    context.tables["collection"] = TableFile(COLLECTION_HEADER, [piece.row for piece in pieces])
    positives = [sum(each["verdict"] == "positive" for each in item["pool"]) for item in items]
    context.metrics["collection"] = {
        "questions": len(items),
        "searched": len(pieces),
        "positives a question": round(sum(positives) / len(positives), 2),
        "left out as doubtful": len(removed),
        "doubtful for one question, positive for another": len(doubtful & by_verdict["positive"]),
    }
    return {piece.id for piece in pieces}


def _judged(item: Item, searched: set[str], shelf: Shelf, context: RecipeContext) -> Item:
    judged = {each["id"]: GRADES[each["verdict"]] for each in item["pool"] if each["verdict"] in GRADES}
    pieces = [shelf.piece(id, context) for id, grade in judged.items() if grade]
    documents = list(dict.fromkeys(piece.document for piece in pieces))
    spans = [piece.span(context.document(piece.document)) for piece in pieces]
    qrels = {id: grade for id, grade in judged.items() if id in searched}
    return item.put(qrels=qrels, positive_documents=documents).proven(*spans)


def _compare(context: RecipeContext, shelf: Shelf, folders: Sequence[str], by: str) -> None:
    """The weighted Jaccard overlap of what is on the shelf with other corpora, and of those with each other."""
    others: dict[str, Corpus] = {}
    for folder in folders:
        name = Path(folder).name
        others[name if name not in others else f"{name} ({len(others) + 1})"] = Corpus.open(Path(folder))
    spans = context.encoder().token_spans if by == "tokens" else None
    shares = {"this": word_shares(shelf.documents(context), spans)}
    shares |= {name: word_shares(corpus.documents(), spans) for name, corpus in others.items()}
    rows = overlap_rows(shares)
    context.tables["overlap"] = TableFile(OVERLAP_HEADER, rows)
    context.metrics["overlap"] = {
        "by": by,
        "with": {name: corpus.artefact.reference().sha256 for name, corpus in others.items()},
        "weighted_jaccard": {f"{a} / {b}": value for a, b, value, *_ in rows},
    }
