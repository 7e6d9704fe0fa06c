"""Benchmarks out again, in the formats that others read: `benchmarks/exports` has the formats.

A format gets an `ExportBundle`: the benchmark with all its editions, and its corpus where documents are wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any, ClassVar

import msgspec

from hoofbeat.benchmarks.benchmark import Benchmark, collection_documents, corpus_beside, find_corpus
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Document, Question
from hoofbeat.registry import registry
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import copy_inside, write_bytes
from hoofbeat.store.tables import read_jsonl

KIND = "export"


class _Values(msgspec.Struct):
    id: str
    values: dict[str, Any] = {}


class ExportBundle:
    """A benchmark being exported."""

    def __init__(self, bench: Benchmark, corpus: Corpus | None) -> None:
        self.bench = bench
        self.corpus = corpus
        self.manifest = bench.artefact.manifest

    @property
    def questions(self) -> Sequence[Question]:
        """The questions of the edition that was opened."""
        return self.bench.questions

    @cached_property
    def editions(self) -> dict[str, list[Question]]:
        """The main edition under the name `default`, and all others under theirs."""
        artefact = self.bench.artefact
        others = {name: Benchmark(artefact, name).questions for name in self.bench.editions()}
        return {"default": Benchmark(artefact).questions, **others}

    @property
    def given(self) -> dict[str, list[Question]]:
        """What formats with room for several editions write: all of them, or the one that was asked for alone."""
        return {self.bench.edition: self.bench.questions} if self.bench.edition else self.editions

    @cached_property
    def values(self) -> dict[str, dict[str, Any]]:
        """What the recipe's steps recorded for each item, where the benchmark has it."""
        if not self.bench.artefact.has("items.jsonl"):
            return {}
        rows = read_jsonl(self.bench.artefact.file("items.jsonl"), _Values)
        return {row.id: row.values for row in rows}

    def searched(self) -> Iterator[Document]:
        """What is searched for the benchmark; a format that needs it says so where there is no corpus."""
        if self.corpus is None:
            raise UsageError("this format includes the documents", fix="name the corpus: --corpus")
        return collection_documents(self.bench.artefact, self.corpus)

    def title(self, question: Question) -> str:
        """The title of the document a question came from."""
        kept = self.values.get(question.id, {}).get("title")
        if kept is None and self.corpus is not None and question.documents and question.documents[0] in self.corpus:
            kept = self.corpus.get(question.documents[0]).title
        return str(kept or "")

    def licences(self) -> list[str]:
        """The licences of the documents that questions were made from, as far as the corpus says."""
        if self.corpus is None:
            return []
        named = {id for questions in self.given.values() for question in questions for id in question.documents}
        return sorted({self.corpus.get(id).licence for id in sorted(named) if id in self.corpus} - {""})

    def copy_images(self, questions: Iterable[Question], folder: Path) -> None:
        """Copy the images that these questions name, under the same names."""
        for name in sorted({name for question in questions for name in question.images}):
            copy_inside(self.bench.artefact.file(name), name, folder)


class ExportFormat:
    """A format for benchmarks. A subclass sets the attributes and defines `write`; one object of it is enough."""

    extension_kind: ClassVar[str] = "export format"
    extension_package: ClassVar[str] = "hoofbeat.benchmarks.exports"

    name: str
    summary: str
    needs_corpus: bool = False
    """Whether the documents are part of it."""
    all_editions: bool = False
    """Whether it holds every edition of a benchmark, unless one is asked for."""

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """Write the files and say how many questions they hold."""
        raise NotImplementedError


def corpus_of_export(bench: Benchmark, form: str, given: Path | None) -> Corpus | None:
    """The documents that go with an export: those given, or those beside the benchmark, which a format may need."""
    needed = given is not None or registry.get(ExportFormat, form).needs_corpus
    return find_corpus(given, bench.artefact) if needed else corpus_beside(bench.artefact)


def export_benchmark(
    bench: Benchmark, target: Path, form: str, *, corpus: Corpus | None = None, command: Sequence[str] = ()
) -> Artefact:
    """Write a benchmark in the format of this name, into a new folder."""
    chosen = registry.get(ExportFormat, form)
    if not bench.questions:
        raise InputError("this benchmark has no questions", where=str(bench.artefact.path), fix="build it again")
    with create(target, replace_kind=KIND) as draft:
        count = chosen.write(ExportBundle(bench, corpus), draft.path)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{form} export",
                command=list(command),
                inputs=[bench.artefact.reference(), *([corpus.artefact.reference()] if corpus else [])],
                settings={"format": form, **({"edition": bench.edition} if bench.edition else {})},
                counts=Counts(kept=count),
            )
        )
    return open_artefact(target, KIND)


def with_options(questions: Sequence[Question], form: str) -> Sequence[Question]:
    """The questions, if all have options; a `UsageError` names one that has none."""
    without = next((question for question in questions if not question.options), None)
    if without is not None:
        raise UsageError(
            f"{without.id} has no options, but {form} is a multiple-choice format",
            fix="export the edition with options, or choose another format",
        )
    return questions


def lettered(question: Question) -> tuple[dict[str, str], str]:
    """The options by letter, and the letter of the right one (empty where there is none)."""
    options = dict(zip(ascii_uppercase, question.options, strict=False))
    if len(question.options) > len(ascii_uppercase):
        raise UsageError(
            f"{question.id} has {len(question.options)} options, more than there are letters",
            fix=f"build the benchmark with at most {len(ascii_uppercase)} options, or export it as jsonl",
        )
    return options, next((letter for letter, text in options.items() if text == question.answer), "")


def shown_value(value: str | list[str] | None) -> str:
    """A facet as one cell."""
    return "; ".join(value) if isinstance(value, list) else value or ""


def write_json(path: Path, value: object) -> None:
    """One JSON document, laid out for people."""
    write_bytes(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
