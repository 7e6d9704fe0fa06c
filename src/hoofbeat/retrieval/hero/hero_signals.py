"""HERO's first stage: four rankings of children for every question, in every source, joined by reciprocal rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hoofbeat.retrieval.hero.hero_settings import NAVIGATION, HeroSettings
from hoofbeat.retrieval.hero.query_terms import ExpansionMatch, load_expansions
from hoofbeat.retrieval.hero.section_layout import HeroLayout, Navigation
from hoofbeat.retrieval.index.lexical_search import Postings
from hoofbeat.retrieval.index.query_vectors import Encode, Vectors, mean_vectors
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, Rankings, check_k, top_k
from hoofbeat.retrieval.index.topk_selection import QueryRankings, QueryRows
from hoofbeat.retrieval.index_set import PassageCollection
from hoofbeat.retrieval.stage_roles import SearchQuery

_K1, _B = 0.9, 0.4


class HeroQuery(NamedTuple):
    """A query, what was added to it, and what is searched for."""

    query: SearchQuery
    added: tuple[ExpansionMatch, ...]
    lexical: str
    dense: tuple[str, ...]


class HeroRanking(NamedTuple):
    """Children of the whole collection, best first, and the ranking that each signal gave."""

    ranking: Ranking
    via: dict[str, Ranking]


class Signals:
    """The four signals over the children, sections and headings of the same documents."""

    def __init__(
        self,
        layout: HeroLayout,
        settings: HeroSettings,
        encode: Encode | None,
    ) -> None:
        self.layout = layout
        self.settings = settings
        self.weights = {name: weight for name, weight in settings.weights.items() if weight}
        self._encode = encode

    def postings(self) -> Postings:
        """Which term stands in which child."""
        return self.layout.children.bm25(_K1, _B, partitioned=True).postings

    def asked(self, query: SearchQuery) -> HeroQuery:
        """Expand a query. Texts that a query writer made for dense search stay as they are."""
        added = load_expansions().added(query.text) if self.settings.expand == "terms" else ()
        words = " ".join(term for each in added for term in each.terms)
        lexical = f"{query.for_lexical} {words}" if words else query.for_lexical
        dense = query.for_dense if query.dense is not None or not words else (f"{query.text} {words}",)
        return HeroQuery(query, added, lexical, dense)

    def vectors(self, asked: Sequence[HeroQuery]) -> Vectors | None:
        """A vector for each query, all encoded in one go; None where the dense signal is off."""
        if "dense" not in self.weights or not asked:
            return None
        groups = [(each.query.text, each.dense) for each in asked]
        if self._encode is not None:
            return mean_vectors(groups, self._encode, self._encode)
        encoder, _ = self.layout.children.dense(self.settings.encoder)
        return mean_vectors(groups, encoder.encode_queries, encoder.encode_documents)

    def search(
        self, asked: Sequence[HeroQuery], vectors: Vectors | None, sources: Sequence[int]
    ) -> list[dict[str, Rankings]]:
        """For each query and signal the ranking in each of these sources (ascending).

        Statistics are those of each source itself, so one pass scores all of them at once.
        """
        found: list[dict[str, Rankings]] = [{} for _ in asked]
        for name in self.weights:
            collection = self._collection(name)
            if name == "dense":
                assert vectors is not None
                rankings = self._dense(collection, vectors, sources)
            else:
                rankings = self._lexical(collection, [each.lexical for each in asked], sources)
            for signals, ranking in zip(found, rankings, strict=True):
                signals[name] = ranking
        return found

    def _lexical(self, collection: PassageCollection, texts: list[str], sources: Sequence[int]) -> list[Rankings]:
        """All hits in these sources in one ranking, which is then dealt out to them."""
        bounds = collection.bounds
        allowed = None
        if len(sources) < len(self.layout.names):
            allowed = np.concatenate([np.arange(bounds[source], bounds[source + 1]) for source in sources])
        count = len(collection.passages) if allowed is None else len(allowed)
        place_of = np.zeros(len(self.layout.names), np.min_scalar_type(len(sources)))  # small numbers sort faster
        place_of[list(sources)] = np.arange(len(sources))
        place_of = place_of[collection.document_of]
        found = []
        for ranking in collection.bm25(_K1, _B, partitioned=True).search(texts, count, allowed):
            places = place_of[ranking.indices]
            counts = np.bincount(places, minlength=len(sources))
            begins = np.cumsum(counts) - counts
            order = np.argsort(places, kind="stable")
            ranks = np.arange(len(order)) - np.repeat(begins, counts)
            order = order[ranks < self.settings.first]
            edges = np.concatenate([[0], np.cumsum(np.minimum(counts, self.settings.first))])
            found.append(Rankings(ranking.indices[order], ranking.scores[order], edges))
        return found

    def _dense(self, collection: PassageCollection, vectors: Vectors, sources: Sequence[int]) -> list[Rankings]:
        """The sources are partitions of the children, of which only these are searched."""
        _, dense = collection.dense(self.settings.encoder)
        return dense.search_parts(vectors, self.settings.first, collection.bounds, sources)

    def _collection(self, name: str) -> PassageCollection:
        return {"sections": self.layout.sections, "titles": self.layout.headings}.get(name, self.layout.children)

    def fuse(self, found: Mapping[str, Rankings], sources: Sequence[int], navigation: Navigation) -> Rankings:
        """Join the signals of one query in each of the sources (ascending)."""
        total: Floats = np.zeros(len(self.layout))
        for name in self.weights:
            hits, _, edges = found[name]
            ranks = np.arange(1, len(hits) + 1) - np.repeat(edges[:-1], np.diff(edges))
            self._add(total, name, hits, ranks, navigation)
        children = np.flatnonzero(total)
        owners = self.layout.children.document_of[children]
        edges = np.append(np.searchsorted(owners, sources), len(children))
        # rounded, so that sums of the same shares in another order are ties and go by the collection's order
        pairs = QueryRows(np.repeat(np.arange(len(sources)), np.diff(edges)), children)
        ordered = QueryRankings.sorted(pairs, total[children].round(12), len(sources), max(1, len(children))).places
        return Rankings(ordered, total[ordered], edges)

    def _add(self, total: Floats, name: str, hits: Indices, ranks: Indices, navigation: Navigation) -> None:
        if name not in NAVIGATION:
            total[hits] += self.weights[name] / (self.settings.k + ranks)
            return
        hits, ranks, _ = navigation.mapped(hits, ranks)
        shares: Floats = np.zeros(len(total))
        # of places that are assigned twice the last value stays: backwards, that is the better rank
        shares[hits[::-1]] = self.weights[name] / (self.settings.k + ranks[::-1])
        total += shares

    def ranked(self, asked: Sequence[HeroQuery], k: int, allowed: Indices | None, depth: int) -> list[HeroRanking]:
        """The `k` best children of the whole collection (or of `allowed`, ascending) by signals that go so deep."""
        check_k(k)
        check_k(depth)
        navigation = self.layout.navigation
        found: list[dict[str, Ranking]] = [{} for _ in asked]
        totals = [np.zeros(len(self.layout)) for _ in asked]
        for name in self.weights:
            for number, ranking in enumerate(self._search_whole(name, asked, depth, allowed)):
                ranks = np.arange(1, len(ranking.indices) + 1)
                self._add(totals[number], name, ranking.indices, ranks, navigation)
                found[number][name] = navigation.ranking(ranking)[0] if name in NAVIGATION else ranking
        results = []
        for total, via in zip(totals, found, strict=True):
            places = np.flatnonzero(total) if allowed is None else allowed[total[allowed] > 0]
            results.append(HeroRanking(top_k(places, total[places], k), via))
        return results

    def _search_whole(
        self, name: str, asked: Sequence[HeroQuery], depth: int, allowed: Indices | None
    ) -> list[Ranking]:
        collection = self._collection(name)
        if name == "dense":
            vectors = self.vectors(asked)
            assert vectors is not None
            return collection.dense(self.settings.encoder)[1].search(vectors, depth, allowed)
        if allowed is not None and name in NAVIGATION:
            allowed = self.layout.sections_of(allowed)
        lexical = collection.bm25(_K1, _B)
        return lexical.search([each.lexical for each in asked], depth, allowed)
