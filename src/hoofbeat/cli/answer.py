"""`hoofbeat answer`: models answer a benchmark under conditions, as one grid with one estimate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hoofbeat.answering.conditions import INSTRUCTIONS, PROTOCOLS
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import Calling, calling_options_of_several, command_words, edition_option, output_option
from hoofbeat.text import dollars, duration

if TYPE_CHECKING:
    from hoofbeat.answering import Grid, System
    from hoofbeat.models import Estimate
    from hoofbeat.reports.tables import Cell


@click.command("answer")
@click.argument("benchmark", type=click.Path(path_type=Path))
@click.option(
    "--corpus", type=click.Path(path_type=Path), help="Corpus to search [default: the one beside the benchmark]."
)
@click.option(
    "--condition", "conditions", multiple=True, default=("closed",), show_default=True,
    help="What the model sees: closed (the question only), images, options (no question), question (no case), "
    "'first 20%' or 'first 20% of sentences' (of the case), oracle (the source documents), 'bm25 + dense @3' (the 3 "
    "best passages of a retriever line), 'bm25 + dense @3 documents' (whole documents), or 'agent over bm25 + dense' "
    "(the model searches). Repeat it for several conditions.",
)  # fmt: skip
@click.option(
    "--protocol", "protocols", multiple=True, type=click.Choice(PROTOCOLS),
    help="How the model answers. Repeat it for several. [default: letter if a question has options, else free]",
)  # fmt: skip
@click.option(
    "--instruction", type=click.Choice(INSTRUCTIONS), default="best", show_default=True,
    help="best: one best answer. brief: the same in few words, without visible reasoning (for medical models).",
)  # fmt: skip
@edition_option
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions.", metavar="N")
@click.option("--samples", type=click.IntRange(1, 64), default=1, show_default=True, help="Answers per question.")
@click.option(
    "--temperature", type=click.FloatRange(0.0, 2.0), default=0.0, show_default=True, help="Sampling temperature."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for sampling; sample n uses seed + n."
)
@click.option("--option-seed", type=click.IntRange(0), default=0, show_default=True,
              help="Seed for the order of the options.")  # fmt: skip
@output_option("run")
@calling_options_of_several
def command(benchmark: Path, edition: str, output: Path, calling: Calling, **options: Any) -> None:
    """Let models answer the questions of BENCHMARK, and print how many answers are right.

    Options for one model go in brackets: 'embedded[temperature=0.6,samples=3]'.
    """
    from hoofbeat.answering.run_folder import KIND
    from hoofbeat.answering.run_plan import plan_run
    from hoofbeat.benchmarks import Benchmark
    from hoofbeat.cli.results import after_answers, show_leaderboard
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
        show_leaderboard(screen, done.artefact)
        free_text = any(not system.protocol for system in plan.systems)
        screen.finish(done.artefact, next_step=after_answers(output, free_text=free_text), models=spent)


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
                "unknown" if estimate.max_money is None else dollars(estimate.max_money, at_most=True),
            )
            for system, estimate in estimates
            if system.answerer.written == written
        ]
        screen.title(written)
        counts = (Column(name, "count") for name in ("answers", "calls", "in ledger", "tokens in", "tokens out, max"))
        screen.table(["condition", *counts, "cost, max"], rows)
    screen.estimate(total)


def _show_spent(screen: Screen, grid: Grid) -> dict[str, object]:
    """What each model's answers took: new calls, calls from the ledger, tokens, cost, time and retries."""
    spent: dict[str, object] = {}
    for written, model in grid.models.items():
        cost = model.cost
        seconds, retries = round(grid.seconds[written], 1), model.retries
        screen.calls(model)
        money = dollars(cost.money) if model.price else "price unknown"
        facts = f"{cost.tokens_in:,} tokens in, {cost.tokens_out:,} out, {money}, {duration(seconds)}"
        screen.say(f"{facts}, {retries:,} retries" if retries else facts, indent=2)
        spent[written] = {
            "made": model.made,
            "cached": model.cached,
            **msgspec.to_builtins(cost),
            "seconds": seconds,
            "retries": retries,
        }
    return spent
