"""R2MED folders: queries, answers and judgments are the benchmark, `corpus.jsonl` becomes a corpus beside it."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import ImportedBenchmark, ImportFormat, ImportSource
from hoofbeat.corpus.readers.r2med import read_r2med


class _R2med(ImportFormat):
    name = "r2med"
    summary = "R2MED folders: corpus.jsonl, query.jsonl, qrels.jsonl or qrels.txt"

    def surety(self, source: ImportSource) -> int:
        return 8 if (source.path / "query.jsonl").is_file() and (source.path / "corpus.jsonl").is_file() else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The questions with their answers and grades."""
        found = read_r2med(source.path)
        return ImportedBenchmark(questions=list(found.questions), qrels=found.judgments, has_documents=True)


FORMAT = _R2med()
