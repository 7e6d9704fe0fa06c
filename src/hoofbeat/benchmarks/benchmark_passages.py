"""What is searched for a benchmark whose documents are not those of its corpus as they stand.

A benchmark may be about passages, or about some of a corpus's documents only. It then holds `collection.tsv`: a row for
every passage that is searched, with the characters of the document it is. The text stays in the corpus, once; the ids
are those that the benchmark's judgments name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from hoofbeat.corpus import Corpus
from hoofbeat.errors import ArtefactError
from hoofbeat.records import Document, Span
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_tsv

COLLECTION = "collection.tsv"
COLLECTION_HEADER = ("id", "document", "start", "end", "heading")


class CollectionPassage(Struct, frozen=True, kw_only=True):
    """One thing that is searched: these characters of that document, under this heading."""

    id: str
    document: str
    start: int
    end: int
    heading: str = ""

    @property
    def row(self) -> tuple[object, ...]:
        """The piece as a row under `COLLECTION_HEADER`."""
        return (self.id, self.document, self.start, self.end, self.heading)

    def span(self, document: Document) -> Span:
        """The piece as evidence."""
        return Span(document=self.document, start=self.start, end=self.end, quote=document.text[self.start : self.end])


def passage_as_document(piece: CollectionPassage, document: Document) -> Document:
    """The piece as a document of its own, as a retriever ranks it and a collection is exported."""
    return Document(
        id=piece.id,
        title=piece.heading,
        text=document.text[piece.start : piece.end],
        kind="passage",
        facets={"document": piece.document},
        licence=document.licence,
    )


def read_passages(artefact: Artefact) -> list[CollectionPassage]:
    """The rows of a benchmark's `collection.tsv`; none where it has no collection of its own."""
    if not artefact.has(COLLECTION):
        return []
    try:
        return [
            CollectionPassage(
                id=row["id"],
                document=row["document"],
                start=int(row["start"]),
                end=int(row["end"]),
                heading=row["heading"],
            )
            for row in read_tsv(artefact.file(COLLECTION))
        ]
    except (KeyError, ValueError) as err:
        raise ArtefactError(
            f"{COLLECTION} can't be read: {err}", where=str(artefact.path), fix="restore or build the benchmark again"
        ) from err


def collection_documents(artefact: Artefact, corpus: Corpus) -> Iterator[Document]:
    """What is searched for a benchmark: its own collection cut from the corpus, else the corpus itself."""
    pieces = read_passages(artefact)
    return _cut(pieces, corpus, artefact) if pieces else corpus.documents()


class BenchmarkCollection:
    """What is searched for a benchmark, to be read as often as one likes."""

    def __init__(self, artefact: Artefact, corpus: Corpus) -> None:
        self._artefact = artefact
        self._corpus = corpus

    def __iter__(self) -> Iterator[Document]:
        return collection_documents(self._artefact, self._corpus)


def _cut(pieces: Iterable[CollectionPassage], corpus: Corpus, artefact: Artefact) -> Iterator[Document]:
    document: Document | None = None
    for piece in pieces:
        if document is None or document.id != piece.document:
            document = corpus.get(piece.document)
        if not 0 <= piece.start <= piece.end <= len(document.text):
            raise ArtefactError(
                f"the passage {piece.id} does not lie in its document",
                where=str(artefact.path),
                fix="name the corpus that the benchmark was made from",
            )
        yield passage_as_document(piece, document)
