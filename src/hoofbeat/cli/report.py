"""`hoofbeat report`: artefacts to one self-contained report."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, decisions_option, json_option, output_option
from hoofbeat.reports.report_writer import ALL_FORMATS, FORMATS
from hoofbeat.reports.section import ReportOptions, report_kinds, sections
from hoofbeat.reports.sections.published_section import papers


class _ReportCommand(click.Command):
    """The command with the list of sections below its options; one that a plugin brings is in the list as well."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Sections, in the order of the report"):
            formatter.write_dl([(section.name, section.summary) for section in sections()])


@click.command("report", cls=_ReportCommand)
@click.argument("artefacts", metavar="FOLDERS...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--title", default="", help="Title of the report.  [default: what it is about, or the names of the folders]"
)
@click.option(
    "--published",
    multiple=True,
    type=click.Choice(list(papers())),
    help="Show the published figures of this paper beside yours. Repeat it for several.",
)
@click.option(
    "--errors",
    multiple=True,
    type=click.Path(path_type=Path),
    help="People's labels of wrong answers (review export of an error-analysis). Repeat it for several.",
)
@decisions_option
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(ALL_FORMATS),
    help="Format to write. Repeat it for several. xlsx (Excel), docx (Word) and summary (one page as PDF) need the "
    "extra office.  [default: html, markdown, csv, latex]",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Bootstrap samples for mean ± standard deviation.",
)
@click.option(
    "--size", type=click.IntRange(min=1), default=500, show_default=True, help="Questions per bootstrap sample."
)
@output_option("report")
@json_option
def command(
    artefacts: tuple[Path, ...],
    title: str,
    published: tuple[str, ...],
    errors: tuple[Path, ...],
    decisions: str | None,
    formats: tuple[str, ...],
    draws: int,
    size: int,
    output: Path,
    as_json: bool,
) -> None:
    """Write one report (HTML, Markdown, CSV, LaTeX) on FOLDERS.

    FOLDERS are corpora, statistics, benchmarks, rankings, runs, judgments, audits with their themes, validations and
    ablations, or a folder of such folders (the demo, a grid). Folders with the same questions are scored together.
    """
    from hoofbeat.cli.audit_decisions import known_decisions
    from hoofbeat.cli.folder_overview import show_report
    from hoofbeat.folders import folders_in
    from hoofbeat.reports.report_build import build_report

    screen = Screen(as_json=as_json)
    known = known_decisions(decisions)
    artefact = build_report(
        folders_in(artefacts, report_kinds()),
        output,
        title=title,
        options=ReportOptions(
            published=published,
            errors=errors,
            decisions=known.versions if known else None,
            decision_files=known.inputs if known else (),
            draws=draws,
            size=size,
        ),
        formats=formats or FORMATS,
        command=command_words(),
        progress=screen,
    )
    show_report(screen, artefact)
    opened = ["report.html", "report.tex", "report.md", *(name for name in artefact.manifest.files if "/" not in name)]
    first = next((name for name in opened if artefact.has(name)), "tables")
    screen.finish(artefact, next_step=("open", output / first))
