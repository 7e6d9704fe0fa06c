"""The folder of a comparison: its tables, its report, and the records behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.reports.model import Report
from hoofbeat.reports.report_writer import write_report
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_tsv

KIND = "comparison"
NOTICE = "Research software. Not for clinical use."

Sheet = tuple[str, Sequence[str], Iterable[Sequence[object]]]
"""A table of the folder: the stem of its file, its header and its rows."""


def write_comparison(
    target: Path,
    report: Report,
    manifest: Manifest,
    sheets: Iterable[Sheet],
    *,
    flipped: Iterable[Struct] | None = None,
) -> Artefact:
    """Write the folder: a TSV file for each sheet, `flipped.jsonl` where answers flipped, and the report's files."""
    with create(target, replace_kind=KIND) as draft:
        for name, header, rows in sheets:
            write_tsv(draft.path / f"{name}.tsv", header, rows)
        if flipped is not None:
            write_jsonl(draft.path / "flipped.jsonl", flipped)
        write_report(report, draft.path)
        draft.finish(manifest)
    return open_artefact(target, KIND)
