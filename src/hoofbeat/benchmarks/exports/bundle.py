"""What every export is made from: a benchmark with all its editions, and its corpus where documents are wanted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import msgspec

from hoofbeat.benchmarks.benchmark import Benchmark
from hoofbeat.benchmarks.collection import collection_documents
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Question
from hoofbeat.store.files import write_bytes

__all__ = ["Bundle", "lettered", "shown_value", "write_json"]


class _Values(msgspec.Struct):
    id: str
    values: dict[str, Any] = {}


class Bundle:
    """A benchmark on its way out."""

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
        """What the recipe's steps wrote of each item, where the benchmark has it."""
        if not self.bench.artefact.has("items.jsonl"):
            return {}
        path = self.bench.artefact.file("items.jsonl")
        rows = (msgspec.json.decode(line, type=_Values) for line in path.read_bytes().splitlines() if line.strip())
        return {row.id: row.values for row in rows}

    def searched(self) -> Iterator[Document]:
        """What is searched for the benchmark; a format that needs it says so where there is no corpus."""
        if self.corpus is None:
            raise UsageError("this format takes the documents along", fix="name the corpus: --corpus")
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
            source = self.bench.artefact.file(name)
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)


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
