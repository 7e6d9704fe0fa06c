"""A corpus on disk, read one document at a time: a million documents need no more memory than their ids."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.facets import has_facets
from hoofbeat.records import Document
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.tables import each_line, lines_at, read_jsonl

DOCUMENTS = "documents.jsonl"
REJECTED = "rejected.jsonl"


class ImportRejection(Struct, frozen=True, kw_only=True):
    """A file, or a document of a file (`name: line 7`), that was not taken."""

    source: str
    reason: str


"""The table of a corpus."""


class _Id(msgspec.Struct):
    id: str


class Corpus(ArtefactFolder):
    """The documents of an artefact of kind corpus."""

    def __init__(self, artefact: Artefact) -> None:
        super().__init__(artefact)
        self._table = artefact.file(DOCUMENTS)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a corpus folder."""
        return cls(open_artefact(path, "corpus"))

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of the import."""
        return read_jsonl(self._table, Document)

    def get(self, id: str) -> Document:
        """The document with this id; an unknown one is an `InputError` that names the closest."""
        if id not in self._places:
            close = difflib.get_close_matches(id, self._places, n=3, cutoff=0.5)
            look = "none of its ids is like it: is it the right corpus?" if self._places else "the corpus is empty"
            raise InputError(
                f"no document {id} in this corpus",
                where=str(self.path),
                fix=f"the closest ids are {', '.join(close)}" if close else look,
            )
        return lines_at(self._table, [self._places[id]], Document)[0]

    def ids(self) -> tuple[str, ...]:
        """The ids of all documents, in the order of the import."""
        return tuple(self._places)

    def select(self, **facets: str | Sequence[str]) -> list[Document]:
        """Documents whose facets have these values; a list means any of them, and a facet that is a list any of its."""
        wanted = {name: {value} if isinstance(value, str) else set(value) for name, value in facets.items()}
        return [document for document in self.documents() if has_facets(document.facets, wanted)]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Document]:
        return self.documents()

    def __contains__(self, id: object) -> bool:
        return id in self._places

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each document's line begins."""
        return {line.id: offset for offset, line in each_line(self._table, _Id)}
