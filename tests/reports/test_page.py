from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from itertools import pairwise

import pytest

from hoofbeat.reports.charts import Bar, interval_bars
from hoofbeat.reports.model import (
    AnswerView,
    Block,
    Card,
    Chart,
    Columns,
    Details,
    Entry,
    GridView,
    Heading,
    JudgmentView,
    Lead,
    Notice,
    OptionView,
    PairView,
    PassageView,
    QuestionView,
    Report,
    SideView,
    Text,
    TraceView,
    Viewer,
    VoteView,
)
from hoofbeat.reports.page import to_html
from hoofbeat.reports.tables import Column, Table, to_csv
from hoofbeat.reports.text_formats import to_markdown
from tests.reports.examples import HOSTILE
from tests.reports.parsing import parsed


def page_of(text: str, number: float = 0.5) -> Report:
    """A page with every block, all saying `text`."""
    table = Table(
        name="t",
        caption=text,
        n=2,
        unit=text,
        columns=(Column(text), Column("share", "share"), Column("range", "share"), Column("with", "number")),
        rows=((text, number, (0.1, 0.2), (1.0, 0.5, 1.5)), ("=1+1", None, None, None)),
        links=("#entry", "javascript:alert(1)"),
        note=text,
    )
    view = QuestionView(
        text=text, context=text, options=(text,), gold=text, evidence=(PassageView(source=text, text=text),)
    )
    answer = AnswerView(
        system=text,
        verdict="wrong",
        verdict_text=text,
        text=text,
        reasoning=text,
        options=(OptionView(text=text, chosen=True, gold=True, share=0.4, figure=text),),
        reading=text,
        judgments=(
            JudgmentView(
                aspect=text, label=text, judge=text, reasoning=text, votes=(VoteView(judge=text, label=text),) * 2
            ),
        ),
        passages=(PassageView(source=text, text=text, marks=((0, 3),)),),
        dropped=(text,),
        trace=(TraceView(what=text, text=text, reasoning=text, found=(text,)),),
        warnings=(text,),
        failure=text,
    )
    passage = PassageView(source=text, text=text, marks=((0, 3),), cited=True)
    side = SideView(name=text, text=text, cited=(passage,), others=(passage,), unshown=3, warnings=(text,))
    pair = PairView(a=side, b=side, label=text, tone=4, facts=(text,), reasoning=text)
    grid = GridView(
        title=text, names=(text, "b", "c"), labels=("x", text), cells="ab-", links=((0, "entry"),), marks=((1, text),)
    )
    entry = Entry(
        id="entry", name=text, title=text, marks=((text, "right"),), states=(text,), blocks=(view, answer, pair, grid)
    )
    chart = Chart(name="c", caption=text, wide=interval_bars([Bar(label=text, value=0.4)], title=text), narrow="")
    blocks: tuple[Block, ...] = (
        Heading(text, "one"),
        Heading(text, "two", 3),
        Text(text, label=text),
        Notice(text),
        table,
        Columns((chart, Text(text))),
        Details(text, (Text(text),)),
        Viewer(id="viewer", noun="questions", entries=(entry, Entry(id="e2", name="x", title="y")), left_out=3),
    )
    return Report(
        title=text,
        notice="Research software. Not for clinical use.",
        version="1",
        subtitle=text,
        notes=(text,),
        leads=(Lead(text, "#entry"),),
        cards=(Card(label=text, value=text, detail=text),),
        models=((text, text),),
        blocks=blocks,
    )


def test_policy_names_the_hashes_of_the_style_and_the_script() -> None:
    page = to_html(page_of("plain"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    allowed = policy[1].replace("&#39;", "'")
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed
    for tag in ("style", "script"):
        inline = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert len(inline) == 1
        digest = base64.b64encode(hashlib.sha256(inline[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in allowed


def test_page_needs_nothing_from_outside() -> None:
    tree = parsed(to_html(page_of("plain")))
    assert not tree.xpath("//link | //img | //iframe | //object | //script[@src] | //*[@style]")
    assert all(link.get("href").startswith("#") for link in tree.xpath("//a"))
    assert "@import" not in to_html(page_of("plain"))


def test_every_link_has_a_target_and_every_id_stands_once() -> None:
    tree = parsed(to_html(page_of("plain")))
    ids = tree.xpath("//@id")
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in tree.xpath("//a/@href")} <= set(ids)


def test_hostile_text_is_escaped_everywhere() -> None:
    page = to_html(page_of(HOSTILE))
    tree = parsed(page)
    assert len(tree.xpath("//script")) == 1
    assert len(tree.xpath("//style")) == 1
    assert not tree.xpath("//img")
    assert not [name for node in tree.iter() for name in node.attrib if str(name).startswith("on")]
    assert not any(hidden in page for hidden in "\u202e\u202c\u2066\u2069\x07")
    assert "{{ 7*7 }}" in page
    assert "⟨U+202E⟩" in page


def test_headings_are_in_order() -> None:
    tree = parsed(to_html(page_of("plain")))
    levels = [int(node.tag[1]) for node in tree.xpath("//h1|//h2|//h3|//h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_tables_state_n_and_align_numbers() -> None:
    tree = parsed(to_html(page_of("plain")))
    assert "n = 2" in tree.xpath("string(//main/details/summary)").replace("\xa0", " ")
    assert tree.xpath("//td[@class='num']")[0].text.strip() == "50.0%"
    assert tree.xpath("//td/small")[0].text == "0.500–1.500"


@pytest.mark.parametrize(
    ("n", "unit", "words"),
    [
        (1, "questions", "1 question"),
        (1, "queries", "1 query"),
        (1, "pairs of sources", "1 pair of sources"),
        (2_000, "questions", "2,000 questions"),
    ],
)
def test_one_of_a_unit_is_in_the_singular(n: int, unit: str, words: str) -> None:
    assert Table(name="t", caption="c", n=n, unit=unit, columns=(), rows=()).counted == words


def test_markdown_tells_the_same_and_escapes() -> None:
    text = to_markdown(page_of("plain"), {"c": "charts/c.svg"})
    assert text.startswith("# plain\n")
    assert "| plain | 50.0% | 10.0–20.0% | 1.000 (0.500–1.500) |" in text
    assert "](charts/c.svg)" in text
    hostile = to_markdown(page_of(HOSTILE))
    assert not re.search(r"<(?!/?details)[a-z]", hostile)
    assert "[x](javascript" not in hostile.replace("\\[x\\]", "")
    assert "\u202e" not in hostile


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("# not a heading", r"\# not a heading"),
        ("1. not a list", r"1\. not a list"),
        ("a_b nDCG@10 *x*", r"a_b nDCG@10 \*x\*"),
        ("a | b", r"a \| b"),
        ("_x_", r"\_x\_"),
        ("<b>", "&lt;b&gt;"),
    ],
)
def test_markdown_characters(text: str, escaped: str) -> None:
    report = Report(title="t", notice="n", version="1", blocks=(Text(text),))
    assert to_markdown(report).rstrip().endswith(f"\n\n{escaped}")


def test_csv_is_plain_numbers_and_runs_nothing() -> None:
    table = next(block for block in page_of("x").blocks if isinstance(block, Table))
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[0] == ["x", "share", "range low", "range high", "with", "with low", "with high"]
    assert rows[1] == ["x", "0.5", "0.1", "0.2", "1.0", "0.5", "1.5"]
    assert rows[2][0] == "'=1+1"
    assert rows[2][1:] == [""] * 6


def test_csv_of_hostile_text_stays_one_row() -> None:
    table = Table(name="t", caption="c", n=1, unit="u", columns=(Column("a"),), rows=((f"@{HOSTILE}\n\r\n+2",),))
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert len(rows) == 2
    assert rows[1][0].startswith("'@")


def test_the_same_report_gives_the_same_bytes() -> None:
    assert to_html(page_of("plain")) == to_html(page_of("plain"))
    assert to_markdown(page_of("plain")) == to_markdown(page_of("plain"))
