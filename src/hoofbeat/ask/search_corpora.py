"""The corpora that are searched, each with its indexes: made once, used by one search at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hoofbeat.corpus import Corpus
from hoofbeat.corpus.corpus import DOCUMENTS
from hoofbeat.corpus.reader import is_passage
from hoofbeat.facets import facet_values
from hoofbeat.models import Encoder, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.index_set import index_documents
from hoofbeat.store.atomic_files import file_sha256

_LOOKED_AT = 2000
_FEWEST, _MOST = 2, 60


class SearchableCorpus:
    """One corpus and the indexes over it, kept in the user's cache."""

    def __init__(
        self, name: str, corpus: Corpus, *, encoder: Callable[[str], Encoder] | None = None, keep: bool = True
    ) -> None:
        self.name = name
        self.corpus = corpus
        self._encoder = encoder
        self._keep = keep
        self._indexes: IndexSet | None = None
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}

    @contextmanager
    def searching(
        self, line: str, *, model: Callable[[str], Model] | None = None, progress: Progress = SILENT
    ) -> Iterator[Retriever]:
        """A retriever over the corpus; whoever else wants one waits, as indexes are made when they are first used."""
        with self._lock:
            if self._indexes is None:
                self._indexes = self._made()
            self._indexes.progress = progress
            try:
                yield Retriever(self._indexes, line, model=model)
            finally:
                self._indexes.progress = SILENT

    def place(self, document: str) -> int:
        """Where a document stands in its corpus, counted from 1."""
        if not self._places:
            self._places = {name: number for number, name in enumerate(self.corpus.ids(), 1)}
        return self._places[document]

    def facets(self) -> list[str]:
        """The facets by which its documents could be told apart as sources."""
        return source_facets(self.corpus)

    def _made(self) -> IndexSet:
        first = next(iter(self.corpus.documents()), None)
        published = first is not None and is_passage(first)
        content = file_sha256(self.corpus.artefact.file(DOCUMENTS))
        return index_documents(self.corpus, content, passages=published, encoder=self._encoder, keep=self._keep)


def source_facets(corpus: Corpus) -> list[str]:
    """Facets with a few values that several documents may share; of a large corpus the first documents are looked at.

    A facet that most documents lack, or whose value is another for every one of many documents, tells no sources apart.
    """
    values: dict[str, set[str]] = {}
    having: dict[str, int] = {}
    count = 0
    for document in corpus.documents():
        if count == _LOOKED_AT:
            break
        count += 1
        for name in document.facets:
            values.setdefault(name, set()).update(facet_values(document.facets, name))
            having[name] = having.get(name, 0) + 1
    return sorted(
        name
        for name, found in values.items()
        if _FEWEST <= len(found) <= _MOST and 2 * having[name] > count and (len(found) < count or count <= _MOST // 2)
    )
