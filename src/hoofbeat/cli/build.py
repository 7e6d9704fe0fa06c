"""`hoofbeat build RECIPE CORPUS`: a benchmark from a corpus."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.recipes import build_teaching

__all__ = ["command"]


@click.group("build")
def command() -> None:
    """Make a benchmark from a corpus."""


@command.command("teaching")
@click.argument("corpus", type=click.Path(path_type=Path))
@output_option("benchmark")
@json_option
def teaching_command(corpus: Path, output: Path, as_json: bool) -> None:
    """The questions planted in the teaching cases that CORPUS holds."""
    screen = Screen(as_json=as_json)
    artefact = build_teaching(Corpus.open(corpus), output, command=command_words())
    for reason, count in artefact.manifest.counts.reasons.items():
        screen.say(f"rejected: {count} × {reason}")
    screen.finish(artefact, next_step=("hoofbeat", "retrieve", output, "--with", "bm25 + dense"))
