"""`hoofbeat predictions`: answers that other software gave, as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from hoofbeat.answering.prediction_import import GIVEN, GUESSES, PredictionImport, gold_note, import_predictions
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, edition_option, json_option, output_option
from hoofbeat.records import Answer
from hoofbeat.store.tables import read_jsonl

_FIELDS = {
    "id": ("--id", "the question's id"),
    "model": ("--model-field", "the model's name"),
    "question": ("--question", "the question's text"),
    "options": ("--options", "the options: an object of letters, or a list"),
    "answer": ("--answer", "the gold answer: a letter or an option's text"),
    "predicted": ("--predicted", "the predicted answer: a letter or an option's text"),
    "text": ("--text", "the model's whole output, from which the choice is read"),
    "dataset": ("--dataset", "the data set within which ids are unique"),
    "condition": ("--condition-field", "how the question was asked"),
    "sample": ("--sample", "the number of the sample, from 0"),
    "confidence": ("--confidence", "the confidence: 0 to 1, or a percentage with %"),
    "tokens": ("--tokens", "the tokens used: an object with prompt_tokens and completion_tokens"),
}


def _field_options(function: Any) -> Any:
    for role, (flag, about) in reversed(_FIELDS.items()):
        names = ", ".join(GUESSES[role][:3])
        text = f"Field with {about} [default: {names}, …]."
        function = click.option(flag, f"field_{role}", default="", metavar="FIELD", help=text)(function)
    return function


@click.command("predictions")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--benchmark", type=click.Path(path_type=Path), help="Benchmark whose questions were answered.")
@edition_option
@click.option("--model", default=GIVEN, show_default=True, help="The model's name, if no field has it.")
@click.option(
    "--condition", default=GIVEN, show_default=True, help="How the questions were asked, if no field says it."
)
@click.option("--count-from", type=click.Choice(["0", "1"]), help="Number of the first option, if answers are numbers.")
@_field_options
@output_option("run")
@json_option
def command(
    file: Path,
    benchmark: Path | None,
    edition: str,
    model: str,
    condition: str,
    count_from: str | None,
    output: Path,
    as_json: bool,
    **named: str,
) -> None:
    """Import the answers of other software from FILE (.jsonl, .csv, both also .gz, or .parquet) as a run."""
    from hoofbeat.cli.results import after_answers, show_leaderboard

    screen = Screen(as_json=as_json)
    bench = Benchmark.open(benchmark, edition) if benchmark else None
    wanted = PredictionImport(
        fields={role: named[f"field_{role}"] for role in _FIELDS},
        model=model,
        condition=condition,
        benchmark=tuple(bench.questions) if bench else None,
        count_from=int(count_from) if count_from else None,
    )
    inputs = [bench.artefact.reference()] if bench else []
    artefact = import_predictions(file, output, wanted, inputs=inputs, command=command_words(), progress=screen)
    reading = cast("list[dict[str, object]]", artefact.manifest.metrics["reading"])
    counted = ("read", "ambiguous", "none", "missing")
    rows = [
        [f"{each['model']}, {each['condition']}", *(str(each.get(name, 0)) for name in counted)] for each in reading
    ]
    screen.table(["system", *counted], rows)
    show_leaderboard(screen, artefact)
    free_text = any(not each.protocol for each in read_jsonl(artefact.file("answers.jsonl"), Answer))
    if note := gold_note(artefact):
        screen.say(f"warning: {note}")
    screen.finish(artefact, next_step=after_answers(output, free_text=free_text))
