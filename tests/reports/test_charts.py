from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from lxml import etree

from hoofbeat.reports.charts import (
    NARROW,
    Bar,
    CountBar,
    Curve,
    Dots,
    FunnelBar,
    Shade,
    Strip,
    count_bars,
    curves,
    funnel_bars,
    grouped_bars,
    interval_bars,
    label_strips,
    number_matrix,
    pair_matrix,
    scatter,
    shade_rows,
    sheet,
    stacked_bars,
    standalone,
    year_columns,
)
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.heatmaps import abbreviations
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


def _sources(name: str, width: int) -> str:
    cells = {(0, 1): Shade(value=0.4, tip="2 of 5"), (0, 2): Shade(value=None), (1, 2): Shade(value=1.0, few=True)}
    return pair_matrix([name, "b", "c"], cells, title=name, links={(0, 1): "#p1"}, width=width)


def _rows(name: str, width: int) -> str:
    cells = [[Shade(value=0.2), Shade(value=None)], [Shade(value=1.0), Shade(value=0.0)]]
    return shade_rows([name, "b"], ["x", name], cells, title=name, width=width)


def _strips(name: str, width: int) -> str:
    rows = [
        Strip(name=name, cells=("Absent", "Contradictory", "?"), link="#q1"),
        Strip(name="b", cells=("", *LABELS[1:3])),
    ]
    return label_strips(rows, ["one", name, "three"], LABELS, title=name, width=width)


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


def _counts(name: str, width: int) -> str:
    tallies = [
        CountBar(name, 7),
        CountBar("none", 0),
        CountBar("12 more", 900, rest=True),
        CountBar("unknown", 2, quiet=True),
    ]
    return count_bars(tallies, total=909, title=name, width=width)


def _funnel(name: str, width: int) -> str:
    stages = [
        FunnelBar(name, 1500, 1499),
        FunnelBar("second", 1499, 20),
        FunnelBar("third", 20, 20),
        FunnelBar("all go", 20, 0),
    ]
    return funnel_bars(stages, title=name, width=width)


def _years(name: str, width: int) -> str:
    return year_columns({1999: 4, 2003: 1000, 2004: 70}, unknown=3, title=name, width=width)


def _sheet(name: str, width: int) -> str:
    return sheet([(name, _counts(name, width)), ("", _years(name, width))], title=name, width=width)


CHARTS: list[Callable[[str, int], str]] = [
    _bars,
    _grouped,
    _stacked,
    _sources,
    _rows,
    _strips,
    _numbers,
    _curves,
    _scatter,
    _counts,
    _funnel,
    _years,
    _sheet,
]


@pytest.mark.parametrize("draw", CHARTS)
@pytest.mark.parametrize("width", [760, NARROW])
def test_charts_are_well_formed_named_and_scale(draw: Callable[[str, int], str], width: int) -> None:
    drawn = draw("a name", width)
    root = etree.fromstring(drawn)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == ("group" if draw in (_sources, _strips, _sheet) else "img")
    assert root.get("viewBox", "").startswith("0 0 ")
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == "a name"
    assert root.find(f".//{SVG}desc") is not None
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
        pair_matrix([], {}, title="none"),
        shade_rows([], [], [], title="none"),
        label_strips([], [], (), title="none"),
        number_matrix([], [], [], title="none"),
        curves([], title="none", x="x", y="y"),
        scatter([], title="none", x="x", y="y"),
        count_bars([], total=0, title="none"),
        funnel_bars([], title="none"),
        funnel_bars([FunnelBar("nothing came", 0, 0)], title="none"),
        year_columns({}, title="none"),
        year_columns({}, unknown=4, title="none"),
        sheet([], title="none"),
    ):
        etree.fromstring(drawn)


def test_links_lead_within_the_page_only() -> None:
    with pytest.raises(ValueError, match="within its page"):
        pair_matrix(["a", "b"], {}, title="t", links={(0, 1): "javascript:alert(1)"})


def test_bars_say_value_and_interval() -> None:
    texts = [node.text for node in etree.fromstring(_bars("one", 760)).iter(f"{SVG}text")]
    assert {"50.0%", "(25.0–75.0%)", "no value"} <= set(texts)


def _rects(drawn: str, tone: str) -> list[tuple[float, float]]:
    """Where bars of a colour begin and how long they are, without the small squares of legends."""
    found = etree.fromstring(drawn).iter(f"{SVG}rect")
    return [
        (float(node.get("x", 0)), float(node.get("width", 0)))
        for node in found
        if node.get("class") == tone and node.get("rx") != "2"
    ]


@pytest.mark.parametrize("width", [760, NARROW])
def test_a_funnel_narrows_on_one_scale(width: int) -> None:
    drawn = funnel_bars(
        [FunnelBar("a", 100, 80), FunnelBar("b", 80, 80), FunnelBar("c", 80, 20)], title="t", width=width
    )
    kept, gone = _rects(drawn, "s1"), _rects(drawn, "s2")
    ends = [x + size for x, size in gone]
    whole = ends[0] - kept[0][0]
    assert kept[1][1] == pytest.approx(0.8 * whole, abs=1.5)
    assert ends[1] - kept[2][0] == pytest.approx(0.8 * whole, abs=1.5)
    assert gone[1][1] == pytest.approx(0.6 * whole, abs=1.5)
    assert ends[0] == max(x + size for x, size in [*kept, *gone])


def test_a_single_rejection_can_be_seen() -> None:
    drawn = funnel_bars([FunnelBar("a", 1_000_000, 999_999), FunnelBar("b", 999_999, 1)], title="t")
    assert min(size for _, size in [*_rects(drawn, "s1"), *_rects(drawn, "s2")]) >= 1.5


def test_the_rest_has_no_bar_and_does_not_set_the_scale() -> None:
    drawn = count_bars([CountBar("a", 10), CountBar("300 more", 990, rest=True)], total=1000, title="t")
    assert len(_rects(drawn, "bar")) == 1
    assert _rects(drawn, "bar")[0][1] > 400
    texts = [node.text for node in etree.fromstring(drawn).iter(f"{SVG}text")]
    assert {"990", "99.0%", "1.0%"} <= set(texts)


def test_a_small_share_is_not_written_as_none() -> None:
    drawn = count_bars([CountBar("a", 1), CountBar("b", 0)], total=100_000, title="t")
    texts = [node.text for node in etree.fromstring(drawn).iter(f"{SVG}text")]
    assert {"< 0.1%", "0.0%"} <= set(texts)


def test_years_stand_in_order_with_gaps() -> None:
    drawn = year_columns({2004: 1, 2001: 2, 2002: 3}, unknown=5, title="t")
    places = {node.text: float(node.get("x", 0)) for node in etree.fromstring(drawn).iter(f"{SVG}text")}
    assert places["2001"] < places["2002"] < places["2003"] < places["2004"] < places["unknown"]
    assert places["2004"] - places["2002"] == pytest.approx(2 * (places["2002"] - places["2001"]), abs=0.3)
    assert len(_rects(drawn, "bar")) == 3
    assert len(_rects(drawn, "quiet")) == 1


@pytest.mark.parametrize("width", [760, NARROW])
def test_many_years_keep_their_labels_apart(width: int) -> None:
    for years in ({year: year - 1900 for year in range(1950, 2026)}, {1800: 1, 1901: 2, 2024: 3}):
        root = etree.fromstring(year_columns(years, unknown=12, title="t", width=width))
        axis = [node for node in root.iter(f"{SVG}text") if node.get("y") == "185"]
        spans = sorted(
            (float(n.get("x", 0)) - text_width(n.text or "", 12) / 2, text_width(n.text or "", 12)) for n in axis
        )
        assert all(x + size <= after + 0.1 for (x, size), (after, _) in pairwise(spans))
        assert spans[0][0] >= 0
        assert sum(spans[-1]) <= width


def test_a_sheet_holds_its_charts_below_each_other() -> None:
    one, two = (count_bars([CountBar(name, 1)], total=1, title=name) for name in "ab")
    root = etree.fromstring(sheet([("first", one), ("second", two)], title="t"))
    inner = root.findall(f"{SVG}svg")
    assert [node.get("aria-label") for node in inner] == ["a", "b"]
    tops = [float(node.get("y", 0)) for node in inner]
    assert tops[0] + float(inner[0].get("height", 0)) < tops[1]
    assert tops[1] + float(inner[1].get("height", 0)) < float(root.get("height", 0))
    with pytest.raises(ValueError, match="height"):
        sheet([("first", "<svg></svg>")], title="t")


def test_a_file_of_its_own_brings_ground_and_plain_colours() -> None:
    drawn = standalone(_counts("a", 760))
    style = etree.fromstring(drawn)[0].text or ""
    assert "var(" not in style
    assert "--" not in style
    light, dark, paper = style.split("@media")
    assert "svg.hb .bar { fill: #9fbfd9; }" in light
    assert "svg.hb { background: #ffffff; }" in light
    assert "svg.hb { background: #14181d; }" in dark
    assert "svg.hb { background: #ffffff; }" in paper
    assert "background" not in _counts("a", 760)


def test_abbreviations_tell_labels_apart() -> None:
    assert list(abbreviations(LABELS).values()) == ["Abs", "Cons", "Com", "Div", "Cont"]


def test_tones_run_from_neutral_to_strongest() -> None:
    assert [tone_of(place, 5) for place in range(5)] == [0, 1, 2, 3, 4]
    assert sorted(tone_of(place, 6) for place in range(6)) == [0, 1, 2, 3, 4, 5]
    for count in (*range(2, 6), *range(7, 12)):
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
