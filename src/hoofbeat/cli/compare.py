"""`hoofbeat compare`: rankings of the same questions set against each other."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.comparing import compare_rankings
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import check_file, command_words, json_option, output_option
from hoofbeat.errors import UsageError

__all__ = ["command"]


@click.command("compare")
@click.argument("rankings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", default="", help="Compare each line with this one only [default: every pair].")
@click.option("--judged", multiple=True, type=click.Path(path_type=Path),
              help="Judgments of the answers that go with each of the rankings, in their order.")  # fmt: skip
@click.option("--condition", default="", help="Under which condition the answers were judged.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the page of plots to this HTML file, too.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of intervals and tests.")
@output_option("comparison")
@json_option
def command(
    rankings: tuple[Path, ...],
    baseline: str,
    judged: tuple[Path, ...],
    condition: str,
    page: Path | None,
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Compare RANKINGS folders of the same questions: intervals, paired tests, plots."""
    screen = Screen(as_json=as_json)
    check_file(page, ".html")
    if len(rankings) < 2:
        raise UsageError("a comparison needs two rankings or more", fix="name another folder")
    artefact = compare_rankings(
        screen,
        rankings,
        output,
        baseline=baseline,
        judged=judged,
        condition=condition,
        seed=seed,
        command=command_words(),
    )
    if page is not None:
        page.write_bytes(artefact.file("report.html").read_bytes())
    screen.finish(artefact)
