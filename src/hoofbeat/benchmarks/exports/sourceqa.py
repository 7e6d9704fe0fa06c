"""TransplantQA's questions, to be asked of every source."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, write_json


class _Sourceqa(ExportFormat):
    name = "sourceqa"
    summary = "TransplantQA: the questions as JSON"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`questions.json`: the question, which sources are asked (group), its topics and sub-topics."""
        rows = [{"id": question.id, "question": question.full_text, **question.facets} for question in bundle.questions]
        write_json(folder / "questions.json", rows)
        return len(rows)


FORMAT = _Sourceqa()
