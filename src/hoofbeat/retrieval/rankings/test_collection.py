"""Test collections: the questions, judgments and documents that rankings are measured on."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import COLLECTION, BenchmarkCollection, find_corpus, read_passages
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.readers.beir import read_beir
from hoofbeat.corpus.readers.r2med import read_r2med
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values, has_facets
from hoofbeat.findings.caveats import part_settings
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Question
from hoofbeat.retrieval.corpus_index import content_of, holds_passages, published_documents
from hoofbeat.retrieval.index_set import IndexSet, index_documents
from hoofbeat.store import InputRef, open_artefact
from hoofbeat.store.files import file_sha256
from hoofbeat.text import some_of

_MAX_NAMED = 8
SPLIT = "test"
"""The split of a published folder that is read if no other is asked for."""


class TestCollection(Struct, frozen=True, kw_only=True):
    """Questions with their judgments, and the documents to rank for them.

    `content` names the documents' content, `unasked` counts judged questions that are not there, `passages` says that
    the documents were published as passages (BEIR, R2MED) and are not to be cut unasked. `in_all` is how many questions
    there are, where these are only the first of them.
    """

    name: str
    questions: Sequence[Question]
    qrels: dict[str, dict[str, int]]
    documents: Iterable[Document]
    ids: frozenset[str]
    content: str
    inputs: list[InputRef]
    unasked: int = 0
    passages: bool = False
    in_all: int = 0

    __test__: ClassVar[bool] = False  # pytest takes classes with this name for tests

    def indexes(self, progress: Progress = SILENT, *, models: Callable[[str], Model] | None = None) -> IndexSet:
        """The indexes over its documents, kept in the user's cache; `models` are the endpoints that encoders name."""
        return index_documents(self.documents, self.content, passages=self.passages, models=models, progress=progress)

    def first(self, limit: int | None) -> TestCollection:
        """The collection with its first questions only, where there is a limit."""
        if limit is None:
            return self
        every = list(self.questions)
        kept = every[:limit]
        names = {question.id for question in kept}
        qrels = {name: each for name, each in self.qrels.items() if name in names}
        return replace(self, questions=kept, qrels=qrels, in_all=len(every))

    @property
    def part(self) -> dict[str, object]:
        """For a manifest's settings: that these are only the first questions; nothing where they are all."""
        return part_settings(len(self.questions), self.in_all)

    def chosen(self, where: Sequence[str]) -> list[str] | None:
        """The documents with these facets (`name=value`, the same name again means either); None for all."""
        if not where:
            return None
        wanted: dict[str, set[str]] = {}
        for text in where:
            name, sign, value = text.partition("=")
            if not sign or not name.strip():
                raise UsageError(f"{text!r} is not a facet", fix="write name=value, for example organ=kidney")
            wanted.setdefault(name.strip(), set()).add(value.strip())
        found, values = [], dict[str, set[str]]()
        for each in self.documents:
            for facet in each.facets:
                values.setdefault(facet, set()).update(facet_values(each.facets, facet))
            if has_facets(each.facets, wanted):
                found.append(each.id)
        if not found:
            raise UsageError(f"no document has {' '.join(where)}", where=self.name, fix=_facets_there(wanted, values))
        return found


def collection_of(bench: Benchmark, corpus: Corpus) -> TestCollection:
    """A benchmark over a corpus, or over the passages of it that the benchmark is about."""
    pieces = read_passages(bench.artefact)
    if pieces:
        cut = file_sha256(bench.artefact.file(COLLECTION))
        return TestCollection(
            name=bench.artefact.path.name,
            questions=bench.questions,
            qrels=bench.qrels(),
            documents=BenchmarkCollection(bench.artefact, corpus),
            ids=frozenset(piece.id for piece in pieces),
            content=hashlib.sha256(f"{content_of(corpus)} {cut}".encode()).hexdigest(),
            inputs=[bench.artefact.reference(), corpus.artefact.reference()],
            passages=any(piece.id != piece.document for piece in pieces),
        )
    return TestCollection(
        name=bench.artefact.path.name,
        questions=bench.questions,
        qrels=bench.qrels(),
        documents=corpus,
        ids=frozenset(corpus.ids()),
        content=content_of(corpus),
        inputs=[bench.artefact.reference(), corpus.artefact.reference()],
        passages=holds_passages(corpus),
    )


def open_collection(
    target: Path,
    *,
    corpus: Path | None = None,
    queries: Sequence[str] = (),
    split: str = SPLIT,
    edition: str = "",
) -> TestCollection:
    """A benchmark folder, a corpus with queries of one's own, or a folder in BEIR's or R2MED's layout."""
    whole = open_artefact(target, ("benchmark", "corpus")) if (target / "manifest.json").is_file() else None
    if edition and (whole is None or whole.manifest.kind != "benchmark"):
        raise UsageError("only benchmarks have editions", where=str(target), fix="leave out --edition")
    if whole is not None and split != SPLIT:
        raise UsageError(
            f"this {whole.manifest.kind} has no split {split!r}: only folders in BEIR's or R2MED's layout have splits",
            where=str(target),
            fix="leave out --split",
        )
    if whole is not None and whole.manifest.kind == "benchmark":
        if queries:
            raise UsageError("a benchmark has its own questions", fix="name a corpus to search it with --query")
        return collection_of(Benchmark(whole, edition), find_corpus(corpus, whole))
    if whole is not None:
        return _searched(Corpus(whole), queries)
    if (target / "corpus.jsonl").is_file():
        if queries or corpus is not None:
            raise UsageError(
                "a folder in BEIR's or R2MED's layout has its own questions and documents",
                where=str(target),
                fix="leave out --query and --corpus, or import its corpus first: hoofbeat corpus import",
            )
        return _public(target, split)
    open_artefact(target)  # says readably what is wrong with it
    raise InputError("this is neither a benchmark nor a corpus", where=str(target), fix="see hoofbeat retrieve --help")


def _searched(corpus: Corpus, queries: Sequence[str]) -> TestCollection:
    if not queries:
        raise UsageError(
            "a corpus has no questions", where=str(corpus.path), fix="ask with --query TEXT, or name a benchmark"
        )
    if not all(text.strip() for text in queries):
        raise UsageError("the query is empty", fix="write a text after --query")
    return TestCollection(
        name=corpus.path.name,
        questions=[Question(id=f"query-{number}", text=text) for number, text in enumerate(queries, start=1)],
        qrels={},
        documents=corpus,
        ids=frozenset(corpus.ids()),
        content=content_of(corpus),
        inputs=[corpus.artefact.reference()],
        passages=holds_passages(corpus),
    )


def _public(folder: Path, split: str) -> TestCollection:
    layout = "r2med" if (folder / "query.jsonl").is_file() else "beir"
    tests = read_r2med(folder) if layout == "r2med" else read_beir(folder, split)
    names = [question.id for question in tests.questions]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"two questions have the id {twice!r}", where=str(folder), fix="every question needs its own")
    if not tests.judgments:
        raise InputError(
            "there are no judgments, so retrieval can't be measured", where=str(folder), fix="check the qrels"
        )
    documents = published_documents(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in {".jsonl", ".tsv"})
    hashes = {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}
    return TestCollection(
        name=folder.name,
        questions=list(tests.questions),
        qrels={name: dict(tests.judgments[name]) for name in names if name in tests.judgments},
        unasked=len(tests.judgments.keys() - set(names)),
        documents=documents,
        ids=frozenset(document.id for document in documents),
        content=hashes["corpus.jsonl"],
        passages=True,
        inputs=[
            InputRef(
                name=folder.name, sha256=hashlib.sha256(repr(sorted(hashes.items())).encode()).hexdigest(), kind=layout
            )
        ],
    )


def _facets_there(wanted: Mapping[str, set[str]], values: Mapping[str, set[str]]) -> str:
    """What could be asked for instead: the facets, or the values of the facets that were named."""
    if not values:
        return "these documents have no facets; leave out --where"
    unknown = [name for name in wanted if name not in values]
    if unknown:
        return f"there is no facet {', '.join(unknown)}; there are {some_of(sorted(values), _MAX_NAMED)}"
    return (
        "; ".join(f"{name} is one of {some_of(sorted(values[name]), _MAX_NAMED)}" for name in wanted)
        + "; or no document has all of them"
    )
