"""R2MED's layout: `corpus.jsonl`, `query.jsonl`, `qrels.jsonl`."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat


class _R2med(ExportFormat):
    name = "r2med"
    summary = "R2MED: query, corpus, qrels"
    needs_corpus = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`corpus.jsonl`, `query.jsonl`, `qrels.jsonl`."""
        from hoofbeat.corpus.readers.r2med import write_r2med  # noqa: PLC0415 - the reader's modules, only to write

        write_r2med(folder, bundle.searched(), bundle.questions, bundle.bench.qrels())
        return len(bundle.questions)


FORMAT = _R2med()
