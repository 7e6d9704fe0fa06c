"""Files made to do harm are refused quickly and by name; damaged ones are refused readably."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hoofbeat.corpus import read_file
from hoofbeat.corpus.reader import Reader
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document

ARTICLE = "<article><body><p>{}</p></body></article>"


def read(path: Path, content: bytes | str) -> list[Document]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_file(path))


def laughs() -> str:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE article [<!ENTITY l0 "ha">{levels}]>' + ARTICLE.format("&l9;")


HOSTILE = {
    "billion laughs": laughs(),
    "billion laughs in an attribute": laughs().replace("<p>&l9;", "<p id='&l9;'>"),
    "external entity": '<!DOCTYPE article [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + ARTICLE.format("&x;"),
    "quadratic blow-up": f'<!DOCTYPE article [<!ENTITY x "{"a" * 50_000}">]>' + ARTICLE.format("&x;" * 20_000),
    "many small entities": f'<!DOCTYPE article [<!ENTITY x "{"a" * 250}">]>' + ARTICLE.format("&x;" * 20_000),
    "deep nesting": "<article>" + "<sec>" * 100_000 + "</sec>" * 100_000 + "</article>",
    "nesting below the parser's limit": ARTICLE.format("<italic>" * 200 + "x" + "</italic>" * 200),
    "huge text node": ARTICLE.format("x" * 11_000_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_xml_is_refused(tmp_path: Path, name: str) -> None:
    began = time.process_time()
    with pytest.raises(HostileInputError) as caught:
        read(tmp_path / "bomb.xml", HOSTILE[name])
    assert time.process_time() - began < 5
    assert "bomb.xml" in str(caught.value.where)
    assert "root:" not in str(caught.value)


def test_parameter_entities_load_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text('<!ENTITY leaked "SECRET">')
    text = f'<!DOCTYPE article [<!ENTITY % p SYSTEM "{secret.as_uri()}"> %p;]>' + ARTICLE.format("a &leaked; b")
    try:
        documents = read(tmp_path / "a.xml", text)
    except InputError:
        return
    assert "SECRET" not in documents[0].text


@pytest.mark.parametrize(
    "prefix",
    ["", '<!DOCTYPE article PUBLIC "-//NLM//DTD" "http://127.0.0.1:9/journal.dtd">', '<?xml version="1.0"?>'],
)
def test_named_entities_of_a_dtd_are_read_without_it(tmp_path: Path, prefix: str) -> None:
    text = prefix + ARTICLE.format("5&nbsp;mg &alpha;<italic>&beta;</italic>&mdash; &amp; &unknown; <![CDATA[&beta;]]>")
    assert read(tmp_path / "a.xml", text)[0].text == "5 mg αβ— & &unknown; &beta;"


def test_short_declared_entities_are_read(tmp_path: Path) -> None:
    text = '<!DOCTYPE article [<!ENTITY co "CO&#x2082;"><!ENTITY pic SYSTEM "x.gif" NDATA gif>]>'
    assert read(tmp_path / "a.xml", text + ARTICLE.format("a &co; b"))[0].text == "a CO₂ b"


def test_wide_table_spans_stay_small(tmp_path: Path) -> None:
    cell = "<table><tr><td colspan='999999999' rowspan='999999999'>x</td></tr><tr><td>y</td></tr></table>"
    table = read(tmp_path / "a.xml", f"<article><body>{cell}</body></article>")[0].tables[0]
    assert max(map(len, table.rows)) < 200


@pytest.mark.parametrize("name", ["a.xml", "a.md", "a.txt"])
def test_nul_bytes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="NUL"):
        read(tmp_path / name, b"<article>\0</article>")


@pytest.mark.parametrize("name", ["a.xml", "a.md", "a.txt", "a.pdf"])
@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
def test_empty_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(InputError, match="empty"):
        read(tmp_path / name, content)


def test_broken_xml_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not well-formed XML.*line 2") as caught:
        read(tmp_path / "a.xml", "<article>\n<body></article>")
    assert not isinstance(caught.value, HostileInputError)


def test_wrong_encodings_are_read_with_a_notice(tmp_path: Path) -> None:
    for name, content in {"a.xml": ARTICLE.format("38 °C – é"), "a.md": "38 °C – é", "a.txt": "38 °C – é."}.items():
        document = read(tmp_path / name, content.encode("cp1252"))[0]
        assert "38 °C – é" in document.text
        assert "Windows-1252" in document.notices[0]
        assert read(tmp_path / name, b"\xef\xbb\xbf" + content.encode())[0].notices == ()


def test_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reader, "max_bytes", 10)
    with pytest.raises(HostileInputError, match="too large"):
        read(tmp_path / "a.md", "more than ten bytes")


def test_unknown_suffix_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "a.docx", tmp_path / "none.md", tmp_path / "b.md"):
        (tmp_path / "b.md").mkdir(exist_ok=True)
        with pytest.raises(InputError):
            list(read_file(path))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "![" * 100_000,
        "*a " * 100_000,
        "_a " * 100_000,
        "`" * 100_000,
        "# " + " #" * 100_000,
        "|" * 200_000,
        "[](" * 70_000,
        "<a " * 70_000,
        " " * 200_000 + "x",
        "- " * 100_000,
        "> " * 100_000,
        "`a``b" * 40_000,
    ],
)
def test_markdown_takes_time_in_proportion(tmp_path: Path, text: str) -> None:
    began = time.process_time()
    read(tmp_path / "a.md", text + "\n\nend")
    assert time.process_time() - began < 5


_STRAY = [*(chr(n) for n in range(1, 128) if not chr(n).isprintable()), "\ufffe", "\uffff", "\u2028"]


@pytest.mark.parametrize("stray", _STRAY, ids=lambda each: f"U+{ord(each):04X}")
def test_a_stray_control_character_in_html_is_left_out(tmp_path: Path, stray: str) -> None:
    """In text, names, attributes, comments and as a reference; what is a line break there stays one."""
    code = ord(stray)
    page = (
        f"<html><head><title>A{stray} case</title></head><body><h1 id='{stray}a'>Re{stray}port</h1>"
        f"<p class='{stray}'>The{stray} patient &#{code};came &#x{code:x}; back.</p><!--{stray}--><im{stray}g>"
        f"<table><tr><td>Day{stray} 1</td><td>12{stray}</td></tr></table></body></html>"
    )
    (document,) = read(tmp_path / "case.html", page)
    assert "patient" in document.text
    text = "".join(
        (document.title, document.text, *(cell for table in document.tables for row in table.rows for cell in row))
    )
    assert not [each for each in text if not each.isprintable() and each not in "\n\t"]


@pytest.mark.parametrize("reference", ["&#0;", "&#xD800;", "&#xDFFF;", "&#x110000;", "&#99999999999999999999;", "&#x;"])
def test_a_reference_to_no_character_in_html_is_survived(tmp_path: Path, reference: str) -> None:
    (document,) = read(tmp_path / "case.html", f"<html><body><p>The patient{reference} came back.</p></body></html>")
    assert "patient" in document.text
    document.text.encode()
