"""Evidence source by source: what each document by itself says to a question, through HERO or through any line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hoofbeat.records import Document, Failure, Passage
from hoofbeat.retrieval.chunking import DEFAULT_CHUNKING, Chunking
from hoofbeat.retrieval.hero import Hero, HeroSettings
from hoofbeat.retrieval.hero.trace import HeroTrace
from hoofbeat.retrieval.indexes import IndexSet
from hoofbeat.retrieval.line import Stage
from hoofbeat.retrieval.making import make_reranker, rerank_stage
from hoofbeat.retrieval.pooling import by_best_passage
from hoofbeat.retrieval.ranking import Ranked, Scope
from hoofbeat.retrieval.reranking import ByCrossEncoder
from hoofbeat.retrieval.reranking_llm import Listwise, YesNo
from hoofbeat.retrieval.stages import Reranker, SearchQuery, Tools
from hoofbeat.retrieval.topk import Ranking

__all__ = ["LineEvidence", "hero_reranker", "make_hero", "rank_hero"]


class LineEvidence(NamedTuple):
    """The evidence of one source for one question as a line without HERO's layers finds it: its best passages."""

    question: str
    document: str
    passages: tuple[Passage, ...]
    failure: Failure | None
    route: str = "retrieved"
    sufficient: bool = True
    trace: HeroTrace | None = None

    @property
    def parts(self) -> tuple[Passage, ...]:
        """The passages: none of them goes over a section's border."""
        return self.passages


class _Documents(Mapping[str, Document]):
    """The documents of an index set by their ids; each is fetched once."""

    def __init__(self, indexes: IndexSet) -> None:
        self._indexes = indexes
        self._fetched: dict[str, Document] = {}

    def __getitem__(self, name: str) -> Document:
        if name not in self._fetched:
            self._fetched[name] = self._indexes.document(name)
        return self._fetched[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._indexes.documents)

    def __len__(self) -> int:
        return len(self._indexes.documents)


def hero_reranker(stage: Stage) -> YesNo | Listwise | ByCrossEncoder | None:
    """The reranker that a HERO stage names, if any; settings that make no sense are a `UsageError`."""
    settings = HeroSettings.of(stage)
    return None if settings.rerank == "none" else make_reranker(rerank_stage(settings.rerank, settings.depth))


def make_hero(
    indexes: IndexSet, stage: Stage, tools: Tools, *, reranker: Reranker | None = None, room: int | None = None
) -> Hero:
    """HERO over the documents of an index set; without the reranker it names it goes without that layer.

    `room` is how many characters its reader can be shown.
    """
    settings = HeroSettings.of(stage)
    if reranker is None:
        settings = replace(settings, rerank="none")
    return Hero(
        _Documents(indexes),
        indexes.collection(DEFAULT_CHUNKING),
        indexes.collection(Chunking("sections")),
        indexes.collection(Chunking("headings")),
        settings,
        rerank=reranker,
        tools=tools,
        room=room,
    )


def rank_hero(
    indexes: IndexSet, stage: Stage, queries: Sequence[SearchQuery], k: int, scope: Scope, tools: Tools
) -> list[Ranked]:
    """HERO's four signals as a ranker of a whole corpus: documents by their best child, or the children themselves."""
    key = ("hero", str(stage))
    if key not in indexes.memory:
        indexes.memory[key] = make_hero(indexes, stage, tools)
    hero = indexes.memory[key]
    assert isinstance(hero, Hero)
    children = indexes.collection(DEFAULT_CHUNKING)
    allowed = None if scope.documents is None else children.places_of(scope.documents)
    total = len(children.passages)
    ranked = []
    for query, found in zip(queries, hero.rank(queries, total if scope.by_document else k, allowed), strict=True):
        if not scope.by_document:
            codes = indexes.code(children, found.ranking.indices)
            via = {name: Ranking(indexes.code(children, each.indices), each.scores) for name, each in found.via.items()}
            ranking = Ranking(codes, found.ranking.scores)
            ranked.append(Ranked(query, ranking, codes, {**via, str(stage): ranking}))
            continue
        best = by_best_passage(found.ranking, k, children.document_of)
        via = {name: by_best_passage(each, total, children.document_of).ranking for name, each in found.via.items()}
        speakers = indexes.code(children, best.passages)
        ranked.append(Ranked(query, best.ranking, speakers, {**via, str(stage): best.ranking}))
    return ranked
