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
@click.option("--second-model", "second", help="Model that answers and guesses [default: --model].")
@click.option("--corpus", type=_FOLDER, help="The corpus [default: the one beside the benchmark].")
@click.option("--answers", "answered", multiple=True, type=_FOLDER,
              help="Run or judgments of its questions, to measure how hard each is. Repeat it "
              "for several.")  # fmt: skip
@click.option(
    "--without", "left_out", multiple=True, type=click.Choice(_PARTS), help="Skip this part. Repeat it for several."
)
@click.option("--rules-only", is_flag=True, help="Skip answer, guess and compare: no model is called.")
@edition_option
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the order of options.")
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
    """Check BENCHMARK for leaks, second right answers, giveaways, unanswerable questions and bias.

    Rules look for the answer in the question, for options that mean the same, and at the position and length of the
    right option. A model answers each question, guesses from the options alone, and compares the options. With
    --answers, Hoofbeat measures how hard each question is and whether it separates systems. The benchmark is not
    changed: every doubt is listed with its reason.
    """
    import msgspec

    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.findings.answer_check import read_answer_check
    from hoofbeat.recipes.benchmark_check import CALLS, KIND, plan_benchmark_check
    from hoofbeat.store import check_target

    screen = calling.screen()
    check_target(output.resolve(), KIND)
    bench = Benchmark.open(benchmark, edition)
    if not rules_only and not calling.only_estimate:
        calling.warn_if_tiny(screen, "check questions")
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
        show_check(screen, summary, read_answer_check(artefact))
        screen.calls(*check.models)
        screen.finish(
            artefact, next_step=("hoofbeat", "report", output, "-o", "report"), summary=msgspec.to_builtins(summary)
        )


def show_check(screen: Screen, summary: CheckSummary, answers: AnswerCheck | None) -> None:
    """How many questions have no doubt, and the doubts by their number."""
    from hoofbeat.findings.answer_check import answer_lines
    from hoofbeat.recipes.benchmark_check import summary_lines

    screen.title(f"No doubt about {summary.without_doubt} of {summary.questions} questions")
    if summary.doubts:
        screen.table(("doubt", "questions"), [(doubt, str(count)) for doubt, count in summary.doubts.items()])
    for line in [*summary_lines(summary), *(answer_lines(answers) if answers else ())]:
        screen.say(line)
