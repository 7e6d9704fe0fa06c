"""The indexes over a corpus, kept in the user's cache: a command's corpus, or another one that a stage searches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hoofbeat.corpus import Corpus
from hoofbeat.corpus.corpus import DOCUMENTS
from hoofbeat.corpus.reader import Refusal, is_passage
from hoofbeat.corpus.readers.beir import read_corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Encoder, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document
from hoofbeat.retrieval.index_set import IndexSet, index_documents
from hoofbeat.store.files import file_sha256

_PUBLISHED = "corpus.jsonl"


def index_corpus(
    corpus: Corpus,
    progress: Progress = SILENT,
    *,
    models: Callable[[str], Model] | None = None,
    encoder: Callable[[str], Encoder] | None = None,
) -> IndexSet:
    """The indexes over a corpus, kept in the user's cache."""
    return index_documents(
        corpus, content_of(corpus), passages=holds_passages(corpus), models=models, encoder=encoder, progress=progress
    )


def holds_passages(corpus: Corpus) -> bool:
    """Whether the documents of a corpus were published as passages: it was imported from such a collection."""
    first = next(iter(corpus.documents()), None)
    return first is not None and is_passage(first)


def content_of(corpus: Corpus) -> str:
    """The hash of a corpus's documents as they are now, which its manifest may not know of."""
    return file_sha256(corpus.artefact.file(DOCUMENTS))


def published_documents(folder: Path) -> list[Document]:
    """The documents of a folder in BEIR's or R2MED's layout; one that can't be read is an error."""
    documents = []
    for entry in read_corpus(folder / _PUBLISHED):
        if isinstance(entry, Refusal):
            raise InputError(
                f"a document can't be read: {entry.reason}",
                where=f"{folder / _PUBLISHED}, {entry.member}",
                fix="correct it, or import the other documents: hoofbeat corpus import",
            )
        documents.append(entry.document)
    return documents


def check_corpus_folder(name: str) -> Path:
    """The folder of a corpus, or of a published collection; anything else is a `UsageError`."""
    folder = Path(name).expanduser()
    if not any((folder / file).is_file() for file in ("manifest.json", _PUBLISHED)):
        raise UsageError(
            f"there is no corpus to search in {name!r}",
            fix="give the folder of a corpus (hoofbeat corpus import), or one in BEIR's layout",
        )
    return folder


class OtherCorpus:
    """A corpus beside the one that is ranked: its indexes, and the hash of its documents."""

    def __init__(self, name: str, *, encoder: Callable[[str], Encoder], progress: Progress = SILENT) -> None:
        folder = check_corpus_folder(name)
        if (folder / "manifest.json").is_file():
            corpus = Corpus.open(folder)
            self.content = content_of(corpus)
            self.indexes = index_corpus(corpus, progress, encoder=encoder)
        else:
            self.content = file_sha256(folder / _PUBLISHED)
            self.indexes = index_documents(
                published_documents(folder), self.content, passages=True, encoder=encoder, progress=progress
            )
