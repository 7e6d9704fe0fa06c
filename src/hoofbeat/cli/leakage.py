"""`hoofbeat leakage`: signs that a model has seen a benchmark, each with its control, interval and caveat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options_of_several, command_words, edition_option, output_option
from hoofbeat.leakage.leakage_check import KIND, PARTS, plan_leakage_check
from hoofbeat.leakage.leakage_figures import CAVEATS, BookGap, LeakageEstimate, LeakageSummary
from hoofbeat.leakage.near_duplicates import THRESHOLD
from hoofbeat.leakage.training_cutoffs import POSITIONS, DateAccuracy, DateCounts
from hoofbeat.reports.tables import Form, columns_of, estimate_cell, triple, written
from hoofbeat.store import check_target

_FOLDER = click.Path(path_type=Path)


@click.command("leakage")
@click.argument("benchmark", type=_FOLDER)
@click.option("--corpus", type=_FOLDER, help="The corpus [default: the one beside the benchmark].")
@click.option(
    "--run", "runs", multiple=True, type=_FOLDER, help="A run with chosen options, to be scored. Repeat it for several."
)
@click.option(
    "--judged",
    "judged",
    multiple=True,
    type=_FOLDER,
    help="Judgments of a run on this benchmark. Repeat it for several.",
)
@click.option(
    "--cutoff", "cutoffs", multiple=True, help="End of a model's training data: MODEL=2024-06. Repeat it for several."
)
@click.option(
    "--against",
    multiple=True,
    type=_FOLDER,
    help="Search this other benchmark for the questions. Repeat it for several.",
)
@click.option("--near", "threshold", type=click.FloatRange(0.05, 1.0), default=THRESHOLD, show_default=True,
              help="Minimum share of a question's five-word runs for a near-duplicate.")  # fmt: skip
@click.option("--characters", type=click.IntRange(100, 5000), default=600, show_default=True,
              help="Maximum characters of a text to measure.")  # fmt: skip
@click.option("--share", type=click.FloatRange(0.1, 0.9), default=0.5, show_default=True,
              help="Share of a question that the model sees before it continues.")  # fmt: skip
@click.option(
    "--without", "left_out", multiple=True, type=click.Choice(PARTS), help="Skip this part. Repeat it for several."
)
@edition_option
@click.option(
    "--control-edition",
    default="",
    help="Edition to compare with [default: original, if there is one]; main is the first edition.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N questions.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the controls.")
@output_option("leakage")
@calling_options_of_several
def command(benchmark: Path, output: Path, edition: str, calling: Calling, **options: Any) -> None:
    """Look for signs that models have seen the questions of BENCHMARK. Signs are not proof."""
    screen = calling.screen()
    check_target(output.resolve(), KIND)
    bench = Benchmark.open(benchmark, edition)
    with calling.open() as session:
        check = plan_leakage_check(bench, session, models=calling.model_specs, progress=screen, **options)
        if calling.only_estimate:
            screen.estimate(check.estimate())
            return
        artefact, summary = check.write(output, command=command_words(), progress=screen)
        show_leakage(screen, summary)
        screen.calls(*check.models)
        screen.finish(
            artefact, next_step=("hoofbeat", "report", output, "-o", "report"), summary=msgspec.to_builtins(summary)
        )


def show_leakage(screen: Screen, summary: LeakageSummary) -> None:
    """Every sign with its control, interval and caveat."""
    screen.title(f"Signs of leakage over {summary.questions} questions (95% intervals)")
    _show_likelihoods(screen, summary)
    _show_overlaps(screen, summary)
    _show_dates(screen, summary.dates, summary.date_accuracies)
    _show_gaps(screen, summary.gaps)
    found = ", ".join(f"{count} in {_place(where)}" for where, count in summary.near.items())
    screen.say(
        f"near-duplicates (sharing at least {summary.near_threshold:.0%} of a question's five-word runs): {found}"
    )
    if not summary.documents:
        screen.say("no corpus was given, so documents were not searched", indent=3)
    screen.say(CAVEATS["near"], indent=3)
    screen.say(f"canary strings found in the corpus and the benchmark: {summary.canaries_found}")
    for row in summary.canaries:
        came = f"failed ({row.failure.kind})" if row.failure else f"gave {row.matched} of {row.hidden} hidden digits"
        screen.say(f"{row.model}, canary of {row.name}: {came}", indent=3)
    if summary.canaries:
        screen.say(CAVEATS["canary"], indent=3)


def _place(where: str) -> str:
    return {"document": "documents other than the source", "question": "other questions"}.get(where, where)


def _show_likelihoods(screen: Screen, summary: LeakageSummary) -> None:
    rows = [row for row in summary.likelihoods if not row.by]
    if not rows:
        return
    header = (
        "model",
        "text",
        "scored",
        "perplexity",
        "control",
        "perplexity of control",
        "control / own",
        "Min-K% gain",
    )
    screen.table(
        header,
        [
            (
                row.model,
                row.text,
                f"{row.perplexity.n} of {row.planned}",
                _figure(row.perplexity),
                row.control or "–",
                _figure(row.control_perplexity),
                _figure(row.ratio),
                _figure(row.lowest_gain),
            )
            for row in rows
        ],
    )
    if any("unsupported" in row.unscored for row in rows):
        screen.say(CAVEATS["no likelihood"], indent=3)
    if any(row.perplexity.n for row in rows):
        screen.say(CAVEATS["likelihood"], indent=3)


def _show_overlaps(screen: Screen, summary: LeakageSummary) -> None:
    rows = [row for row in summary.overlaps if not row.by]
    if not rows:
        return
    header = (
        "model",
        "probe",
        "scored",
        "ROUGE-L",
        "control",
        "edit similarity",
        "control ",
        "longest run",
        "reproduced",
    )
    screen.table(
        header,
        [
            (
                row.model,
                row.probe,
                f"{row.rouge.n} of {row.planned}",
                _figure(row.rouge),
                _figure(row.rouge_control),
                _figure(row.edit),
                _figure(row.edit_control),
                f"{row.run_longest} words",
                f"{row.reproduced} = {_figure(row.share, 'share')}",
            )
            for row in rows
        ],
    )
    screen.say(CAVEATS["overlap"], indent=3)


def _show_dates(screen: Screen, counts: Sequence[DateCounts], accuracies: Sequence[DateAccuracy]) -> None:
    for row in counts:
        if row.cutoff is None:
            screen.say(
                f"{row.model}: the end of its training data is unknown; name it with --cutoff {row.model}=2024-06"
            )
            continue
        told = ", ".join(f"{row.positions[name]} {name}" for name in POSITIONS)
        screen.say(f"{row.model}: cutoff {row.cutoff.until} ({row.cutoff.kind}; {row.cutoff.source}): {told}")
    if accuracies:
        header = columns_of("model | condition | before cutoff | after cutoff | difference:points")
        screen.table(
            header,
            [
                (
                    row.model,
                    row.condition,
                    f"{written(row.before, 'share')} of {row.before_n}",
                    f"{written(row.after, 'share')} of {row.after_n}",
                    triple(row.difference, row.interval),
                )
                for row in accuracies
            ],
        )
    screen.say(CAVEATS["dates"], indent=3)


def _show_gaps(screen: Screen, gaps: Sequence[BookGap]) -> None:
    if not gaps:
        return
    header = columns_of(
        "model | protocol | answers:count | closed:share | oracle:share | "
        "gap:points | right closed, wrong oracle:count | not scored:count"
    )
    screen.table(
        header,
        [
            (
                row.model,
                row.protocol,
                row.pairs,
                row.closed.accuracy,
                row.oracle.accuracy,
                triple(row.gap.paired.difference, row.gap.paired.interval),
                row.closed_only,
                row.unscored,
            )
            for row in gaps
        ],
    )
    screen.say(CAVEATS["gap"], indent=3)


def _figure(figure: LeakageEstimate, form: Form = "number") -> str:
    return written(estimate_cell(figure.value, figure.low, figure.high, figure.n), form)
