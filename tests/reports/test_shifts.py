"""Two audits of the same questions in one report."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.findings import prevalence_intensity
from hoofbeat.judging import Audit
from hoofbeat.reports.build import assemble
from hoofbeat.reports.model import Table, tables_in
from hoofbeat.store import open_artefact
from tests.reports import examples


def tables(*paths: Path) -> dict[str, Table]:
    report = assemble([open_artefact(path) for path in paths], title="x")
    return {table.name: table for table in tables_in(report.blocks)}


def test_two_audits_are_split_into_prevalence_and_intensity(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    examples.audit(before, noise=0.0, failing=0.0)
    examples.audit(after, noise=0.6, failing=0.05)
    found = tables(before, after)
    rows = {row[0]: row for row in found["audit-2-shift-rates"].rows}
    split = prevalence_intensity(Audit.open(before).comparisons, Audit.open(after).comparisons)
    assert rows["intensity"][1:3] == (split.intensity.before, split.intensity.after)
    assert rows["prevalence"][1:3] == (split.prevalence.before, split.prevalence.after)
    change, coverage = rows["pct_any_div"][3], rows["by coverage"][3]
    assert isinstance(change, tuple)
    assert isinstance(coverage, tuple)
    assert coverage[0] == pytest.approx(float(change[0] or 0) - (split.prevalence.change or 0))
    value, low, high = (float(each or 0) for each in coverage)
    assert low <= value <= high
    moved = found["audit-2-shift-labels"]
    assert moved.n == len(Audit.open(after).comparisons)
    assert sum(int(str(cell)) for row in moved.rows for cell in row[1:]) == moved.n
    groups = next(table for name, table in found.items() if name.startswith("audit-2-shift-by-"))
    assert sum(int(str(row[1])) for row in groups.rows) >= split.questions


def test_one_audit_has_nothing_to_be_set_against(tmp_path: Path) -> None:
    examples.audit(tmp_path / "only")
    assert not [name for name in tables(tmp_path / "only") if "shift" in name]
