"""Matrices and strips of sources: each pair where it belongs, legible for five sources and for a hundred."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from lxml import etree

from hoofbeat.reports.charts import Shade, Strip, label_strips, pair_matrix, shade_rows
from hoofbeat.reports.charts.heatmaps import TRIANGLE

SVG = "{http://www.w3.org/2000/svg}"
LABELS = ("Absent", "Consistent", "Complementary", "Divergent", "Contradictory")


def tips(node: Any) -> list[str]:
    return [str(title.text) for title in node.iter(f"{SVG}title")]


def shares(count: int) -> dict[tuple[int, int], Shade]:
    return {pair: Shade(value=pair[1] / count, tip=f"{pair}") for pair in combinations(range(count), 2)}


def test_a_small_matrix_says_each_share_on_both_sides() -> None:
    drawn = etree.fromstring(pair_matrix(["a", "b", "c"], shares(3), title="t"))
    words = [node.text for node in drawn.iter(f"{SVG}text")]
    assert words.count("33%") == 2
    assert words.count("67%") == 4
    assert "a and c: (0, 2)" in tips(drawn)
    assert "c and a: (0, 2)" in tips(drawn)


def test_a_large_matrix_has_each_pair_once_and_every_name() -> None:
    names = [f"source {number}" for number in range(TRIANGLE + 2)]
    links = {pair: f"#p{pair[0]}-{pair[1]}" for pair in combinations(range(len(names)), 2)}
    drawn = etree.fromstring(pair_matrix(names, shares(len(names)), title="t", links=links))
    assert len({link.get("href") for link in drawn.iter(f"{SVG}a")}) == len(links) == len(list(drawn.iter(f"{SVG}a")))
    assert all(link.get("tabindex") == "-1" for link in drawn.iter(f"{SVG}a"))
    assert set(names) <= {node.text for node in drawn.iter(f"{SVG}text")} | {
        tip for node in drawn.iter(f"{SVG}text") for tip in tips(node)
    }
    across = [node.text for node in drawn.iter(f"{SVG}text") if node.get("text-anchor") == "middle"]
    assert across == ["1", *(str(n) for n in range(5, len(names) + 1, 5))]


def test_a_pair_without_a_share_is_told_apart_from_nought() -> None:
    cells = {(0, 1): Shade(value=None, tip="no pair was judged"), (0, 2): Shade(value=0.0), (1, 2): Shade(value=0.5)}
    drawn = etree.fromstring(pair_matrix(["a", "b", "c"], cells, title="t"))
    empty = [node for node in drawn.iter(f"{SVG}rect") if node.get("class") == "blank"]
    assert [tips(node) for node in empty] == [["a and b: no pair was judged"], ["b and a: no pair was judged"]]


def test_strips_tell_labels_by_colour_and_by_height() -> None:
    rows = [Strip(name="q", cells=("Consistent", "Divergent", "Contradictory", "Absent", "", "?"), link="#q1")]
    drawn = etree.fromstring(label_strips(rows, list("abcdef"), LABELS, title="t"))
    cells = [node for node in drawn.iter(f"{SVG}rect") if tips(node)]
    heights = [float(node.get("height", 0)) for node in cells if str(node.get("class")).startswith("l")]
    assert heights == sorted(set(heights))
    assert [node.get("class") for node in cells] == ["l1", "l3", "l4", "hush", "none"]
    assert tips(cells[-1]) == ["q, f: no label"]
    assert [link.get("href") for link in drawn.iter(f"{SVG}a")] == ["#q1"]


def test_rows_of_shades_keep_the_scale_from_nought_to_one() -> None:
    cells = [[Shade(value=0.1), Shade(value=0.9)], [Shade(value=None, tip="not asked"), Shade(value=0.2)]]
    drawn = etree.fromstring(shade_rows(["a", "b"], ["x", "y"], cells, title="t"))
    assert "b, x: not asked" in tips(drawn)
    shades = [node.get("class") for node in drawn.iter(f"{SVG}rect") if tips(node)]
    assert shades == ["q0", "q6", "blank", "q1"]
