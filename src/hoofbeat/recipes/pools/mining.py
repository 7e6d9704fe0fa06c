"""Mining: what a committee of retrievers agrees on becomes a candidate for relevance.

Every view of an item (its question, its answer, the reasoning between them) is searched by every member of the
committee. How many of these rankings hold a document are its votes; the documents with most votes join the pool of
those that are judged. Agreement between unlike retrievers over unlike queries is what finds relevant documents that no
source named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.models import load_encoder
from hoofbeat.models.encoder import DEFAULT_ENCODER, Encoder
from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder
from hoofbeat.progress import SILENT, Progress
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, whole
from hoofbeat.records import Document
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
    """The committee's retriever lines in canonical form; options that a comma parted are put together again."""
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
                f"the line {line} has a model write queries, which the views are for", fix="name rankers only"
            )
        named = _NAMES_DEFAULT.search(text) is not None
        if read.setdefault(line, named) != named:
            raise UsageError(
                f"the line {line} stands there with and without its encoder", fix="name it in one way only"
            )
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
