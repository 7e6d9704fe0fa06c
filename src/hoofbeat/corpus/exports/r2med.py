"""A corpus as R2MED folder, with questions where they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.export import CorpusFormat
from hoofbeat.corpus.readers.r2med import write_r2med
from hoofbeat.records import Document, Question


class _R2medFolder(CorpusFormat):
    name = "r2med"
    summary = "R2MED: corpus.jsonl, query.jsonl, qrels.jsonl"
    takes_questions = True

    def write(self, folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:
        return write_r2med(folder, documents, questions)


FORMAT = _R2medFolder()
