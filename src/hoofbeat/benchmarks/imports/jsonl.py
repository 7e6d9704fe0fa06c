"""Hoofbeat's own questions: a benchmark folder, its export, or a run that keeps the questions it answered."""

from __future__ import annotations

import msgspec

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.benchmarks.benchmark_import import (
    ImportedBenchmark,
    ImportFormat,
    ImportRow,
    ImportSource,
    QuestionTable,
)
from hoofbeat.corpus.qrels import read_qrels
from hoofbeat.errors import InputError
from hoofbeat.records import Question


class _Jsonl(ImportFormat):
    name = "jsonl"
    summary = "Hoofbeat's questions.jsonl: an exported benchmark, or the questions of a predictions folder"

    def surety(self, source: ImportSource) -> int:
        file = source.path / edition_file("") if source.path.is_dir() else source.path
        if not file.is_file() or file.suffix != ".jsonl":
            return 0
        row = ImportSource(file).first
        return 6 if isinstance(row.get("id"), str) and isinstance(row.get("text"), str) and _is_question(row) else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """All editions, and the judgments where the folder has them."""
        if source.path.is_file():
            return super().read(source)
        result = ImportedBenchmark()
        before, after = edition_file("*").split("*")
        result.files = [source.path / edition_file(""), *sorted(source.path.glob(edition_file("*")))]
        for path in result.files:
            edition = source.only([QuestionTable(path, "", "")])
            questions = list(edition.each(lambda row: self.question(row, source), result))
            if path.name == edition_file(""):
                result.questions = questions
            else:
                result.editions[path.name[len(before) : -len(after)]] = questions
        if (judgments := source.path / "qrels.tsv").is_file():
            result.qrels = read_qrels(judgments)
            result.files.append(judgments)
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:  # noqa: ARG002
        """One row, whole: evidence, facets and lineage as they are."""
        try:
            return msgspec.convert(row.values, Question)
        except msgspec.ValidationError as err:
            raise InputError(f"not a question of Hoofbeat: {err}") from err


FORMAT = _Jsonl()


def _is_question(row: dict[str, object]) -> bool:
    return row.keys() <= set(Question.__struct_fields__)
