"""`hoofbeat compare`: rankings, or answers, of the same questions set against each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hoofbeat.cli.comparing import compare_rankings
from hoofbeat.cli.comparing_answers import compare_answer_folders
from hoofbeat.cli.console import Screen
from hoofbeat.cli.ranking import KIND as RANKINGS
from hoofbeat.cli.session import check_file, command_words, json_option, output_option
from hoofbeat.errors import UsageError
from hoofbeat.reports.comparisons import KINDS as ANSWERS
from hoofbeat.store import open_artefact

__all__ = ["command"]


@click.command("compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", default="",
              help="Compare each line or system with this one only [default: every pair of lines; of answers, each "
              "system with itself in the first folder].")  # fmt: skip
@click.option("--system", "systems", multiple=True,
              help="Answers: only these systems, by model, condition, or 'MODEL · CONDITION'.")  # fmt: skip
@click.option("--judged", multiple=True, type=click.Path(path_type=Path),
              help="Rankings: judgments of the answers that go with each of them, in their order.")  # fmt: skip
@click.option("--condition", default="", help="Rankings: under which condition those answers were judged.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the page to this HTML file, too.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of intervals and tests.")
@output_option("comparison")
@json_option
def command(
    folders: tuple[Path, ...],
    baseline: str,
    systems: tuple[str, ...],
    judged: tuple[Path, ...],
    condition: str,
    page: Path | None,
    seed: int,
    output: Path,
    as_json: bool,
) -> None:
    """Compare FOLDERS of rankings, or of answers (judgments, or runs that choose options), of the same questions:
    intervals, paired tests, plots, and the questions that flipped."""
    screen = Screen(as_json=as_json)
    check_file(page, ".html")
    if len(folders) < 2:
        raise UsageError("a comparison needs two folders or more", fix="name another folder")
    if _are_rankings(folders):
        if systems:
            raise UsageError("--system chooses among answers, and these are rankings", fix="leave --system out")
        artefact = compare_rankings(
            screen,
            folders,
            output,
            baseline=baseline,
            judged=judged,
            condition=condition,
            seed=seed,
            command=command_words(),
        )
    else:
        if judged or condition:
            raise UsageError(
                "--judged and --condition go with rankings, and these are answers", fix="choose with --system"
            )
        artefact = compare_answer_folders(
            screen, folders, output, baseline=baseline, systems=systems, seed=seed, command=command_words()
        )
    if page is not None:
        page.write_bytes(artefact.file("report.html").read_bytes())
    screen.finish(artefact, next_step=("open", output / "report.html"))


def _are_rankings(folders: Sequence[Path]) -> bool:
    """Whether these are rankings (or answers); a mix is refused."""
    kinds = [open_artefact(folder, (RANKINGS, *ANSWERS)).manifest.kind for folder in folders]
    ranked = [kind == RANKINGS for kind in kinds]
    if any(ranked) and not all(ranked):
        named = ", ".join(f"{folder.name} ({kind})" for folder, kind in zip(folders, kinds, strict=True))
        raise UsageError(
            "rankings and answers can't be compared with each other",
            where=named,
            fix="name folders of one kind (answers that go with rankings are given with --judged)",
        )
    return all(ranked)
