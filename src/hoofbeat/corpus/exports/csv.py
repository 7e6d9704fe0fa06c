"""A corpus as one table. Cells that a spreadsheet would run as a formula are written so that it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.corpus import CorpusFormat
from hoofbeat.records import Document, Question
from hoofbeat.store.tables import write_csv

_COLUMNS = ("id", "title", "kind", "year", "journal", "institution", "licence", "notices", "characters", "text")


class _Csv(CorpusFormat):
    name = "csv"
    summary = "one table, a row per document"

    def write(self, folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:  # noqa: ARG002
        rows = ([_cell(document, column) for column in _COLUMNS] for document in documents)
        return write_csv(folder / "documents.csv", _COLUMNS, rows)


FORMAT = _Csv()


def _cell(document: Document, column: str) -> str:
    if column == "characters":
        return str(len(document.text))
    if column == "notices":
        return "; ".join(document.notices)
    value = (
        document.facets.get(column, "") if column in ("year", "journal", "institution") else getattr(document, column)
    )
    return "; ".join(value) if isinstance(value, list) else str(value)
