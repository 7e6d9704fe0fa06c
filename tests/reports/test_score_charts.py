"""Heatmaps, curves with whiskers, and points told apart by colour: what is drawn is what was given."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lxml import etree

from hoofbeat.reports.charts import NARROW, WIDE, Curve, FitPoint, Shade, curves, fitted_scatter, heatmap
from hoofbeat.reports.charts.line_plots import _log_marks
from tests.reports.examples import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> Any:
    return etree.fromstring(svg.encode())


def texts(tree: Any) -> list[str]:
    return [node.text or "" for node in tree.iter(f"{SVG}text")]


def cells(count: int, rows: int) -> list[list[Shade]]:
    return [
        [Shade(value=(row + column) / (rows + count), tip=f"n = {column}", few=column == 1) for column in range(count)]
        for row in range(rows)
    ]


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("count", [1, 4, 12, 40])
def test_every_cell_is_drawn_inside_and_says_its_figure(width: int, count: int) -> None:
    names = [f"specialty number {n}" for n in range(count)]
    tree = drawn(heatmap(["one", "two"], names, cells(count, 2), title="Shares", width=width))
    shaded = [node for node in tree.iter(f"{SVG}rect") if re.fullmatch(r"q\d", node.get("class")) and len(node)]
    assert len(shaded) == 2 * count
    for node in shaded:
        assert float(node.get("x")) + float(node.get("width")) <= width + 0.1
        assert float(node.get("y")) + float(node.get("height")) <= float(tree.get("height")) + 0.1
        assert node.find(f"{SVG}title").text.startswith("n = ")
    assert sum(text.endswith("%") for text in texts(tree)) == 2 * count + 2  # and the ends of the scale
    described = tree.find(f"{SVG}desc").text
    assert f"two, {names[-1]}: n = {count - 1}" in described


def test_cells_do_not_overlap() -> None:
    tree = drawn(heatmap(["a", "b", "c"], [f"c{n}" for n in range(30)], cells(30, 3), title="t", width=NARROW))
    boxes = {(node.get("x"), node.get("y")) for node in tree.iter(f"{SVG}rect") if len(node)}
    assert len(boxes) == 90


def test_shades_rise_with_the_figures_and_small_groups_are_marked() -> None:
    tree = drawn(heatmap(["a"], ["x", "y", "z"], cells(3, 1), title="t", limits=(0, 1)))
    tones = [int(node.get("class")[1]) for node in tree.iter(f"{SVG}rect") if len(node)]
    assert tones == sorted(tones)
    assert "few questions" in texts(tree)
    assert sum(node.get("class") == "none" for node in tree.iter(f"{SVG}rect")) == 2  # the cell and the key


def test_equal_shares_have_a_scale_that_ends_at_100_percent() -> None:
    svg = heatmap(["a"], ["x", "y"], [[Shade(value=1.0), Shade(value=1.0)]], title="t")
    assert "200%" not in svg
    assert ">0%<" in svg
    assert ">100%<" in svg


def test_a_cell_without_a_figure_and_an_empty_heatmap() -> None:
    tree = drawn(heatmap(["a"], ["x"], [[Shade(value=None, tip="not asked")]], title="t"))
    assert "–" in texts(tree)
    assert drawn(heatmap([], [], [], title="t")).find(f"{SVG}desc").text == "nothing to show"


def test_hostile_names_stay_text() -> None:
    tree = drawn(heatmap([HOSTILE], [HOSTILE], [[Shade(value=0.5, note=HOSTILE, tip=HOSTILE)]], title=HOSTILE))
    assert {node.tag.removeprefix(SVG) for node in tree.iter()} <= {"svg", "title", "desc", "rect", "text"}


def test_whiskers_stand_apart_and_span_their_intervals() -> None:
    series = [
        Curve(name=name, points=((0.2, 0.3), (1.0, 0.6)), band=((0.2, 0.4), (0.5, 0.7))) for name in ("one", "two")
    ]
    svg = curves(series, title="t", x="x", y="y", forms=("share", "share"), whiskers=True, marks=(0.0, 0.2, 1.0))
    tree = drawn(svg)
    assert not list(tree.iter(f"{SVG}polygon"))
    places = [float(node.get("cx")) for node in tree.iter(f"{SVG}circle")]
    assert len(set(places)) == 4
    assert {"0%", "20%", "100%"} <= set(texts(tree))
    bars = [node for node in tree.iter(f"{SVG}rect") if node.get("width") == "1.2"]
    dots = {node.get("cx"): float(node.get("cy")) for node in tree.iter(f"{SVG}circle")}
    assert len(bars) == 4
    for bar in bars:
        top, bottom = float(bar.get("y")), float(bar.get("y")) + float(bar.get("height"))
        middle = min(dots, key=lambda x, bar=bar: abs(float(x) - float(bar.get("x"))))  # type: ignore[misc]
        assert top < dots[middle] < bottom


def test_points_are_coloured_by_series_and_labels_keep_apart() -> None:
    points = [
        FitPoint(label=f"condition {n}", x=10.0 ** (n % 4), y=0.1 * n, y_interval=(0.1 * n - 0.05, 0.1 * n + 0.05),
                 series="one" if n % 2 else "two")
        for n in range(1, 9)
    ]  # fmt: skip
    for width in (WIDE, NARROW):
        tree = drawn(fitted_scatter(points, None, title="t", x="x", y="y", log=True, width=width))
        tones = {node.get("class") for node in tree.iter(f"{SVG}circle")}
        assert tones == {"s1", "s2"}
        assert {"one", "two"} <= set(texts(tree))
        labels = [node for node in tree.iter(f"{SVG}text") if (node.text or "").startswith("condition")]
        assert len({(node.get("x"), node.get("y")) for node in labels}) == len(labels) > 4


@pytest.mark.parametrize(("low", "high"), [(0.003, 0.9), (1.0, 1.0), (210.0, 4400.0), (3.0, 9e6)])
def test_logarithmic_marks_span_the_values(low: float, high: float) -> None:
    marks = _log_marks(low, high, 7)
    assert marks == sorted(marks)
    assert 2 <= len(marks) <= 10
    assert marks[0] <= low * 1.001
    assert marks[-1] >= high * 0.999
