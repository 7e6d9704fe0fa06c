"""The documents of a retrieval question: mined by a committee, graded on two scales, searched in the end.

Mining: every view of an item (its question, its answer, the reasoning between them) is searched by every member of a
committee of retrievers. The number of rankings that hold a document are its votes; the documents with most votes join
the pool. Agreement between unlike retrievers over unlike queries finds relevant documents that no source named.

Grading: a document that is high on both scales is a positive, one that is low on both a negative. What lies between,
or is high on one scale and low on the other, is doubtful: it would be noise on either side, so it is neither.

The collection: a document that is doubtful for a question would count as wrong where it is found, so it leaves the
collection for everyone; only where it is a positive of another question it stays. Judgments hold positives (1) and
verified negatives (0) and nothing else. The overlap of two collections is how much of their words they share, each
word as often as it is used.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from hoofbeat.benchmarks.benchmark import COLLECTION_HEADER
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import load_encoder
from hoofbeat.models.encoder import DEFAULT_ENCODER, Encoder
from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext, TableFile, fit_all
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import UNLIMITED, PartReply, RecipeStep, ask_each, whole
from hoofbeat.records import Document, Failure
from hoofbeat.retrieval.line import parse, stages

if TYPE_CHECKING:
    from hoofbeat.retrieval.retriever import Retriever

_NAMES_DEFAULT = re.compile(rf"\bencoder\s*=\s*{DEFAULT_ENCODER}\b")
VIEWS = ("query", "answer", "reasoning")
"""What of an item is searched for, each by itself."""


class PoolCandidate(Struct, frozen=True, kw_only=True):
    """A document that rankings hold: in how many, its best place in any, and in which."""

    id: str
    votes: int
    best: int
    where: tuple[str, ...] = ()


def vote(rankings: Mapping[str, Sequence[str]], *, depth: int, without: Collection[str] = ()) -> list[PoolCandidate]:
    """All documents of some rankings by how many hold them; ties by their best place, then by id.

    Places are counted without the documents that are left out, and only the first `depth` of each ranking count.
    """
    places: dict[str, dict[str, int]] = {}
    left_out = set(without)
    for name, ranking in rankings.items():
        counted = [each for each in dict.fromkeys(ranking) if each not in left_out][:depth]
        for place, document in enumerate(counted, start=1):
            places.setdefault(document, {})[name] = place
    found = [
        PoolCandidate(id=document, votes=len(held), best=min(held.values()), where=tuple(held))
        for document, held in places.items()
    ]
    return sorted(found, key=lambda each: (-each.votes, each.best, each.id))


def pooled(
    rankings: Mapping[str, Sequence[str]], known: Sequence[str], *, depth: int, top: int, without: Collection[str] = ()
) -> list[PoolCandidate]:
    """The pool: what is known already, with its votes too, then the `top` most voted for of everything else."""
    mined = vote(rankings, depth=depth, without={*known, *without})[:top]
    votes = {each.id: each for each in vote(rankings, depth=depth, without=without)}
    nobody = [votes.get(each) or PoolCandidate(id=each, votes=0, best=0) for each in dict.fromkeys(known)]
    return nobody + mined


def committee_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The committee's retriever lines in canonical form; options that a comma split are joined again."""
    return tuple(_read_lines(lines))


def _read_lines(lines: Sequence[str]) -> dict[str, bool]:
    """The lines in canonical form, each with whether it names the usual encoder rather than leaving it open."""
    written: list[str] = []
    for part in lines:
        if written and written[-1].count("[") > written[-1].count("]"):
            written[-1] += f",{part}"
        else:
            written.append(part)
    if not written:
        raise UsageError("the committee has no retriever", fix="name one or more lines: --retrievers '[bm25,dense]'")
    read: dict[str, bool] = {}
    for text in written:
        tree = parse(text)
        line = str(tree)
        if any(stage.role == "query writer" for stage in stages(tree)):
            raise UsageError(
                f"a model writes queries in the line {line}, but the committee searches with the item's own texts",
                fix="name rankers only",
            )
        named = _NAMES_DEFAULT.search(text) is not None
        if read.setdefault(line, named) != named:
            raise UsageError(f"the line {line} is listed with and without its encoder", fix="list it once")
    return read


class Committee:
    """Several retrievers over one collection, with their indexes kept between runs.

    `passages` says that what is searched are passages already; longer documents are cut as a line says. `usual` gives
    the encoder of lines that name none; `encoder` those that lines name.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        lines: Sequence[str],
        *,
        passages: bool,
        encoder: Callable[[str], Encoder] | None = None,
        usual: Callable[[], Encoder] | None = None,
        progress: Progress = SILENT,
    ) -> None:
        read = _read_lines(lines)
        self.lines = tuple(read)
        self._documents = documents
        self._passages = passages
        self._load = encoder or (lambda spec: cached_encoder(load_encoder(spec), vectors_folder()))
        self._usual = None if any(read.values()) else usual
        self._progress = progress

    def _encoder(self, spec: str) -> Encoder:
        return self._usual() if self._usual is not None and spec == DEFAULT_ENCODER else self._load(spec)

    @cached_property
    def _retrievers(self) -> dict[str, Retriever]:
        # Loaded when the committee searches: listing the recipes needs no index.
        from hoofbeat.retrieval.index_set import index_documents  # noqa: PLC0415
        from hoofbeat.retrieval.retriever import Retriever  # noqa: PLC0415

        indexes = index_documents(
            self._documents,
            _content(self._documents),
            passages=self._passages,
            encoder=self._encoder,
            progress=self._progress,
        )
        return {line: Retriever(indexes, line) for line in self.lines}

    def describe(self) -> dict[str, object]:
        """The committee as a manifest records it."""
        return {line: retriever.describe() for line, retriever in self._retrievers.items()}

    def rankings(self, views: Mapping[str, Sequence[str]], depth: int) -> list[dict[str, list[str]]]:
        """For every item and every view by every member the ids it ranks, best first.

        `views` are by name, each with the texts of all items; an empty text is not searched.
        """
        count = len(next(iter(views.values()), ()))
        found: list[dict[str, list[str]]] = [{} for _ in range(count)]
        for line, retriever in self._retrievers.items():
            for view, texts in views.items():
                asked = [(str(number), text) for number, text in enumerate(texts)]
                for number, hits in enumerate(retriever.search(asked, depth)):
                    found[number][f"{view} by {line}"] = [hit.document for hit in hits]
        return found


def _content(documents: Iterable[Document]) -> str:
    """A name for what the documents hold, under which their indexes are kept."""
    whole = hashlib.sha256()
    for document in documents:
        for part in (document.id, document.title, document.text):
            whole.update(len(part).to_bytes(8, "big") + part.encode("utf-8", "surrogatepass"))
    return whole.hexdigest()


def mine_step(
    name: str,
    shelf: PieceCollection,
    *,
    lines: Sequence[str],
    depth: int,
    top: int,
    max_known: int = 0,
    views: Sequence[str] = VIEWS,
) -> RecipeStep:
    """Give every item its `pool`: the pieces known to answer it and those that the committee agrees on.

    `max_known` limits the former to those with most votes (0: all); the rest of them are `ungraded`, so that they
    count neither as found nor as wrong. A line that names no encoder, such as `dense`, searches with the context's.
    """
    committee_lines(lines)

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        committee = Committee(
            shelf.documents(context),
            lines,
            passages=not shelf.cases,
            usual=lambda: cached_encoder(context.encoder(), vectors_folder()),
            progress=context.progress,
        )
        reach = depth + max(len(item.get("known", ())) for item in items)
        texts = {view: [str(item[view]) for item in items] for view in views}
        rankings = committee.rankings(texts, reach)
        context.metrics[name] = {"views": list(views), "depth": depth, "committee": committee.describe()}
        return [_pooled(item, found, depth, top, max_known) for item, found in zip(items, rankings, strict=True)]

    return whole(name, judge)


def _pooled(
    item: RecipeItem, rankings: Mapping[str, Sequence[str]], depth: int, top: int, max_known: int
) -> RecipeItem:
    known = [str(each) for each in item.get("known", ())]
    pool = pooled(rankings, known, depth=depth, top=top)
    named = sorted(
        pool[: len(set(known))], key=lambda each: (-each.votes, each.best or depth + 1, known.index(each.id))
    )
    graded = named[:max_known] if max_known else named
    ungraded = [each.id for each in named[len(graded) :]]
    listed = [
        {"id": each.id, "known": each.id in known, "votes": each.votes, "best": each.best}
        for each in (*graded, *pool[len(named) :])
    ]
    return item.put(pool=listed, ungraded=ungraded)


Verdict = Literal["positive", "negative", "discarded", "failed"]
Contradictory = Literal["discarded", "negative"]
POOL_HEADER = ("item", "document", "known", "votes", "best_rank", "relevance", "support", "verdict", "reason")
HIGHEST = 10
_REASON = 300


class GradeThresholds(Struct, frozen=True, kw_only=True):
    """Where the scales are cut: high from `keep`, low up to `reject`. `contradictory`: what one of each makes."""

    keep: int = 8
    reject: int = 4
    contradictory: Contradictory = "discarded"

    def __post_init__(self) -> None:
        if not 0 <= self.reject < self.keep <= HIGHEST:
            raise UsageError(
                f"the limits for grades are wrong: keep from {self.keep}, reject up to {self.reject}",
                fix="set the limit for rejecting below the limit for keeping, both from 0 to 10",
            )


def verdict(relevance: int, support: int, limits: GradeThresholds) -> Verdict:
    """What two grades make of a document."""
    low, high = sorted((relevance, support))
    if low >= limits.keep:
        return "positive"
    if high <= limits.reject:
        return "negative"
    doubtful = any(limits.reject < grade < limits.keep for grade in (low, high))
    return "discarded" if doubtful else limits.contradictory


def grade_step(
    name: str,
    prompt: str,
    *,
    text: Callable[[str, RecipeContext], str],
    limits: GradeThresholds,
    role: str = "model",
    maximum: int = UNLIMITED,
) -> RecipeStep:
    """Grade every document of an item's `pool`; an item without a positive is rejected.

    The prompt takes `query`, `answer`, `reasoning` and `document`, and gives `reason`, `relevance` and `support`. The
    pool with its grades is left as the table `pool`, for rejected items too. A document whose call failed has no grade.
    `maximum` is how large a pool can be, for estimates.
    """
    rows: list[tuple[object, ...]] = []

    def values(item: RecipeItem, part: dict[str, Any], context: RecipeContext) -> dict[str, object]:
        told = {name: str(item[name]) for name in ("query", "answer", "reasoning")}
        return {**fit_all({**told, "document": text(part["id"], context)}, load_prompt(prompt), context, role)}

    def read(item: RecipeItem, answers: Sequence[PartReply], _context: RecipeContext) -> Outcome:
        graded = [_graded(answer, limits) for answer in answers]
        rows.extend(pool_rows(item.id, graded))
        done = item.put(pool=graded)
        if any(each["verdict"] == "positive" for each in graded):
            return done
        failure = next((answer.failure for answer in answers if answer.failure is not None), None)
        return failure or _no_positive(graded)

    inner = ask_each(
        name, prompt, parts=lambda item, _context: item["pool"], values=values, read=read, role=role, maximum=maximum
    )

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> Sequence[Outcome]:
        rows.clear()
        empty = [not item["pool"] for item in items]
        outcomes = iter(inner.run([item for item, none in zip(items, empty, strict=True) if not none], context))
        context.tables["pool"] = TableFile(POOL_HEADER, list(rows))
        nothing = ItemRejection(reason="no retriever found a document for it")
        return [nothing if none else next(outcomes) for none in empty]

    return RecipeStep(name=name, run=run, prompts=inner.prompts, calls=inner.calls)


def pool_rows(item: str, graded: Sequence[dict[str, Any]]) -> list[tuple[object, ...]]:
    """The graded pool of an item as rows under `POOL_HEADER`."""
    return [
        (
            item,
            each["id"],
            "yes" if each["known"] else "no",
            each["votes"],
            each["best"] or "",
            each.get("relevance", ""),
            each.get("support", ""),
            each["verdict"],
            each["reason"],
        )
        for each in graded
    ]


def _graded(answer: PartReply, limits: GradeThresholds) -> dict[str, Any]:
    part: dict[str, Any] = answer.part
    if isinstance(answer.failure, Failure):
        return {**part, "verdict": "failed", "reason": f"no grade: {answer.failure.kind}"}
    value = answer.value or {}
    relevance, support = int(value["relevance"]), int(value["support"])
    reason = " ".join(str(value["reason"]).split())[:_REASON]
    made = verdict(relevance, support, limits)
    return {**part, "relevance": relevance, "support": support, "verdict": made, "reason": reason}


def _no_positive(graded: Sequence[dict[str, Any]]) -> ItemRejection:
    best = max(graded, key=lambda each: (min(each["relevance"], each["support"]), each["relevance"], each["id"]))
    return ItemRejection(
        reason="no document was graded as answering it",
        details=f"the best is {best['id']} with relevance {best['relevance']} and support {best['support']}",
    )


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
    from hoofbeat.retrieval.rankings.set_statistics import (  # noqa: PLC0415
        OVERLAP_HEADER,
        overlap_rows,
        word_shares,
    )

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
