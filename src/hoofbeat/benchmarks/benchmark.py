"""A benchmark folder: `questions.jsonl`, and `qrels.tsv` in BEIR's layout where questions name their documents.

A benchmark may be about passages, or about some of a corpus's documents only. It then holds `collection.tsv`: a row for
every passage that is searched, with the characters of the document it is. The text stays in the corpus, once; the ids
are those that the benchmark's judgments name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.corpus import Corpus
from hoofbeat.corpus.qrels import read_qrels, write_qrels
from hoofbeat.errors import ArtefactError, InputError, UsageError
from hoofbeat.records import Document, Question, Span
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.tables import read_jsonl, read_tsv, write_jsonl

KIND = "benchmark"


def edition_file(name: str) -> str:
    """The table that holds an edition of the questions; the main one has no name."""
    return f"questions-{name}.jsonl" if name else "questions.jsonl"


class Benchmark(ArtefactFolder):
    """An opened benchmark. A recipe may write other editions of the same questions: undistracted, with images, ..."""

    def __init__(self, artefact: Artefact, edition: str = "") -> None:
        super().__init__(artefact)
        self.edition = edition
        if edition and edition not in self.editions():
            known = ", ".join(self.editions())
            raise InputError(
                f"this benchmark has no edition {edition!r}",
                where=str(artefact.path),
                fix=f"it has {known}" if known else "it has only one edition: leave out --edition",
            )
        self.questions: list[Question] = list(read_jsonl(artefact.file(edition_file(edition)), Question))

    @staticmethod
    def open(path: str | Path, edition: str = "") -> Benchmark:
        """Open a benchmark folder at its main edition or another one; a run's questions can also be opened."""
        path = Path(path)
        if path.is_file():
            raise UsageError(
                "this is a file, but a benchmark is a folder",
                where=str(path),
                fix=f"import it first: hoofbeat benchmark import {path.name} -o bench",
            )
        found = Benchmark(open_artefact(path, (KIND, "run")), edition)
        if found.artefact.manifest.kind == "run" and not all(question.text for question in found.questions):
            raise InputError(
                "these predictions do not include the text of their questions",
                where=str(path),
                fix="name the benchmark that was answered",
            )
        return found

    def editions(self) -> list[str]:
        """The names of the other editions."""
        before, after = edition_file("*").split("*")
        names = (name for name in self.artefact.manifest.files if name.startswith(before) and name.endswith(after))
        return sorted(name[len(before) : -len(after)] for name in names)

    def qrels(self) -> dict[str, dict[str, int]]:
        """The judged documents of each question that names some, with their grades."""
        if self.artefact.has("qrels.tsv"):
            grades = read_qrels(self.artefact.file("qrels.tsv"))
            return {q.id: grades[q.id] for q in self.questions if q.id in grades} if self.edition else grades
        return {q.id: dict.fromkeys(q.documents, 1) for q in self.questions if q.documents}

    def first(self, count: int | None) -> list[Question]:
        """The first questions, or all of them; a number below 1 is refused."""
        if count is not None and count < 1:
            raise InputError(f"the limit can't be {count} questions", fix="give --limit 1 or more")
        return self.questions[:count]


def corpus_beside(artefact: Artefact) -> Corpus | None:
    """The corpus an artefact was made from, if it is still beside it and holds the same documents."""
    for reference in artefact.manifest.inputs:
        beside = artefact.path.resolve().parent / reference.name
        if (
            reference.kind != "corpus"
            or Path(reference.name).name != reference.name
            or not (beside / "manifest.json").is_file()
        ):
            continue
        corpus = Corpus.open(beside)
        if corpus.artefact.reference().sha256 == reference.sha256:
            return corpus
    return None


def find_corpus(given: Path | None, artefact: Artefact) -> Corpus:
    """The corpus named by `--corpus`, else the one the artefact was made from if it is still beside it."""
    if given is not None:
        return Corpus.open(given)
    if (beside := corpus_beside(artefact)) is not None:
        return beside
    names = [each.name for each in artefact.manifest.inputs if each.kind == "corpus"]
    raise UsageError(
        f"the corpus {names[0]!r} that this was made from is needed, but is not beside it, or has changed"
        if names
        else f"the documents are needed, and this {artefact.manifest.kind} was not made from a corpus",
        where=str(artefact.path),
        fix="name the corpus: --corpus FOLDER",
    )


def write_benchmark(
    target: Path,
    questions: Sequence[Question],
    *,
    title: str,
    inputs: Iterable[InputRef],
    counts: Counts,
    command: Sequence[str] = (),
    settings: dict[str, object] | None = None,
    qrels: Mapping[str, Mapping[str, int]] | None = None,
    editions: Mapping[str, Sequence[Question]] | None = None,
) -> Artefact:
    """Write a benchmark folder; `qrels` are grades, where documents answer more or less well, or do not answer.

    `editions` are other editions of the questions, by name.
    """
    with create(target, replace_kind=KIND) as draft:
        for name, edition in {"": questions, **(editions or {})}.items():
            write_jsonl(draft.path / edition_file(name), edition)
        grades = qrels or {q.id: dict.fromkeys(q.documents, 1) for q in questions if q.documents}
        if grades:
            write_qrels(draft.path / "qrels.tsv", grades, "beir")
        draft.finish(
            Manifest(
                kind=KIND,
                title=title,
                command=list(command),
                inputs=list(inputs),
                counts=counts,
                settings=settings or {},
            )
        )
    return open_artefact(target, KIND)


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
    """The piece as a separate document, for ranking and export."""
    return Document(
        id=piece.id,
        title=piece.heading,
        text=document.text[piece.start : piece.end],
        kind="passage",
        facets={"document": piece.document},
        licence=document.licence,
    )


def read_passages(artefact: Artefact) -> list[CollectionPassage]:
    """The rows of a benchmark's `collection.tsv`; none where it has no separate collection."""
    if not artefact.has(COLLECTION):
        return []
    try:
        return msgspec.convert(list(read_tsv(artefact.file(COLLECTION))), list[CollectionPassage], strict=False)
    except msgspec.ValidationError as err:
        raise ArtefactError(
            f"{COLLECTION} can't be read: {err}", where=str(artefact.path), fix="restore or build the benchmark again"
        ) from err


def collection_documents(artefact: Artefact, corpus: Corpus) -> Iterator[Document]:
    """What is searched for a benchmark: its own collection cut from the corpus, else the corpus itself."""
    pieces = read_passages(artefact)
    return _cut(pieces, corpus, artefact) if pieces else corpus.documents()


class BenchmarkCollection:
    """What is searched for a benchmark, which can be read repeatedly."""

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
                f"the passage {piece.id} is not in its document",
                where=str(artefact.path),
                fix="name the corpus that the benchmark was made from",
            )
        yield passage_as_document(piece, document)
