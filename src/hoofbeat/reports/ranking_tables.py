"""The table of differences between rankings, as reports and comparisons print it.

One function makes it for both, so that the same rankings and seed give the same figures wherever they are read.
"""

from __future__ import annotations

from hoofbeat.findings.systems import SystemTable
from hoofbeat.reports.interval_words import BY, clustered_unit, interval_note
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple


def difference_table(table: SystemTable, name: str) -> Table:
    """Every comparison of the table: the paired difference with its interval, counts of questions, and the test."""
    others = {row.b for row in table.comparisons}
    one = len(others) == 1
    columns = [
        Column("system"),
        *([] if one else [Column("against")]),
        Column(f"{table.measure} gained", "number"),
        *columns_of(f"{BY} | better:count | same:count | worse:count | p:p | p, Holm:p"),
    ]
    rows: list[tuple[Cell, ...]] = []
    for row in table.comparisons:
        names: tuple[Cell, ...] = (row.a,) if one else (row.a, row.b)
        gained = triple(row.paired.difference, row.paired.interval)
        rows.append((*names, gained, row.paired.interval.by, row.wins, row.ties, row.losses, row.test.p, row.p_holm))
    against = f" from {table.comparisons[0].b}" if one else ""
    return Table(
        name=name,
        caption=f"Differences in {table.measure}{against}, paired by question",
        n=table.n,
        unit=clustered_unit(table.n, table.clusters),
        columns=tuple(columns),
        rows=tuple(rows),
        note=f"{difference_intervals(table)} {_tests(table)}",
    )


def difference_intervals(table: SystemTable) -> str:
    """By which method the intervals of the differences are."""
    return interval_note((row.paired.interval for row in table.comparisons), seed=table.seed)


def _tests(table: SystemTable) -> str:
    tests = [row.test for row in table.comparisons]
    exact = sum(test.exact for test in tests)
    sampled = max((test.patterns for test in tests if not test.exact), default=0)
    how = f"by {sampled:,} random sign patterns" if not exact else "over all sign patterns"
    if 0 < exact < len(tests):
        how = f"over all sign patterns where few questions differ, else {sampled:,} random ones"
    return (
        f"p is two-sided, from the paired randomisation test {how}, seed {table.seed}; "
        f"Holm's correction over the {count_of(len(tests), 'comparison')} of the table."
    )
