"""ClinBench's files: `id`, `question_stem`, `options` as lettered lines, `answer`, and `image` in the image set."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import (
    ImportedBenchmark,
    ImportFormat,
    ImportRow,
    ImportSource,
    case_and_question,
    labels,
    options_of,
    right_option,
)
from hoofbeat.records import Question

_OWN = ("id", "question_stem", "options", "answer", "image")


class _Clinbench(ImportFormat):
    name = "clinbench"
    summary = "ClinBench: question_stem, options, answer, image (JSON; a folder with the text and the image set)"

    def surety(self, source: ImportSource) -> int:
        return 3 if source.has("question_stem", "options") else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """A folder with both sets is one benchmark whose edition `image` is the image set."""
        if len(source.tables) == 1:
            return super().read(source)
        result = ImportedBenchmark()
        editions: dict[str, list[Question]] = {"": [], "image": []}
        for table in source.tables:
            read = super().read(source.only([table]))
            edition = "image" if any(question.images for question in read.questions) else ""
            editions[edition] += read.questions
            result.rejected += read.rejected
        result.questions = editions[""] or editions["image"]
        if editions[""] and editions["image"]:
            result.editions["image"] = editions["image"]
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row; several images are separated by semicolons."""
        options = options_of(row.get("options"))
        named = row.get("image")
        context, text = case_and_question(row.text("question_stem"))
        return Question(
            id=source.name(row, "id"),
            text=text,
            context=context,
            answer=right_option(row.text("answer"), options, source.count_from),
            options=tuple(options.values()),
            images=source.images(named.split(";") if isinstance(named, str) else named),
            facets=labels(row, _OWN),
        )


FORMAT = _Clinbench()
