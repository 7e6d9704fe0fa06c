"""An index in shards: stretches of whole documents, each searched by itself, merged to the ranking of one index.

Rankings are the same, bit for bit, at any number of shards. BM25 scores a text by the text, the query and statistics
of the whole collection: the command counts those once over all shards, and sends each shard the rarity of a query's
terms with the query. A dense score is the dot product of one row, summed in a fixed order, so it knows nothing of other
rows. The best k of a collection are among the best k of its shards; equal scores go in the order of the collection.
Statistics of a single document (HERO) are within one shard, because no document is cut.

Shards are searched in this process, one after the other, or by workers of a cluster, each of which keeps its shards
open. Shards of the lexical index are built by workers; vectors are encoded shard by shard, each over the whole cluster.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.engine import current_engine
from hoofbeat.models.embedded import default_threads
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval.index.analysis import Analyzer, TermVocabulary
from hoofbeat.retrieval.index.chunking import indexed_text
from hoofbeat.retrieval.index.dense_search import DenseSearcher, Vectors
from hoofbeat.retrieval.index.kept_parts import PartPlace, found_part, kept
from hoofbeat.retrieval.index.lexical_search import Bm25, CollectionSize, QueryBag, QueryWeigher
from hoofbeat.retrieval.index.postings import Postings
from hoofbeat.retrieval.index.stored_texts import opened
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, Rankings, check_k
from hoofbeat.retrieval.index.window_pieces import PieceSearcher

_DOCUMENTS = "documents.npy"
_TERMS = "terms.json"
_FREQUENCIES = "frequencies.npy"
_SIZE = "size.json"


class ShardEdges(NamedTuple):
    """Where shards begin and end: shard n has the passages `passages[n]:passages[n + 1]`, likewise its documents."""

    passages: tuple[int, ...]
    documents: tuple[int, ...]

    @classmethod
    def cut(cls, bounds: Indices, shards: int) -> ShardEdges:
        """Shards of about as many passages each; `bounds` are where documents begin. Some may be empty."""
        wanted = np.arange(shards + 1) * int(bounds[-1]) // shards
        documents = np.searchsorted(bounds, wanted)
        documents[0] = 0
        return cls(tuple(bounds[documents].tolist()), tuple(documents.tolist()))

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return len(self.passages) - 1

    def within(self, number: int, places: Indices) -> Indices:
        """Those of some places (ascending) that are in a shard, counted from its beginning."""
        first, last = self.passages[number : number + 2]
        begin, end = np.searchsorted(places, [first, last])
        found: Indices = np.asarray(places, np.int64)[begin:end] - first
        return found

    def searched(self, places: Indices | None) -> list[tuple[int, Indices | None]]:
        """The shards that hold any of these places (or anything, where all are meant), each with its own places."""
        numbers = [each for each in range(self.shards) if self.passages[each] < self.passages[each + 1]]
        if places is None:
            return [(number, None) for number in numbers]
        held = [(number, self.within(number, places)) for number in numbers]
        return [(number, mine) for number, mine in held if len(mine)]


def merged(found: Iterable[Rankings], count: int, k: int) -> list[Ranking]:
    """The `k` best of each of `count` queries in all shards, highest first, equal scores in the collection's order.

    Shards come in the order of the collection, and equal scores of one shard are in that order.
    """
    shards = list(found)
    results = []
    for number in range(count):
        own = [each.ranking(number) for each in shards]
        if not own:
            results.append(Ranking.empty())
            continue
        indices, scores = (np.concatenate(part) for part in zip(*own, strict=True))
        order = np.argsort(-scores, kind="stable")[:k]
        results.append(Ranking(indices[order], scores[order]))
    return results


# Words


class _LexicalShard(NamedTuple):
    """The postings of a shard, and the number of each passage's document, counted from its first."""

    postings: Postings
    document_of: NDArray[np.int32]


class LexicalShards(NamedTuple):
    """What it takes to open any shard of a lexical index, on any machine; one that is not there is built."""

    passages: PartPlace
    place: PartPlace
    name: str
    analyzer: Analyzer
    edges: ShardEdges

    def open(self, number: int) -> _LexicalShard:
        """A shard as it is kept, or built from the collection's passages."""
        first, last = self.edges.passages[number : number + 2]
        settings: dict[str, object] = {"analysis": self.analyzer.describe(), "passages": [first, last]}

        def build(draft: Path) -> None:
            table = opened(self.passages)
            documents = np.zeros(last - first, np.int32)

            def texts() -> Iterable[str]:
                before, document = "", -1
                for place in range(first, last):
                    passage = table[place]
                    document += document < 0 or passage.document != before
                    before = passage.document
                    documents[place - first] = document
                    yield indexed_text(passage)

            made = Postings.build(texts(), self.analyzer, count=last - first, threads=default_threads())
            made.save(draft)
            np.save(draft / _DOCUMENTS, documents)

        def load(folder: Path) -> _LexicalShard:
            postings, documents = Postings.load(folder, self.analyzer), np.load(folder / _DOCUMENTS)
            if not len(postings.lengths) == len(documents) == last - first:
                raise ValueError("the shard has other passages than it should")
            return _LexicalShard(postings, documents)

        return kept(self.place.inside(f"{self.name}-{number + 1}-of-{self.edges.shards}"), settings, build, load)

    def statistics(self, progress: Progress = SILENT) -> CollectionTerms:
        """The terms of all shards together, counted once."""

        def build(draft: Path) -> None:
            found = _counted(self, progress)
            (draft / _TERMS).write_text(json.dumps(list(found.numbers)), "ascii")
            np.save(draft / _FREQUENCIES, found.frequencies)
            (draft / _SIZE).write_text(json.dumps(found.size), "ascii")

        def load(folder: Path) -> CollectionTerms:
            names = json.loads((folder / _TERMS).read_text("ascii"))
            frequencies: Indices = np.load(folder / _FREQUENCIES)
            if len(frequencies) != len(names):
                raise ValueError("there is not a number for each term")
            size = CollectionSize(*json.loads((folder / _SIZE).read_text("ascii")))
            return CollectionTerms({name: number for number, name in enumerate(names)}, frequencies, size)

        settings: dict[str, object] = {"analysis": self.analyzer.describe(), "shards": self.edges.shards}
        return kept(self.place.inside(f"{self.name}-of-{self.edges.shards}"), settings, build, load)


class CollectionTerms(NamedTuple):
    """The terms of a collection in the order of their characters, in how many texts each occurs, and its size."""

    numbers: dict[str, int]
    frequencies: Indices
    size: CollectionSize


class _ShardTerms(NamedTuple):
    """The terms of one shard."""

    names: list[str]
    frequencies: Indices
    size: CollectionSize


class _CountTerms:
    """The work of counting the terms of a shard, which builds it where it is not there."""

    def __init__(self, shards: LexicalShards) -> None:
        self._shards = shards

    def __call__(self, number: int) -> _ShardTerms:
        postings = self._shards.open(number).postings
        size = CollectionSize(len(postings.lengths), int(postings.lengths.sum(dtype=np.int64)))
        return _ShardTerms(list(postings.vocabulary.terms), np.diff(postings.starts), size)


def _counted(shards: LexicalShards, progress: Progress) -> CollectionTerms:
    counts: Counter[str] = Counter()
    texts = terms = 0
    with progress.task("lexical index", shards.edges.shards) as task:
        for found in current_engine().map(_CountTerms(shards), range(shards.edges.shards), sees=shards.place.sees()):
            for name, frequency in zip(found.names, found.frequencies.tolist(), strict=True):
                counts[name] += frequency
            texts, terms = texts + found.size.texts, terms + found.size.terms
            task.advance()
    names = sorted(counts)
    frequencies = np.fromiter(map(counts.__getitem__, names), np.int64, len(names))
    return CollectionTerms(
        {name: number for number, name in enumerate(names)}, frequencies, CollectionSize(texts, terms)
    )


class ShardedPostings:
    """Which term is in which text of all shards. They are opened here, memory-mapped, when a row is asked for."""

    def __init__(self, shards: LexicalShards, vocabulary: TermVocabulary) -> None:
        self.vocabulary = vocabulary
        self._shards = shards
        self._open: list[Postings] = []

    def row(self, term: str) -> NDArray[np.int32]:
        """The texts with a term, ascending."""
        if not self._open:
            self._open = [self._shards.open(number).postings for number in range(self._shards.edges.shards)]
        firsts = self._shards.edges.passages
        rows = [each.row(term) + np.int32(first) for each, first in zip(self._open, firsts, strict=False)]
        return np.concatenate(rows)


class _TermBatch(NamedTuple):
    """Queries as bags of terms, numbered by their places in `names`, which are in the order of their characters."""

    names: list[str]
    idf: Floats
    bags: list[QueryBag]


class _LexicalPart(NamedTuple):
    """What is searched for in one shard."""

    shard: int
    queries: _TermBatch
    k: int
    allowed: Indices | None


class _LexicalSearch:
    """The work of searching shards by BM25: whoever does it keeps the shards open. Without a size, by partition."""

    def __init__(self, shards: LexicalShards, k1: float, b: float, size: CollectionSize | None) -> None:
        self._given = shards, k1, b, size
        self._open: dict[int, Bm25] = {}

    def __reduce__(self) -> tuple[type[_LexicalSearch], tuple[Any, ...]]:
        return _LexicalSearch, self._given

    def __call__(self, part: _LexicalPart) -> Rankings:
        bm25 = self._bm25(part.shard)
        known = bm25.postings.vocabulary.terms
        numbers = np.array([known.get(name, -1) for name in part.queries.names], np.int64)
        there = numbers >= 0
        if bm25.idf is not None:
            bm25.idf[numbers[there]] = part.queries.idf[there]
        bags = []
        for terms, counts, weights in part.queries.bags:
            mine = there[terms]
            bags.append(QueryBag(numbers[terms[mine]], counts[mine], None if weights is None else weights[mine]))
        first = self._given[0].edges.passages[part.shard]
        return Rankings.of(bm25.search_bags(bags, part.k, part.allowed), first)

    def _bm25(self, number: int) -> Bm25:
        if number not in self._open:
            shards, k1, b, size = self._given
            postings, document_of = shards.open(number)
            partition_of = document_of if size is None else None
            self._open[number] = Bm25(postings, k1, b, partition_of=partition_of, whole=size, threads=default_threads())
        return self._open[number]


class ShardedBm25:
    """BM25 over the shards of a collection, with the rankings of `Bm25` over all of it.

    `partitioned` takes N, df and average length from each text's own document.
    """

    def __init__(
        self, shards: LexicalShards, terms: CollectionTerms, k1: float, b: float, *, partitioned: bool = False
    ) -> None:
        vocabulary = TermVocabulary(shards.analyzer, terms.numbers)
        self.postings = ShardedPostings(shards, vocabulary)
        self._shards = shards
        self._partitioned = partitioned
        self._names = list(terms.numbers)
        self._weigher = QueryWeigher(vocabulary, terms.frequencies, terms.size, k1, b)
        self._work = _LexicalSearch(shards, k1, b, None if partitioned else terms.size)

    def search(
        self, queries: Sequence[str], k: int, allowed: Indices | None = None, *, weighted: bool = False
    ) -> list[Ranking]:
        """The `k` best texts for each query (`Bm25.search`)."""
        check_k(k)
        batch = self._batch(self._weigher.bags(queries, weighted=weighted, partitioned=self._partitioned))
        edges = self._shards.edges
        parts = [_LexicalPart(number, batch, k, mine) for number, mine in edges.searched(allowed)]
        return merged(_on_shards(self._work, parts, self._shards.place), len(queries), k)

    def _batch(self, bags: Sequence[QueryBag]) -> _TermBatch:
        terms = np.unique(np.concatenate([np.empty(0, np.int64), *(bag.terms for bag in bags)]))
        # term by term, as an index computes it: in the other shape a processor's vector unit might round otherwise
        idf = np.array([self._weigher.idf(terms[at : at + 1])[0] for at in range(len(terms))], np.float64)
        numbered = [bag._replace(terms=np.searchsorted(terms, bag.terms)) for bag in bags]
        return _TermBatch([self._names[term] for term in terms.tolist()], idf, numbered)


# Vectors


def load_vectors(folder: Path) -> tuple[Vectors, Indices]:
    """The vectors that are kept in a part, memory-mapped, and the passage that each belongs to."""
    vectors: Vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    owners: Indices = np.load(folder / "owners.npy")
    if len(vectors) != len(owners):
        raise ValueError("there is not an owner for each vector")
    return vectors, owners


class _DensePart(NamedTuple):
    """What is searched for in one shard: in all of it, in some places, or in each of some partitions."""

    shard: int
    queries: Vectors
    k: int
    allowed: Indices | None = None
    bounds: Indices | None = None
    parts: tuple[int, ...] = ()


class _DenseSearch:
    """The work of searching shards of vectors: whoever does it keeps the shards open.

    It gives the rankings of all queries together, or those of each query in partitions.
    """

    def __init__(self, places: tuple[PartPlace, ...], edges: ShardEdges, store: str) -> None:
        self._given = places, edges, store
        self._open: dict[int, DenseSearcher | PieceSearcher] = {}

    def __reduce__(self) -> tuple[type[_DenseSearch], tuple[Any, ...]]:
        return _DenseSearch, self._given

    def __call__(self, part: _DensePart) -> list[Rankings]:
        searcher = self._searcher(part.shard)
        first = self._given[1].passages[part.shard]
        if part.bounds is not None:
            found = searcher.search_parts(part.queries, part.k, part.bounds, part.parts)
            return [each._replace(indices=each.indices + first) for each in found]
        return [Rankings.of(searcher.search(part.queries, part.k, part.allowed), first)]

    def _searcher(self, number: int) -> DenseSearcher | PieceSearcher:
        if number not in self._open:
            places, edges, store = self._given
            vectors, owners = found_part(places[number], load_vectors)
            rows = DenseSearcher(vectors, store)
            passages = edges.passages[number + 1] - edges.passages[number]
            self._open[number] = rows if len(owners) == passages else PieceSearcher(rows, owners)
        return self._open[number]


class ShardedDense:
    """Exact dense search over the shards of a collection, with the rankings of one index over all its `rows`."""

    def __init__(self, places: Sequence[PartPlace], edges: ShardEdges, store: str, rows: int) -> None:
        self._edges = edges
        self._store = store
        self._rows = rows
        self._place = places[0]
        self._work = _DenseSearch(tuple(places), edges, store)

    def __len__(self) -> int:
        return self._edges.passages[-1]

    def describe(self) -> dict[str, object]:
        """How vectors are stored and searched: the same as of one index, because the rankings are."""
        return {"search": "exact", "store": self._store, **({"rows": self._rows} if self._rows != len(self) else {})}

    def search(self, queries: Vectors, k: int, allowed: Indices | None = None) -> list[Ranking]:
        """The `k` passages nearest to each query; `allowed` (ascending) restricts the search."""
        check_k(k)
        parts = [_DensePart(number, queries, k, allowed=mine) for number, mine in self._edges.searched(allowed)]
        found = _on_shards(self._work, parts, self._place)
        return merged((together for (together,) in found), len(queries), k)

    def search_parts(
        self, queries: Vectors, k: int, bounds: Indices, parts: Sequence[int] | None = None
    ) -> list[Rankings]:
        """The `k` nearest passages of each document to each query; `bounds` are where documents begin."""
        check_k(k)
        chosen = np.arange(len(bounds) - 1) if parts is None else np.asarray(parts, np.int64)
        asked = []
        for number in range(self._edges.shards):
            first, last = self._edges.documents[number : number + 2]
            mine = chosen[(chosen >= first) & (chosen < last)] - first
            if len(mine):
                within = np.asarray(bounds, np.int64)[first : last + 1] - self._edges.passages[number]
                asked.append(_DensePart(number, queries, k, bounds=within, parts=tuple(mine.tolist())))
        shards = list(_on_shards(self._work, asked, self._place))
        return [_one_after_the_other([shard[number] for shard in shards]) for number in range(len(queries))]


def _one_after_the_other(found: Sequence[Rankings]) -> Rankings:
    """Rankings in parts of shards as rankings in parts of the collection."""
    none = Rankings(np.empty(0, np.int64), np.empty(0, np.float64), np.zeros(1, np.int64))
    ends = np.cumsum([0, *(len(each.indices) for each in found)])
    edges = [each.edges[1:] + end for each, end in zip(found, ends, strict=False)]
    return Rankings(
        np.concatenate([none.indices, *(each.indices for each in found)]),
        np.concatenate([none.scores, *(each.scores for each in found)]),
        np.concatenate([none.edges, *edges]),
    )


def _on_shards(work: Callable[[Any], Any], parts: Sequence[Any], place: PartPlace) -> Iterable[Any]:
    """What each shard found, by the worker that keeps it open."""
    return current_engine().map(work, parts, home=lambda part: int(part.shard), sees=place.sees())
