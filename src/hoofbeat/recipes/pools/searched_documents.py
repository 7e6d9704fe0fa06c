"""What is searched in the end, and the judgments that name it.

A document that is doubtful for a question would count as wrong where it is found, so it leaves the collection for
everyone; only where it is a positive of another question it stays. Judgments hold positives (1) and verified
negatives (0) and nothing else: what is doubtful has no line in them.

The overlap of two collections is how much of their words they share, each word as often as it is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Literal

from hoofbeat.benchmarks.benchmark_passages import COLLECTION_HEADER
from hoofbeat.corpus import Corpus
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, whole
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import Spans

OVERLAP_HEADER = ("a", "b", "overlap", "shared_words", "words")
_WORD = re.compile(r"[^\W_]+")


def word_shares(documents: Iterable[Document], tokens: Spans | None = None) -> dict[str, float]:
    """Every word of some documents with its share of all; `tokens` are a tokenizer's, in place of whole words."""
    counts: Counter[str] = Counter()
    for document in documents:
        text = f"{document.title}\n{document.text}".lower()
        spans = tokens(text) if tokens else (match.span() for match in _WORD.finditer(text))
        counts.update(text[start:end] for start, end in spans)
    total = counts.total()
    return {word: count / total for word, count in sorted(counts.items())}


def weighted_jaccard(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """The weighted Jaccard similarity of two collections' word shares; 0 where either has no words."""
    if not a or not b:
        return 0.0
    words = sorted(a.keys() | b.keys())
    smaller = sum(min(a.get(word, 0.0), b.get(word, 0.0)) for word in words)
    return smaller / sum(max(a.get(word, 0.0), b.get(word, 0.0)) for word in words)


def overlap_rows(shares: Mapping[str, Mapping[str, float]]) -> list[tuple[object, ...]]:
    """Every pair of collections, each once, as rows under `OVERLAP_HEADER`."""
    return [
        (one, other, round(weighted_jaccard(a, b), 4), len(a.keys() & b.keys()), len(a.keys() | b.keys()))
        for (one, a), (other, b) in combinations(shares.items(), 2)
    ]


GRADES = {"positive": 1, "negative": 0}


def searched_step(
    name: str, shelf: PieceCollection, *, compare_with: Sequence[str] = (), by: Literal["tokens", "words"] = "tokens"
) -> RecipeStep:
    """Leave the table `collection`, and give every item its `qrels` and `positive_documents`.

    `compare_with` are folders of other corpora whose overlap with what is searched is measured.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        ids = _searched(items, context, shelf)
        if compare_with:
            _compare(context, shelf, compare_with, by)
        return [_judged(item, ids, shelf, context) for item in items]

    return whole(name, judge)


def _searched(items: Sequence[RecipeItem], context: RecipeContext, shelf: PieceCollection) -> set[str]:
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


def _judged(item: RecipeItem, searched: set[str], shelf: PieceCollection, context: RecipeContext) -> RecipeItem:
    judged = {each["id"]: GRADES[each["verdict"]] for each in item["pool"] if each["verdict"] in GRADES}
    pieces = [shelf.piece(id, context) for id, grade in judged.items() if grade]
    documents = list(dict.fromkeys(piece.document for piece in pieces))
    spans = [piece.span(context.document(piece.document)) for piece in pieces]
    qrels = {id: grade for id, grade in judged.items() if id in searched}
    return item.put(qrels=qrels, positive_documents=documents).proven(*spans)


def _compare(context: RecipeContext, shelf: PieceCollection, folders: Sequence[str], by: str) -> None:
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
