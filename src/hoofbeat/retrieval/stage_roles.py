"""The three roles of a stage in a retriever line, and what stages exchange.

- A `QueryWriter` comes before the ranker and writes what is searched for.
- A `Ranker` orders the whole collection.
- A `Reranker` comes after it and scores the best results again.

To write a stage, subclass a role and override one method: `QueryWriter.rewrite`, `DocumentRanker.score` or
`Reranker.score`. Stages that ask a language model, or work on all queries together, override `write`, `rank` or
`rerank` and say what they use (`models`, `prompts`, `cost`). A call that fails becomes the query's `failure`: the query
is then not searched, kept in the trace, and counted separately, never scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from hoofbeat.progress import Progress
from hoofbeat.records import Document, Failure, Passage, TraceStep
from hoofbeat.retrieval.index.chunking import AUTO, Chunking, indexed_text
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, top_k
from hoofbeat.retrieval.line import Role, Stage

if TYPE_CHECKING:
    from hoofbeat.models.model import Model
    from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence, SourceEvidence
    from hoofbeat.retrieval.index_set import IndexSet


class SearchQuery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query on its way through a line.

    `text` is the question as asked: rerankers and agents read it. `lexical` is what lexical rankers search for and
    `dense` the texts whose vectors are averaged for dense ones; None for both means `text`.
    """

    id: str
    text: str
    lexical: str | None = None
    dense: tuple[str, ...] | None = None
    steps: tuple[TraceStep, ...] = ()
    failure: Failure | None = None

    @property
    def for_lexical(self) -> str:
        """What a lexical ranker searches for."""
        return self.text if self.lexical is None else self.lexical

    @property
    def for_dense(self) -> tuple[str, ...]:
        """The texts whose vectors a dense ranker averages."""
        return (self.text,) if self.dense is None else self.dense


class FoundPassage(NamedTuple):
    """A passage that a search found, with its document and its score there."""

    document: str
    passage: Passage
    score: float


class SearchScope(NamedTuple):
    """What a search ranks: documents or passages, of all documents or of some."""

    by_document: bool
    documents: tuple[str, ...] | None


class RankedUnits(NamedTuple):
    """Units best first (document numbers, or passage codes), each with its passage's code, and its place by stage."""

    query: SearchQuery
    ranking: Ranking
    passages: Indices
    via: dict[str, Ranking]

    @classmethod
    def empty(cls, query: SearchQuery) -> RankedUnits:
        """Nothing found."""
        return cls(query, Ranking.empty(), np.empty(0, np.int64), {})

    def first(self, k: int) -> RankedUnits:
        """The best `k`."""
        ranking = Ranking(self.ranking.indices[:k], self.ranking.scores[:k])
        return self._replace(ranking=ranking, passages=self.passages[:k])

    def reordered(self, stage: str, scores: Sequence[float] | Failure) -> RankedUnits:
        """The first of the ranking in the order of new scores, equal ones as they were; the rest stays below them."""
        if isinstance(scores, Failure):
            return RankedUnits.empty(msgspec.structs.replace(self.query, failure=scores))
        new = np.array(scores, np.float64)
        if not np.isfinite(new).all():
            failure = Failure(kind="unreadable", message=f"{stage} gave scores that are not numbers")
            return RankedUnits.empty(msgspec.structs.replace(self.query, failure=failure))
        order = np.argsort(-new, kind="stable")
        rest = slice(len(new), None)
        tail = self.ranking.scores[rest]
        below = (new.min() - 1.0 - (tail[0] - tail)) if len(tail) and len(new) else tail
        units = np.concatenate([self.ranking.indices[: len(new)][order], self.ranking.indices[rest]])
        passages = np.concatenate([self.passages[: len(new)][order], self.passages[rest]])
        seen = Ranking(units[: len(new)], new[order])
        ranking = Ranking(units, _falling(np.concatenate([new[order], below])))
        return RankedUnits(self.query, ranking, passages, {**self.via, stage: seen})


class StageTools(Protocol):
    """What a stage may use: language models, the documents and their indexes, and search over them."""

    @property
    def progress(self) -> Progress:
        """Where long work is shown."""
        ...

    @property
    def indexes(self) -> IndexSet:
        """The documents, and the indexes over their passages."""
        ...

    def model(self, spec: str) -> Model:
        """The language model of that name; an empty name is the model of the command."""
        ...

    def search(self, line: str, queries: Sequence[SearchQuery], k: int, corpus: str = "") -> list[list[FoundPassage]]:
        """The `k` best documents for each query, each with its best passage, by a retriever line.

        An empty line means what follows the stage in its own line. `corpus` is the folder of another corpus to search.
        """
        ...


class TextReranker(Protocol):
    """A method of reranking: it scores texts. `identity` is for the manifest, `notes` are for readers."""

    @property
    def identity(self) -> str:
        """Which method, and which weights."""
        ...

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know."""
        ...

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: StageTools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        ...


class QueryWriter(Stage):
    """A stage before the ranker: it writes what is searched for."""

    role: ClassVar[Role] = "query writer"

    def rewrite(self, text: str) -> str:
        """What is searched for in place of this text; override this, or `write`."""
        raise NotImplementedError(f"{type(self).__name__} must define rewrite or write")

    def write(self, queries: Sequence[SearchQuery], tools: StageTools) -> list[SearchQuery]:  # noqa: ARG002
        """The queries rewritten, in order; none of them is empty or has failed before."""
        written = []
        for query in queries:
            text = self.rewrite(query.text)
            step = TraceStep(stage=str(self), what="rewritten", text=text)
            written.append(msgspec.structs.replace(query, lexical=text, dense=(text,), steps=(*query.steps, step)))
        return written


class Reranker(Stage):
    """A stage after the ranker: it scores the best results again."""

    role: ClassVar[Role] = "reranker"
    takes_depth: ClassVar[bool] = True

    default_depth: ClassVar[int] = 100
    """How many results are scored where a line does not say."""

    def score(self, query: SearchQuery, found: Sequence[FoundPassage], tools: StageTools) -> Sequence[float]:
        """A score for each result of one query, higher is better; override this, or `rerank`."""
        raise NotImplementedError(f"{type(self).__name__} must define score or rerank")

    def rerank(
        self, queries: Sequence[SearchQuery], found: Sequence[Sequence[FoundPassage]], tools: StageTools
    ) -> Sequence[Sequence[float] | Failure]:
        """For each query a score for each of its results, higher is better; or why there are none."""
        return [query.failure or self.score(query, each, tools) for query, each in zip(queries, found, strict=True)]


class IndexUse(NamedTuple):
    """An index that a ranker searches: how documents are cut, whose tokens are counted, by words or by vectors.

    `vectors` names an encoder, a search, a storage and instructions, as `PassageCollection.dense` takes them. `queries`
    is the encoder of queries where that is another: it takes no part in the index.
    """

    chunking: Chunking
    encoder: str = ""
    lexical: bool = False
    vectors: tuple[str, ...] | None = None
    queries: str = ""


class Ranker(Stage):
    """A stage that orders the whole collection. `DocumentRanker` is the short way to write one."""

    role: ClassVar[Role] = "ranker"

    def rank(self, queries: Sequence[SearchQuery], k: int, scope: SearchScope, tools: StageTools) -> list[RankedUnits]:
        """The best `k` documents or passages for each query; no query is empty or has failed before."""
        raise NotImplementedError(f"{type(self).__name__} must define rank")

    def index_uses(self) -> tuple[IndexUse, ...]:
        """The indexes it searches, for the manifest."""
        return ()


class DocumentRanker(Ranker):
    """A ranker that scores one document at a time, with no index: simple, and fine for some thousand documents."""

    def score(self, query: SearchQuery, document: Document) -> float | None:
        """How well a document fits a query, higher is better; None where it is not found at all."""
        raise NotImplementedError(f"{type(self).__name__} must define score")

    def index_uses(self) -> tuple[IndexUse, ...]:
        """Passages as they are cut by default: the first of a document is shown for it."""
        return (IndexUse(AUTO),)

    def rank(self, queries: Sequence[SearchQuery], k: int, scope: SearchScope, tools: StageTools) -> list[RankedUnits]:
        """Documents by their scores; where passages are ranked, every passage has the score of its document."""
        indexes = tools.indexes
        collection = indexes.collection()
        wanted = None if scope.documents is None else {*scope.documents}
        if wanted is not None:
            collection.places_of(wanted)
        numbers = [n for n, name in enumerate(collection.documents) if wanted is None or name in wanted]
        documents = [indexes.document(collection.documents[number]) for number in numbers]
        ranked = []
        for query in queries:
            scored = [
                (number, float(score))
                for number, document in zip(numbers, documents, strict=True)
                if (score := self.score(query, document)) is not None
            ]
            units = np.array([number for number, _ in scored], np.int64)
            ranking = top_k(units, np.array([score for _, score in scored], np.float64), k)
            firsts = collection.bounds[ranking.indices]
            if not scope.by_document:
                ends = collection.bounds[ranking.indices + 1]
                spread = [np.arange(start, end) for start, end in zip(firsts, ends, strict=True)]
                firsts = np.concatenate(spread)[:k] if spread else np.empty(0, np.int64)
                scores = np.repeat(ranking.scores, ends - collection.bounds[ranking.indices])[:k]
                ranking = Ranking(indexes.code(collection, firsts), scores)
            ranked.append(RankedUnits(query, ranking, indexes.code(collection, firsts), {str(self): ranking}))
        return ranked


class EvidenceRanker(Ranker):
    """A ranker that also finds evidence in one source at a time by its own method, as HERO does."""

    def evidence(
        self, queries: Sequence[SearchQuery], sources: Sequence[str], tools: StageTools, room: int | None
    ) -> Iterator[HeroEvidence | SourceEvidence]:
        """The evidence of each source for each query, query after query; `room` is how many characters can be shown."""
        raise NotImplementedError(f"{type(self).__name__} must define evidence")

    def limited(self, *, whole_up_to: int | None, passages: int | None, words: str = "") -> Stage:
        """The same stage that shows sources up to `whole_up_to` characters whole, and `passages` of longer ones.

        `words` names the expansion words of the domain, for a stage that expands queries.
        """
        raise NotImplementedError(f"{type(self).__name__} must define limited")


def passage_texts(found: Sequence[FoundPassage]) -> list[str]:
    """The texts of passages as retrievers read them: with their headings."""
    return [indexed_text(each.passage) for each in found]


def _falling(scores: Floats) -> Floats:
    """Scores in the same order with ties pulled apart, by the least that single precision can tell.

    Whoever measures a ranking orders it by its scores anew; the order in which a reranker left ties must survive that.
    """
    apart = scores.astype(np.float32)
    for place in range(1, len(apart)):
        if not apart[place] < apart[place - 1]:
            apart[place] = np.nextafter(apart[place - 1], np.float32(-np.inf))
    return apart.astype(np.float64)
