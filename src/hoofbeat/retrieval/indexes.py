"""The indexes over one list of passages, built once however many retriever lines search them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Passage
from hoofbeat.retrieval.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.bm25 import Bm25, Postings
from hoofbeat.retrieval.chunking import indexed_text
from hoofbeat.retrieval.dense import Dense
from hoofbeat.retrieval.topk import Indices

if TYPE_CHECKING:
    from hoofbeat.models.encoder import Encoder

__all__ = ["IndexSet"]


class IndexSet:
    """The indexes over one list of passages, each built when a line first needs it and shared by all lines."""

    def __init__(
        self,
        passages: Sequence[Passage],
        *,
        encoder: Callable[[str], Encoder],
        analyzer: Analyzer = ENGLISH,
        progress: Progress = SILENT,
    ) -> None:
        self.passages = passages
        self.analyzer = analyzer
        self.progress = progress
        self._load_encoder = encoder
        self._place: dict[str, int] = {}
        for place, passage in enumerate(passages):
            if self._place.setdefault(passage.id, place) != place:
                raise InputError(
                    f"two passages have the id {passage.id!r}",
                    fix="every passage needs its own id; check that no document was imported twice",
                )
        self.documents = list(dict.fromkeys(passage.document for passage in passages))
        numbers = {document: number for number, document in enumerate(self.documents)}
        self.document_of = np.array([numbers[passage.document] for passage in passages], np.int64)
        self._numbers = numbers
        self._postings: Postings | None = None
        self._bm25: dict[tuple[float, float], Bm25] = {}
        self._dense: dict[str, tuple[Encoder, Dense]] = {}

    def passage(self, passage_id: str) -> Passage:
        """The passage with this id, as `Hit.passage` names it."""
        return self.passages[self._place[passage_id]]

    def describe(self) -> dict[str, object]:
        """The analysis, and which encoders were used, as a manifest records them."""
        encoders = {spec: encoder.identity for spec, (encoder, _) in self._dense.items()}
        return {"analysis": self.analyzer.describe(), "encoders": encoders}

    def bm25(self, k1: float, b: float) -> Bm25:
        """The BM25 index with these parameters."""
        if self._postings is None:
            self._postings = Postings.build(self._texts(), self.analyzer, self.progress)
        if (k1, b) not in self._bm25:
            self._bm25[k1, b] = Bm25(self._postings, k1, b)
        return self._bm25[k1, b]

    def dense(self, spec: str) -> tuple[Encoder, Dense]:
        """An encoder and the index of all passages encoded by it."""
        if spec not in self._dense:
            encoder = self._load_encoder(spec)
            texts = self._texts()
            vectors = encoder.encode(texts, self.progress) if texts else np.empty((0, encoder.dimension), np.float32)
            self._dense[spec] = encoder, Dense(vectors)
        return self._dense[spec]

    def places_of(self, documents: Collection[str]) -> Indices:
        """Where the passages of these documents stand, ascending; an unknown document is an error."""
        unknown = [document for document in documents if document not in self._numbers]
        if unknown:
            raise UsageError(
                f"no passage belongs to {', '.join(map(repr, unknown[:3]))}",
                fix="check the document ids against the corpus",
            )
        chosen = np.array([self._numbers[document] for document in documents], np.int64)
        return np.flatnonzero(np.isin(self.document_of, chosen))

    def _texts(self) -> list[str]:
        return [indexed_text(passage) for passage in self.passages]
