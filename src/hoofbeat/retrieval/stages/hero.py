"""`hero`: HERO-QA's four signals as a ranker of a corpus, and all its layers where each source is asked by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from hoofbeat.records import Document
from hoofbeat.retrieval.hero.hero_engine import Hero
from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence
from hoofbeat.retrieval.hero.hero_signals import NO_EXPANSION, HeroSettings, load_expansions
from hoofbeat.retrieval.index.chunking import CHILDREN, Chunking
from hoofbeat.retrieval.index.topk import Ranking
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.line import Node, Stage, StageOption
from hoofbeat.retrieval.passage_ranking import by_best_passage
from hoofbeat.retrieval.stage_roles import EvidenceRanker, IndexUse, RankedUnits, SearchQuery, SearchScope, StageTools
from hoofbeat.retrieval.stages.rerank import STAGE as RERANK
from hoofbeat.retrieval.stages.rerank import RerankStage

_DEFAULT = HeroSettings()
_ON_OFF = ("on", "off")
_SECTIONS, _HEADINGS = Chunking("subsections"), Chunking("subheadings")


class HeroStage(EvidenceRanker):
    """HERO. Its reranking, parent sections and fallback are for evidence in one source; ranking goes without them."""

    name = "hero"
    summary = "HERO-QA: short sources whole; long ones by four signals, reranking, parent sections and a fallback"
    options = (
        StageOption("route", _DEFAULT.route, "show sources up to this many characters whole", min_=0, max_=1e9),
        StageOption(
            "expand",
            _DEFAULT.expand,
            "where synonyms come from: terms, none, a domain pack or a table, joined by +",
            check=load_expansions,
        ),
        StageOption("dense", _DEFAULT.dense, "the weight of the passages' vectors", min_=0, max_=1e3),
        StageOption("bm25", _DEFAULT.bm25, "the weight of the passages' words", min_=0, max_=1e3),
        StageOption("sections", _DEFAULT.sections, "the weight of the sections' words", min_=0, max_=1e3),
        StageOption("titles", _DEFAULT.titles, "the weight of the headings' words", min_=0, max_=1e3),
        StageOption("k", _DEFAULT.k, "the constant of the fusion", min_=1, max_=1e6),
        StageOption("first", _DEFAULT.first, "how deep each signal goes in a source", min_=1, max_=1e4),
        StageOption("rerank", _DEFAULT.rerank, "none, or a reranker as in rerank[with=…]"),
        StageOption("depth", _DEFAULT.depth, "how many passages are reranked", min_=1, max_=1e3),
        StageOption("parents", "on", "whether to show a passage's whole section", choices=_ON_OFF),
        StageOption(
            "neighbours", _DEFAULT.neighbours, "how many neighbouring sections to add on each side", min_=0, max_=10
        ),
        StageOption("span", _DEFAULT.span, "the maximum number of characters of such a section", min_=1, max_=1e7),
        StageOption("top", _DEFAULT.top, "how many passages to show", min_=1, max_=100),
        StageOption("fallback", "on", "whether to show the whole source where evidence is weak", choices=_ON_OFF),
        StageOption("enough", _DEFAULT.enough, "evidence with a lower strength is weak", min_=0, max_=1),
        StageOption("fits", _DEFAULT.fits, "the maximum number of characters for the fallback", min_=0, max_=1e9),
        StageOption("encoder", _DEFAULT.encoder, "the sentence encoder"),
    )

    @property
    def settings(self) -> HeroSettings:
        """The options as HERO takes them; settings that make no sense are a `UsageError`."""
        return HeroSettings.of(self)

    def reset(self) -> None:
        """Forget the reranker."""
        super().reset()
        self._made: RerankStage | None = None

    @property
    def _reranker(self) -> RerankStage | None:
        settings = self.settings
        if self._made is None and settings.rerank != "none":
            self._made = RERANK.with_options({"with": settings.rerank}, settings.depth)
        return self._made

    def prepare(self) -> None:
        """Check the settings, and load the reranker."""
        if self._reranker is not None:
            self._reranker.prepare()

    def encoders(self) -> tuple[str, ...]:
        """The encoder of its dense signal."""
        return (self.word("encoder"),)

    def inner(self) -> tuple[Node, ...]:
        """The reranking of its evidence."""
        return () if self._reranker is None else (self._reranker,)

    def describe(self) -> dict[str, object]:
        """Its reranker, and the list of synonyms."""
        reranker = {} if self._reranker is None else {"rerankers": {str(self): self._reranker.method.identity}}
        spec = self.word("expand")
        return {**reranker, **({"expansions": load_expansions(spec).fingerprint} if spec != NO_EXPANSION else {})}

    def index_uses(self) -> tuple[IndexUse, ...]:
        """Words of passages, sections and headings, and vectors of passages."""
        vectors = (self.word("encoder"), "exact", "float32", "none")
        words = [IndexUse(way, lexical=True) for way in (CHILDREN, _SECTIONS, _HEADINGS)]
        return (*words, IndexUse(CHILDREN, vectors=vectors))

    def limited(self, *, whole_up_to: int | None, passages: int | None, words: str = "") -> Stage:
        """The same stage with another `route` and `top`, and with these words unless the line names others."""
        numbers = {"route": whole_up_to, "top": passages}
        given: dict[str, float | str] = {name: float(value) for name, value in numbers.items() if value is not None}
        if words and self.word("expand") == _DEFAULT.expand:
            given["expand"] = words
        return self.with_options(given)

    def evidence(
        self, queries: Sequence[SearchQuery], sources: Sequence[str], tools: StageTools, room: int | None
    ) -> Iterator[HeroEvidence]:
        """Through all layers, query after query."""
        hero = self._make(tools, reranked=True, room=room)
        for found in hero.evidence_all(queries, [list(sources)] * len(queries)):
            self.notes = [] if self._reranker is None else list(self._reranker.method.notes)
            yield found

    def rank(self, queries: Sequence[SearchQuery], k: int, scope: SearchScope, tools: StageTools) -> list[RankedUnits]:
        """Documents by their best child over the whole corpus, or the children themselves."""
        if self._reranker is not None:
            self.notes = ["it reranks only evidence per source, so not here"]
        indexes = tools.indexes
        key = (self.name, str(self))
        if key not in indexes.memory:
            indexes.memory[key] = self._make(tools, reranked=False)
        hero = indexes.memory[key]
        assert isinstance(hero, Hero)
        children = indexes.collection(CHILDREN)
        allowed = None if scope.documents is None else children.places_of(scope.documents)
        total = len(children.passages)
        ranked = []
        for query, found in zip(queries, hero.rank(queries, total if scope.by_document else k, allowed), strict=True):
            if not scope.by_document:
                codes = indexes.code(children, found.ranking.indices)
                via = {
                    name: Ranking(indexes.code(children, each.indices), each.scores) for name, each in found.via.items()
                }
                ranking = Ranking(codes, found.ranking.scores)
                ranked.append(RankedUnits(query, ranking, codes, {**via, str(self): ranking}))
                continue
            best = by_best_passage(found.ranking, k, children.document_of)
            via = {name: by_best_passage(each, total, children.document_of).ranking for name, each in found.via.items()}
            speakers = indexes.code(children, best.passages)
            ranked.append(RankedUnits(query, best.ranking, speakers, {**via, str(self): best.ranking}))
        return ranked

    def _make(self, tools: StageTools, *, reranked: bool, room: int | None = None) -> Hero:
        """HERO over the documents; `room` is how many characters its reader can be shown."""
        indexes, settings = tools.indexes, self.settings
        reranker = self._reranker.method if reranked and self._reranker is not None else None
        if reranker is None:
            settings = replace(settings, rerank="none")
        return Hero(
            _Documents(indexes),
            indexes.collection(CHILDREN),
            indexes.collection(_SECTIONS),
            indexes.collection(_HEADINGS),
            settings,
            rerank=reranker,
            tools=tools,
            room=room,
        )


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


STAGE = HeroStage()
