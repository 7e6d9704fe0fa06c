"""The table of differences between rankings, as reports and comparisons print it.

One function makes it for both, so that the same rankings and seed give the same figures wherever they are read.
"""

from __future__ import annotations

from hoofbeat.findings.systems import SystemTable
from hoofbeat.reports.interval_words import BY, clustered_unit, interval_note
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple


def difference_table(table: SystemTable, name: str) -> Table:
    """Every comparison of the table: the paired difference with its interval, counts of questions, and the test."""
    columns = (
        *columns_of("first | second"),
        Column(f"{table.measure}, second − first", "number"),
        *columns_of(f"{BY} | second better:count | same:count | second worse:count | p:p | p, Holm:p"),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.first,
            row.second,
            triple(row.paired.difference, row.paired.interval),
            row.paired.interval.by,
            row.better,
            row.same,
            row.worse,
            row.test.p,
            row.p_holm,
        )
        for row in table.comparisons
    )
    return Table(
        name=name,
        caption=f"Differences in {table.measure} (second − first), paired by question",
        n=table.n,
        unit=clustered_unit(table.n, table.clusters),
        columns=columns,
        rows=rows,
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
