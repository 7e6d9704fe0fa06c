from __future__ import annotations

from collections.abc import Callable

import pytest
from lxml import etree

from hoofbeat.reports.charts import (
    NARROW,
    Bar,
    Curve,
    Dots,
    curves,
    grouped_bars,
    interval_bars,
    label_matrix,
    number_matrix,
    scatter,
    stacked_bars,
    standalone,
)
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.grids import abbreviations
from hoofbeat.reports.charts.svg import num, text_width, ticks, wrap
from tests.reports.examples import HOSTILE

LABELS = ("Absent", "Consistent", "Complementary", "Divergent", "Contradictory")
SVG = "{http://www.w3.org/2000/svg}"


def _bars(name: str, width: int) -> str:
    bars = [
        Bar(label=name, value=0.5, low=0.25, high=0.75),
        Bar(label="two", value=None),
        Bar(label="three", value=-0.1, low=-0.3, high=0.2),
    ]
    return interval_bars(bars, title=name, width=width)


def _grouped(name: str, width: int) -> str:
    series = {name: [Bar(label="a", value=0.2), Bar(label="b", value=None)], "other": [Bar(label="a", value=1)] * 2}
    return grouped_bars([name, "second"], series, title=name, width=width)


def _stacked(name: str, width: int) -> str:
    rows = [(name, {"Absent": 3, "Consistent": 1}), ("nothing", {})]
    return stacked_bars(rows, LABELS, title=name, width=width)


def _matrix(name: str, width: int) -> str:
    cells = [["Consistent", "Divergent", ""], ["Divergent", "Consistent", "Absent"], ["", "Absent", "Consistent"]]
    return label_matrix([name, "b", "c"], cells, LABELS, title=name, links={(0, 1): "#p1"}, marks={(0, 1)})


def _numbers(name: str, width: int) -> str:
    return number_matrix([name, "b"], ["x", name], [[1, None], [0, 22]], title=name, width=width)


def _curves(name: str, width: int) -> str:
    points = ((1.0, 0.2), (10.0, 0.5), (100.0, 0.9))
    series = [Curve(name=name, points=points, band=((0.1, 0.3), (0.4, 0.6), (0.8, 1.0)))]
    return curves(series, title=name, x="k", y="recall", log=True, width=width)


def _scatter(name: str, width: int) -> str:
    return scatter(
        [Dots(name=name, points=((1.0, 2.0, name), (3.0, 4.0, "q")))], title=name, x="x", y=name, width=width
    )


CHARTS: list[Callable[[str, int], str]] = [_bars, _grouped, _stacked, _matrix, _numbers, _curves, _scatter]


@pytest.mark.parametrize("draw", CHARTS)
@pytest.mark.parametrize("width", [760, NARROW])
def test_charts_are_well_formed_named_and_scale(draw: Callable[[str, int], str], width: int) -> None:
    drawn = draw("a name", width)
    root = etree.fromstring(drawn)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == ("group" if draw is _matrix else "img")
    assert root.get("viewBox", "").startswith("0 0 ")
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "a name"
    assert root.find(f"{SVG}desc") is not None
    assert draw("a name", width) == drawn
    etree.fromstring(standalone(drawn))


@pytest.mark.parametrize("draw", CHARTS)
def test_hostile_text_stays_text(draw: Callable[[str, int], str]) -> None:
    drawn = draw(HOSTILE, 760)
    root = etree.fromstring(drawn)
    known = {"svg", "title", "desc", "rect", "line", "text", "polyline", "polygon", "circle", "a"}
    assert {str(node.tag).removeprefix(SVG) for node in root.iter()} <= known
    names = {str(name) for node in root.iter() for name in node.attrib}
    assert not any(name.startswith("on") for name in names)
    assert "\u202e" not in drawn
    assert "\x07" not in drawn


@pytest.mark.parametrize("draw", CHARTS)
def test_everything_is_drawn_inside(draw: Callable[[str, int], str]) -> None:
    root = etree.fromstring(draw("name", 760))
    width, height = (float(part) for part in root.get("viewBox", "").split()[2:])
    for node in root.iter(f"{SVG}rect"):
        assert float(node.get("x", 0)) + float(node.get("width", 0)) <= width + 0.5
        assert float(node.get("y", 0)) + float(node.get("height", 0)) <= height + 0.5
    for node in root.iter(f"{SVG}text"):
        assert 0 <= float(node.get("x", 0)) <= width
        assert 0 <= float(node.get("y", 0)) <= height


def test_empty_data_give_a_chart() -> None:
    for drawn in (
        interval_bars([], title="none"),
        grouped_bars([], {}, title="none"),
        stacked_bars([], (), title="none"),
        label_matrix([], [], (), title="none"),
        number_matrix([], [], [], title="none"),
        curves([], title="none", x="x", y="y"),
        scatter([], title="none", x="x", y="y"),
    ):
        etree.fromstring(drawn)


def test_links_lead_within_the_page_only() -> None:
    with pytest.raises(ValueError, match="within its page"):
        label_matrix(["a", "b"], [["", ""], ["", ""]], LABELS, title="t", links={(0, 1): "javascript:alert(1)"})


def test_bars_say_value_and_interval() -> None:
    texts = [node.text for node in etree.fromstring(_bars("one", 760)).iter(f"{SVG}text")]
    assert {"50.0%", "(25.0–75.0%)", "no value"} <= set(texts)


def test_abbreviations_tell_labels_apart() -> None:
    assert list(abbreviations(LABELS).values()) == ["Abs", "Cons", "Com", "Div", "Cont"]


def test_tones_run_from_neutral_to_strongest() -> None:
    assert [tone_of(place, 5) for place in range(5)] == [0, 1, 2, 3, 4]
    for count in range(2, 12):
        tones = [tone_of(place, count) for place in range(count)]
        assert tones == sorted(tones)
        assert tones[0] == 0
        assert tones[-1] == 4


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.2, 0.6), (0, 37), (5, 5), (0, 1e-6), (0, 123456)])
def test_ticks_span_the_data(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert marks[0] <= low
    assert marks[-1] >= high
    assert 2 <= len(marks) <= 9


def test_ticks_of_counts_are_whole() -> None:
    assert ticks(0, 2, 6, whole=True) == [0, 1, 2]


def test_wrapped_text_fits_and_says_when_it_is_cut() -> None:
    lines = wrap("bm25 + dense > rerank@100 with a very long retriever line indeed", 120)
    assert len(lines) == 2
    assert lines[-1].endswith("…")
    assert all(text_width(line) <= 121 for line in lines)
    assert wrap("W" * 500, 100, lines=1)[0].endswith("…")


def test_coordinates_are_short() -> None:
    assert [num(value) for value in (1.0, 1.25, -0.01, 3.04)] == ["1", "1.2", "0", "3"]
