"""Too few values of a figure without bounds leave its interval open: no output may print an infinite end."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.cli.console import Screen
from hoofbeat.findings.intervals import Interval, bootstrap_mean
from hoofbeat.reports.charts import interval_bar, interval_bars
from hoofbeat.reports.model import Report
from hoofbeat.reports.page import to_html
from hoofbeat.reports.section import spread
from hoofbeat.reports.tables import Column, Table, to_csv, triple
from hoofbeat.reports.text_formats import to_latex, to_markdown
from hoofbeat.store import Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import canonical_json, write_tsv

NOT_FINITE = re.compile(r"(?<![a-z])-?(?:inf|infinity|nan|∞)(?![a-z])", re.IGNORECASE)


@pytest.fixture
def opened() -> Interval:
    found = bootstrap_mean([35.0, 41.0])
    assert not found.known
    return found


@pytest.fixture
def table(opened: Interval) -> Table:
    rows = (
        ("few", triple(38.0, opened), (-math.inf, math.inf), math.nan),
        ("no count", (38.0, -math.inf, math.inf), (math.nan, 1.0), math.inf),
    )
    columns = (Column("of"), Column("mean", "number"), Column("range", "share"), Column("p", "p"))
    return Table(name="t", caption="Lengths", n=2, unit="questions", columns=columns, rows=rows)


def report(table: Table) -> Report:
    return Report(title="t", notice="n", version="1", blocks=(table,))


def finite(text: str) -> bool:
    return not NOT_FINITE.search(re.sub(r"<(style|script).*?</\1>", "", text, flags=re.DOTALL))


def strict(text: str | bytes) -> Any:
    """JSON as other software reads it: without NaN and Infinity."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_pages(table: Table) -> None:
    html = to_html(report(table))
    assert finite(html)
    assert "38.000" in html
    assert "()" not in re.sub(r"<(style|script).*?</\1>", "", html, flags=re.DOTALL)


def test_markdown_and_latex(table: Table) -> None:
    for text in (to_markdown(report(table)), to_latex(table)):
        assert finite(text)
        assert "38.000" in text


def test_csv_and_tsv(table: Table, tmp_path: Path) -> None:
    assert to_csv(table).splitlines()[1:] == ["few,38.0,,,2,,,", "no count,38.0,,,,,1.0,"]
    write_tsv(tmp_path / "t.tsv", ["value", "low", "high"], [(38.0, -math.inf, math.nan)])
    assert (tmp_path / "t.tsv").read_text("utf-8") == "value\tlow\thigh\n38.0\t\t\n"


def test_json(opened: Interval, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert strict(canonical_json(opened))["low"] is None
    with create(tmp_path / "made") as draft:
        draft.finish(Manifest(kind="run", counts=Counts(kept=1), metrics={"mean": opened}))
    Screen(as_json=True).finish(open_artefact(tmp_path / "made"))
    assert strict(capsys.readouterr().out)["metrics"]["mean"]["high"] is None
    assert strict((tmp_path / "made" / "manifest.json").read_text("utf-8"))


def test_charts_and_key_figures(opened: Interval) -> None:
    assert finite(interval_bars([interval_bar("few", 38.0, opened)], title="t"))
    assert spread((opened.low, opened.high), "number", "2 questions") == "n\u00a0=\u00a02 questions"
