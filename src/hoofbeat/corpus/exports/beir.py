"""A corpus as BEIR folder, with questions where they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.export import CorpusFormat
from hoofbeat.corpus.readers.beir import write_beir
from hoofbeat.records import Document, Question


class _BeirFolder(CorpusFormat):
    name = "beir"
    summary = "BEIR: corpus.jsonl, queries.jsonl, qrels"
    takes_questions = True

    def write(self, folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:
        return write_beir(folder, documents, questions)


FORMAT = _BeirFolder()
