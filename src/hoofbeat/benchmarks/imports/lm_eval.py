"""Rows as Hoofbeat exports them for lm-evaluation-harness: question, answer, options, and the right one's place."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import (
    ImportFormat,
    ImportRow,
    ImportSource,
    case_and_question,
    options_of,
    right_option,
)
from hoofbeat.records import Question


class _LmEval(ImportFormat):
    name = "lm-eval"
    summary = "Hoofbeat's export for lm-evaluation-harness: question, answer, options, gold"

    def surety(self, source: ImportSource) -> int:
        tasks = source.path.is_dir() and (source.path / "loading.py").is_file()
        return 4 if source.has("question", "options", "gold") or (tasks and source.has("question", "answer")) else 0

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row."""
        options = options_of(row.get("options")) if row.get("options") else {}
        context, text = case_and_question(row.text("question"))
        answer = right_option(row.get("gold"), options, 0) if options else row.text("answer")
        id = source.name(row, "id")
        return Question(id=id, text=text, context=context, answer=answer, options=tuple(options.values()))


FORMAT = _LmEval()
