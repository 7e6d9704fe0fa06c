"""Hoofbeat's own files: questions and their editions as JSON lines, judgments in BEIR's layout."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.benchmarks.export import ExportBundle, ExportFormat
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.store.tables import write_jsonl


class _Jsonl(ExportFormat):
    name = "jsonl"
    summary = "Hoofbeat's own questions and judgments"
    all_editions = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`questions.jsonl` and its editions as Hoofbeat keeps them, with the judgments in BEIR's layout.

        An edition that was asked for is written alone, as `questions.jsonl`, with its own judgments.
        """
        for name, questions in bundle.given.items():
            write_jsonl(folder / edition_file("" if name in ("default", bundle.bench.edition) else name), questions)
            bundle.copy_images(questions, folder)
        if grades := bundle.bench.qrels():
            write_qrels(folder / "qrels.tsv", grades, "beir")
        return len(bundle.questions)


FORMAT = _Jsonl()
