"""HERO's first stage: four rankings of children for every question, in every source, joined by reciprocal rank.

Expansion needs no model: it is a table of words for the same thing, a domain pack's or a user's own. A question is
matched term by term as the lexical index reads it, so case, endings and stop words make no difference. The same
question always gets the same words, and every added word can be traced to the one that brought it. Coverage is the
share of the question's terms that evidence speaks of; rare terms count more.

Every layer of HERO can be switched off or changed in its settings, so that its effect can be measured.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.encoder_base import DEFAULT_ENCODER
from hoofbeat.prompts.packs import DEFAULT_PACK, SynonymGroup, load_pack
from hoofbeat.retrieval.hero.parent_sections import EvidenceUnits, HeroLayout, Navigation
from hoofbeat.retrieval.index.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.index.dense_kernels import QueryRankings, QueryRows
from hoofbeat.retrieval.index.lexical_search import Postings
from hoofbeat.retrieval.index.query_vectors import Encode, Vectors, mean_vectors
from hoofbeat.retrieval.index.shards import ShardedPostings
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, Rankings, check_k, top_k
from hoofbeat.retrieval.index_set import PassageCollection
from hoofbeat.retrieval.line import Stage
from hoofbeat.retrieval.stage_roles import SearchQuery

SIGNALS = ("dense", "bm25", "sections", "titles")
"""The four first-stage rankings of children."""

NAVIGATION = frozenset({"sections", "titles"})
"""The signals that find sections, which represent their children."""


class HeroSettings(Struct, frozen=True, kw_only=True):
    """The settings of HERO. The paper gives `route`, `k` and `top`; the other numbers are ours.

    `route`: sources up to this length are shown whole, 0 for none. `dense` to `titles`: the signals' weights in
    the fusion, 0 to leave one out. `first`: how deep each signal goes in a source. `depth`: how many children a
    reranker reads. `parents` and `neighbours`: whether children bring their section, and how many sections on each
    side of it; `span`: the characters that such a passage may have. `enough`: evidence below it is weak. `fits`:
    sources up to that number of characters may be shown whole when it is.
    """

    route: int = 80_000
    expand: str = "terms"
    dense: float = 1.0
    bm25: float = 1.0
    sections: float = 0.5
    titles: float = 0.5
    k: int = 60
    first: int = 20
    rerank: str = "none"
    depth: int = 20
    parents: bool = True
    neighbours: int = 1
    span: int = 6_000
    top: int = 5
    fallback: bool = True
    enough: float = 0.4
    fits: int = 120_000
    encoder: str = DEFAULT_ENCODER

    def __post_init__(self) -> None:
        if not all(0 <= weight < math.inf for weight in self.weights.values()) or not any(self.weights.values()):
            raise UsageError(
                "HERO's weights must not be negative, and at least one must be above 0",
                fix=f"give at least one of {', '.join(SIGNALS)} a weight above 0",
            )
        if min(self.k, self.first, self.depth, self.span, self.top) < 1 or min(self.route, self.neighbours) < 0:
            raise UsageError(
                "a number in HERO's settings is too small",
                fix="set k, first, depth, span and top to at least 1, route and neighbours to at least 0",
            )

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each signal."""
        return dict(zip(SIGNALS, (self.dense, self.bm25, self.sections, self.titles), strict=True))

    @classmethod
    def of(cls, stage: Stage) -> HeroSettings:
        """The settings that a stage of a retriever line gives."""
        return cls(
            route=stage.count("route"),
            expand=stage.word("expand"),
            dense=stage.number("dense"),
            bm25=stage.number("bm25"),
            sections=stage.number("sections"),
            titles=stage.number("titles"),
            k=stage.count("k"),
            first=stage.count("first"),
            rerank=stage.word("rerank"),
            depth=stage.count("depth"),
            parents=stage.word("parents") == "on",
            neighbours=stage.count("neighbours"),
            span=stage.count("span"),
            top=stage.count("top"),
            fallback=stage.word("fallback") == "on",
            enough=stage.number("enough"),
            fits=stage.count("fits"),
            encoder=stage.word("encoder"),
        )


NO_EXPANSION = "none"
_TABLES = (".tsv", ".txt")
_MAX_TABLE = 1_000_000


class ExpansionMatch(Struct, frozen=True, kw_only=True):
    """What one match brought: the words found in the question (as the table spells them), and those added for them."""

    matched: str
    terms: tuple[str, ...]


_Stems = tuple[str, ...]


class Expansions:
    """A table of groups, ready to be matched against questions."""

    def __init__(self, groups: list[SynonymGroup], *, analyzer: Analyzer = ENGLISH, fingerprint: str = "") -> None:
        self.analyzer = analyzer
        self.fingerprint = fingerprint
        self.groups = groups
        self._stems: list[list[tuple[str, _Stems]]] = []
        self._spelling: dict[_Stems, str] = {}
        self._by_first: defaultdict[str, dict[_Stems, list[int]]] = defaultdict(dict)
        for number, group in enumerate(groups):
            self._stems.append([(term, tuple(analyzer.terms(term))) for term in group.terms])
            for term in [*group.terms, *group.narrower]:
                stems = tuple(analyzer.terms(term))
                if stems and number not in (numbers := self._by_first[stems[0]].setdefault(stems, [])):
                    numbers.append(number)
                    self._spelling.setdefault(stems, term)

    def added(self, question: str) -> tuple[ExpansionMatch, ...]:
        """What the table adds to a question, in the order of the matches; nothing is added twice.

        At each place the longest match counts; a term all of whose words the question has already is not added.
        """
        stems = self.analyzer.terms(question)
        present = set(stems)
        seen: set[_Stems] = set()
        found: list[ExpansionMatch] = []
        at = 0
        while at < len(stems):
            match = self._match(stems, at)
            for number in self._by_first[match[0]][match] if match else ():
                new: list[str] = []
                for term, key in self._stems[number]:
                    if key not in seen and not present.issuperset(key):
                        seen.add(key)
                        new.append(term)
                if new:
                    found.append(ExpansionMatch(matched=self._spelling[match], terms=tuple(new)))
            at += max(1, len(match))
        return tuple(found)

    def _match(self, stems: list[str], at: int) -> _Stems:
        """The longest entry that begins at this place; empty where none does."""
        candidates = self._by_first.get(stems[at], {})
        fitting = [entry for entry in candidates if tuple(stems[at : at + len(entry)]) == entry]
        return max(fitting, key=len, default=())


def load_expansions(spec: str = "terms") -> Expansions:
    """The words of a domain pack, of a file, or of several joined by `+`; `terms` are those of the default pack."""
    groups: list[SynonymGroup] = []
    for name in spec.split("+"):
        if name.endswith(_TABLES):
            groups += read_words(Path(name))
        elif name != NO_EXPANSION:
            groups += load_pack(DEFAULT_PACK if name == "terms" else name).expansions
    return _compiled(msgspec.json.encode(groups))


@cache
def _compiled(data: bytes) -> Expansions:
    groups = msgspec.json.decode(data, type=list[SynonymGroup])
    return Expansions(groups, fingerprint=hashlib.sha256(data).hexdigest()[:12])


def read_words(path: Path) -> list[SynonymGroup]:
    """A user's table of words: one group per line, its words separated by tabs or semicolons; `#` begins a comment."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_TABLE).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise UsageError(
            f"the table of expansion words {path} can't be read: {err}", fix="check the path; save it as UTF-8 text"
        ) from err
    groups = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = [word.strip() for word in line.partition("#")[0].replace(";", "\t").split("\t") if word.strip()]
        if len(words) == 1:
            raise UsageError(
                f"line {number} of {path} has only one word: {words[0]!r}",
                fix="write synonyms on one line, separated by tabs or semicolons",
            )
        groups += [SynonymGroup(terms=words)] if words else []
    return groups


class Concept(NamedTuple):
    """A term of a question, and terms that may replace it."""

    stem: str
    instead: tuple[tuple[str, ...], ...]


class QuestionCoverage:
    """Which terms of a question its evidence speaks of, and how much each of them counts in a source.

    `bounds` divide the texts of the postings among the sources: source n has those from `bounds[n]` to before
    `bounds[n + 1]`. Rarity is reckoned in each source by itself, so its neighbours in the index change nothing.
    """

    def __init__(self, postings: Postings | ShardedPostings, bounds: Indices) -> None:
        self._postings = postings
        self._bounds = bounds
        self._analyzer = postings.vocabulary.analyzer

    def concepts(self, question: str, added: Sequence[ExpansionMatch]) -> list[Concept]:
        """The terms of a question; words that were added may replace the one that brought them."""
        instead: dict[str, list[tuple[str, ...]]] = {}
        for each in added:
            others = [tuple(self._analyzer.terms(term)) for term in each.terms]
            for stem in self._analyzer.terms(each.matched):
                instead.setdefault(stem, []).extend(others)
        stems = dict.fromkeys(self._analyzer.terms(question))
        return [Concept(stem, tuple(instead.get(stem, ()))) for stem in stems]

    def weights(self, concepts: Sequence[Concept], sources: Sequence[int]) -> Floats:
        """For each concept (row) and each of these sources (column) how rare the term is among the source's texts."""
        chosen = np.array(sources, np.int64)
        first, last = self._bounds[chosen], self._bounds[chosen + 1]
        edges = np.concatenate([first, last]).astype(np.int32)  # or every row would be widened
        frequencies = np.empty((len(concepts), len(chosen)))
        for number, concept in enumerate(concepts):
            before = self._postings.row(concept.stem).searchsorted(edges)
            frequencies[number] = before[len(chosen) :] - before[: len(chosen)]
        weights: Floats = np.log1p((last - first - frequencies + 0.5) / (frequencies + 0.5))
        return weights

    def covered(self, concepts: Sequence[Concept], evidence: EvidenceUnits) -> NDArray[np.bool_]:
        """For each concept (row) and each search (column) whether the units it found speak of it."""
        count = len(evidence.sizes)
        there = np.arange(evidence.table.shape[1]) < evidence.sizes[:, None]
        spans = evidence.table[:, :, 2:][there].astype(np.int32)  # or every row would be widened
        lo, hi = np.ascontiguousarray(spans.T)
        owner = np.repeat(np.arange(count), evidence.sizes)
        known: dict[str, NDArray[np.bool_]] = {}

        def present(stem: str) -> NDArray[np.bool_]:
            if stem not in known:
                row = self._postings.row(stem)
                known[stem] = np.zeros(count, bool)
                known[stem][owner[row.searchsorted(hi) > row.searchsorted(lo)]] = True
            return known[stem]

        table = np.zeros((len(concepts), count), bool)
        for number, concept in enumerate(concepts):
            table[number] = present(concept.stem)
            for stems in concept.instead:
                table[number] |= np.logical_and.reduce([present(stem) for stem in stems])
        return table


def shares(weights: Floats, table: NDArray[np.bool_]) -> Floats:
    """For each column the share of the question's weight that is covered."""
    if not len(weights):
        return np.zeros(table.shape[1])
    # added up one after the other: other ways of summing round by how many columns there are
    covered = np.cumsum(weights * table, axis=0)[-1]
    found: Floats = covered / np.cumsum(weights, axis=0)[-1]
    return found


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
        self._expansions = load_expansions(settings.expand)

    def postings(self) -> Postings | ShardedPostings:
        """Which term is in which child."""
        return self.layout.children.bm25(_K1, _B, partitioned=True).postings

    def asked(self, query: SearchQuery) -> HeroQuery:
        """Expand a query. Texts that a query writer made for dense search stay as they are."""
        added = self._expansions.added(query.text)
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
        encoder = self.layout.children.dense(self.settings.encoder).encoder
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
        dense = collection.dense(self.settings.encoder).search
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
            return collection.dense(self.settings.encoder).search.search(vectors, depth, allowed)
        if allowed is not None and name in NAVIGATION:
            allowed = self.layout.sections_of(allowed)
        lexical = collection.bm25(_K1, _B)
        return lexical.search([each.lexical for each in asked], depth, allowed)
