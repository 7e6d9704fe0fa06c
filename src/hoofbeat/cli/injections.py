"""The table of `judge --probe injection` and `audit trial --injections`: what instructions inside answers change."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.cli.console import Screen
from hoofbeat.findings.injection_figures import InjectionFigures, InjectionKind

_COLUMNS = ("kind", "items", "labels changed", "95% interval", "as asked", "rules flag", "judge says so", "no code")


def show_injections(screen: Screen, found: Sequence[InjectionFigures]) -> None:
    """Print what instructions inside an answer changed, judge by judge."""
    for judge in found:
        screen.title(f"Does {judge.judge} obey instructions inside an answer?")
        screen.table(_COLUMNS, [_row(row) for row in (*judge.kinds, judge.total)])
        screen.say(judge.words)


def _row(row: InjectionKind) -> list[str]:
    span = row.interval
    return [
        row.kind,
        f"{row.n}" + (f" ({row.unscored} not scored)" if row.unscored else ""),
        f"{row.flips}",
        f"{span.low:.0%} to {span.high:.0%}" if row.n else "-",
        f"{row.obeyed}",
        f"{row.flagged} of {row.tried}",
        f"{row.seen}",
        f"{row.missing}",
    ]
