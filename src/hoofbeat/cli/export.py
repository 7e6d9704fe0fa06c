"""`hoofbeat export`: a benchmark in formats that others read."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.exports import FORMATS, export_benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, edition_option, find_corpus, json_option, output_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError

__all__ = ["command"]

_LISTED = "; ".join(f"{name}: {form.about}" for name, form in FORMATS.items())


_EDITIONS = "jsonl, huggingface and croissant hold every edition, or with --edition that one alone"


@click.command("export", help=f"Write BENCHMARK for others to use.\n\n{_LISTED}. {_EDITIONS}.")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--as", "form", type=click.Choice(list(FORMATS)), required=True, help="Format.")
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="The documents of the benchmark.")
@edition_option
@output_option("export")
@json_option
def command(benchmark: Path, form: str, corpus_path: Path | None, edition: str, output: Path, as_json: bool) -> None:
    """Write a benchmark in one of the formats."""
    screen = Screen(as_json=as_json)
    bench = Benchmark.open(benchmark, edition)
    corpus: Corpus | None
    try:
        corpus = find_corpus(corpus_path, bench.artefact)
    except UsageError:
        if corpus_path is not None or FORMATS[form].needs_corpus:
            raise
        corpus = None  # titles and licences stay empty where a format would name them
    screen.finish(export_benchmark(bench, output, form, corpus=corpus, command=command_words()))
