"""MedQA's rows, and those of collections that follow it: a question, options by letter, and the right letter."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import ImportFormat, ImportRow, ImportSource, labels, options_of, right_option
from hoofbeat.records import Question

_OWN = ("id", "realidx", "question", "options", "answer", "answer_idx")


class _Medqa(ImportFormat):
    name = "medqa"
    summary = "MedQA, MedAgentsBench: question, options by letter, answer_idx (JSON lines, JSON, Parquet)"

    def surety(self, source: ImportSource) -> int:
        answered = source.has("answer_idx") or source.has("answer")
        return 2 + source.has("answer_idx") if source.has("question", "options") and answered else 0

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row."""
        options = options_of(row.get("options"))
        return Question(
            id=source.name(row, "realidx", "id"),
            text=row.text("question"),
            answer=right_option(row.text("answer_idx", "answer"), options, source.count_from),
            options=tuple(options.values()),
            facets=labels(row, _OWN),
        )


FORMAT = _Medqa()
