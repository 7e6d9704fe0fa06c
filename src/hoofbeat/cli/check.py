"""`hoofbeat check`: what is doubtful about the questions of any benchmark, by rules and by trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hoofbeat.cli.session import Calling, calling_options, command_words, edition_option, output_option

if TYPE_CHECKING:
    from hoofbeat.cli.console import Screen
    from hoofbeat.findings.answer_check import AnswerCheck
    from hoofbeat.findings.benchmark_checks import CheckSummary

_FOLDER = click.Path(path_type=Path)
_PARTS = ("leaks", "options", "place", "answer", "guess", "compare")


@click.command("check")
@click.argument("benchmark", type=_FOLDER)
@click.option("--second-model", "second", help="The model that answers and guesses [default: --model].")
@click.option("--corpus", type=_FOLDER, help="The documents [default: those beside the benchmark].")
@click.option("--answers", "answered", multiple=True, type=_FOLDER,
              help="Runs or judgments of its questions: how hard each is, who chose what. Several.")  # fmt: skip
@click.option("--without", "left_out", multiple=True, type=click.Choice(_PARTS), help="Leave a part out. Several.")
@click.option("--rules-only", is_flag=True, help="Leave out answer, guess and compare: no model is called.")
@edition_option
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the options' orders.")
@output_option("check")
@calling_options
def command(
    benchmark: Path,
    second: str | None,
    corpus: Path | None,
    answered: tuple[Path, ...],
    left_out: tuple[str, ...],
    rules_only: bool,
    edition: str,
    limit: int | None,
    seed: int,
    output: Path,
    calling: Calling,
) -> None:
    """Look for leaks, second right answers, giveaways, unanswerable questions and bias in BENCHMARK.

    Rules look for the answer in the question, for options that mean the same, and for the place and the length of the
    right option. A model answers each question, guesses from the options alone, and compares the options. Answers of
    several systems tell how hard each question is and whether it tells systems apart. Nothing is changed: every doubt
    is listed with its reason.
    """
    import msgspec

    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.findings.answer_check import read_answer_check
    from hoofbeat.recipes.benchmark_check import CALLS, KIND, plan_benchmark_check
    from hoofbeat.store import check_target

    screen = calling.screen()
    check_target(output.resolve(), KIND)
    bench = Benchmark.open(benchmark, edition)
    with calling.open() as session:
        check = plan_benchmark_check(
            bench,
            session,
            model=calling.model_spec,
            second=second,
            corpus=corpus,
            answered=answered,
            left_out=(*left_out, *(CALLS if rules_only else ())),
            limit=limit,
            seed=seed,
            estimating=calling.only_estimate,
            progress=screen,
        )
        if calling.only_estimate:
            screen.estimate(check.estimate())
            return
        artefact, summary = check.write(output, command=command_words())
        _show(screen, summary, read_answer_check(artefact))
        screen.calls(*check.models)
        screen.finish(
            artefact, next_step=("hoofbeat", "report", output, "-o", "report"), summary=msgspec.to_builtins(summary)
        )


def _show(screen: Screen, summary: CheckSummary, answers: AnswerCheck | None) -> None:
    from hoofbeat.findings.answer_check import answer_lines
    from hoofbeat.recipes.benchmark_check import summary_lines

    screen.title(f"{summary.without_doubt} of {summary.questions} questions without doubt")
    if summary.doubts:
        screen.table(("doubt", "questions"), [(doubt, str(count)) for doubt, count in summary.doubts.items()])
    for line in [*summary_lines(summary), *(answer_lines(answers) if answers else ())]:
        screen.say(line)
