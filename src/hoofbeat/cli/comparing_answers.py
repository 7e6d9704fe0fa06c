"""Folders of answers compared, as a person at a terminal sees it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hoofbeat.cli.console import Screen
from hoofbeat.reports.compared import warnings_of, write_compared
from hoofbeat.reports.comparisons import AnswersCompared, compare_answers
from hoofbeat.reports.flips import flips_of
from hoofbeat.reports.words import written
from hoofbeat.store import Artefact, check_target

__all__ = ["compare_answer_folders"]

_SHOWN = 20


def compare_answer_folders(
    screen: Screen,
    folders: Sequence[Path],
    target: Path,
    *,
    baseline: str = "",
    systems: Sequence[str] = (),
    seed: int = 0,
    command: Sequence[str] = (),
) -> Artefact:
    """Compare folders of answers, show the differences, and write the folder of their comparison."""
    check_target(target.resolve(), "comparison")
    compared = compare_answers(folders, baseline=baseline, systems=systems, seed=seed, progress=screen)
    _show(screen, compared)
    return write_compared(target, compared, command=command)


def _show(screen: Screen, compared: AnswersCompared) -> None:
    rows = []
    surest = sorted(zip(compared.pairs, compared.differences, strict=True), key=lambda item: item[1].p_holm)
    for pair, row in surest[:_SHOWN]:
        span = row.paired.interval
        flips = flips_of(compared, pair)
        rows.append(
            [
                compared.title(pair) + (" [!]" if pair.marks else ""),
                f"{row.paired.n}",
                f"{written(row.paired.difference, 'points')} [{written(span.low, 'points')}, "
                f"{written(span.high, 'points')}]",
                written(row.p_holm, "p"),
                f"{row.unscored}",
                "; ".join(f"{times} {name}" for name, times in flips.items()) or "none",
            ]
        )
    screen.table(["", "questions", "difference, points", "p (Holm)", "unscored", "flipped"], rows)
    if len(surest) > _SHOWN:
        screen.say(f"and {len(surest) - _SHOWN} pairs more, in pairs.tsv")
    for warning in warnings_of(compared):
        screen.say(f"[!] {warning}")
