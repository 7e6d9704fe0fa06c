"""`hoofbeat compare`: rankings, or answers, of the same questions."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import check_file, command_words, json_option, output_option
from hoofbeat.findings.caveats import folder_caveats
from hoofbeat.reports.comparison import compare_folders
from hoofbeat.reports.comparison.answers import AnswersComparison
from hoofbeat.reports.comparison.answers_page import flips_of, warnings_of
from hoofbeat.reports.comparison.rankings import RankingsComparison
from hoofbeat.reports.interval_words import BY
from hoofbeat.reports.ranking_tables import difference_intervals
from hoofbeat.reports.report_writer import KIND
from hoofbeat.reports.tables import Cell, columns_of, triple
from hoofbeat.store import check_target
from hoofbeat.store.files import write_bytes

_SHOWN = 20


@click.command("compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--baseline", default="",
              help="Compare every line or system with this one [default: every pair of lines; for answers, each system "
              "with itself in the first folder].")  # fmt: skip
@click.option("--system", "systems", multiple=True,
              help="Answers: only this system (model, condition, or 'MODEL · CONDITION'). Repeat it "
              "for several.")  # fmt: skip
@click.option("--judged", multiple=True, type=click.Path(path_type=Path),
              help="Rankings: judgments of answers made with each ranking, in the same order.")  # fmt: skip
@click.option("--condition", default="", help="Rankings: the condition of those answers.")
@click.option("--page", type=click.Path(path_type=Path), help="Also write the page to this HTML file.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for intervals and tests.")
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
    check_target(output.resolve(), KIND)
    compared = compare_folders(
        folders,
        baseline=baseline,
        systems=systems,
        judged=judged,
        condition=condition,
        seed=seed,
        progress=screen,
    )
    if isinstance(compared.found, RankingsComparison):
        show_rankings(screen, compared.found)
    else:
        _show_answers(screen, compared.found)
    artefact = compared.write(output, command=command_words())
    if page is not None:
        write_bytes(page, artefact.file("report.html").read_bytes())
    screen.finish(artefact, next_step=("open", output / "report.html"))


def show_rankings(screen: Screen, compared: RankingsComparison) -> None:
    """The differences by the main measure, and the grid of settings where there is one."""
    table, grid = compared.tables[0], compared.grid
    best = table.ranked[0].system
    mixed = len({pair.paired.interval.by for pair in table.comparisons}) > 1
    rows = [
        [
            f"{pair.first} → {pair.second}",
            f"{pair.paired.difference:+.3f} [{span.low:+.3f}, {span.high:+.3f}{span.few_note}]",
            f"{pair.p_holm:.4f}",
            f"{pair.better}/{pair.same}/{pair.worse}",
            *([span.by] if mixed else []),
        ]
        for pair in table.comparisons
        for span in [pair.paired.interval]
        if best in {pair.first, pair.second} or len(table.comparisons) <= 10
    ]
    screen.table(
        [
            f"{table.measure}, {table.n} questions",
            "second − first",
            "p (Holm)",
            "better/same/worse",
            *([BY] if mixed else []),
        ],
        rows,
    )
    if table.comparisons:
        inside = f" {table.n:,} questions in {table.clusters:,} clusters." if table.clusters < table.n else ""
        screen.say(f"{difference_intervals(table)}{inside}")
    if grid is not None:
        cells = [
            [row, *(f"{cell.mean:.3f}" if (cell := grid.cell(row, column)) else "" for column in grid.columns)]
            for row in grid.rows
        ]
        screen.table([f"{grid.down} by {grid.across}" if grid.across else grid.down, *grid.columns], cells)
    for warning in folder_caveats(compared.folders):
        screen.say(f"[!] {warning}")
    if compared.left_out:
        screen.say(f"Left out {compared.left_out} questions, because not every line has a value for them")


def _show_answers(screen: Screen, compared: AnswersComparison) -> None:
    columns = columns_of(" | questions:count | second − first, points:points | p (Holm):p | not scored:count | changed")
    rows: list[tuple[Cell, ...]] = []
    surest = sorted(zip(compared.pairs, compared.differences, strict=True), key=lambda item: item[1].p_holm)
    for pair, row in surest[:_SHOWN]:
        span = row.paired.interval
        flips = flips_of(compared, pair)
        rows.append(
            (
                compared.title(pair) + (" [!]" if pair.marks else ""),
                row.paired.n,
                triple(row.paired.difference, span),
                row.p_holm,
                row.unscored,
                "; ".join(f"{times} {name}" for name, times in flips.items()) or "none",
            )
        )
    screen.table(columns, rows)
    if len(surest) > _SHOWN:
        screen.say(f"and {len(surest) - _SHOWN} more pairs, in pairs.tsv")
    for warning in warnings_of(compared):
        screen.say(f"[!] {warning}")
