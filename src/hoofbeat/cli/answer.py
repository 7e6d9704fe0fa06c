"""`hoofbeat answer`: models answer a benchmark under conditions, as one grid with one estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hoofbeat.answering.conditions import INSTRUCTIONS, PROTOCOLS
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options_of_several, command_words, edition_option, output_option

if TYPE_CHECKING:
    from hoofbeat.answering import Grid, System
    from hoofbeat.models import Estimate
    from hoofbeat.reports.tables import Cell


@click.command("answer")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option("--corpus", type=click.Path(path_type=Path), help="The documents to retrieve from.")
@click.option(
    "--condition", "conditions", multiple=True, default=("closed",), show_default=True,
    help="closed, images, options (without the question), question (without its case), 'first 20%', "
    "'first 20% of sentences', oracle, a retriever line with how many passages: "
    "'bm25 + dense @3' (or whole: 'bm25 + dense @3 documents'), or 'agent over bm25 + dense'. Several may be given.",
)  # fmt: skip
@click.option(
    "--protocol", "protocols", multiple=True, type=click.Choice(PROTOCOLS),
    help="How an answer is taken; several may be given. Without: by letter where a question has options, else free.",
)  # fmt: skip
@click.option(
    "--instruction", type=click.Choice(INSTRUCTIONS), default="best", show_default=True,
    help="best: one best answer. brief: the same in few words and without visible reasoning, for medical models.",
)  # fmt: skip
@edition_option
@click.option("--limit", type=click.IntRange(1), help="Only the first so many questions.")
@click.option("--samples", type=click.IntRange(1, 64), default=1, show_default=True, help="Answers a question.")
@click.option("--temperature", type=click.FloatRange(0.0, 2.0), default=0.0, show_default=True, help="Of the answers.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of sampling; sample n uses seed + n."
)
@click.option("--option-seed", type=click.IntRange(0), default=0, show_default=True,
              help="Seed of the order options are shown in.")  # fmt: skip
@output_option("run")
@calling_options_of_several
def command(benchmark: Path, edition: str, output: Path, calling: Calling, **options: Any) -> None:
    """Let models answer the questions of BENCHMARK.

    A model may have options of its own in brackets: 'embedded[temperature=0.6,samples=3]'.
    """
    from hoofbeat.answering.run_folder import KIND
    from hoofbeat.answering.run_plan import plan_run
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.store import check_target

    screen = calling.screen()
    plan = plan_run(Benchmark.open(benchmark, edition), models=calling.model_specs, **options)
    if not calling.only_estimate:
        check_target(output.resolve(), KIND)
    with calling.open() as session:
        if calling.only_estimate:
            _show_estimate(screen, plan.estimate(session, progress=screen))
            return
        done = plan.write(session, output, command=command_words(), progress=screen)
        spent = _show_spent(screen, done.grid)
        screen.finish(done.artefact, next_step=_next_step(plan.systems, output), models=spent)


def _next_step(systems: Iterable[System], output: Path) -> tuple[str | Path, ...]:
    """What to do with the run: free text needs a judge, another model than those that answered; choices need none."""
    if any(not system.protocol for system in systems):
        return ("hoofbeat", "judge", output, "--model", "JUDGE")
    return ("hoofbeat", "report", output)


def _show_estimate(screen: Screen, estimates: Sequence[tuple[System, Estimate]]) -> None:
    """One estimate for the whole grid, with each system's part."""
    from hoofbeat.models import Estimate
    from hoofbeat.reports.tables import Column

    total = sum((estimate for _, estimate in estimates), Estimate(max_money=0.0))
    if screen.as_json:
        parts = [
            {"model": system.answerer.written, "condition": system.condition.name, "answers": system.size}
            | {"estimate": msgspec.to_builtins(estimate)}
            for system, estimate in estimates
        ]
        screen.emit({"estimate": msgspec.to_builtins(total), "systems": parts})
        return
    for written in dict.fromkeys(system.answerer.written for system, _ in estimates):
        rows: list[tuple[Cell, ...]] = [
            (
                system.condition.name,
                system.size,
                estimate.calls,
                estimate.cached,
                estimate.tokens_in,
                estimate.max_tokens_out,
                "no price" if estimate.max_money is None else f"{estimate.max_money:.4f}",
            )
            for system, estimate in estimates
            if system.answerer.written == written
        ]
        screen.title(written)
        counts = (Column(name, "count") for name in ("answers", "calls", "in ledger", "tokens in", "out, most"))
        screen.table(["condition", *counts, "money, most"], rows)
    screen.estimate(total)


def _show_spent(screen: Screen, grid: Grid) -> dict[str, object]:
    """What each model's answers took: calls made and taken from the ledger, tokens, money, seconds, retries."""
    spent: dict[str, object] = {}
    for written, model in grid.models.items():
        cost = model.cost
        seconds, retries = round(grid.seconds[written], 1), model.troubles.total()
        screen.calls(model)
        money = f"{cost.money:.4f} in money" if model.price else "no price known"
        screen.say(f"  {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out, {money}, {seconds} s, {retries} retries")
        spent[written] = {
            "made": model.made,
            "cached": model.cached,
            **msgspec.to_builtins(cost),
            "seconds": seconds,
            "retries": retries,
        }
    return spent
