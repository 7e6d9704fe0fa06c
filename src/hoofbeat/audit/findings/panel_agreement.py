"""How far the judges of an audit agree with each other, where several were asked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.audit.findings.pair_arrays import Frame, lazy
from hoofbeat.findings.agreement import Annotators, agreement_with_intervals
from hoofbeat.findings.intervals import Interval, share_interval


class PanelAgreement(Struct, frozen=True, kw_only=True):
    """How far the judges of an audit agree on the `pairs` that were put to them.

    `unanimous` of them have the same label from every judge; `by_side` have a majority only for whether the answers
    diverge, `no_majority` not even that and therefore no label; `incomplete` lack a vote. `every_two` compares every
    two judges, and all of them by Krippendorff's α.
    """

    judges: tuple[str, ...]
    pairs: int
    unanimous: int
    unanimous_interval: Interval
    by_side: int
    no_majority: int
    incomplete: int
    every_two: Annotators


def panel_agreement(
    table: Frame, judges: Sequence[str], labels: Sequence[str], *, seed: int = 0
) -> PanelAgreement | None:
    """The agreement of the judges on an audit's table; None where there is one judge, or where none was asked.

    `judges` are named in the order of their votes.
    """
    if len(judges) < 2:
        return None
    columns = ["question", "a", "b", "votes", "basis", "failure", "label"]
    rows = lazy(table).select(columns).collect()
    asked = [row for row in rows.iter_rows() if row[3] is not None and row[4] == "judged"]
    if not asked:
        return None
    items = ["\t".join(row[:3]) for row in asked]
    clusters = {item: row[0] for item, row in zip(items, asked, strict=True)}
    ratings = {
        judge: {item: row[3][place] for item, row in zip(items, asked, strict=True) if row[3][place]}
        for place, judge in enumerate(judges)
    }
    same = [len(set(row[3])) == 1 for row in asked]
    return PanelAgreement(
        judges=tuple(judges),
        pairs=len(asked),
        unanimous=sum(same),
        unanimous_interval=share_interval(same, [row[0] for row in asked]),
        by_side=sum(row[6] is not None and 2 * row[3].count(row[6]) <= len(row[3]) for row in asked),
        no_majority=sum(row[5] == "no-majority" for row in asked),
        incomplete=sum("" in row[3] for row in asked),
        every_two=agreement_with_intervals(ratings, labels, clusters=clusters, seed=seed),
    )
