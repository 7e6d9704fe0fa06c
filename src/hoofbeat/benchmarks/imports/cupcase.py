"""CUPCase's released table and the tables of its scripts: a case, its diagnosis, and three distractors."""

from __future__ import annotations

import re

from hoofbeat.benchmarks.benchmark_import import ImportedBenchmark, ImportFormat, ImportRow, ImportSource, options_of
from hoofbeat.errors import InputError
from hoofbeat.records import Question

QUESTION = "What is the most likely diagnosis?"

# The released Parquet file, a CSV of evaluation forks, and the authors' ablation CSV call the same columns differently.
_CASES = ("clean_case_presentation", "clean text", "case presentation")
_DIAGNOSES = ("correct_diagnosis", "final diagnosis")
_DISTRACTOR = re.compile(r"distractor\d+")
_FEW = "no distractors: kept only in the edition free"


class _Cupcase(ImportFormat):
    name = "cupcase"
    summary = "CUPCase: clean_case_presentation, correct_diagnosis, distractor1 to distractor3 (Parquet, Arrow, CSV)"

    def surety(self, source: ImportSource) -> int:
        known = any(source.has(name) for name in _CASES) and any(source.has(name) for name in _DIAGNOSES)
        return 4 if known else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The questions with options; the edition `free` has all of them without, as the paper's free-text task."""
        result = ImportedBenchmark()
        free: list[Question] = []

        def read(row: ImportRow) -> Question:
            question = self.question(row, source)
            free.append(_without_options(question))
            if not question.options:
                raise InputError(_FEW)
            return question

        result.questions = list(source.each(read, result))
        if not result.questions:
            result.questions, result.rejected = free, [row for row in result.rejected if row.reason != _FEW]
        else:
            result.editions["free"] = list({question.id: question for question in reversed(free)}.values())[::-1]
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row; the options are in a seeded order unless the row has a field with theirs."""
        id = source.name(row, "id")
        answer = row.text(*_DIAGNOSES)
        named = sorted((name for name in row.values if _DISTRACTOR.fullmatch(name)), key=lambda name: int(name[10:]))
        wrong = [text for name in named if (text := row.text(name, needed=False))]
        options: tuple[str, ...] = ()
        if (ordered := row.get("options")) is not None:
            options = tuple(options_of(ordered).values())
            if sorted(options) != sorted([answer, *wrong]):
                raise InputError("the field options differs from the diagnosis and distractors")
        elif wrong:
            options = source.shuffled(id, tuple(options_of([answer, *wrong]).values()))
        discipline = row.text("discipline", needed=False)
        return Question(
            id=id,
            text=QUESTION,
            context=row.text(*_CASES),
            answer=answer,
            options=options,
            facets={"discipline": discipline} if discipline else {},
        )


def _without_options(question: Question) -> Question:
    return Question(
        id=question.id, text=question.text, context=question.context, answer=question.answer, facets=question.facets
    )


FORMAT = _Cupcase()
