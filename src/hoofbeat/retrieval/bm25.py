"""BM25 as Lucene defines it, scored eagerly: each posting's share of a score is computed once, when the index is built.

    score(q, d) = Σ idf(t) · tf / (tf + k1 · (1 − b + b · |d| / average)) over the query's terms t, repeats included
    idf(t)      = ln(1 + (N − df + ½) / (df + ½))

Clinical queries are long, and there eager scoring is the fastest exact way. Document lengths are exact (Lucene
quantises them). Texts are read block by block, so that building takes little more memory than the index itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval.analysis import ENGLISH, Analyzer, Block, Vocabulary
from hoofbeat.retrieval.topk import Floats, Indices, Ranking, check_k, top_k

__all__ = ["Bm25", "Postings"]

_BLOCK = 4096
_BATCH = 1 << 20
_SPARSE = 16


class Postings:
    """Which term stands how often in which text: what every BM25 over the same texts shares.

    Rows are terms: `texts[starts[t]:starts[t + 1]]` are the texts with term `t` in ascending order, `counts` beside.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        starts: Indices,
        texts: NDArray[np.int32],
        counts: NDArray[np.int32],
        lengths: Indices,
    ) -> None:
        self.vocabulary = vocabulary
        self.starts = starts
        self.texts = texts
        self.counts = counts
        self.lengths = lengths

    @classmethod
    def build(cls, texts: Sequence[str], analyzer: Analyzer = ENGLISH, progress: Progress = SILENT) -> Postings:
        """Analyse and invert the texts."""
        vocabulary = Vocabulary(analyzer)
        blocks: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []
        lengths: list[Indices] = []
        stream = iter(texts)
        with progress.task("lexical index", len(texts)) as task:
            for first in range(0, len(texts), _BLOCK):
                block = vocabulary.analyse(islice(stream, _BLOCK))
                lengths.append(block.lengths)
                blocks.append(_invert(block, first))
                task.advance(len(block.lengths))
        all_lengths = np.concatenate(lengths) if lengths else np.empty(0, np.int64)
        return cls(vocabulary, *_merge(blocks, len(vocabulary.terms)), all_lengths)


def _invert(block: Block, first: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Term, text and count of each distinct pair, sorted by term, then text."""
    size = max(len(block.lengths), 1)
    owner = np.repeat(np.arange(len(block.lengths), dtype=np.int64), block.lengths)
    pairs, counts = np.unique(block.terms.astype(np.int64) * size + owner, return_counts=True)
    return (
        (pairs // size).astype(np.int32),
        (pairs % size + first).astype(np.int32),
        counts.astype(np.int32),
    )


def _merge(
    blocks: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]], terms: int
) -> tuple[Indices, NDArray[np.int32], NDArray[np.int32]]:
    """Lay the blocks' postings out term by term; blocks come in text order, so each row stays sorted."""
    starts = np.zeros(terms + 1, np.int64)
    for block_terms, _, _ in blocks:
        starts[1:] += np.bincount(block_terms, minlength=terms)
    np.cumsum(starts, out=starts)
    texts = np.empty(starts[-1], np.int32)
    counts = np.empty(starts[-1], np.int32)
    cursor = starts[:-1].copy()
    while blocks:
        block_terms, block_texts, block_counts = blocks.pop(0)
        per_term = np.bincount(block_terms, minlength=terms)
        within = np.arange(len(block_terms)) - np.repeat(np.cumsum(per_term) - per_term, per_term)
        places = cursor[block_terms] + within
        texts[places] = block_texts
        counts[places] = block_counts
        cursor += per_term
    return starts, texts, counts


class Bm25:
    """A BM25 index over texts, known by their positions."""

    def __init__(self, postings: Postings, k1: float = 0.9, b: float = 0.4) -> None:
        if not (0 <= k1 < float("inf") and 0 <= b <= 1):
            raise UsageError(f"BM25 can't have k1={k1:g}, b={b:g}", fix="k1 is at least 0, b lies between 0 and 1")
        self.postings = postings
        self.k1 = k1
        self.b = b
        self._impacts = self._weigh()

    def _weigh(self) -> NDArray[np.float32]:
        postings = self.postings
        lengths = postings.lengths.astype(np.float64)
        average = lengths.mean() if lengths.sum() else 1.0
        saturation = self.k1 * (1 - self.b + self.b * lengths / average)
        df = np.diff(postings.starts)
        idf = np.log1p((len(lengths) - df + 0.5) / (df + 0.5))
        impacts = np.empty(len(postings.texts), np.float32)
        for first in range(0, len(impacts), _BATCH):
            part = slice(first, min(first + _BATCH, len(impacts)))
            terms = np.searchsorted(postings.starts, np.arange(part.start, part.stop), side="right") - 1
            tf = postings.counts[part]
            impacts[part] = idf[terms] * tf / (tf + saturation[postings.texts[part]])
        return impacts

    def search(self, queries: Sequence[str], k: int, allowed: Indices | None = None) -> list[Ranking]:
        """The `k` best texts for each query; texts that share no term with it are no hits.

        `allowed` (ascending positions) restricts the search; the statistics stay those of the whole collection.
        """
        check_k(k)
        return [self._search_one(query, k, allowed) for query in queries]

    def _search_one(self, query: str, k: int, allowed: Indices | None) -> Ranking:
        numbers = self.postings.vocabulary.terms
        terms = self.postings.vocabulary.analyzer.terms(query)
        weights = Counter(numbers[term] for term in terms if term in numbers)
        scores = self._score(weights) if allowed is None else self._score_within(weights, allowed)
        hits = np.flatnonzero(scores)
        return top_k(hits if allowed is None else allowed[hits], scores[hits], k)

    def _row(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        row = slice(self.postings.starts[term], self.postings.starts[term + 1])
        return self.postings.texts[row], self._impacts[row]

    def _score(self, weights: Counter[int]) -> Floats:
        scores = np.zeros(len(self.postings.lengths))
        for term, weight in weights.items():
            texts, impacts = self._row(term)
            scores[texts] += weight * impacts.astype(np.float64)
        return scores

    def _score_within(self, weights: Counter[int], allowed: Indices) -> Floats:
        """Scores of the allowed texts only; a small subset is looked up in each row instead of scoring all of it."""
        if len(allowed) * _SPARSE > len(self.postings.lengths):
            return self._score(weights)[allowed]
        scores = np.zeros(len(allowed))
        for term, weight in weights.items():
            texts, impacts = self._row(term)
            places = np.minimum(np.searchsorted(texts, allowed), len(texts) - 1)
            found = texts[places] == allowed
            scores[found] += weight * impacts[places[found]].astype(np.float64)
        return scores
