"""`hoofbeat report`: artefacts to one self-contained report."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.reports import build_report

__all__ = ["command"]


@click.command("report")
@click.argument("artefacts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--title", default="Hoofbeat report", show_default=True, help="Title of the report.")
@output_option("report")
@json_option
def command(artefacts: tuple[Path, ...], title: str, output: Path, as_json: bool) -> None:
    """Put ARTEFACTS (corpora, statistics, benchmarks, rankings, judgments, audits) into one HTML report, with Markdown
    and CSV."""
    screen = Screen(as_json=as_json)
    artefact = build_report(artefacts, output, title=title, command=command_words())
    screen.finish(artefact, next_step=("open", output / "report.html"))
