"""Test collections: queries, answers and judgments are the benchmark, `corpus.jsonl` becomes a corpus beside it."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.benchmark_import import ImportedBenchmark, ImportFormat, ImportSource
from hoofbeat.corpus.readers.beir import JudgedQuestions, read_beir
from hoofbeat.corpus.readers.r2med import read_r2med


class _Beir(ImportFormat):
    name = "beir"
    summary = "BEIR folders: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv"

    def surety(self, source: ImportSource) -> int:
        return 8 if (source.path / "queries.jsonl").is_file() and (source.path / "corpus.jsonl").is_file() else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The questions that the split judges."""
        split = source.wanted_split or "test"
        return _collection(read_beir(source.path, split), source.path, "queries.jsonl", f"qrels/{split}.tsv")


BEIR = _Beir()


class _R2med(ImportFormat):
    name = "r2med"
    summary = "R2MED folders: corpus.jsonl, query.jsonl, qrels.jsonl or qrels.txt"

    def surety(self, source: ImportSource) -> int:
        return 8 if (source.path / "query.jsonl").is_file() and (source.path / "corpus.jsonl").is_file() else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The questions with their answers and grades."""
        return _collection(read_r2med(source.path), source.path, "query.jsonl", "qrels.jsonl", "qrels.txt")


R2MED = _R2med()


def _collection(found: JudgedQuestions, folder: Path, *names: str) -> ImportedBenchmark:
    """Questions and judgments, with those files of the folder that they may have been read from."""
    return ImportedBenchmark(
        questions=list(found.questions),
        qrels=found.judgments,
        files=[folder / name for name in names if (folder / name).is_file()],
        has_documents=True,
    )
