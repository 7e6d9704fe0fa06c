"""OGCaReBench's own files, so that a benchmark built here works with its scripts."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, shown_value, write_json
from hoofbeat.store.tables import write_csv


class _Ogcare(ExportFormat):
    name = "ogcare"
    summary = "OGCaReBench: CSV and JSON"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`ogcarebench.csv` and `.json`: title, PMC id, class, question before and after distraction, answer."""
        original = {question.id: question.full_text for question in bundle.editions.get("original", ())}
        rows = [
            {
                "Title": bundle.title(question),
                "pmc_id": question.documents[0] if question.documents else question.id,
                "Classification": shown_value(question.facets.get("specialty")),
                "Original Question": original.get(question.id, question.full_text),
                "Question": question.full_text,
                "Answer": question.answer,
            }
            for question in bundle.questions
        ]
        header = ("Title", "pmc_id", "Classification", "Original Question", "Question", "Answer")
        write_csv(folder / "ogcarebench.csv", header, ([row[name] for name in header] for row in rows))
        write_json(folder / "ogcarebench.json", rows)
        return len(rows)


FORMAT = _Ogcare()
