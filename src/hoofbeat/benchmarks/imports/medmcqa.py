"""MedMCQA's rows: `question`, `opa` to `opd`, and `cop`, the number of the right option."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import (
    ImportedBenchmark,
    ImportFormat,
    ImportRow,
    ImportSource,
    labels,
    options_of,
    right_option,
    table_rows,
)
from hoofbeat.corpus.reader import Refusal
from hoofbeat.records import Question

_COLUMNS = ("opa", "opb", "opc", "opd")
_OWN = ("id", "question", *_COLUMNS, "cop", "exp")
_UNKNOWN = -1


class _Medmcqa(ImportFormat):
    name = "medmcqa"
    summary = "MedMCQA: question, opa to opd, cop (JSON lines, JSON, Parquet)"

    def surety(self, source: ImportSource) -> int:
        return 5 if source.has("question", *_COLUMNS) else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The rows. The authors' files count `cop` from 1, those of the Hugging Face Hub from 0: a 0 or a 4 tells."""
        if source.count_from is None:
            numbers = {
                int(str(row["cop"]))
                for table in source.tables
                for _, row in table_rows(table.path)
                if not isinstance(row, Refusal) and str(row.get("cop")).isdigit()
            }
            source.count_from = 0 if 0 in numbers else 1 if len(_COLUMNS) in numbers else None
        result = super().read(source)
        result.notes.append(f"cop counts from {source.count_from}")
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row; the unlabelled test rows (cop -1 or none) have no answer. Explanations are left out."""
        options = options_of([row.text(name) for name in _COLUMNS])
        number = row.text("cop", needed=False)
        answer = "" if number in ("", str(_UNKNOWN)) else right_option(int(float(number)), options, source.count_from)
        return Question(
            id=source.name(row, "id"),
            text=row.text("question"),
            answer=answer,
            options=tuple(options.values()),
            facets=labels(row, _OWN),
        )


FORMAT = _Medmcqa()
