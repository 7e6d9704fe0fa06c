"""Near-duplicates of a benchmark's questions: in documents that are not their source, among each other, elsewhere.

A text is the set of its runs of five words (the corpus filter's shingles). A short question in a long document is
measured by containment, the share of the question's shingles that stand in the document; two questions by the share of
the smaller one's. All pairs are counted exactly: the benchmark's shingles are few enough to be held, and documents
come one at a time. Shingles that many questions share are a benchmark's set phrases and tell nothing; they are left
out, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.benchmarks.text_overlap import longest_run
from hoofbeat.corpus.duplicates import WIDTH, Shingler
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document

THRESHOLD = 0.3
MIN_SHINGLES = 8
"""A text of fewer five-word runs is too short to say that it stands elsewhere."""

_COMMON_SHARE, _COMMON_COUNT = 0.05, 5
_SHOWN = 600


class NearDuplicate(Struct, frozen=True, kw_only=True):
    """A question that stands largely in another text: `where` says in what (document, question, other benchmark).

    `score` is the share of shingles found, `run` the longest run of words both have, and the two texts are the places
    where it stands: each as characters of its own text, with the words themselves.
    """

    question: str
    where: str
    other: str
    score: float
    run: int
    question_span: tuple[int, int]
    other_span: tuple[int, int]
    question_text: str
    other_text: str


class OwnSource(Struct, frozen=True, kw_only=True):
    """How much of a question stands word for word in its own source: what a search would find, no sign of leakage."""

    question: str
    document: str
    score: float


class NearSearch:
    """The questions' texts, ready to be looked for."""

    def __init__(self, texts: Mapping[str, str], *, threshold: float = THRESHOLD, width: int = WIDTH) -> None:
        self.texts = dict(texts)
        self.threshold = threshold
        self._shingler = Shingler(width)
        sets = {name: self._shingler(text) for name, text in texts.items()}
        counts = Counter(int(value) for values in sets.values() for value in values)
        most = max(_COMMON_COUNT, _COMMON_SHARE * len(sets))
        common = np.array(sorted(value for value, count in counts.items() if count > most), np.uint64)
        self.common = len(common)
        self._sets = {name: np.setdiff1d(values, common, assume_unique=True) for name, values in sets.items()}
        self._names = [name for name, values in self._sets.items() if len(values) >= MIN_SHINGLES]
        self.too_short = len(sets) - len(self._names)
        flat = [self._sets[name] for name in self._names]
        values = np.concatenate(flat) if flat else np.zeros(0, np.uint64)
        owners = np.repeat(np.arange(len(flat)), [len(each) for each in flat])
        order = np.argsort(values, kind="stable")
        self._values, self._owners = values[order], owners[order]

    def in_documents(
        self, documents: Iterable[Document], own: Mapping[str, Sequence[str]], *, progress: Progress = SILENT
    ) -> tuple[list[NearDuplicate], list[OwnSource]]:
        """Questions that stand in documents; `own` are each question's sources, which are told apart."""
        found: list[NearDuplicate] = []
        sources: list[OwnSource] = []
        with progress.task("near-duplicates in the corpus", None) as task:
            for document in documents:
                for name, score in self._contained(self._shingler(document.text)):
                    if document.id in own.get(name, ()):
                        sources.append(OwnSource(question=name, document=document.id, score=round(score, 6)))
                    elif score >= self.threshold:
                        found.append(self._pair(name, "document", document.id, document.text, score))
                task.advance()
        return _sorted(found), sources

    def among_themselves(self) -> list[NearDuplicate]:
        """Pairs of questions that share most of the smaller one's shingles; each pair once."""
        found = []
        for place, name in enumerate(self._names):
            for other, score in self._shared(self._sets[name]):
                if other > place and score >= self.threshold:
                    found.append(
                        self._pair(name, "question", self._names[other], self.texts[self._names[other]], score)
                    )
        return _sorted(found)

    def in_benchmark(self, texts: Mapping[str, str], label: str) -> list[NearDuplicate]:
        """Questions that stand in those of another benchmark, which is named by `label`."""
        found = []
        for other, text in texts.items():
            shingles = self._shingler(text)
            if len(shingles) < MIN_SHINGLES:
                continue
            for place, score in self._shared(shingles):
                if score >= self.threshold:
                    found.append(self._pair(self._names[place], label, other, text, score))
        return _sorted(found)

    def _contained(self, shingles: NDArray[np.uint64]) -> list[tuple[str, float]]:
        """The questions of which something stands in a text, with the share of theirs that does."""
        counts = self._counts(shingles)
        return [
            (self._names[place], float(counts[place] / len(self._sets[self._names[place]])))
            for place in np.flatnonzero(counts)
        ]

    def _shared(self, shingles: NDArray[np.uint64]) -> list[tuple[int, float]]:
        """The questions that share something with a set, with the share of the smaller one's."""
        counts = self._counts(shingles)
        return [
            (int(place), min(1.0, float(counts[place] / min(len(self._sets[self._names[place]]), len(shingles)))))
            for place in np.flatnonzero(counts)
        ]

    def _counts(self, shingles: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How many shingles of each question are in a set."""
        first = np.searchsorted(self._values, shingles, side="left")
        last = np.searchsorted(self._values, shingles, side="right")
        hits = np.flatnonzero(last > first)
        owners = [self._owners[first[hit] : last[hit]] for hit in hits]
        found = np.concatenate(owners) if owners else np.zeros(0, np.int64)
        counts: NDArray[np.int64] = np.bincount(found, minlength=len(self._names))
        return counts

    def _pair(self, name: str, where: str, other: str, text: str, score: float) -> NearDuplicate:
        mine = self.texts[name]
        run = longest_run(mine, text)
        return NearDuplicate(
            question=name,
            where=where,
            other=other,
            score=round(score, 6),
            run=run.words,
            question_span=run.a,
            other_span=run.b,
            question_text=mine[run.a[0] : run.a[1]][:_SHOWN],
            other_text=text[run.b[0] : run.b[1]][:_SHOWN],
        )


def _sorted(found: Iterable[NearDuplicate]) -> list[NearDuplicate]:
    return sorted(found, key=lambda pair: (-pair.score, pair.question, pair.where, pair.other))
