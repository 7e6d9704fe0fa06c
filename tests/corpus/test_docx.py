"""Word documents: their structure, without what a reader of the printed page does not see."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.corpus.hidden_text import HIDDEN, HiddenText
from hoofbeat.errors import InputError
from hoofbeat.records import Document
from hoofbeat.store.tables import read_jsonl
from tests.corpus.checks import check_offsets
from tests.corpus.office_files import PNG, packed, paragraph, style, styled, word_parts

docx: Any = pytest.importorskip("docx")
image_module: Any = pytest.importorskip("PIL.Image")


def only(path: Path) -> Document:
    (document,) = read_file(path)
    check_offsets(document)
    return document


def raw(folder: Path, body: str, **parts: Any) -> Document:
    return only(packed(folder / "invented.docx", word_parts(body, **parts)))


def picture(width: int = 200) -> io.BytesIO:
    stream = io.BytesIO()
    image_module.new("L", (width, width), 128).save(stream, "PNG")
    stream.seek(0)
    return stream


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    """An invented handbook as Word writes it."""
    word = docx.Document()
    word.core_properties.title = "Living with a new kidney"
    word.core_properties.author = "A. Example (invented)"
    word.core_properties.modified = datetime(2024, 5, 6, tzinfo=UTC)
    word.add_heading("Living with a new kidney", 0)
    word.add_paragraph("An invented handbook of the Elm Centre.")
    word.add_heading("Drugs", 1)
    for text, kind in (("Tacrolimus", "List Bullet"), ("twice a day", "List Bullet 2"), ("Prednisone", "List Bullet")):
        word.add_paragraph(text, style=kind)
    word.add_paragraph("Then:")
    for text in ("Take them at eight.", "Drink water."):
        word.add_paragraph(text, style="List Number")
    word.add_paragraph("Table 1: Doses", style="Caption")
    table = word.add_table(3, 2)
    for row, cells in enumerate((("Drug", "Dose"), ("Tacrolimus", "5 mg"), ("Both", ""))):
        for column, cell in enumerate(cells):
            table.cell(row, column).text = cell
    table.cell(2, 0).merge(table.cell(2, 1))
    word.add_heading("When to call", 2)
    line = word.add_paragraph("Fever above 38 °C, or more than 10")
    line.add_run("9").font.superscript = True
    line.add_run("/L.")
    line.add_run(" SECRET").font.hidden = True
    word.add_picture(picture(), width=docx.shared.Cm(5))
    word.add_paragraph("Figure 1. Where it lies", style="Caption")
    section = word.sections[0]
    section.header.paragraphs[0].text = "Elm Centre, page header"
    section.footer.paragraphs[0].text = "Imprint"
    word.save(tmp_path / "elm.docx")
    return tmp_path / "elm.docx"


def test_a_handbook(handbook: Path) -> None:
    document = only(handbook)
    assert document.text == (
        "Living with a new kidney\n\nAn invented handbook of the Elm Centre.\n\nDrugs\n\n"
        "- Tacrolimus\n  - twice a day\n- Prednisone\n\nThen:\n\n1. Take them at eight.\n2. Drink water.\n\n"
        "Table 1. Doses\nDrug | Dose\nTacrolimus | 5 mg\nBoth |\n\n"
        "When to call\n\nFever above 38 °C, or more than 10⁹/L.\n\nFigure 1. Where it lies"
    )
    assert [(each.heading, each.level) for each in document.sections] == [
        ("Living with a new kidney", 1),
        ("Drugs", 2),
        ("When to call", 3),
    ]
    assert document.title == "Living with a new kidney"
    assert document.facets == {
        "author": "A. Example (invented)",
        "date": "2024-05-06",
        "year": "2024",
        "language": "en-US",
    }
    assert document.tables[0].rows == (("Drug", "Dose"), ("Tacrolimus", "5 mg"), ("Both", ""))
    assert (document.figures[0].label, document.figures[0].caption) == ("Figure 1", "Where it lies")
    assert document.notices == ("left out: hidden text in 1 place",)
    assert document.provenance is not None
    assert document.provenance.reader == "docx/1"


def test_pictures_come_along(handbook: Path, tmp_path: Path) -> None:
    artefact = import_corpus([handbook], tmp_path / "c")
    (figure,) = Corpus(artefact).get("elm").figures
    assert figure.files == ("images/elm/elm-1.png",)
    assert artefact.file(figure.files[0]).read_bytes() == picture().getvalue()


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("heading 1", 1),
        ("Heading 2", 2),
        ("Überschrift 3", 3),
        ("Titre 1", 1),
        ("Título 2", 2),
        ("Titolo 1", 1),
        ("Kop 1", 1),
        ("Rubrik 2", 2),
        ("Nagłówek 1", 1),
        ("Заголовок 1", 1),
        ("标题 1", 1),
        ("見出し 2", 2),
    ],
)
def test_headings_by_the_names_of_styles(tmp_path: Path, name: str, level: int) -> None:
    document = raw(tmp_path, styled("Drugs", "x1") + paragraph("Words."), styles=style("x1", name))
    assert [(each.heading, each.level) for each in document.sections] == [("Drugs", level)]


def test_headings_by_outline_levels_and_inheritance(tmp_path: Path) -> None:
    styles = (
        style("Chapter", "Hospital chapter", '<w:pPr><w:outlineLvl w:val="0"/></w:pPr>')
        + style("Sub", "Hospital sub", '<w:basedOn w:val="Heading2"/>')
        + style("Heading2", "heading 2")
        + style("Loop", "loop", '<w:basedOn w:val="Loop"/>')
        + style("NotOne", "lead", '<w:basedOn w:val="Heading2"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr>')
    )
    body = (
        styled("Chapter one", "Chapter")
        + styled("Part", "Sub")
        + paragraph("Direct", '<w:outlineLvl w:val="2"/>')
        + styled("Words in a loop.", "Loop")
        + styled("Only a lead", "NotOne")
        + styled("Unknown style.", "Nowhere")
    )
    document = raw(tmp_path, body, styles=styles)
    assert [(each.heading, each.level) for each in document.sections] == [
        ("Chapter one", 1),
        ("Part", 2),
        ("Direct", 3),
    ]
    assert document.text.endswith("Words in a loop.\n\nOnly a lead\n\nUnknown style.")


def lists(*levels: tuple[str, str], id: str = "1", abstract: str = "1", override: str = "") -> str:
    """The numbering part for one list: format and text of each level."""
    listed = "".join(
        f'<w:lvl w:ilvl="{place}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for place, (form, text) in enumerate(levels)
    )
    return (
        f'<w:abstractNum w:abstractNumId="{abstract}">{listed}</w:abstractNum>'
        f'<w:num w:numId="{id}"><w:abstractNumId w:val="{abstract}"/>{override}</w:num>'
    )


def numbered(text: str, depth: int = 0, num: str = "1", more: str = "") -> str:
    return paragraph(text, f'{more}<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{num}"/></w:numPr>')


def test_numbers_are_counted_as_word_counts_them(tmp_path: Path) -> None:
    numbering = lists(("decimal", "%1."), ("lowerLetter", "(%2)"), ("lowerRoman", "%1.%3"), ("bullet", "x")) + (
        '<w:num w:numId="2"><w:abstractNumId w:val="1"/>'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>'
    )
    body = (
        "".join(numbered(text, depth) for text, depth in zip("abcdef", (0, 1, 1, 2, 0, 1), strict=True))
        + numbered("g", 3)
        + paragraph("Between.")
        + numbered("h")
        + numbered("i", num="2")
        + numbered("j", num="0")
        + numbered("k", num="99")
    )
    assert raw(tmp_path, body, numbering=numbering).text == (
        "1. a\n  (a) b\n  (b) c\n    1.i d\n2. e\n  (a) f\n      - g\n\nBetween.\n\n3. h\n7. i\n\nj\n\nk"
    )


def test_numbered_headings_keep_their_numbers(tmp_path: Path) -> None:
    styles = style("H1", "heading 1", '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>') + style(
        "H2", "heading 2", '<w:pPr><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr>'
    )
    body = styled("Drugs", "H1") + styled("Doses", "H2") + styled("Timing", "H2") + styled("Food", "H1")
    document = raw(
        tmp_path, body + paragraph("x"), styles=styles, numbering=lists(("decimal", "%1"), ("decimal", "%1.%2"))
    )
    assert [each.heading for each in document.sections] == ["1 Drugs", "1.1 Doses", "1.2 Timing", "2 Food"]


def test_typed_bullets_are_a_list(tmp_path: Path) -> None:
    assert (
        raw(tmp_path, paragraph("• Fish") + paragraph("–\tEggs") + paragraph("Then.")).text == "- Fish\n- Eggs\n\nThen."
    )


def test_what_is_not_on_the_page_is_left_out_and_said(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>Take 5</w:t></w:r><w:del><w:r><w:delText>00</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t xml:space='preserve'> mg</w:t></w:r></w:ins>"
        "<w:moveFrom><w:r><w:t>MOVED</w:t></w:r></w:moveFrom><w:moveTo><w:r><w:t>.</w:t></w:r></w:moveTo>"
        "<w:r><w:commentReference w:id='1'/></w:r></w:p>"
        + paragraph("HIDDEN", run="<w:vanish/>")
        + paragraph("Shown.", run='<w:vanish w:val="0"/>')
        + styled("HIDDEN by its style", "Secret")
        + paragraph("Joined ", "<w:rPr><w:del/></w:rPr>")
        + paragraph("with the next.")
        + "<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>"
        + paragraph("Click here to enter text.")
        + "</w:sdtContent></w:sdt><w:altChunk r:id='rId9'/>"
    )
    comments = {"word/comments.xml": "<w:comments>SECRET</w:comments>"}
    styles = style("Secret", "secret", "<w:rPr><w:vanish/></w:rPr>")
    document = raw(tmp_path, body, styles=styles, more=comments)
    assert document.text == "Take 5 mg.\n\nShown.\n\nJoined with the next."
    assert document.notices == (
        "left out: 2 tracked deletions, 1 comment, 1 embedded document, hidden text in 2 places",
    )


WHITE = '<w:color w:val="FFFFFF"/>'


@pytest.mark.parametrize(
    ("body", "whys"),
    [
        (paragraph("HIDDEN", run="<w:vanish/>"), ["hidden by its format"]),
        (paragraph("HIDDEN", run=WHITE), ["white on white"]),
        (paragraph("HIDDEN", run='<w:sz w:val="2"/>'), ["tiny font"]),
        (paragraph("Shown", run=WHITE + '<w:shd w:fill="000000"/>'), []),
        (paragraph("Shown", "<w:shd w:fill='000000'/>", run=WHITE), []),
        (f"<w:tbl><w:tr><w:tc>{paragraph('Shown', run=WHITE)}</w:tc></w:tr></w:tbl>", []),
        (paragraph("Shown", run='<w:sz w:val="12"/><w:color w:val="FEFEF0"/>'), []),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_what_nobody_sees_is_listed_and_kept_on_request(tmp_path: Path, body: str, whys: list[str], keep: bool) -> None:
    path = packed(tmp_path / "invented.docx", word_parts(paragraph("Take it.") + body))
    import_corpus([path], tmp_path / "corpus", keep_hidden=keep)
    corpus = Corpus.open(tmp_path / "corpus")
    (document,) = corpus.documents()
    assert ("HIDDEN" in document.text) == (bool(whys) and keep)
    assert ("Shown" in document.text) == (not whys)
    listed = tmp_path / "corpus" / HIDDEN
    found = read_jsonl(listed, HiddenText) if listed.exists() else []
    assert [(each.why, each.text, each.kept) for each in found] == [(why, "HIDDEN", keep) for why in whys]


def test_deleted_rows_are_left_out(tmp_path: Path) -> None:
    cell = "<w:tc>{}</w:tc>"
    rows = "".join(
        f"<w:tr><w:trPr>{gone}</w:trPr>{cell.format(paragraph(name))}{cell.format(paragraph('5'))}</w:tr>"
        for name, gone in (("Drug", ""), ("OLD", "<w:del/>"), ("New", ""))
    )
    assert raw(tmp_path, f"<w:tbl>{rows}</w:tbl>").tables[0].rows == (("Drug", "5"), ("New", "5"))


def test_a_table_of_contents_is_left_out(tmp_path: Path) -> None:
    field = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    body = (
        styled("Contents", "H1")
        + f"<w:p>{field.format('begin')}<w:r><w:instrText> TOC \\o </w:instrText></w:r>{field.format('separate')}"
        "<w:r><w:t>Drugs 1</w:t></w:r></w:p>"
        + paragraph("Food 2")
        + f"<w:p>{field.format('end')}</w:p>"
        + styled("Drugs", "H1")
        + f"<w:p><w:r><w:t xml:space='preserve'>See </w:t></w:r>{field.format('begin')}"
        f"<w:r><w:instrText>REF x</w:instrText></w:r>{field.format('separate')}"
        f"<w:r><w:t>Food</w:t></w:r>{field.format('end')}<w:r><w:t>.</w:t></w:r></w:p>"
        + styled("Drugs .... 1", "T1")
        + "<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val='Table of Contents'/></w:docPartObj></w:sdtPr>"
        f"<w:sdtContent>{paragraph('Drugs 1')}</w:sdtContent></w:sdt>" + paragraph("End.")
    )
    document = raw(tmp_path, body, styles=style("H1", "heading 1") + style("T1", "toc 1"))
    assert document.text == "Drugs\n\nSee Food.\n\nEnd."
    assert document.notices == ("left out: the table of contents",)


def test_a_field_that_never_ends_does_not_swallow_the_document(tmp_path: Path) -> None:
    begin = '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>'
    assert raw(tmp_path, begin + paragraph("Words.")).text == "Words."


def test_footnotes_and_endnotes_are_sections_at_the_end(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>Take 5 mg</w:t></w:r><w:r><w:footnoteReference w:id='2'/></w:r><w:r><w:t>.</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>Or 6</w:t></w:r><w:r><w:endnoteReference w:id='1'/></w:r>"
        "<w:r><w:footnoteReference w:id='1'/></w:r></w:p>"
    )
    notes = {
        "word/footnotes.xml": "<w:footnotes xmlns:w='{}'>{}</w:footnotes>",
        "word/endnotes.xml": "<w:endnotes xmlns:w='{}'>{}</w:endnotes>",
    }
    name = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    foot = (
        f"<w:footnote w:id='0' w:type='separator'>{paragraph('---')}</w:footnote>"
        f"<w:footnote w:id='1'>{paragraph('Second.')}</w:footnote>"
        f"<w:footnote w:id='2'>{paragraph('First.')}</w:footnote>"
        f"<w:footnote w:id='3'>{paragraph('Nobody refers to it.')}</w:footnote>"
    ).replace(' xml:space="preserve"', "")
    end = f"<w:endnote w:id='1'>{paragraph('An end.')}</w:endnote>"
    more = {
        "word/footnotes.xml": notes["word/footnotes.xml"].format(name, foot),
        "word/endnotes.xml": notes["word/endnotes.xml"].format(name, end),
    }
    document = raw(tmp_path, body, more=more)
    assert document.text == (
        "Take 5 mg[1].\n\nOr 6[2][3]\n\nFootnotes\n\n[1] First.\n\n[3] Second.\n\nEndnotes\n\n[2] An end."
    )
    assert document.sections[1].role == "back"


def test_text_boxes_are_read_once(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{paragraph('In the box.')}</w:txbxContent>"
    old = box.replace("In", "Old, in")
    body = (
        "<w:p><w:r><w:t>Before.</w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:anchor>"
        f"<a:graphic><a:graphicData><wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp></a:graphicData></a:graphic>"
        f"</wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>{box}</v:textbox></v:shape></w:pict>"
        "</mc:Fallback></mc:AlternateContent></w:r></w:p>"
        f"<w:p><w:r><w:pict><v:shape><v:textbox>{old}</v:textbox></v:shape></w:pict></w:r></w:p>"
    )
    assert raw(tmp_path, body).text == "Before.\n\nIn the box.\n\nOld, in the box."


def test_content_controls_smart_tags_and_hyperlinks_keep_their_words(tmp_path: Path) -> None:
    body = (
        f"<w:sdt><w:sdtContent>{paragraph('In a control.')}</w:sdtContent></w:sdt>"
        "<w:p><w:smartTag><w:r><w:t>Elm</w:t></w:r></w:smartTag><w:r><w:tab/></w:r><w:hyperlink r:id='x'><w:r>"
        "<w:t>Centre</w:t></w:r></w:hyperlink><w:sdt><w:sdtContent><w:r><w:br/><w:t>Unit</w:t></w:r></w:sdtContent></w:sdt>"
        "<w:fldSimple w:instr='DATE'><w:r><w:noBreakHyphen/><w:t>2024</w:t></w:r></w:fldSimple></w:p>"
        f"<w:customXml>{paragraph('Custom.')}</w:customXml>"
    )
    assert raw(tmp_path, body).text == "In a control.\n\nElm Centre Unit-2024\n\nCustom."


def test_signs_of_symbol_fonts(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>Dose </w:t><w:sym w:font='Symbol' w:char='F0B3'/><w:t>5 </w:t></w:r>"
        "<w:r><w:rPr><w:rFonts w:ascii='Symbol'/></w:rPr><w:t>m</w:t></w:r><w:r><w:t>g</w:t></w:r>"
        "<w:r><w:t>\uf0ae </w:t><w:sym w:font='Wingdings' w:char='F0FC'/><w:sym w:font='Webdings' w:char='zz'/>"
        "</w:r></w:p>"
    ).replace("<w:t>", "<w:t xml:space='preserve'>")
    assert raw(tmp_path, body).text == "Dose ≥5 µg→ ✓"


def test_formulas_on_one_line(tmp_path: Path) -> None:
    run = "<m:r><m:t>{}</m:t></m:r>"
    body = (
        f"<w:p><m:oMath><m:f><m:num>{run.format('a+b')}</m:num><m:den>{run.format('2')}</m:den></m:f>{run.format('=')}"
        f"<m:sSup><m:e>{run.format('10')}</m:e><m:sup>{run.format('9')}</m:sup></m:sSup></m:oMath></w:p>"
    )
    assert raw(tmp_path, body).text == "(a+b)/2=10⁹"


def table(*rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


def test_tables_for_layout_and_tables_in_tables(tmp_path: Path) -> None:
    inner = table((paragraph("Drug"), paragraph("Dose")), (paragraph("A"), paragraph("- 5 mg") + paragraph("daily")))
    box = table((paragraph("A box."),))
    outer = table((paragraph("Left"), inner + paragraph("Below")))
    document = raw(tmp_path, box + outer)
    assert document.text == "A box.\n\nLeft\n\nDrug | Dose\nA | • 5 mg daily\n\nBelow"
    assert len(document.tables) == 1


def test_merged_cells_leave_the_others_empty(tmp_path: Path) -> None:
    wide = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>' + paragraph("Wide")
    top = '<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>' + paragraph("Top")
    below = "<w:tcPr><w:vMerge/></w:tcPr>" + paragraph("")
    huge = '<w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr>' + paragraph("Huge")
    document = raw(tmp_path, table((wide,), (top, paragraph("1")), (below, paragraph("2")), (huge,)))
    rows = document.tables[0].rows
    assert rows[:3] == (("Wide", ""), ("Top", "1"), ("", "2"))
    assert len(rows[3]) <= 100


@pytest.mark.parametrize(
    ("caption", "label"), [("Tabelle 2: Dosen", "Tabelle 2"), ("Table 3 – Doses", "Table 3"), ("Doses", "")]
)
def test_captions_of_tables(tmp_path: Path, caption: str, label: str) -> None:
    grid = table((paragraph("a"), paragraph("b")))
    document = raw(tmp_path, styled(caption, "B") + grid, styles=style("B", "Beschriftung"))
    assert document.tables[0].label == label
    assert document.tables[0].caption == caption.removeprefix(label).strip(" :–")
    assert document.text.count("Dos") == 1


def drawing(id: str, text: str = "", points: int = 200, more: str = "") -> str:
    return (
        f"<w:p><w:r><w:drawing><wp:inline><wp:extent cx='{points * 12700}' cy='{points * 12700}'/>"
        f"<wp:docPr id='1' name='Picture 1' descr='{text}'>{more}</wp:docPr><a:graphic><a:graphicData>"
        f"<a:blip r:embed='{id}'/></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )


def test_pictures_with_alternative_text_and_without(tmp_path: Path) -> None:
    body = (
        drawing("i1", "The kidney lies in the pelvis")
        + drawing("i1", "Picture 3")
        + drawing("i1", "a logo", points=20)
        + drawing("i2", "A chart in another file")
        + drawing("i1", "A line", more='<a:extLst><adec:decorative val="1"/></a:extLst>')
        + drawing("i3", "A scan&#10;&#10;Description automatically generated")
        + drawing("i1", "", points=50)
    )
    links = {
        "i1": ("image", "media/image1.png"),
        "i2": ("image", "https://example.org/x.png"),
        "i3": ("image", "/word/media/image2.emf"),
    }
    path = packed(
        tmp_path / "invented.docx",
        word_parts(body, links=links, more={"word/media/image1.png": PNG, "word/media/image2.emf": b"EMF"}),
    )
    artefact = import_corpus([path], tmp_path / "c")
    document = Corpus(artefact).get("invented")
    file = "images/invented/invented-1.png"
    assert [(each.caption, each.files) for each in document.figures] == [
        ("The kidney lies in the pelvis", (file,)),
        ("", (file,)),
        ("A chart in another file", ()),
        ("A scan", ()),
    ]
    assert document.notices == ("pictures that are not in the file: 1; Hoofbeat fetches nothing",)
    assert artefact.manifest.metrics == {"images": 1, "images_missing": 1}


def test_bold_lines_are_headings_where_no_style_says_so(tmp_path: Path) -> None:
    bold, large = "<w:b/>", '<w:b/><w:sz w:val="32"/>'
    body = (
        paragraph("Kidney handbook", run=large)
        + paragraph("Words about it.")
        + paragraph("Drugs", run=bold)
        + paragraph("Take them. ")
        + paragraph("Never stop.", run=bold)
        + paragraph("Food", run=bold)
        + paragraph("Eat.")
    )
    document = raw(tmp_path, body)
    assert [(each.heading, each.level) for each in document.sections] == [
        ("Kidney handbook", 1),
        ("Drugs", 2),
        ("Food", 2),
    ]
    assert "bold print" in document.notices[0]
    styles = style("H1", "heading 1")
    assert len(raw(tmp_path, styled("One", "H1") + body, styles=styles).sections) == 1


@pytest.mark.parametrize(
    ("stated", "shown", "title"),
    [
        ("Microsoft Word - letter.doc", "Kidney handbook", "Kidney handbook"),
        ("Old letterhead", "Kidney handbook", "Kidney handbook"),
        ("Kidney handbook for patients", "Kidney handbook", "Kidney handbook for patients"),
        ("Kidney care", "", "Kidney care"),
        ("", "", "Drugs"),
        ("Document1", "Untitled", "Drugs"),
    ],
)
def test_titles(tmp_path: Path, stated: str, shown: str, title: str) -> None:
    word = docx.Document()
    word.core_properties.title = stated
    if shown:
        word.add_paragraph(shown, style="Title")
    word.add_heading("Drugs", 1)
    word.add_paragraph("For patients.")
    word.save(tmp_path / "handbook.docx")
    assert only(tmp_path / "handbook.docx").title == title


def test_a_title_by_print_and_by_the_file_name(tmp_path: Path) -> None:
    large = paragraph("Kidney care at Elm", run='<w:sz w:val="40"/>')
    words = paragraph("long words in small print, of which there are many.")
    assert raw(tmp_path, words + large + words).title == "Kidney care at Elm"
    assert raw(tmp_path, words).title == "invented"


def test_the_language_of_most_of_the_text(tmp_path: Path) -> None:
    defaults = '<w:docDefaults><w:rPrDefault><w:rPr><w:lang w:val="en-US"/></w:rPr></w:rPrDefault></w:docDefaults>'
    german = paragraph("Ein längerer Satz auf Deutsch.", run='<w:lang w:val="de-DE"/>')
    assert raw(tmp_path, german + paragraph("Words."), styles=defaults).facets["language"] == "de-DE"
    assert "language" not in raw(tmp_path, paragraph("Words.")).facets


def test_a_side_file_counts_first(handbook: Path) -> None:
    handbook.with_suffix(".json").write_text(
        '{"title": "Stated", "institution": "Elm (invented)", "date": "2020-01-01"}'
    )
    document = only(handbook)
    assert document.title == "Stated"
    assert (document.facets["institution"], document.facets["date"]) == ("Elm (invented)", "2020-01-01")
    assert document.facets["author"] == "A. Example (invented)"


def test_the_strict_edition_of_the_format(tmp_path: Path) -> None:
    parts = word_parts(styled("Drugs", "H1") + paragraph("Words."), styles=style("H1", "heading 1"))
    common = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    strict = {
        name: text.replace(common, "http://purl.oclc.org/ooxml/wordprocessingml/main")
        if isinstance(text, str)
        else text
        for name, text in parts.items()
    }
    assert only(packed(tmp_path / "a.docx", strict)).text == "Drugs\n\nWords."


def test_macros_are_neither_read_nor_run(tmp_path: Path) -> None:
    parts = word_parts(paragraph("Words."), more={"word/vbaProject.bin": b"Sub AutoOpen()"})
    for name in ("a.docx", "a.docm"):
        document = only(packed(tmp_path / name, parts))
        assert document.text == "Words."
        assert "macros" in document.notices[0]


def test_an_empty_document_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no text"):
        raw(tmp_path, paragraph(""))


def test_the_same_file_gives_the_same_bytes(handbook: Path, tmp_path: Path) -> None:
    first, second = (import_corpus([handbook], tmp_path / name).file("documents.jsonl").read_bytes() for name in "ab")
    assert first == second


def test_a_last_paragraph_whose_end_was_deleted_is_kept(tmp_path: Path) -> None:
    body = paragraph("First.") + paragraph("Last", "<w:rPr><w:del/></w:rPr>")
    assert raw(tmp_path, body).text == "First.\n\nLast"


def test_signs_of_unknown_fonts_are_said(tmp_path: Path) -> None:
    body = "<w:p><w:r><w:t>Take</w:t><w:sym w:font='Wingdings' w:char='F099'/></w:r></w:p>"
    assert raw(tmp_path, body).notices == ("signs of unknown symbol fonts: 1, shown as \ufffd",)


def test_files_that_mark_a_document_as_open_are_passed_over(handbook: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    handbook.rename(folder / "elm.docx")
    for name in ("~$elm.docx", "~$talk.pptx"):
        (folder / name).write_bytes(b"\x07A. Example" + b"\0" * 150)
    artefact = import_corpus([folder], tmp_path / "c")
    assert (artefact.manifest.counts.kept, artefact.manifest.counts.rejected) == (1, 0)


def test_smart_art_is_read(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>Steps:</w:t></w:r><w:r><w:drawing><wp:inline><a:graphic><a:graphicData>"
        "<dgm:relIds r:dm='d1'/></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )
    data = (
        "<dgm:dataModel xmlns:dgm='http://schemas.openxmlformats.org/drawingml/2006/diagram' "
        "xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'><dgm:ptLst>"
        "<dgm:pt><dgm:t><a:p><a:r><a:t>Call</a:t></a:r></a:p></dgm:t></dgm:pt>"
        "<dgm:pt><dgm:t><a:p><a:r><a:t>Come in</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
    )
    document = raw(
        tmp_path, body, links={"d1": ("diagramData", "diagrams/data1.xml")}, more={"word/diagrams/data1.xml": data}
    )
    assert document.text == "Steps:\n\n- Call\n- Come in"
