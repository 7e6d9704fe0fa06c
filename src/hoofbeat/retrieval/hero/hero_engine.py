"""HERO: the evidence of one source for one question, found layer by layer (the retrieval of HERO-QA).

    0  route       a short source is shown whole
    1  model       document → sections → children of 160 words, each under its heading
    2  signals     four rankings of children for an expanded query: dense; BM25; BM25 over sections, and over headings
    3  fusion      by reciprocal rank; the two navigation signals weigh less
    4  reranking   the best children are read together with the question
    5  expansion   the best children bring their parent sections and the neighbours of those
    6  sufficiency weak evidence is replaced by the whole source where that fits

All sources are searched in one pass for each question and signal, with statistics of each source by itself, so the
evidence of a source does not depend on which others are searched beside it. Where the paper leaves a value open, the
value is ours: the navigation weights, the depth of the signals, the characters of an expanded passage, how queries are
expanded, and how evidence is found to be weak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT
from hoofbeat.records import Document, Failure
from hoofbeat.retrieval.hero.hero_evidence import EvidenceTools, HeroEvidence, HeroSearch, HeroSourceResult, Route
from hoofbeat.retrieval.hero.hero_signals import HeroQuery, HeroRanking, HeroSettings, QuestionCoverage, Signals, shares
from hoofbeat.retrieval.hero.parent_sections import EvidenceUnits, HeroLayout, ParentSections
from hoofbeat.retrieval.index.chunking import indexed_text
from hoofbeat.retrieval.index.query_vectors import Encode
from hoofbeat.retrieval.index.topk import Indices, Ranking
from hoofbeat.retrieval.index_set import PassageCollection
from hoofbeat.retrieval.stage_roles import SearchQuery, StageTools, TextReranker

_BATCH = 256


class Hero:
    """HERO over the children, sections and headings of the same documents.

    `encode` turns whatever is searched for into vectors (unless given, the encoder does: questions as queries, texts
    that a query writer wrote beside them as documents), `rerank` and `tools` are needed for reranking only, `room` is
    how many characters the model that reads the evidence can be shown, where that is known.
    """

    def __init__(
        self,
        documents: Mapping[str, Document],
        children: PassageCollection,
        sections: PassageCollection,
        headings: PassageCollection,
        settings: HeroSettings | None = None,
        *,
        encode: Encode | None = None,
        rerank: TextReranker | None = None,
        tools: StageTools | None = None,
        room: int | None = None,
    ) -> None:
        self.settings = settings or HeroSettings()
        self.documents = documents
        self.room = room
        self._numbers = {name: number for number, name in enumerate(children.documents)}
        self._layout = HeroLayout(children, sections, headings)
        self._signals = Signals(self._layout, self.settings, encode)
        if (rerank is None) != (self.settings.rerank == "none") or (rerank is not None and tools is None):
            raise UsageError(
                f"HERO's setting rerank={self.settings.rerank} does not match its reranker",
                fix="give a reranker and its tools where the settings name one, and none where they say none",
            )
        self._rerank = rerank
        self._tools = tools

    def evidence(self, queries: Sequence[SearchQuery], document: str) -> list[HeroEvidence]:
        """The evidence of one source for each query."""
        return list(self.evidence_all(queries, [[document]] * len(queries)))

    def evidence_all(
        self, queries: Sequence[SearchQuery], sources: Sequence[Sequence[str]] | None = None
    ) -> Iterator[HeroEvidence]:
        """The evidence for every query from each of its sources (all of them where none are given).

        They come query by query, sources in the order of the collection. All queries are encoded at once; each is then
        scored against all sources in one pass.
        """
        if sources is not None and len(sources) != len(queries):
            raise UsageError(
                f"{len(queries)} queries and {len(sources)} lists of sources", fix="give one list for each"
            )
        everything = list(range(len(self._layout.names)))
        wanted = [everything] * len(queries) if sources is None else [self._known(names) for names in sources]
        asked = [self._signals.asked(query) for query in queries]
        return self._evidence(asked, wanted)

    def rank(
        self, queries: Sequence[SearchQuery], k: int, allowed: Indices | None = None, *, depth: int = 1000
    ) -> list[HeroRanking]:
        """The `k` best children of the whole collection by the four signals, fused: for ranking a corpus.

        Statistics are those of the whole collection. There is no routing, reranking or going back to sections here, and
        a heading without its own text represents nothing. A query that has failed or has no text finds nothing.
        `allowed` are children in ascending order, `depth` is how deep each signal goes whatever `k` is.
        """
        alive = [number for number, query in enumerate(queries) if query.failure is None and query.text.strip()]
        results = [HeroRanking(Ranking.empty(), {}) for _ in queries]
        if len(self._layout) and alive:
            asked = [self._signals.asked(queries[number]) for number in alive]
            for number, ranked in zip(alive, self._signals.ranked(asked, k, allowed, depth), strict=True):
                results[number] = ranked
        return results

    def _known(self, names: Sequence[str]) -> list[int]:
        unknown = [name for name in names if name not in self._numbers]
        if unknown:
            raise UsageError(
                f"no source {', '.join(map(repr, unknown[:3]))} is indexed", fix="check the ids against the corpus"
            )
        return sorted({self._numbers[name] for name in names})

    def _evidence(self, asked: list[HeroQuery], wanted: list[list[int]]) -> Iterator[HeroEvidence]:
        """Batches of queries through all layers; those that need no search pass by."""
        searched = [
            number
            for number, each in enumerate(asked)
            if each.query.failure is None and each.query.text.strip() and any(self._long[n] for n in wanted[number])
        ]
        vectors = self._signals.vectors([asked[number] for number in searched])
        row = {number: place for place, number in enumerate(searched)}
        progress = self._tools.progress if self._tools is not None else SILENT
        with progress.task("Find evidence per source", len(asked)) as task:
            for first in range(0, len(asked), _BATCH):
                batch = range(first, min(first + _BATCH, len(asked)))
                found: dict[int, HeroSearch] = {}
                trails: dict[int, dict[int, HeroSourceResult]] = {}
                for sources, numbers in self._alike([number for number in batch if number in row], wanted):
                    part = None if vectors is None else vectors[[row[number] for number in numbers]]
                    searches = self._signals.search([asked[number] for number in numbers], part, sources)
                    for number, signals in zip(numbers, searches, strict=True):
                        fused = self._signals.fuse(signals, sources, self._shared.parents.navigation)
                        found[number] = each = HeroSearch(signals, fused)
                        trails[number] = {source: HeroSourceResult(each, place) for place, source in enumerate(sources)}
                self._rerank_all([(asked[number], trail) for number in trails for trail in trails[number].values()])
                self._expand([(found[number], trails[number]) for number in found])
                for number, each in found.items():
                    self._weigh(asked[number], each, list(trails[number]))
                for number in batch:
                    yield from self._finished(asked[number], wanted[number], trails.get(number, {}))
                task.advance(len(batch))

    def _alike(self, numbers: list[int], wanted: list[list[int]]) -> Iterator[tuple[list[int], list[int]]]:
        """Queries that are put to the same long sources: those sources, and the queries."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for number in numbers:
            groups.setdefault(tuple(source for source in wanted[number] if self._long[source]), []).append(number)
        for sources, alike in groups.items():
            yield list(sources), alike

    @cached_property
    def _shared(self) -> EvidenceTools:
        """What reading the documents gives; ranking a corpus does without."""
        parents = ParentSections(self._layout, self.documents)
        sizes = [len(self.documents[name].text) for name in self._layout.names]
        fits = self.settings.fits if self.room is None else min(self.settings.fits, self.room)
        return EvidenceTools(self._signals, parents, sizes, fits)

    @cached_property
    def _long(self) -> list[bool]:
        """Whether each source is too long to be shown whole at once."""
        limit = self.settings.route if self.room is None else min(self.settings.route, self.room)
        return [size > limit or not self.settings.route for size in self._shared.sizes]

    def _rerank_all(self, searches: list[tuple[HeroQuery, HeroSourceResult]]) -> None:
        """Put the best children of every search into the order of the reranker's scores; the others stay below."""
        if self._rerank is None or self._tools is None or not searches:
            return
        passages = self._layout.children.passages
        best = [np.array(trail.best()[: self.settings.depth], np.int64) for _, trail in searches]
        texts = [[indexed_text(passages[child]) for child in children.tolist()] for children in best]
        scored = self._rerank.rerank([asked.query for asked, _ in searches], texts, self._tools)
        for (_, trail), children, scores in zip(searches, best, scored, strict=True):
            if isinstance(scores, Failure):
                trail.failure = scores
                continue
            new = np.array(scores, np.float64)
            if len(new) != len(children) or not np.isfinite(new).all():
                message = "the reranker did not give one number per text"
                trail.failure = Failure(kind="unreadable", message=message)
                continue
            order = np.argsort(-new, kind="stable")
            trail.reranked = Ranking(children[order], new[order])

    def _finished(
        self, asked: HeroQuery, wanted: list[int], trails: dict[int, HeroSourceResult]
    ) -> Iterator[HeroEvidence]:
        """The evidence of one query from each of its sources."""
        shared, settings = self._shared, self.settings
        for source in wanted:
            trail = trails.get(source)
            if trail is None:
                whole = not self._long[source]
                yield HeroEvidence(shared, asked, source, "whole" if whole else "retrieved", sufficient=whole)
                continue
            enough = trail.failure is None and trail.found.scores[trail.place] >= settings.enough
            fall_back = settings.fallback and shared.sizes[source] <= shared.fits and trail.failure is None
            route: Route = "fallback" if fall_back and not enough else "retrieved"
            yield HeroEvidence(shared, asked, source, route, enough, trail)

    @cached_property
    def _coverage(self) -> QuestionCoverage:
        return QuestionCoverage(self._signals.postings(), self._layout.children.bounds)

    def _expand(self, searched: list[tuple[HeroSearch, dict[int, HeroSourceResult]]]) -> None:
        """The passages that the best children of every search lead to; none where reranking failed."""
        settings, parents = self.settings, self._shared.parents
        how = settings.top, settings.parents, settings.neighbours, settings.span
        if self._rerank is None and searched:
            all_units = parents.units_of_all([found.fused for found, _ in searched], *how)
            for (found, _), units in zip(searched, all_units, strict=True):
                found.units = units
            return
        for found, trails in searched:
            one_by_one = [parents.units(each.best(), *how) if each.failure is None else [] for each in trails.values()]
            found.units = EvidenceUnits.of(one_by_one, settings.top)

    def _weigh(self, asked: HeroQuery, found: HeroSearch, sources: list[int]) -> None:
        """How strong the evidence in each source is: the mean of its best similarity and its coverage."""
        assert found.units is not None
        concepts = self._coverage.concepts(asked.query.text, asked.added)
        found.concepts = concepts
        found.weights = self._coverage.weights(concepts, sources)
        found.covered = self._coverage.covered(concepts, found.units)
        scores = coverages = shares(found.weights, found.covered)
        dense = found.signals.get("dense")
        if dense is not None:
            some = np.flatnonzero(np.diff(dense.edges))
            similarities = np.zeros(len(sources))
            similarities[some] = dense.scores[dense.edges[some]]
            scores = (similarities.clip(0, 1) + coverages) / 2
            found.similarities = similarities.tolist()
        found.coverages, found.scores = coverages.tolist(), scores.tolist()
