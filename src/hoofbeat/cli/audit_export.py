"""`hoofbeat audit export`: matrices by question, and the table of pairs, for other software."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.audit import Audit
from hoofbeat.audit.pair_export import FORMS, export_audit
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option

__all__ = ["command"]


@click.command("export")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--as", "forms", multiple=True, type=click.Choice(FORMS), help="Only this form; several may be given.")
@output_option("audit-export")
@json_option
def command(audit: Path, forms: tuple[str, ...], output: Path, as_json: bool) -> None:
    """Write AUDIT for others: a JSON file for each question (labels as an N × N matrix, and every pair's record), the
    pairs as CSV and as Parquet."""
    screen = Screen(as_json=as_json)
    screen.finish(export_audit(Audit.open(audit), output, forms or FORMS, command=command_words(), progress=screen))
