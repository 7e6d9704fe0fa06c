"""Files made to do harm are refused quickly and by name; damaged ones are refused readably."""

from __future__ import annotations

import copy
import random
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from hoofbeat.corpus import import_corpus, read_file
from hoofbeat.corpus.parsers import archive_members, office_package
from hoofbeat.corpus.reader import Reader
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets
from tests.corpus.office_files import DECLARED, packed, paragraph, relations, word_parts

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


@pytest.mark.parametrize("name", ["a.xml", "a.md", "a.txt", "a.pdf", "a.docx", "a.pptx"])
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


@pytest.mark.parametrize("text", [b"<!--", b"<![CDATA[", b"<!--x--"])
def test_what_never_ends_in_a_file_of_a_wrong_encoding_takes_time_in_proportion(tmp_path: Path, text: bytes) -> None:
    began = time.process_time()
    with pytest.raises(InputError, match="not well-formed") as caught:
        read(tmp_path / "a.xml", b"<?\xf8ml" + text * (1_000_000 // len(text)))
    assert time.process_time() - began < 5
    assert len(caught.value.what) < 300


def test_a_formula_with_many_beginnings_takes_time_in_proportion(tmp_path: Path) -> None:
    formula = r"\begin{document}" * 60_000
    began = time.process_time()
    read(tmp_path / "a.xml", ARTICLE.format(f"<tex-math>{formula}</tex-math>"))
    assert time.process_time() - began < 5


def test_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reader, "max_bytes", 10)
    with pytest.raises(HostileInputError, match="too large"):
        read(tmp_path / "a.md", "more than ten bytes")


def test_unknown_suffix_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "a.xyz", tmp_path / "none.md", tmp_path / "b.md"):
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
        "<b style>" * 100_000,
        "<b style='x'>a" * 60_000,
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


def word_xml(body: str, before: str = "") -> str:
    return f"{before}<w:document {DECLARED}><w:body>{body}</w:body></w:document>"


def _entities(document: str) -> str:
    return laughs().partition("<article>")[0].replace("DOCTYPE article", "DOCTYPE w:document") + document


HOSTILE_WORD: dict[str, str] = {
    "billion laughs": _entities(word_xml(paragraph("&l9;"))),
    "billion laughs in an attribute": _entities(word_xml("<w:p w:rsidR='&l9;'/>")),
    "external entity": word_xml(paragraph("&x;"), '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>'),
    "a document type alone": word_xml(paragraph("Words."), '<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd">'),
    "deep nesting": word_xml("<w:sdt><w:sdtContent>" * 5_000 + "</w:sdtContent></w:sdt>" * 5_000),
    "tables in tables": word_xml("<w:tbl><w:tr><w:tc>" * 60 + "x" + "</w:tc></w:tr></w:tbl>" * 60),
    "huge text": word_xml(paragraph("x" * 11_000_000)),
}


@pytest.mark.parametrize("name", HOSTILE_WORD)
def test_hostile_xml_in_word_files_is_refused(tmp_path: Path, name: str) -> None:
    began = time.process_time()
    path = packed(tmp_path / "bomb.docx", word_parts("") | {"word/document.xml": HOSTILE_WORD[name]})
    with pytest.raises(HostileInputError) as caught:
        list(read_file(path))
    assert time.process_time() - began < 5
    assert "bomb.docx" in str(caught.value.where)
    assert "root:" not in str(caught.value)


@pytest.mark.parametrize("member", ["../evil.xml", "/etc/evil.xml", "C:/evil.xml", "word/../../evil", "a\\..\\..\\b"])
@pytest.mark.parametrize("suffix", [".docx", ".pptx"])
def test_members_that_lead_outside_office_files_are_refused(tmp_path: Path, member: str, suffix: str) -> None:
    path = packed(tmp_path / f"a{suffix}", {**word_parts(paragraph("Words.")), member: "x"})
    with pytest.raises(HostileInputError, match=r"absolute name|leads outside"):
        list(read_file(path))


def test_bombs_in_office_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = b" " * 30_000_000
    path = packed(tmp_path / "a.docx", word_parts(paragraph("Words.")) | {"word/styles.xml": zeros})
    monkeypatch.setattr(archive_members, "FREE_GROWTH", 1_000_000)
    with pytest.raises(HostileInputError, match="unpacks to more than"):
        list(read_file(path))
    monkeypatch.undo()
    monkeypatch.setattr(office_package, "MAX_XML", 1_000_000)
    with pytest.raises(HostileInputError, match="too large"):
        list(read_file(path))
    monkeypatch.undo()
    monkeypatch.setattr(office_package, "MAX_PARTS", 3)
    with pytest.raises(HostileInputError, match="more than 3 parts"):
        list(read_file(path))


def test_office_members_that_are_links_or_twins_are_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.docx", word_parts(paragraph("Words.")))
    with zipfile.ZipFile(path, "a") as package:
        package.writestr("WORD/Document.xml", "<x/>")
    with pytest.raises(HostileInputError, match="same name"):
        list(read_file(path))
    path = packed(tmp_path / "b.docx", word_parts(paragraph("Words.")))
    with zipfile.ZipFile(path, "a") as package:
        info = zipfile.ZipInfo("word/media/image1.png")
        info.external_attr = 0o120777 << 16
        package.writestr(info, "/etc/passwd")
    with pytest.raises(HostileInputError, match="link"):
        list(read_file(path))


def test_office_files_fetch_and_read_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "secret.xml").write_text(f"<w:styles {DECLARED}>SECRET</w:styles>")
    links = {
        "rId7": ("image", "http://127.0.0.1:9/track.png"),
        "rIdS": ("styles", "../../secret.xml"),
        "rIdN": ("numbering", (tmp_path / "secret.xml").as_uri()),
        "rId8": ("attachedTemplate", "http://127.0.0.1:9/evil.dotm"),
    }
    picture = "<w:p><w:r><w:drawing><wp:inline><a:blip r:link='rId7'/></wp:inline></w:drawing></w:r></w:p>"
    path = packed(tmp_path / "a.docx", word_parts(paragraph("Words.") + picture, links=links))
    artefact = import_corpus([path], tmp_path / "c")
    text = artefact.file("documents.jsonl").read_text()
    assert "SECRET" not in text
    assert "not in the file: 1" in text


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (OLE, "old Office"),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted with a password"),
        (b"{\\rtf1 Words}", "but RTF text"),
        (b"<html><body>Words</body></html>", "but HTML or XML"),
        (b"PK\x03\x04 cut off", "broken or cut off"),
        (b"just words", "broken, or another format"),
    ],
)
@pytest.mark.parametrize("name", ["a.docx", "a.pptx"])
def test_files_that_only_have_the_name_of_office_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path / name, content)
    assert caught.value.fix


def _without_main(parts: dict[str, str | bytes]) -> None:
    del parts["word/document.xml"]


def _cut(parts: dict[str, str | bytes]) -> None:
    parts["word/document.xml"] = str(parts["word/document.xml"])[:-40]


def _sheet(parts: dict[str, str | bytes]) -> None:
    parts["word/document.xml"] = "<workbook/>"


def _loop(parts: dict[str, str | bytes]) -> None:
    parts["_rels/.rels"] = relations({"rId1": ("officeDocument", "_rels/.rels")})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_main, "not a Word document"),
        (_cut, "not well-formed XML.* in its part word/document.xml"),
        (_sheet, "not a Word document"),
        (_loop, "not a Word document"),
    ],
)
def test_broken_word_files_are_named(
    tmp_path: Path, change: Callable[[dict[str, str | bytes]], None], message: str
) -> None:
    parts = word_parts(paragraph("Words."))
    change(parts)
    with pytest.raises(InputError, match=message) as caught:
        list(read_file(packed(tmp_path / "a.docx", parts)))
    assert not isinstance(caught.value, HostileInputError)


def test_word_files_cut_anywhere_are_refused_readably(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.docx", word_parts(paragraph("Words. " * 200)))
    data = path.read_bytes()
    for place in range(1, len(data), max(1, len(data) // 40)):
        with pytest.raises(InputError):
            read(path, data[:place])
    for place in range(0, len(data), max(1, len(data) // 150)):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        try:
            read(path, bytes(changed))
        except InputError:
            continue


def test_absurd_numbers_in_word_files_cost_nothing(tmp_path: Path) -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:start w:val="999999999"/>'
        '<w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1%9%1"/></w:lvl>'
        '<w:lvl w:ilvl="99999"><w:start w:val="x"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )
    letters = numbering.replace("upperRoman", "lowerLetter")
    body = "".join(
        paragraph("x", f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="1"/></w:numPr>')
        for depth in ("0", "99999999999999999999", "-5", "8")
    )
    for each in (numbering, letters):
        (document,) = read_file(packed(tmp_path / "a.docx", word_parts(body, numbering=each)))
        assert len(document.text) < 500


def test_word_files_with_elements_lost_moved_or_changed_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever a damaged writer leaves out or repeats, a file gives a sound document or a reason."""
    mark = "<w:r><w:fldChar w:fldCharType='{}'/></w:r>"
    body = (
        "<w:p><w:pPr><w:outlineLvl w:val='0'/><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>"
        "<w:r><w:t>One</w:t></w:r></w:p>"
        f"<w:p>{mark.format('begin')}{mark.format('separate')}<w:r><w:t>x</w:t></w:r>{mark.format('end')}"
        "<w:del><w:r/></w:del></w:p><w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>"
        f"{paragraph('a')}</w:tc><w:tc>{paragraph('b')}</w:tc></w:tr></w:tbl>"
        f"<w:sdt><w:sdtPr/><w:sdtContent>{paragraph('c')}</w:sdtContent></w:sdt>"
        "<w:p><w:r><w:drawing><wp:extent cx='9' cy='9'/><wp:docPr descr='d'/><a:blip r:embed='i'/>"
        f"<w:txbxContent>{paragraph('e')}</w:txbxContent></w:drawing></w:r>"
        "<w:r><w:footnoteReference w:id='1'/></w:r></w:p>"
    )
    parts = word_parts(body)
    chance = random.Random(7)
    read_whole = 0
    for _ in range(120):
        root = etree.fromstring(str(parts["word/document.xml"]).encode())
        nodes = list(root.iter())
        for node in chance.sample(nodes[2:], 3):
            parent, other = node.getparent(), chance.choice(nodes)
            if chance.random() < 0.4 and parent is not None:
                parent.remove(node)
            elif chance.random() < 0.5:
                node.append(copy.deepcopy(other))
            for name in list(node.attrib):
                node.set(name, chance.choice(["", "-1", "99999999999", "x"]))
        path = packed(tmp_path / "a.docx", parts | {"word/document.xml": etree.tostring(root)})
        try:
            for document in read_file(path):
                check_offsets(document)
                read_whole += 1
        except InputError:
            continue
    assert read_whole > 60
