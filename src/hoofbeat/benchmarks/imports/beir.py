"""BEIR folders: queries and judgments are the benchmark, `corpus.jsonl` becomes a corpus beside it."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import ImportedBenchmark, ImportFormat, ImportSource
from hoofbeat.corpus.readers.beir import read_beir


class _Beir(ImportFormat):
    name = "beir"
    summary = "BEIR folders: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv"

    def surety(self, source: ImportSource) -> int:
        return 8 if (source.path / "queries.jsonl").is_file() and (source.path / "corpus.jsonl").is_file() else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The questions that the split judges."""
        found = read_beir(source.path, source.wanted_split or "test")
        return ImportedBenchmark(questions=list(found.questions), qrels=found.judgments, has_documents=True)


FORMAT = _Beir()
