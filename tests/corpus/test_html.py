"""HTML: the words of a page with their structure, without the page around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.parsers.html_page import read_html
from hoofbeat.errors import HostileInputError
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets

PAGE = """<!DOCTYPE html><html lang="en"><head><title>Living well | Elm</title><meta charset="utf-8">
<meta property="og:site_name" content="Elm Centre"><meta name="dc.date" content="2021-04-03">
<link rel="license" href="https://creativecommons.org/licenses/by/4.0/"><style>p {color: red}</style></head>
<body><nav><a href="/">Home</a></nav><header>Site header</header>
<main><h1>Living <em>well</em></h1><p>Take <b>2&nbsp;mg</b><br>at noon &amp; H<sub>2</sub>O.<script>evil()</script></p>
loose words<div hidden>Hidden one</div><div style="display: none">Hidden two</div><span aria-hidden="true">x</span>
<h2>Food</h2><ul><li>Fish<ul><li>raw <b>never</b></li></ul> and chips</li><li>Eggs</li></ul>
<ol><li><p>First</p></li><li>Second</li></ol>
<figure id="f1"><img src="figures/kidney.png?x=1"><figcaption>Figure 1. Where it lies</figcaption></figure>
<h2>Discussion</h2><table><caption>Table 1. Doses</caption><tr><th>Drug</th><th>Dose</th></tr>
<tr><td>A</td><td>5<br>mg</td></tr></table><table role="presentation"><tr><td><p>Laid out</p></td></tr></table>
<noscript>No script</noscript><form><button>Send</button></form><!-- comment --></main>
<footer>Imprint</footer></body></html>"""


def page(content: str | bytes) -> Document:
    document = next(read_html(content.encode() if isinstance(content, str) else content, "stem"))
    check_offsets(document)
    return document


def test_a_page() -> None:
    document = page(PAGE)
    assert document.text == (
        "Living well\n\nTake 2 mg at noon & H2O.\n\nloose words\n\n"
        "Food\n\n- Fish and chips\n  - raw never\n- Eggs\n\n1. First\n2. Second\n\nFigure 1. Where it lies\n\n"
        "Discussion\n\nTable 1. Doses\nDrug | Dose\nA | 5 mg\n\nLaid out"
    )
    assert [(each.heading, each.level) for each in document.sections] == [
        ("Living well", 1),
        ("Food", 2),
        ("Discussion", 2),
    ]
    assert document.sections[2].role == "discussion"
    assert (document.title, document.licence) == ("Living well", "https://creativecommons.org/licenses/by/4.0/")
    assert document.facets == {"institution": "Elm Centre", "date": "2021-04-03", "year": "2021", "language": "en"}
    assert (document.figures[0].label, document.figures[0].files) == ("Figure 1", ("figures/kidney.png",))
    assert document.tables[0].rows == (("Drug", "Dose"), ("A", "5 mg"))


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="utf-8">', "utf-8"),
        ("", "utf-8"),
        ("", "utf-8-sig"),
        ('<meta charset="iso-8859-1">', "cp1252"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">', "cp1252"),
        ('<meta charset="shift_jis">', "shift_jis"),
        ("", "utf-16"),
    ],
)
def test_charsets(head: str, encoding: str) -> None:
    words = "38 °C – é" if encoding != "shift_jis" else "日本語"
    document = page(f"<html><head>{head}</head><body><p>{words}</p></body></html>".encode(encoding))
    assert (document.text, document.notices) == (words, ())


def test_a_wrong_charset_is_said() -> None:
    document = page(b'<html><head><meta charset="utf-8"></head><body><p>38 \xb0C</p></body></html>')
    assert document.text == "38 °C"
    assert "Windows-1252" in document.notices[0]


def test_pages_without_structure() -> None:
    assert page("just words").text == "just words"
    assert page("<p>one<p>two<h3>head").text == "one\n\ntwo\n\nhead"
    assert page("<body><article><header><h1>T</h1></header>x</article><aside>ad</aside></body>").text == "T\n\nx"
    assert page("<p>a</p><img src=x.png alt='words'><p>b &lt;tag&gt; &#x41;</p>").text == "a\n\nb <tag> A"


def test_images_of_a_page_come_along(tmp_path: Path) -> None:
    (tmp_path / "in" / "figures").mkdir(parents=True)
    (tmp_path / "in" / "figures" / "kidney.png").write_bytes(b"\x89PNG")
    (tmp_path / "in" / "a.html").write_text(PAGE)
    artefact = import_corpus([tmp_path / "in"], tmp_path / "c")
    assert Corpus(artefact).get("a").figures[0].files == ("images/a/kidney.png",)


@pytest.mark.parametrize("tag", ["div", "span", "ul><li", "table><tr><td", "b"])
def test_deep_nesting_is_refused(tag: str) -> None:
    with pytest.raises(HostileInputError, match="hostile"):
        page("<html><body>" + f"<{tag}>" * 50_000 + "x")


@pytest.mark.parametrize(
    "content",
    [
        "<" * 300_000,
        "<p " * 100_000,
        "&" * 300_000,
        "<ul>" + "<li><ul></ul>" * 50_000,
        "<td>" * 100_000,
        "<!--" * 100_000,
    ],
)
def test_odd_pages_are_read(content: str) -> None:
    assert page(f"<html><body><p>begin</p>{content}</body></html>").text.startswith("begin")


def test_nothing_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("SECRET")
    address = (tmp_path / "secret.txt").as_uri()
    content = f'<!DOCTYPE html [<!ENTITY x SYSTEM "{address}">]><p>&x;<object data="{address}"></object>'
    assert "SECRET" not in page(f'{content}<iframe src="{address}"></iframe>words').text


def test_raised_numbers_are_exponents_and_marks_of_notes_stay() -> None:
    page = "<p>50 x 10<sup>9</sup>/L, area 2 m<sup>2</sup>, weeks<sup>3</sup>.</p><ul><li>10<sup>6</sup></li></ul>"
    (document,) = read_html(page.encode(), "page")
    assert "10⁹/L, area 2 m², weeks3." in document.text
    assert "- 10⁶" in document.text


@pytest.mark.parametrize("stray", ["\x1c", "\x0b", "&#28;", "&#x1;", "\ufffe"])
def test_a_stray_control_character_is_no_error(stray: str) -> None:
    text = page(f"<p>Keep{stray} it</p>{stray}<nav>Menu</nav>{stray}dry.<script>x</script>{stray} Always.").text
    assert "dry." in text
    assert "Always." in text
    assert "Menu" not in text
