"""`hoofbeat corpus import`: documents in."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.corpus import import_corpus
from hoofbeat.errors import UsageError

__all__ = ["command"]


@click.group("corpus")
def command() -> None:
    """Bring documents in."""


@command.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option("corpus")
@click.option("--facet", "facets", multiple=True, metavar="NAME=VALUE", help="Facet to give every document.")
@click.option("--title", default="", help="Title of the corpus.")
@json_option
def import_command(paths: tuple[Path, ...], output: Path, facets: tuple[str, ...], title: str, as_json: bool) -> None:
    """Import files and folders (JATS XML, Markdown, plain text, PDF) as a corpus.

    A file that can't be read never stops the import: it is listed with its reason in rejected.jsonl.
    """
    screen = Screen(as_json=as_json)
    given = dict(_facet(text) for text in facets)
    artefact = import_corpus(paths, output, facets=given, title=title, progress=screen, command=command_words())
    for reason, count in artefact.manifest.counts.reasons.items():
        screen.say(f"rejected: {count} × {reason}")
    screen.finish(artefact, next_step=f"hoofbeat build teaching {output} -o benchmark")


def _facet(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise UsageError(f"a facet is NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()
