"""BM25 as Lucene defines it, scored eagerly: each posting's share of a score, its impact, is computed once.

    score(q, d) = Σ idf(t) · tf / (tf + k1 · (1 − b + b · |d| / average)) over the query's terms t, repeats included
    idf(t)      = ln(1 + (N − df + ½) / (df + ½))

Clinical queries are long, and there eager scoring is the fastest exact way. Document lengths are exact (Lucene
quantises them). Impacts are computed when a query first needs their term, so opening an index costs nothing.

A weighted query is itself weighed as if it were a text: each of its terms counts with its own BM25 weight in the query,
|q| being the terms that the collection knows. That is how R2MED ran BM25.

Scores are sums of single-precision numbers, added in the order of the terms' characters: the score of a text depends
on nothing but the text, the bag of the query's words and the statistics, so equal texts get equal scores.

The inner loop adds the rows of a query's terms up, by numpy, or compiled where numba (the extra `fast`) is installed.
Both add the same numbers of single precision in the same order, so scores are the same to the last bit. What numba
changes is time: its loop reads half as much, and lets the queries of a batch run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hoofbeat.engine import available_cores
from hoofbeat.errors import ArtefactError, UsageError
from hoofbeat.retrieval.index.analysis import TermVocabulary
from hoofbeat.retrieval.index.postings import Postings
from hoofbeat.retrieval.index.topk import Floats, Indices, Ranking, check_k, positive_top_k, top_k

__all__ = [
    "AddRows",
    "Bm25",
    "CollectionSize",
    "ImpactRows",
    "Postings",
    "QueryBag",
    "QueryWeigher",
    "Scratch",
    "Single",
    "View",
    "add_rows",
    "compiled",
]


Single = NDArray[np.float32]

_WIDE = 1 << 24  # postings; that is 128 MiB of wide positions if all terms are asked for

View = tuple[NDArray[np.intp] | NDArray[np.int32] | None, Single]
"""A term's row as numpy adds it: positions and impacts, or None and the impacts of all texts."""


class ImpactRows(NamedTuple):
    """The rows of an index: sparse ones as texts and impacts between `starts`, those of frequent terms as `dense` too.

    `slots[t]` is where term `t` stands in `dense`, or -1. `views` are the rows that numpy has added before.
    """

    starts: Indices
    texts: NDArray[np.int32]
    impacts: Single
    slots: NDArray[np.int32]
    dense: NDArray[np.float32]
    views: dict[int, View]

    @property
    def wide(self) -> bool:
        """Whether views keep positions as wide as numpy wants them: where there are not too many."""
        return len(self.texts) <= _WIDE

    def view(self, term: int) -> View:
        """Take a row out, and keep it for the next time."""
        row, slot = slice(self.starts[term], self.starts[term + 1]), self.slots[term]
        if slot >= 0:
            view: View = (None, self.dense[slot])
        elif self.wide:
            view = (self.texts[row].astype(np.intp), self.impacts[row])
        else:
            view = (self.texts[row], self.impacts[row])
        self.views[term] = view
        return view


class Scratch(NamedTuple):
    """Room for the scores of one query and what it takes to add them up, used again for the next one."""

    scores: Single
    products: Single
    places: NDArray[np.intp]

    @classmethod
    def of(cls, texts: int) -> Scratch:
        """Room for this many texts."""
        return cls(np.empty(texts, np.float32), np.empty(texts, np.float32), np.empty(texts, np.intp))


AddRows = Callable[[Scratch, ImpactRows, NDArray[np.int64], Single], None]


def add_rows(scratch: Scratch, rows: ImpactRows, terms: NDArray[np.int64], weights: Single) -> None:
    """Set the scores to the sum of the terms' rows, each times its weight, in the order given."""
    scores, products, places = scratch
    scores.fill(0)
    known, add, add_at, narrow = rows.views.get, np.add, np.add.at, not rows.wide
    for term, weight in zip(terms.tolist(), weights.tolist(), strict=True):
        texts, impacts = known(term) or rows.view(term)
        if weight != 1:
            impacts = np.multiply(impacts, weight, out=products[: len(impacts)])
        if texts is None:
            add(scores, impacts, out=scores)
        elif narrow:
            widened = places[: len(texts)]
            widened[:] = texts
            add_at(scores, widened, impacts)
        else:
            add_at(scores, texts, impacts)


@cache
def compiled() -> AddRows | None:
    """The same as `add_rows`, compiled and letting other threads run; None where numba is not installed.

    It takes about half a second to get ready, which only much work makes up for.
    """
    try:
        from numba import njit  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None

    def loop(
        scores: Any, starts: Any, texts: Any, impacts: Any, slots: Any, dense: Any, terms: Any, weights: Any
    ) -> None:
        for text in range(len(scores)):
            scores[text] = 0
        for number in range(len(terms)):
            term, weight = terms[number], weights[number]
            slot = slots[term]
            if slot >= 0:
                row = dense[slot]
                for text in range(len(scores)):
                    scores[text] += weight * row[text]
            else:
                for place in range(starts[term], starts[term + 1]):
                    scores[texts[place]] += weight * impacts[place]

    fast = njit(nogil=True, cache=True)(loop)

    def add_rows_fast(scratch: Scratch, rows: ImpactRows, terms: NDArray[np.int64], weights: Single) -> None:
        fast(scratch.scores, *rows[:-1], terms, weights)

    return add_rows_fast


_Best = TypeVar("_Best")

_DENSE = 4
_DENSE_IF_FEW = 8
_FEW_BYTES = 1 << 26
_SPARSE = 16
_COMPILE_FROM = 20_000_000
_SIDE_BY_SIDE = 8
_MOST_THREADS = 8
_LONGEST_PIECE = 40
_MOST_PIECES = 1 << 16


class QueryBag(NamedTuple):
    """A query: its known terms, ascending, how often each occurs in it, and how much each counts.

    There are no weights where they are another in each partition.
    """

    terms: Indices
    counts: Floats
    weights: Single | None


class CollectionSize(NamedTuple):
    """The number of texts in a collection, and of terms in all of them."""

    texts: int
    terms: int


class _Runs(NamedTuple):
    """A term's row cut where the partition changes: which partitions, and in how many texts of each."""

    partitions: Indices
    frequencies: Indices


class _KnownPieces(dict[str, tuple[int, ...]]):
    """The numbers of the known terms in a piece of a query; pieces recur, so they are remembered."""

    def __init__(self, vocabulary: TermVocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, piece: str) -> tuple[int, ...]:
        analyzer, numbers = self._vocabulary
        found = tuple(numbers[term] for term in analyzer.terms(piece) if term in numbers)
        if len(piece) <= _LONGEST_PIECE:
            if len(self) >= _MOST_PIECES:
                self.clear()
            self[piece] = found
        return found


class QueryWeigher:
    """Queries as bags of terms, by the statistics of a whole collection: in how many texts each term occurs."""

    def __init__(
        self, vocabulary: TermVocabulary, frequencies: Indices, size: CollectionSize, k1: float, b: float
    ) -> None:
        self.vocabulary = vocabulary
        self.frequencies = frequencies
        self.size = size
        self._k1, self._b = k1, b
        self._pieces = _KnownPieces(vocabulary)

    def bags(self, queries: Sequence[str], *, weighted: bool, partitioned: bool = False) -> list[QueryBag]:
        """The queries as bags of known terms; a weighted query is weighed as if it were a text."""
        bags = []
        for query in queries:
            pieces = map(self._pieces.__getitem__, self.vocabulary.analyzer.pieces(query))
            terms, found = np.unique(np.fromiter(chain.from_iterable(pieces), np.int64), return_counts=True)
            counts = found.astype(np.float64)
            if weighted and partitioned:
                weights = None
            elif weighted:
                average = _averages(np.array([self.size.terms]), np.array([self.size.texts]))
                saturation = _saturation(self._k1, self._b, counts.sum(), average)
                weights = _weigh(self.idf(terms), counts, saturation)
            else:
                weights = counts.astype(np.float32)
            bags.append(QueryBag(terms, counts, weights))
        return bags

    def idf(self, terms: Indices) -> Floats:
        """How rare these terms are."""
        return _idf(self.size.texts, self.frequencies[terms])


class Bm25:
    """A BM25 index over texts, known by their positions.

    With `partition_of` (the number of each text's partition, ascending), N, df and average length are those of the
    text's own partition, as if each had its own index. `fast` says whether to use numba, if it is installed; by
    default once there has been enough to do. With it the queries of a batch run on `threads` threads, by default one a
    core. Neither changes a score.

    Where the texts are a shard of a collection, `whole` is the collection's size, and `idf` has to be set for the terms
    of a search before it: how rare they are in the collection.
    """

    def __init__(
        self,
        postings: Postings,
        k1: float = 0.9,
        b: float = 0.4,
        partition_of: ArrayLike | None = None,
        *,
        whole: CollectionSize | None = None,
        fast: bool | None = None,
        threads: int | None = None,
    ) -> None:
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise UsageError(f"BM25 can't use k1={k1:g}, b={b:g}", fix="use k1 of at least 0, and b from 0 to 1")
        self.postings = postings
        self.k1 = k1
        self.b = b
        total = len(postings.lengths)
        self._partition_of = _checked_partitions(partition_of, total)
        parts = np.zeros(total, np.int64) if self._partition_of is None else self._partition_of
        least = 1 if self._partition_of is None else 0
        self._sizes = np.bincount(parts, minlength=least)
        sums = np.bincount(parts, postings.lengths, minlength=least)
        if self._partition_of is None and whole is not None:
            self._sizes, sums = np.array([whole.texts]), np.array([whole.terms], np.float64)
        self._averages = _averages(sums, self._sizes)
        self._saturations = _saturation(k1, b, postings.lengths, self._averages[parts])
        frequencies = np.diff(postings.starts)
        size = CollectionSize(int(self._sizes.sum()), int(sums.sum()))
        self._weigher = QueryWeigher(postings.vocabulary, frequencies, size, k1, b)
        self.idf: Floats | None = None if whole is None else np.full(len(frequencies), np.nan)
        frequent = _frequent(frequencies, total)
        slots = np.full(len(frequencies), -1, np.int32)
        slots[frequent] = np.arange(len(frequent))
        # memory that is not written to takes no room: rows come to be when they are needed
        impacts, dense = np.empty(len(postings.texts), np.float32), np.zeros((len(frequent), total), np.float32)
        self._rows = ImpactRows(postings.starts, postings.texts, impacts, slots, dense, {})
        self._ready = np.zeros(len(frequencies), bool)
        self._work = 0
        self._fast = fast
        self._threads = min(available_cores(), _MOST_THREADS) if threads is None else threads

    def search(
        self, queries: Sequence[str], k: int, allowed: Indices | None = None, *, weighted: bool = False
    ) -> list[Ranking]:
        """The `k` best texts for each query; texts that share no term with it are not hits.

        `allowed` (ascending positions) restricts the search; the statistics stay those of the whole collection (or of
        the partitions). `weighted` weighs the query's terms by BM25 too.
        """
        return self.search_bags(self._bags(queries, weighted=weighted), k, allowed)

    def search_bags(self, bags: Sequence[QueryBag], k: int, allowed: Indices | None = None) -> list[Ranking]:
        """The same for queries that are bags of terms already."""
        check_k(k)
        if allowed is not None and len(allowed) * _SPARSE <= len(self.postings.lengths):
            self._prepare(bags)
            return [self._search_few(bag, k, np.asarray(allowed, np.int64)) for bag in bags]

        def best(scores: Single) -> Ranking:
            if allowed is None:
                return positive_top_k(scores, k)
            ranking = positive_top_k(scores[allowed], k)
            return Ranking(np.asarray(allowed, np.int64)[ranking.indices], ranking.scores)

        return self._each(bags, best)

    def search_partitions(self, queries: Sequence[str], k: int, *, weighted: bool = False) -> list[list[Ranking]]:
        """For each query the `k` best texts of every partition, as an index of each would give; one pass scores all.

        Positions are those of the whole collection.
        """
        check_k(k)
        if self._partition_of is None:
            return [[ranking] for ranking in self.search(queries, k, weighted=weighted)]
        return self._each(self._bags(queries, weighted=weighted), partial(self._best_by_partition, k=k))

    # Scoring

    def _each(self, bags: Sequence[QueryBag], best: Callable[[Single], _Best]) -> list[_Best]:
        """What `best` makes of the scores of each query; compiled, queries run side by side."""
        self._prepare(bags)
        self._work += len(bags) * len(self.postings.lengths)
        worth_it = self._work > _COMPILE_FROM if self._fast is None else self._fast
        fast = compiled() if worth_it else None

        def some(first: int, step: int) -> list[_Best]:
            scratch = Scratch.of(len(self.postings.lengths))
            return [best(self._scores(bag, scratch, fast or add_rows)) for bag in bags[first::step]]

        threads = min(self._threads, len(bags) // _SIDE_BY_SIDE) if fast else 1
        if threads < 2:
            return some(0, 1)
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(some, range(threads), [threads] * threads))
        return [parts[number % threads][number // threads] for number in range(len(bags))]

    def _bags(self, queries: Sequence[str], *, weighted: bool = False) -> list[QueryBag]:
        return self._weigher.bags(queries, weighted=weighted, partitioned=self._partition_of is not None)

    def _prepare(self, bags: Sequence[QueryBag]) -> None:
        """Make the rows of all their terms ready."""
        for bag in bags:
            for term in bag.terms[~self._ready[bag.terms]].tolist():
                self._make_ready(term)

    def _scores(self, bag: QueryBag, scratch: Scratch, add: AddRows) -> Single:
        if bag.weights is None:
            scratch.scores.fill(0)
            for term, weights in zip(bag.terms.tolist(), self._weights_by_partition(bag), strict=True):
                texts, impacts = self._row(term)
                scratch.scores[texts] += impacts * weights
            return scratch.scores
        add(scratch, self._rows, bag.terms, bag.weights)
        return scratch.scores

    def _search_few(self, bag: QueryBag, k: int, allowed: Indices) -> Ranking:
        """The best of a small subset, which is looked up in each row instead of scoring all of it."""
        scores = np.zeros(len(allowed), np.float32)
        weights = self._weights_by_partition(bag) if bag.weights is None else bag.weights
        for number, term in enumerate(bag.terms.tolist()):
            texts, impacts = self._row(term)
            places = np.minimum(np.searchsorted(texts, allowed), len(texts) - 1)
            found = texts[places] == allowed
            places = places[found]
            scores[found] += impacts[places] * (weights[number][places] if bag.weights is None else weights[number])
        hits = np.flatnonzero(scores)
        return top_k(allowed[hits], scores[hits].astype(np.float64), k)

    def _best_by_partition(self, scores: Single, k: int) -> list[Ranking]:
        assert self._partition_of is not None
        hits = np.flatnonzero(scores)
        hits = hits[np.lexsort((-scores[hits], self._partition_of[hits]))]
        bounds = np.searchsorted(self._partition_of[hits], np.arange(len(self._sizes) + 1))
        found = scores[hits].astype(np.float64)
        return [
            Ranking(hits[begin : min(begin + k, end)], found[begin : min(begin + k, end)])
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        ]

    # Weights

    def _runs(self, term: int) -> _Runs:
        texts = self.postings.texts[self.postings.starts[term] : self.postings.starts[term + 1]]
        assert self._partition_of is not None
        return _Runs(*np.unique(self._partition_of[texts], return_counts=True))

    def _make_ready(self, term: int) -> None:
        """Compute the impacts of a term's row."""
        row = slice(self.postings.starts[term], self.postings.starts[term + 1])
        texts, counts = self.postings.texts[row], self.postings.counts[row].astype(np.float64)
        if texts.min() < 0 or texts.max() >= len(self.postings.lengths):
            raise ArtefactError("the lexical index names texts that don't exist", fix="build the index again")
        if self._partition_of is not None:
            runs = self._runs(term)
            idf = np.repeat(_idf(self._sizes[runs.partitions], runs.frequencies), runs.frequencies)
        elif self.idf is not None:
            idf = self.idf[term : term + 1]
        else:
            idf = self._weigher.idf(np.array([term]))
        impacts = idf * counts / (counts + self._saturations[texts])
        slot = self._rows.slots[term]
        if slot < 0:
            self._rows.impacts[row] = impacts
        else:
            self._rows.dense[slot, texts] = impacts
        self._ready[term] = True

    def _row(self, term: int) -> tuple[NDArray[np.int32], Single]:
        """The texts with a term and their impacts."""
        row = slice(self.postings.starts[term], self.postings.starts[term + 1])
        texts, slot = self.postings.texts[row], self._rows.slots[term]
        return texts, self._rows.impacts[row] if slot < 0 else self._rows.dense[slot, texts]

    def _weights_by_partition(self, bag: QueryBag) -> list[Single]:
        """How much each term counts in each text of its row; |q| counts the terms that the text's partition knows."""
        runs = [self._runs(term) for term in bag.terms.tolist()]
        lengths = np.zeros(len(self._sizes))
        for (partitions, _), times in zip(runs, bag.counts, strict=True):
            lengths[partitions] += times
        saturations = _saturation(self.k1, self.b, lengths, self._averages)
        return [
            np.repeat(
                _weigh(_idf(self._sizes[run.partitions], run.frequencies), times, saturations[run.partitions]),
                run.frequencies,
            )
            for run, times in zip(runs, bag.counts, strict=True)
        ]


def _frequent(frequencies: Indices, total: int) -> Indices:
    """The terms worth a score for every text: those in every fourth text; in every eighth, while few bytes do."""
    frequent = np.flatnonzero(frequencies * _DENSE_IF_FEW > total)
    affordable = _FEW_BYTES // (np.dtype(np.float32).itemsize * max(1, total))
    most = max(affordable, np.count_nonzero(frequencies * _DENSE > total))
    by_frequency = np.argsort(-frequencies[frequent], kind="stable")
    return np.sort(frequent[by_frequency[:most]])


def _averages(terms: Floats | Indices, texts: Indices) -> Floats:
    """The average length of a text; 1 where no text has a term."""
    averages: Floats = np.where(terms > 0, terms, 1) / np.where(terms > 0, texts, 1)
    return averages


def _saturation(k1: float, b: float, lengths: ArrayLike, averages: Floats) -> Floats:
    saturation: Floats = k1 * (1 - b + b * np.asarray(lengths, np.float64) / averages)
    return saturation


def _idf(texts: Indices | int, frequencies: Indices) -> Floats:
    idf: Floats = np.log1p((texts - frequencies + 0.5) / (frequencies + 0.5))
    return idf


def _weigh(idf: Floats, counts: Floats, saturations: Floats) -> Single:
    return (idf * counts / (counts + saturations)).astype(np.float32)


def _checked_partitions(partition_of: ArrayLike | None, total: int) -> Indices | None:
    if partition_of is None:
        return None
    partitions = np.asarray(partition_of)
    if partitions.shape != (total,) or (total and partitions.dtype.kind not in "iu"):
        raise UsageError(f"{total} texts need {total} whole numbers of partitions", fix="give one number for each text")
    if total and (partitions[0] < 0 or (np.diff(partitions) < 0).any()):
        raise UsageError("the texts of a partition must be adjacent", fix="order texts by partition, starting at 0")
    return partitions.astype(np.int64)
