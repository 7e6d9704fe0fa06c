"""`hoofbeat export`: a benchmark in formats that others read."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.export import ExportFormat, corpus_of_export, export_benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    CommandWithList,
    ExtensionName,
    command_words,
    edition_option,
    json_option,
    output_option,
)
from hoofbeat.registry import registry


class _ExportCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The formats, and which of them hold every edition."""
        formats = registry.all(ExportFormat)
        lines = "\n".join(f"  {each.name:<14} {each.summary}" for each in formats)
        every = ", ".join(each.name for each in formats if each.all_editions)
        return f"Formats:\n{lines}\n\n{every} hold every edition; with --edition, only that one."


@click.command("export", cls=_ExportCommand)
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--as", "form", type=ExtensionName(ExportFormat), required=True, help="Format.")
@click.option(
    "--corpus", "corpus_path", type=click.Path(path_type=Path), help="The corpus, if it is not beside the benchmark."
)
@edition_option
@output_option("export")
@json_option
def command(
    benchmark: Path, form: ExportFormat, corpus_path: Path | None, edition: str, output: Path, as_json: bool
) -> None:
    """Write BENCHMARK in a format that other software reads."""
    screen = Screen(as_json=as_json)
    bench = Benchmark.open(benchmark, edition)
    corpus = corpus_of_export(bench, form.name, corpus_path)
    screen.finish(export_benchmark(bench, output, form.name, corpus=corpus, command=command_words()))
