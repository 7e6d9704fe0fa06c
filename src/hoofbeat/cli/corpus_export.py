"""`hoofbeat corpus export`: a corpus in formats that others read."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.exporting import FORMATS, export_corpus

__all__ = ["export_command"]


@click.command("export")
@click.argument("corpus", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), default="beir", show_default=True, help="Format.")
@click.option("--questions", "benchmark", type=click.Path(path_type=Path), help="Benchmark to take along.")
@output_option("export")
@json_option
def export_command(corpus: Path, form: str, benchmark: Path | None, output: Path, as_json: bool) -> None:
    """Write the documents of CORPUS as a BEIR or R2MED folder, a CSV table, or Markdown files."""
    screen = Screen(as_json=as_json)
    bench = Benchmark.open(benchmark) if benchmark else None
    artefact = export_corpus(
        Corpus.open(corpus),
        output,
        form,
        questions=bench.questions if bench else (),
        inputs=[bench.artefact.reference()] if bench else (),
        command=command_words(),
        progress=screen,
    )
    screen.finish(artefact)
