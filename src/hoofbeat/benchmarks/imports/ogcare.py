"""OGCaReBench's files: `Title`, `pmc_id`, `Classification`, `Original Question`, `Question` and `Answer`."""

from __future__ import annotations

from msgspec.structs import replace

from hoofbeat.benchmarks.benchmark_import import (
    ImportedBenchmark,
    ImportFormat,
    ImportRow,
    ImportSource,
    case_and_question,
)
from hoofbeat.records import Question


class _Ogcare(ImportFormat):
    name = "ogcare"
    summary = "OGCaReBench: Title, pmc_id, Classification, Original Question, Question, Answer (JSON, CSV)"

    def surety(self, source: ImportSource) -> int:
        return (
            3 if source.has("Question", "Answer") and (source.has("pmc_id") or source.has("Original Question")) else 0
        )

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The questions as asked, and as the edition `original` those before distraction where the file has them."""
        result = ImportedBenchmark()
        original: list[Question] = []

        def read(row: ImportRow) -> Question:
            question = self.question(row, source)
            context, text = case_and_question(row.text("Original Question", "Question"))
            original.append(replace(question, text=text, context=context))
            return question

        # The same questions as CSV and as JSON in one folder are one benchmark: the JSON file is read.
        tables = [table for table in source.tables if table.path.suffix == ".json"]
        result.questions = list((source.only(tables) if tables else source).each(read, result))
        result.files = [table.path for table in tables]
        kept = {question.id for question in result.questions}
        editions = [question for question in original if question.id in kept]
        if editions != result.questions:
            result.editions["original"] = editions
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row; the report it was made from is its document."""
        report = row.text("pmc_id", needed=False)
        context, text = case_and_question(row.text("Question"))
        facets = {"specialty": row.text("Classification", needed=False), "title": row.text("Title", needed=False)}
        return Question(
            id=source.name(row, "id", "pmc_id"),
            text=text,
            context=context,
            answer=row.text("Answer"),
            documents=(report,) if report else (),
            facets={name: value for name, value in facets.items() if value},
        )


FORMAT = _Ogcare()
