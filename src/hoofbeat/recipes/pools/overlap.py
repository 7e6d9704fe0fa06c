"""Overlap between collections: how much of their words two of them share, each word as often as it is used.

The weighted Jaccard similarity of two collections is the sum over all words of the smaller share of the two, divided
by the sum of the larger. Equal collections have 1, those without a word in common 0, whatever their sizes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations

from hoofbeat.records import Document
from hoofbeat.retrieval.chunking import Spans

__all__ = ["OVERLAP_HEADER", "overlap_rows", "weighted_jaccard", "word_shares"]

OVERLAP_HEADER = ("a", "b", "overlap", "shared_words", "words")
_WORD = re.compile(r"[^\W_]+")


def word_shares(documents: Iterable[Document], tokens: Spans | None = None) -> dict[str, float]:
    """Every word of some documents with its share of all; `tokens` are a tokenizer's, in place of whole words."""
    counts: Counter[str] = Counter()
    for document in documents:
        text = f"{document.title}\n{document.text}".lower()
        spans = tokens(text) if tokens else (match.span() for match in _WORD.finditer(text))
        counts.update(text[start:end] for start, end in spans)
    total = counts.total()
    return {word: count / total for word, count in sorted(counts.items())}


def weighted_jaccard(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """The weighted Jaccard similarity of two collections' word shares; 0 where either has no words."""
    if not a or not b:
        return 0.0
    words = sorted(a.keys() | b.keys())
    smaller = sum(min(a.get(word, 0.0), b.get(word, 0.0)) for word in words)
    return smaller / sum(max(a.get(word, 0.0), b.get(word, 0.0)) for word in words)


def overlap_rows(shares: Mapping[str, Mapping[str, float]]) -> list[tuple[object, ...]]:
    """Every pair of collections, each once, as rows under `OVERLAP_HEADER`."""
    return [
        (one, other, round(weighted_jaccard(a, b), 4), len(a.keys() & b.keys()), len(a.keys() | b.keys()))
        for (one, a), (other, b) in combinations(shares.items(), 2)
    ]
