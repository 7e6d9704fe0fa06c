"""The papers' own file formats, so that a benchmark built here works with their scripts."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, lettered, shown_value, with_options, write_json
from hoofbeat.errors import UsageError
from hoofbeat.records import Question
from hoofbeat.store.tables import canonical_json, write_csv


class _Ogcare(ExportFormat):
    name = "ogcare"
    summary = "OGCaReBench: CSV and JSON"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`ogcarebench.csv` and `.json`: title, PMC id, class, question before and after distraction, answer.

        The column `id` is beside those that OGCaReBench has: two questions may be made from one report.
        """
        original = {question.id: question.full_text for question in bundle.editions.get("original", ())}
        rows = [
            {
                "Title": bundle.title(question),
                "pmc_id": question.documents[0] if question.documents else question.id,
                "Classification": shown_value(question.facets.get("specialty")),
                "Original Question": original.get(question.id, question.full_text),
                "Question": question.full_text,
                "Answer": question.answer,
                "id": question.id,
            }
            for question in bundle.questions
        ]
        header = ("Title", "pmc_id", "Classification", "Original Question", "Question", "Answer", "id")
        write_csv(folder / "ogcarebench.csv", header, ([row[name] for name in header] for row in rows))
        write_json(folder / "ogcarebench.json", rows)
        return len(rows)


_IMAGES = "image"


class _Clinbench(ExportFormat):
    name = "clinbench"
    summary = "ClinBench: JSON, text and images"
    all_editions = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`clinbench-text.json`, and `clinbench-mm.json` with its images: id, question_stem, options, answer, image.

        The image edition alone is `clinbench-mm.json` alone.
        """
        alone = bundle.bench.edition == _IMAGES
        text = [] if alone else [_entry(each) for each in with_options(bundle.questions, self.name)]
        if not alone:
            write_json(folder / "clinbench-text.json", text)
        with_images = bundle.given.get(_IMAGES, [])
        if with_images:
            asked = with_options(with_images, self.name)
            entries = [{**_entry(question), "image": "; ".join(question.images)} for question in asked]
            write_json(folder / "clinbench-mm.json", entries)
            bundle.copy_images(with_images, folder)
        return len(with_images if alone else text)


def _entry(question: Question) -> dict[str, str]:
    options, letter = lettered(question)
    return {
        "id": question.id,
        "question_stem": question.full_text,
        "options": "\n".join(f"{name}. {text}" for name, text in options.items()),
        "answer": letter,
    }


_DISTRACTORS = ("distractor2", "distractor3", "distractor4")  # ranks of the neighbours: the first is the diagnosis


class _Cupcase(ExportFormat):
    name = "cupcase"
    summary = "CUPCase: CSV"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`cupcase.csv`: the cleaned presentation, the diagnosis, the distractors by the rank of the neighbour.

        The column `options`, which CUPCase's scripts pass over, keeps the order in which they were shown.
        """
        rows = []
        for question in with_options(bundle.questions, self.name):
            wrong = [option for option in question.options if option != question.answer]
            if len(wrong) != len(_DISTRACTORS) or question.answer not in question.options:
                raise UsageError(
                    f"{question.id} has {len(wrong)} wrong options and {len(question.options) - len(wrong)} right, but "
                    "this format holds exactly four: three wrong, one right",
                    fix="build it with three distractors (hoofbeat build cupcase, --last-rank two more than "
                    "--first-rank), or choose a format without that limit: jsonl, clinbench, lm-eval or inspect",
                )
            ranked = [str(text) for text in bundle.values.get(question.id, {}).get("distractors", [])]
            ordered = ranked if sorted(ranked) == sorted(wrong) else wrong
            discipline = shown_value(question.facets.get("discipline") or question.facets.get("specialty"))
            order = canonical_json(question.options).decode()
            rows.append([question.id, question.context or question.text, question.answer, *ordered, discipline, order])
        header = ("id", "clean_case_presentation", "correct_diagnosis", *_DISTRACTORS, "discipline", "options")
        write_csv(folder / "cupcase.csv", header, rows)
        return len(rows)


class _Sourceqa(ExportFormat):
    name = "sourceqa"
    summary = "TransplantQA: the questions as JSON"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`questions.json`: the question, which sources are asked (group), its topics and sub-topics."""
        rows = [{"id": question.id, "question": question.full_text, **question.facets} for question in bundle.questions]
        write_json(folder / "questions.json", rows)
        return len(rows)


FORMATS = (_Ogcare(), _Clinbench(), _Cupcase(), _Sourceqa())
