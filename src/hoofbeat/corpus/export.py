"""A corpus out again, in formats that others read: `corpus/exports` has one file per format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from hoofbeat.corpus.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Question
from hoofbeat.registry import registry
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact

KIND = "export"


class CorpusFormat:
    """A format for corpora. A subclass sets the attributes and defines `write`; one object of it is enough."""

    extension_kind: ClassVar[str] = "corpus format"
    extension_package: ClassVar[str] = "hoofbeat.corpus.exports"

    name: str
    summary: str
    takes_questions: bool = False
    """Whether questions and their judgments have a place in it."""

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
        raise UsageError(f"{form} has no place for questions", fix=f"export to {others}, or leave the questions out")
    with create(target, replace_kind=KIND) as draft, progress.task("exporting", len(corpus)) as task:

        def documents() -> Iterator[Document]:
            for document in corpus.documents():
                yield document
                task.advance()

        count = chosen.write(draft.path, documents(), questions)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{form} export",
                command=list(command),
                inputs=[corpus.artefact.reference(), *inputs],
                settings={"format": form},
                counts=Counts(kept=count),
            )
        )
    return open_artefact(target, KIND)
