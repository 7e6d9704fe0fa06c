"""A benchmark as a folder of a test collection, in BEIR's or R2MED's layout."""

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


class _R2med(ExportFormat):
    name = "r2med"
    summary = "R2MED: query, corpus, qrels"
    needs_corpus = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`corpus.jsonl`, `query.jsonl`, `qrels.jsonl`."""
        from hoofbeat.corpus.readers.r2med import write_r2med  # noqa: PLC0415 - as above

        write_r2med(folder, bundle.searched(), bundle.questions, bundle.bench.qrels())
        return len(bundle.questions)


FORMATS = (_Beir(), _R2med())
