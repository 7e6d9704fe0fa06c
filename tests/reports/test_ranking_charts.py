"""Dots with intervals, sorted differences and fitted points: drawn inside, named, and true to their numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import pytest
from lxml import etree

from hoofbeat.reports.charts import (
    NARROW,
    WIDE,
    Bar,
    FitPoint,
    difference_bars,
    fitted_scatter,
    interval_dots,
    standalone,
)
from hoofbeat.reports.charts.svg import text_width, ticks
from tests.reports.examples import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"
LONG = "bm25 + 0.5*minilm > crossencoder[window=512,stride=128]@100"


def _dots(name: str, width: int) -> str:
    bars = [Bar(label="", value=0.5, low=0.25, high=0.75), Bar(label="", value=None), Bar(label="", value=0.1)]
    return interval_dots([name, "two", LONG], {f"{name} {n}": bars for n in range(5)}, title=name, width=width)


def _differences(name: str, width: int) -> str:
    gains = [(name, 0.5), ("b", -0.25), ("c", 0.0), ("d", 0.001)]
    return difference_bars(gains, title=name, y=f"nDCG@10 gained by {name}", width=width)


def _fitted(name: str, width: int) -> str:
    points = [
        FitPoint(label=name, x=0.2, y=0.3, x_interval=(0.1, 0.3), y_interval=(0.2, 0.4)),
        FitPoint(label="b", x=0.5, y=0.9),
    ]
    return fitted_scatter(points, (2.0, -0.1), title=name, x="nDCG@10", y="right", note=name, width=width)


CHARTS: list[Callable[[str, int], str]] = [_dots, _differences, _fitted]


@pytest.mark.parametrize("draw", CHARTS)
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", ["a name", LONG, "W" * 300])
def test_charts_are_well_formed_and_inside(draw: Callable[[str, int], str], width: int, name: str) -> None:
    drawn = draw(name, width)
    root = etree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root[0].text == name
    assert root.find(f"{SVG}desc") is not None
    assert draw(name, width) == drawn
    etree.fromstring(standalone(drawn))
    height = float(root.get("height", 0))
    for node in root.iter(f"{SVG}rect"):
        assert 0 <= float(node.get("x", 0)) <= float(node.get("x", 0)) + float(node.get("width", 0)) <= width + 0.5
        assert 0 <= float(node.get("y", 0)) + float(node.get("height", 0)) <= height
    for node in root.iter(f"{SVG}text"):
        left, right, base = _extent(node)
        assert left >= -2
        assert right <= width + 2
        assert 0 <= base <= height


def _extent(node: Any) -> tuple[float, float, float]:
    size = text_width(node.text or "", 12 if "m" in node.get("class", "").split() else 13)
    x = float(node.get("x", 0))
    left = x - {"middle": size / 2, "end": size}.get(node.get("text-anchor", ""), 0.0)
    return left, left + size, float(node.get("y", 0))


@pytest.mark.parametrize("draw", CHARTS)
def test_hostile_text_stays_text(draw: Callable[[str, int], str]) -> None:
    drawn = draw(HOSTILE, WIDE)
    known = {"svg", "title", "desc", "rect", "line", "text", "polyline", "polygon", "circle"}
    assert {str(node.tag).removeprefix(SVG) for node in etree.fromstring(drawn).iter()} <= known
    assert "\u202e" not in drawn


def test_nothing_gives_a_chart() -> None:
    for drawn in (
        interval_dots([], {}, title="none"),
        interval_dots(["a"], {"m": [Bar(label="", value=None)]}, title="none"),
        interval_dots(["a"], {"m": [Bar(label="", value=0.0, low=0.0, high=0.0)]}, title="none"),
        difference_bars([], title="none", y="y"),
        difference_bars([("a", 0.0)], title="none", y="y"),
        fitted_scatter([], None, title="none", x="x", y="y"),
        fitted_scatter([FitPoint(label="one", x=0.5, y=0.5)], None, title="none", x="x", y="y"),
        fitted_scatter([FitPoint(label="one", x=0.5, y=0.5)] * 2, (0.0, 0.5), title="none", x="x", y="y"),
    ):
        etree.fromstring(drawn)


def _circles(drawn: str) -> list[tuple[float, float]]:
    return [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in etree.fromstring(drawn).iter(f"{SVG}circle")]


def test_dots_stand_where_their_values_are() -> None:
    bars = [Bar(label="", value=value, low=0.0, high=1.0) for value in (0.0, 0.5, 1.0)]
    (low, y1), (half, y2), (full, y3) = _circles(interval_dots(["a", "b", "c"], {"m": bars}, title="t"))
    assert half - low == pytest.approx(full - half, abs=0.2)
    assert y1 < y2 < y3


def test_panels_share_an_axis_only_if_asked() -> None:
    panels = {"x": [Bar(label="", value=0.1, low=0.0, high=0.2)], "y": [Bar(label="", value=0.1, low=0.0, high=1.0)]}
    shared = _circles(interval_dots(["a"], panels, title="t", shared=True))
    apart = _circles(interval_dots(["a"], panels, title="t"))
    step = shared[1][0] - shared[0][0]
    assert apart[1][0] - apart[0][0] < step - 20


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_axis_numbers_do_not_touch(width: int) -> None:
    for top in (0.013, 0.1, 0.77, 1.0, 12.0):
        panels = {f"m{n}": [Bar(label="", value=top / 2, low=top / 7, high=top)] for n in range(4)}
        root = etree.fromstring(interval_dots(["row"], panels, title="t", width=width))
        lines: dict[float, list[tuple[float, float]]] = {}
        for node in root.iter(f"{SVG}text"):
            if node.get("text-anchor") == "middle":
                left, right, base = _extent(node)
                lines.setdefault(base, []).append((left, right))
        for spans in lines.values():
            ordered = sorted(spans)
            assert all(a[1] <= b[0] for a, b in pairwise(ordered))


def test_differences_are_sorted_and_counted() -> None:
    drawn = difference_bars([("a", -0.5), ("b", 0.25), ("c", 0.0), ("d", 1.0)], title="t", y="gain")
    root = etree.fromstring(drawn)
    bars = sorted((float(r.get("x", 0)), r.get("class"), r[0].text) for r in root.iter(f"{SVG}rect"))
    assert [(tone, tip) for _, tone, tip in bars] == [("s1", "d: 1.000"), ("s1", "b: 0.250"), ("s2", "a: −0.500")]
    assert "4 questions: better on 2, the same on 1, worse on 1" in [node.text for node in root.iter(f"{SVG}text")]
    heights = {str(r[0].text)[0]: float(r.get("height", 0)) for r in root.iter(f"{SVG}rect")}
    assert heights["d"] == pytest.approx(2 * heights["a"], abs=0.2)


def test_many_differences_are_one_shape() -> None:
    drawn = difference_bars([(f"q{n}", (n - 2000) / 2000) for n in range(5000)], title="t", y="gain")
    root = etree.fromstring(drawn)
    assert len(root.findall(f"{SVG}polygon")) == 2
    assert not root.findall(f"{SVG}rect")
    assert "5,000 questions: better on 2,999, the same on 1, worse on 2,000" in drawn
    assert len(drawn) < 250_000


def test_names_of_points_cover_no_point_and_no_name() -> None:
    points = [FitPoint(label=f"model number {n}", x=0.3 + n / 60, y=0.4 + (n % 4) / 50) for n in range(12)]
    root = etree.fromstring(fitted_scatter(points, (1.0, 0.1), title="t", x="x", y="y"))
    names = [node for node in root.iter(f"{SVG}text") if (node.text or "").startswith("model")]
    assert len(names) >= 8
    boxes = [(left, base - 10, right, base + 3) for left, right, base in map(_extent, names)]
    boxes += [(x - 4, y - 4, x + 4, y + 4) for x, y in _circles(etree.tostring(root).decode())]
    for a, b in combinations(boxes[: len(names)], 2):
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
    for a in boxes[: len(names)]:
        for b in boxes[len(names) :]:
            assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])


def test_the_line_runs_through_its_points_and_stays_inside() -> None:
    points = [FitPoint(label=str(n), x=n / 10, y=0.2 + n / 20) for n in range(5)]
    root = etree.fromstring(fitted_scatter(points, (0.5, 0.2), title="t", x="x", y="y"))
    line = root.find(f"{SVG}polyline")
    assert line is not None
    ends = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
    circles = _circles(etree.tostring(root).decode())
    assert ends == [pytest.approx(circles[0], abs=0.2), pytest.approx(circles[-1], abs=0.2)]
    steep = etree.fromstring(fitted_scatter(points, (50.0, -9.0), title="t", x="x", y="y")).find(f"{SVG}polyline")
    assert steep is not None
    assert all(20 <= float(pair.split(",")[1]) <= 385 for pair in steep.get("points", "").split())


@pytest.mark.parametrize("values", [(0.3, 0.3), (0.3, 0.3 + 1e-12), (0.2, 0.2 + 3e-11), (0.0, 0.0), (1.0, 1.0 + 2e-9)])
def test_dots_that_are_all_equal_have_an_axis(values: tuple[float, float]) -> None:
    bars = [Bar(label="", value=value, low=value, high=value) for value in values]
    assert interval_dots(["one", "two"], {"score": bars}, title="equal").startswith("<svg")
    marks = ticks(min(values), max(values), 3)
    assert marks[0] <= min(values) <= max(values) <= marks[-1] + 1e-8
    assert len(set(marks)) == len(marks) > 1
