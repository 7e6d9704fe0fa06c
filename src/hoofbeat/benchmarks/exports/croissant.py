"""Croissant metadata over JSON lines."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.dataset_card import flat_row, write_croissant_file, write_datasheet_file
from hoofbeat.benchmarks.export import ExportBundle, ExportFormat
from hoofbeat.store.tables import write_jsonl

__all__ = ["FORMAT"]


class _Croissant(ExportFormat):
    name = "croissant"
    summary = "Croissant 1.1 metadata over JSON lines, and a datasheet"
    all_editions = True

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`croissant.json` (Croissant 1.1) with the questions of each edition as flat JSON lines, and a datasheet."""
        files = {}
        for name, questions in bundle.given.items():
            files[name] = folder / f"{name}.jsonl"
            write_jsonl(files[name], map(flat_row, questions))
            bundle.copy_images(questions, folder)
        write_croissant_file(bundle, folder, files, "application/jsonlines")
        write_datasheet_file(bundle, folder)
        return len(bundle.questions)


FORMAT = _Croissant()
