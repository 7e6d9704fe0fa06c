"""ClinBench's own files, so that a benchmark built here works with its scripts."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, lettered, with_options, write_json
from hoofbeat.records import Question


class _Clinbench(ExportFormat):
    name = "clinbench"
    summary = "ClinBench: JSON, text and images"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`clinbench-text.json`, and `clinbench-mm.json` with its images: id, question_stem, options, answer, image."""
        text = [_entry(question) for question in with_options(bundle.questions, self.name)]
        write_json(folder / "clinbench-text.json", text)
        with_images = bundle.editions.get("image", [])
        if with_images:
            entries = [{**_entry(question), "image": "; ".join(question.images)} for question in with_images]
            write_json(folder / "clinbench-mm.json", entries)
            bundle.copy_images(with_images, folder)
        return len(text)


FORMAT = _Clinbench()


def _entry(question: Question) -> dict[str, str]:
    options, letter = lettered(question)
    return {
        "id": question.id,
        "question_stem": question.full_text,
        "options": "\n".join(f"{name}. {text}" for name, text in options.items()),
        "answer": letter,
    }
