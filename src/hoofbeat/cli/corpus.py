"""`hoofbeat corpus`: documents in, filtered, counted, shown, and out again."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.corpus_export import export_command
from hoofbeat.cli.corpus_fetch import fetch_command
from hoofbeat.cli.corpus_filter import aging_command, filter_command
from hoofbeat.cli.corpus_label import label_command
from hoofbeat.cli.corpus_stats import show_command, stats_command
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.corpus import import_corpus
from hoofbeat.errors import UsageError

__all__ = ["command"]


@click.group("corpus")
def command() -> None:
    """Bring documents in, filter, count, show and export them."""


@command.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("corpus")
@click.option("--facet", "facets", multiple=True, metavar="NAME=VALUE", help="Facet to give every document.")
@click.option("--mapping", help="Fields of JSONL and CSV files: id=pmcid,text=body,facets.institution=developer.")
@click.option("--workers", type=click.IntRange(1, 256), help="Reading processes [default: one a core].")
@click.option("--title", default="", help="Title of the corpus.")
@json_option
def import_command(
    paths: tuple[Path, ...],
    output: Path,
    facets: tuple[str, ...],
    mapping: str | None,
    workers: int | None,
    title: str,
    as_json: bool,
) -> None:
    """Import files and folders as a corpus: JATS XML and PMC packages, PDF, HTML, Markdown, text, JSONL, CSV, BEIR,
    R2MED, PMC-Patients.

    A file that can't be read never stops the import: it is listed with its reason in rejected.jsonl.
    """
    screen = Screen(as_json=as_json)
    artefact = import_corpus(
        paths,
        output,
        facets=dict(_facet(text) for text in facets),
        title=title,
        progress=screen,
        command=command_words(),
        mapping=mapping,
        workers=workers,
    )
    for reason, count in artefact.manifest.counts.reasons.items():
        screen.say(f"rejected: {count} × {reason}")
    screen.finish(artefact, next_step=("hoofbeat", "corpus", "stats", output))


def _facet(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise UsageError(f"a facet is NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


for _verb in (
    fetch_command,
    filter_command,
    label_command,
    stats_command,
    show_command,
    export_command,
    aging_command,
):
    command.add_command(_verb)
