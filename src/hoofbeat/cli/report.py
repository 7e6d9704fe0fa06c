"""`hoofbeat report`: artefacts to one self-contained report."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, decisions_option, json_option, output_option
from hoofbeat.reports.report_writer import FORMATS
from hoofbeat.reports.section import ReportOptions, sections
from hoofbeat.reports.sections.published_section import papers


class _ReportCommand(click.Command):
    """The command with the list of sections below its options; one that a plugin brings is in the list as well."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Sections, in the order of the report"):
            formatter.write_dl([(section.name, section.summary) for section in sections()])


@click.command("report", cls=_ReportCommand)
@click.argument("artefacts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--title", default="", help="Title of the report.  [default: the topics of an audit, else the names of the folders]"
)
@click.option(
    "--published",
    multiple=True,
    type=click.Choice(list(papers())),
    help="Put a paper's published figures beside ours; may be given several times.",
)
@click.option(
    "--errors",
    multiple=True,
    type=click.Path(path_type=Path),
    help="What people said of wrong answers (review export of an error-analysis); may be given several times.",
)
@decisions_option
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(FORMATS),
    help="What to write; may be given several times.  [default: all]",
)
@click.option(
    "--draws",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Bootstrap samples behind mean ± standard deviation.",
)
@click.option("--size", type=click.IntRange(min=1), default=500, show_default=True, help="Questions in each of them.")
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
    """Put ARTEFACTS (corpora, statistics, benchmarks, rankings, runs, judgments, audits with their themes, validations
    and ablations, or what a plugin's section shows) into one HTML report, with Markdown, CSV and LaTeX.

    Judgments, and runs whose answers choose options, are scored; folders of the same questions are read together.
    """
    from hoofbeat.cli.audit_decisions import known_decisions
    from hoofbeat.reports.report_build import build_report

    screen = Screen(as_json=as_json)
    known = known_decisions(decisions)
    artefact = build_report(
        artefacts,
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
    first = "report.html" if artefact.has("report.html") else "manifest.json"
    screen.finish(artefact, next_step=("open", output / first))
