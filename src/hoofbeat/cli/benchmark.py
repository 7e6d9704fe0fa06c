"""`hoofbeat benchmark`: questions that others published, as a benchmark."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.benchmarks.benchmark_import import ImportFormat, import_benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import CommandWithList, ExtensionName, command_words, json_option, output_option
from hoofbeat.registry import registry


@click.group("benchmark")
def command() -> None:
    """Import published questions as a benchmark."""


class _ImportCommand(CommandWithList):
    @staticmethod
    def listing() -> str:
        """The formats."""
        return "Formats:\n" + "\n".join(f"  {each.name:<14} {each.summary}" for each in registry.all(ImportFormat))


@command.command("import", cls=_ImportCommand)
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--as", "form", type=ExtensionName(ImportFormat), help="Format [default: recognised from the fields].")
@click.option("--mapping", default="", help="Fields of a table: id=key,text=question,options=a+b+c+d,answer=gold.")
@click.option("--split", default="", help="Split of a folder [default: test].")
@click.option(
    "--count-from", type=click.Choice(["0", "1"]), help="Number of the first option, where numbers name options."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the options' order, if none is given.")
@click.option("--title", default="", help="Title of the benchmark.")
@output_option("benchmark")
@json_option
def import_command(
    source: Path,
    form: ImportFormat | None,
    mapping: str,
    split: str,
    count_from: str | None,
    seed: int,
    title: str,
    output: Path,
    as_json: bool,
) -> None:
    """Import SOURCE, a file or folder of published questions, as a benchmark.

    Rows that can't be read are listed with their reasons in rejected.jsonl. The documents of BEIR and R2MED folders
    become a corpus beside the benchmark.
    """
    screen = Screen(as_json=as_json)
    artefact = import_benchmark(
        source,
        output,
        form=form.name if form else "",
        mapping=mapping,
        split=split,
        count_from=int(count_from) if count_from else None,
        seed=seed,
        title=title,
        command=command_words(),
        progress=screen,
    )
    for reason, count in artefact.manifest.counts.reasons.items():
        screen.say(f"rejected: {count} × {reason}")
    screen.finish(artefact, next_step=("hoofbeat", "show", output))
