"""A corpus on disk, read one document at a time, and written in formats that others read.

A million documents need no more memory than their ids. `corpus/exports` has the formats.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import has_facets
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Question
from hoofbeat.registry import registry
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.tables import each_line, lines_at, read_jsonl

DOCUMENTS = "documents.jsonl"
REJECTED = "rejected.jsonl"


class ImportRejection(Struct, frozen=True, kw_only=True):
    """A file, or a document of a file (`name: line 7`), that was not imported."""

    source: str
    reason: str


class _Id(msgspec.Struct):
    id: str


class Corpus(ArtefactFolder):
    """The documents of an artefact of kind corpus."""

    def __init__(self, artefact: Artefact) -> None:
        super().__init__(artefact)
        self._table = artefact.file(DOCUMENTS)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a corpus folder."""
        return cls(open_artefact(path, "corpus"))

    def documents(self) -> Iterator[Document]:
        """Every document, in the order of the import."""
        return read_jsonl(self._table, Document)

    def get(self, id: str) -> Document:
        """The document with this id; an unknown one is an `InputError` that names the closest."""
        if id not in self._places:
            close = difflib.get_close_matches(id, self._places, n=3, cutoff=0.5)
            look = "no id is similar: is this the right corpus?" if self._places else "the corpus is empty"
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
        """Documents whose facets have these values; of a list of values, on either side, one must match."""
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


class CorpusFormat:
    """A format for corpora. A subclass sets the attributes and defines `write`; one object of it is enough."""

    extension_kind: ClassVar[str] = "corpus format"
    extension_package: ClassVar[str] = "hoofbeat.corpus.exports"

    name: str
    summary: str
    takes_questions: bool = False
    """Whether it can hold questions and their judgments."""

    def write(self, folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:
        """Write the files and say how many documents they hold."""
        raise NotImplementedError


def export_corpus(
    corpus: Corpus,
    target: Path,
    form: str,
    *,
    questions: Sequence[Question] = (),
    inputs: Sequence[InputRef] = (),
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write all documents of a corpus in the format of this name; some take questions and judgments along."""
    chosen = registry.get(CorpusFormat, form)
    if questions and not chosen.takes_questions:
        others = " or ".join(each.name for each in registry.all(CorpusFormat) if each.takes_questions)
        raise UsageError(
            f"the format {form} can't hold questions", fix=f"export to {others}, or export without the questions"
        )
    with create(target, replace_kind="export") as draft, progress.task("exporting", len(corpus)) as task:

        def documents() -> Iterator[Document]:
            for document in corpus.documents():
                yield document
                task.advance()

        count = chosen.write(draft.path, documents(), questions)
        draft.finish(
            Manifest(
                kind="export",
                title=f"{form} export",
                command=list(command),
                inputs=[corpus.artefact.reference(), *inputs],
                settings={"format": form},
                counts=Counts(kept=count),
            )
        )
    return open_artefact(target, "export")
