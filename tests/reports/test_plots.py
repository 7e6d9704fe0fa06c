from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree
from msgspec.structs import replace

from hoofbeat.corpus.funnel import FunnelStep, read_funnel
from hoofbeat.corpus.stats import CorpusStats, Share
from hoofbeat.reports.sections.statistics_section import funnel_svg, stats_plots, stats_svg
from tests.reports import corpora
from tests.reports.examples import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in etree.fromstring(svg.encode()).iter(f"{SVG}text")]


def of_venues(number: int) -> CorpusStats:
    rows = tuple(Share(value=f"Journal {n}", documents=2, share=2 / (2 * number)) for n in range(number))
    return CorpusStats(
        documents=2 * number, tokenizer="none", tables={"venue": rows}, specialties={}, lengths={}, figures=None
    )


def test_the_funnel_as_a_file(tmp_path: Path) -> None:
    steps = read_funnel(corpora.filtered(tmp_path / "kept"))
    drawn = funnel_svg(steps)
    assert drawn.startswith("<svg ")
    assert "<style>" in drawn
    shown = texts(drawn)
    assert f"Documents through the filters: {steps[-1].kept} of {steps[0].came} stay" in shown
    assert {step.step for step in steps} <= set(shown)
    assert funnel_svg(steps) == drawn


def test_the_statistics_as_a_file() -> None:
    counted = corpora.counted()
    drawn = stats_svg(counted)
    root = etree.fromstring(drawn.encode())
    charts = [node.get("aria-label") for node in root.findall(f"{SVG}svg")]
    assert charts == [
        "Documents by specialty (OGCaReBench, 12 disciplines)",
        "Documents by specialty (Body systems, 12)",
        "Documents by year",
        "Documents by venue",
        "Documents by licence",
        "Documents by kind",
    ]
    assert "What the corpus holds: 25 documents" in texts(drawn)
    assert stats_svg(counted) == drawn


def test_nothing_to_draw_still_makes_files() -> None:
    empty = CorpusStats(documents=0, tokenizer="none", tables={}, specialties={}, lengths={}, figures=None)
    for drawn in (funnel_svg([]), stats_svg(empty)):
        etree.fromstring(drawn.encode())


def test_hostile_text_stays_text() -> None:
    stats = of_venues(3)
    hostile = replace(stats, tables={"venue": (Share(value=HOSTILE, documents=6, share=1.0), *stats.tables["venue"])})
    for drawn in (funnel_svg([FunnelStep(step=HOSTILE, came=3, kept=1)]), stats_svg(hostile)):
        root = etree.fromstring(drawn.encode())
        known = {"svg", "style", "title", "desc", "rect", "line", "text"}
        assert {str(node.tag).removeprefix(SVG) for node in root.iter()} <= known
        assert "\u202e" not in drawn


@pytest.mark.parametrize(("number", "rest"), [(15, ""), (16, ""), (17, "2 more"), (1200, "1,185 more")])
def test_long_tables_end_in_the_rest(number: int, rest: str) -> None:
    shown = texts(stats_svg(of_venues(number)))
    assert [text for text in shown if text.endswith(" more")] == ([rest] if rest else [])
    assert sum(text.startswith("Journal ") for text in shown) == (15 if rest else number)


def test_years_that_are_none_are_drawn_as_they_are() -> None:
    rows = tuple(Share(value=value, documents=1, share=0.5) for value in ("9" * 5000, "soon"))
    stats = replace(of_venues(1), documents=2, tables={"year": rows})
    assert "soon" in texts(stats_svg(stats))


def test_many_figures_are_taken_together() -> None:
    rows = tuple(Share(value=str(n), documents=1, share=0.05) for n in range(20))
    drawn = stats_svg(replace(of_venues(1), documents=20, tables={"figures": rows}))
    assert "15 and more" in texts(drawn)
    assert "Figures in a document" in texts(drawn)


def test_a_scheme_of_ones_own_goes_by_its_name() -> None:
    rows = (Share(value="a", documents=1, share=0.5), Share(value="b", documents=1, share=0.5))
    plots = stats_plots(replace(of_venues(1), documents=2, tables={}, specialties={"mine": rows}))
    assert [plot.title for plot in plots] == ["Specialties: mine"]
