"""A corpus as a folder of a test collection (BEIR's or R2MED's layout), with questions where they are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.corpus import CorpusFormat
from hoofbeat.corpus.readers.beir import write_beir
from hoofbeat.corpus.readers.r2med import write_r2med
from hoofbeat.records import Document, Question


class _TestCollection(CorpusFormat):
    takes_questions = True

    def __init__(
        self, name: str, summary: str, layout: Callable[[Path, Iterator[Document], Sequence[Question]], int]
    ) -> None:
        self.name = name
        self.summary = summary
        self._layout = layout

    def write(self, folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:
        return self._layout(folder, documents, questions)


FORMATS = (
    _TestCollection("beir", "BEIR: corpus.jsonl, queries.jsonl, qrels", write_beir),
    _TestCollection("r2med", "R2MED: corpus.jsonl, query.jsonl, qrels.jsonl", write_r2med),
)
