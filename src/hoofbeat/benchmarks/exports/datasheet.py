"""The datasheet of a benchmark alone."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.dataset_card import write_datasheet_file
from hoofbeat.benchmarks.export import ExportBundle, ExportFormat

__all__ = ["FORMAT"]


class _Datasheet(ExportFormat):
    name = "datasheet"
    summary = "the datasheet alone"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """`DATASHEET.md` alone."""
        write_datasheet_file(bundle, folder)
        return len(bundle.questions)


FORMAT = _Datasheet()
