"""BEIR's layout: `corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat


class _Beir(ExportFormat):
    name = "beir"
    summary = "BEIR: corpus, queries, qrels"
    needs_corpus = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`."""
        from hoofbeat.corpus.readers.beir import write_beir  # noqa: PLC0415 - the reader's modules, only to write

        write_beir(folder, bundle.searched(), bundle.questions, bundle.bench.qrels())
        return len(bundle.questions)


FORMAT = _Beir()
