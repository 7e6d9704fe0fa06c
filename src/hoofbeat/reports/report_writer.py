"""The files of a report or comparison: the page, the same as Markdown and LaTeX, every table, chart and record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.reports.charts import standalone
from hoofbeat.reports.model import Chart, Report, charts_in, tables_in
from hoofbeat.reports.office.office_packages import OFFICE_FORMATS, check_packages
from hoofbeat.reports.office.summary_page import to_summary
from hoofbeat.reports.office.word_document import to_docx
from hoofbeat.reports.office.workbook import to_xlsx
from hoofbeat.reports.page import to_html, write_html
from hoofbeat.reports.tables import Table, to_csv
from hoofbeat.reports.text_formats import report_fragment, to_latex, to_markdown
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.files import slug, write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv

FORMATS = ("html", "markdown", "csv", "latex")
"""What a report is written as, unless others are named."""

ALL_FORMATS = (*FORMATS, *OFFICE_FORMATS)
"""What a report can be written as."""

T = TypeVar("T", Table, Chart)


def write_report(report: Report, folder: Path, formats: Sequence[str] = FORMATS) -> None:
    """Write the files that these formats ask for; the page piece by piece, as it may be of many megabytes."""
    check_formats(formats)
    if "html" in formats:
        write_html(report, folder / "report.html")
    rest = [name for name in formats if name != "html"]
    for name, content in report_files(report, rest) if rest else ():
        write_bytes(folder / name, content)


def check_formats(formats: Sequence[str]) -> None:
    """Refuse formats that there are not, and those that need a package which is not installed."""
    wrong = [name for name in formats if name not in ALL_FORMATS]
    if wrong or not formats:
        raise UsageError(
            f"a report can't be written as {', '.join(wrong) or 'nothing'}", fix=f"choose from {', '.join(ALL_FORMATS)}"
        )
    check_packages(formats)


def report_files(report: Report, formats: Sequence[str] = FORMATS) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that these formats ask for."""
    check_formats(formats)
    tables = _named(list(tables_in(report.all_blocks)))
    charts = _named(list(charts_in(report.all_blocks)))
    if "html" in formats:
        yield "report.html", to_html(report).encode()
    if "markdown" in formats:
        files = {chart.name: f"charts/{stem}.svg" for stem, chart in charts.items()}
        yield "report.md", to_markdown(report, files).encode()
        for stem, chart in charts.items():
            yield f"charts/{stem}.svg", standalone(chart.wide).encode()
    if "csv" in formats:
        yield from report.files
    for stem, table in tables.items():
        if "csv" in formats:
            yield f"tables/{stem}.csv", to_csv(table).encode()
        if "latex" in formats:
            yield f"tables/{stem}.tex", to_latex(table, stem).encode()
    if "latex" in formats:
        inputs = {table: f"tables/{stem}.tex" for stem, table in tables.items()}
        yield "report.tex", report_fragment(report, inputs).encode()
    if "xlsx" in formats:
        yield "report.xlsx", to_xlsx(report, tables)
    if "docx" in formats:
        yield "report.docx", to_docx(report)
    if "summary" in formats:
        yield from _summaries(report)


def _summaries(report: Report) -> Iterator[tuple[str, bytes]]:
    """One page for each chapter that has a summary."""
    if not report.summaries:
        raise UsageError(
            "there is nothing to summarise on one page",
            fix="name a folder of judgments or of an audit, or leave it out",
        )
    for name, summary in report.summaries:
        file = "summary.pdf" if len(report.summaries) == 1 else f"summary-{slug(name)}.pdf"
        yield file, to_summary(summary, report.notice, report.version)


def _named(items: Sequence[T]) -> dict[str, T]:
    """A stem for the file of each, safe and used once."""
    named: dict[str, T] = {}
    for item in items:
        stem, number = slug(item.name), 1
        while (name := stem if number == 1 else f"{stem}-{number}") in named:
            number += 1
        named[name] = item
    return named


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
