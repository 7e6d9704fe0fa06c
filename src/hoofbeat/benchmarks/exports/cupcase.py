"""CUPCase's own table, so that a benchmark built here works with its scripts."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, shown_value, with_options
from hoofbeat.errors import UsageError
from hoofbeat.store.tables import write_csv

_DISTRACTORS = ("distractor2", "distractor3", "distractor4")  # ranks of the neighbours: the first is the diagnosis


class _Cupcase(ExportFormat):
    name = "cupcase"
    summary = "CUPCase: CSV"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`cupcase.csv`: the cleaned presentation, the diagnosis, and the distractors by the rank of the neighbour."""
        rows = []
        for question in with_options(bundle.questions, self.name):
            wrong = [option for option in question.options if option != question.answer]
            if len(wrong) != len(_DISTRACTORS) or question.answer not in question.options:
                raise UsageError(
                    f"{question.id} has {len(wrong)} wrong options and {len(question.options) - len(wrong)} right, and "
                    "this format has room for four: three wrong, one right",
                    fix="build it with three distractors (hoofbeat build cupcase, --last-rank two more than "
                    "--first-rank), or choose a format for any number of options: jsonl, clinbench, lm-eval or inspect",
                )
            ranked = [str(text) for text in bundle.values.get(question.id, {}).get("distractors", [])]
            ordered = ranked if sorted(ranked) == sorted(wrong) else wrong
            discipline = shown_value(question.facets.get("discipline") or question.facets.get("specialty"))
            rows.append([question.id, question.context or question.text, question.answer, *ordered, discipline])
        header = ("id", "clean_case_presentation", "correct_diagnosis", *_DISTRACTORS, "discipline")
        write_csv(folder / "cupcase.csv", header, rows)
        return len(rows)


FORMAT = _Cupcase()
