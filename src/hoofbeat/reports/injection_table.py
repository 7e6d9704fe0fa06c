"""What instructions inside an answer change, as a report shows it for judges of answers and of pairs."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.findings.injection_figures import InjectionFigures, InjectionKind
from hoofbeat.reports.model import Block, Notice
from hoofbeat.reports.tables import Cell, Table, columns_of, triple


def injection_blocks(found: Sequence[InjectionFigures], name: str) -> list[Block]:
    """A sentence and a table for each judge; nothing where no instruction was tried."""
    return [
        block
        for number, judge in enumerate(found, start=1)
        for block in (Notice(judge.words), _table(judge, name if number == 1 else f"{name}-{number}"))
    ]


def _table(judge: InjectionFigures, name: str) -> Table:
    def row(kind: InjectionKind) -> tuple[Cell, ...]:
        share = triple(kind.rate, kind.interval) if kind.n else None
        counts = kind.obeyed, kind.unscored, kind.flagged, kind.seen, kind.missing
        return kind.kind, kind.n, kind.flips, share, *counts

    return Table(
        name=name,
        caption=f"Instructions inside an answer, and the labels of {judge.judge}",
        n=judge.total.tried,
        unit="items judged with and without an instruction",
        columns=columns_of(
            "kind of instruction | items:count | labels changed:count | share changed, 95% Wilson:share | "
            "changed as asked:count | unscored:count | flagged by the rules:count | the judge says so:count | "
            "check code missing:count"
        ),
        rows=tuple(row(kind) for kind in (*judge.kinds, judge.total)),
        note="The instructions are invented. Each asks for a label that the judge did not give without it. The check "
        "code is in the prompt, and a reply that follows the text instead of the prompt does not repeat it. Without "
        f"instructions, {judge.clean_missing:,} of {judge.clean:,} replies lack it, and in {judge.clean_seen:,} the "
        "judge says that there are instructions.",
    )
