from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat.errors import InputError
from hoofbeat.records import Answer, Question
from hoofbeat.reports.item_views import answers_viewer
from hoofbeat.reports.lookup import Lookup
from hoofbeat.reports.model import Chart, Entry, Report, Text, Viewer
from hoofbeat.reports.page import to_html, write_html
from hoofbeat.reports.text_formats import to_markdown
from hoofbeat.reports.viewers import codes_of, places_of, viewer_of
from hoofbeat.store.tables import write_jsonl
from tests.reports.parsing import parsed


def data(raw: bytes) -> Any:
    return msgspec.json.decode(zlib.decompress(raw))


def entries(count: int) -> Iterator[Entry]:
    for number in range(count):
        yield Entry(
            id=f"v-q{number + 1}",
            name=f"q{number}",
            title=f"Title {number}",
            outcomes=(("right",), ("wrong", "unscored") if number % 2 else ()),
            values=(("a",) if number % 3 else ("b", "a"),),
            blocks=(Text(f"Body of {number}. " + "z" * 300),),
        )


def viewer(count: int, **more: Any) -> Viewer:
    return viewer_of(
        entries(count),
        id="v",
        noun="questions",
        states=("right", "wrong", "unscored"),
        systems=("one", "two"),
        facets=(("facet", ("a", "b")),),
        **more,
    )


def page(view: Viewer) -> Report:
    return Report(title="t", notice="n", version="1", blocks=(view,))


def test_few_items_stay_plain() -> None:
    made = viewer(10)
    assert made.packed is None
    assert len(made.entries) == made.total == 10


def test_many_items_are_packed_and_none_is_left_out() -> None:
    made = viewer(3000)
    assert made.packed is not None
    assert made.total == 3000
    assert made.left_out == 0
    starts, heads = data(made.packed.heads)
    assert [head[0] for head in heads] == [f"v-q{number}" for number in range(1, 3001)]
    assert len(starts) == len(made.packed.bodies) > 1
    seen = 0
    for start, raw in zip(starts, made.packed.bodies, strict=True):
        texts, bodies = data(raw)
        assert start == seen
        for body in bodies:
            [[head, _, text]] = body
            assert head == "p.prose"
            assert texts[text].startswith(f"Body of {seen}. ")
            seen += 1
    assert seen == 3000


def test_few_but_long_items_are_packed_too() -> None:
    made = viewer(20, characters=2000)
    assert made.packed is not None
    assert made.total == 20
    assert 0 < len(made.entries) < 20


def test_codes_and_places() -> None:
    made = viewer(4)
    assert [codes_of(made, entry) for entry in made.entries] == [[1, 0], [1, 6], [1, 0], [1, 6]]
    assert [places_of(made, entry) for entry in made.entries] == [[[1, 0]], [[0]], [[0]], [[1, 0]]]
    simple = Viewer(id="v", noun="n", entries=(Entry(id="a", name="a", title="a", states=("x", "y")),))
    assert codes_of(simple, simple.entries[0]) == [3]


def test_what_the_script_could_not_build_is_refused() -> None:
    chart = Chart(name="c", caption="c", wide="<svg/>")
    with pytest.raises(TypeError, match="chart"):
        viewer_of([Entry(id="e", name="e", title="e", blocks=(chart,))], id="v", noun="n", most=0)


def test_a_long_page_is_written_in_pieces_with_the_same_bytes(tmp_path: Path) -> None:
    made = viewer(500)
    assert made.packed is not None
    write_html(page(made), tmp_path / "page.html")
    html = to_html(page(made))
    assert (tmp_path / "page.html").read_text("utf-8") == html
    assert html == to_html(page(viewer(500)))
    tree = parsed(html)
    kinds = tree.xpath("//script/@type")
    assert kinds == ["application/octet-stream"] * (1 + len(made.packed.bodies))
    assert len(tree.xpath("//details[@class='entry']")) == len(made.entries) == 25
    assert "first 25 of 500 questions" in html


def test_markdown_says_where_the_rest_is() -> None:
    assert "475 more questions are in `report.html`" in to_markdown(page(viewer(500)))


def answers(count: int) -> tuple[list[Question], list[Answer]]:
    questions = [Question(id=f"q{n}", text=f"Question {n}?") for n in range(count)]
    made = [
        Answer(question=question.id, model=model, condition=condition, text=f"{model} {condition} {question.id}")
        for model in ("m1", "m2")
        for condition in ("closed", "oracle")
        for question in questions
    ]
    return questions, made


def test_answers_read_from_their_table_give_the_same_viewer(tmp_path: Path) -> None:
    questions, made = answers(300)
    write_jsonl(tmp_path / "answers.jsonl", made)
    lookup = Lookup.read(tmp_path / "answers.jsonl", Answer)
    assert lookup.total == 1200
    assert lookup.systems == Lookup.held(made).systems == [
        ("m1", "closed"), ("m1", "oracle"), ("m2", "closed"), ("m2", "oracle")
    ]  # fmt: skip
    assert lookup.of("q7") == [answer for answer in made if answer.question == "q7"]
    assert lookup.of("nowhere") == []
    assert answers_viewer("p", questions, lookup, {}, ()) == answers_viewer("p", questions, made, {}, {})


def test_tables_joined_are_one() -> None:
    _, made = answers(3)
    both = Lookup.joined([Lookup.held(made[:6]), Lookup.held(made[6:])])
    assert both.total == 12
    assert both.systems == Lookup.held(made).systems
    assert both.of("q1") == [answer for answer in made if answer.question == "q1"]


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"question": 3}\n', "utf-8")
    with pytest.raises(InputError, match=r"line 1 of answers\.jsonl can't be read") as raised:
        Lookup.read(path, Answer)
    assert raised.value.where == str(path)
