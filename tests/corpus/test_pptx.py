"""PowerPoint: one section per slide, with what is shown and said there."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.corpus.hidden_text import HIDDEN, HiddenText
from hoofbeat.corpus.parsers import pptx_slides
from hoofbeat.corpus.parsers.office_package import NAMES
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from hoofbeat.store.tables import read_jsonl
from tests.corpus.checks import check_offsets

pptx: Any = pytest.importorskip("pptx")
image_module: Any = pytest.importorskip("PIL.Image")
chart_data: Any = pytest.importorskip("pptx.chart.data")
chart_kinds: Any = pytest.importorskip("pptx.enum.chart")
languages: Any = pytest.importorskip("pptx.enum.lang")
inches: Any = pptx.util.Inches


def only(path: Path) -> Document:
    (document,) = read_file(path)
    check_offsets(document)
    return document


def saved(deck: Any, folder: Path) -> Document:
    deck.save(folder / "invented.pptx")
    return only(folder / "invented.pptx")


def slide(deck: Any, layout: int, title: str = "", body: tuple[str, ...] = ()) -> Any:
    """A slide of a layout of the default template: 0 title, 1 title and content, 5 title only, 6 blank."""
    made = deck.slides.add_slide(deck.slide_layouts[layout])
    if title:
        made.shapes.title.text = title
    if body:
        made.placeholders[1].text = "\n".join(body)
    return made


def picture(shade: int = 128) -> io.BytesIO:
    stream = io.BytesIO()
    image_module.new("L", (200, 200), shade).save(stream, "PNG")
    stream.seek(0)
    return stream


def test_a_deck(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    deck.core_properties.title = "PowerPoint Presentation"
    deck.core_properties.author = "A. Example (invented)"
    slide(deck, 0, "After a kidney transplant", ("Elm Centre (invented)",))
    drugs = slide(deck, 1, "Drugs", ("Tacrolimus", "twice a day", "Prednisone"))
    drugs.placeholders[1].text_frame.paragraphs[1].level = 1
    drugs.notes_slide.notes_text_frame.text = "Say it slowly.\nAsk for questions."
    table = drugs.shapes.add_table(2, 2, inches(1), inches(1), inches(3), inches(1)).table
    for place, text in {(0, 0): "Drug", (0, 1): "Dose", (1, 0): "Both"}.items():
        table.cell(*place).text = text
    table.cell(1, 0).merge(table.cell(1, 1))
    hidden = slide(deck, 1, "SECRET", ("HIDDEN",))
    hidden._element.set("show", "0")
    free = slide(deck, 6)
    box = free.shapes.add_textbox(0, 0, inches(2), inches(1)).text_frame
    box.text = "Call us:"
    box.add_paragraph().text = "Day and night."
    document = saved(deck, tmp_path)
    assert document.text == (
        "After a kidney transplant\n\nElm Centre (invented)\n\nDrugs\n\n- Tacrolimus\n  - twice a day\n- Prednisone\n\n"
        "Drug | Dose\nBoth |\n\nSpeaker notes: Say it slowly.\nAsk for questions.\n\nCall us:\n\nDay and night."
    )
    assert [(each.heading, each.level, each.page) for each in document.sections] == [
        ("After a kidney transplant", 1, 1),
        ("Drugs", 1, 2),
        ("", 1, 4),
    ]
    assert document.title == "After a kidney transplant"
    assert document.facets["author"] == "A. Example (invented)"
    assert document.notices == ("left out: hidden slide 3",)
    assert (document.tables[0].rows, document.tables[0].page) == ((("Drug", "Dose"), ("Both", "")), 2)


@pytest.mark.parametrize("keep", [False, True])
def test_hidden_slides_and_shapes_are_listed_and_kept_on_request(tmp_path: Path, keep: bool) -> None:
    deck = pptx.Presentation()
    first = slide(deck, 1, "Drugs", ("Tacrolimus",))
    box = first.shapes.add_textbox(0, 0, inches(2), inches(1))
    box.text_frame.text = "UNSEEN SHAPE"
    box._element.nvSpPr.cNvPr.set("hidden", "1")
    slide(deck, 1, "UNSEEN", ("SLIDE",))._element.set("show", "0")
    deck.save(tmp_path / "invented.pptx")
    import_corpus([tmp_path / "invented.pptx"], tmp_path / "corpus", keep_hidden=keep)
    corpus = Corpus.open(tmp_path / "corpus")
    (document,) = corpus.documents()
    assert document.text.count("UNSEEN") == (2 if keep else 0)
    found = read_jsonl(tmp_path / "corpus" / HIDDEN, HiddenText)
    assert sorted((each.place, each.why, each.text, each.kept) for each in found) == [
        ("slide 1", "hidden shape", "UNSEEN SHAPE", keep),
        ("slide 2", "hidden slide", "UNSEEN SLIDE", keep),
    ]


def test_bullets_and_numbers(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    made = slide(deck, 1, "Steps", ("Call", "Come", "Words", "Again", "Plain"))
    a = NAMES["a"]
    marks = (
        f'<a:buAutoNum xmlns:a="{a}" type="arabicPeriod" startAt="3"/>',
        f'<a:buAutoNum xmlns:a="{a}" type="arabicPeriod" startAt="3"/>',
        f'<a:buChar xmlns:a="{a}" char="x"/>',
        f'<a:buAutoNum xmlns:a="{a}" type="alphaLcParenBoth"/>',
        f'<a:buNone xmlns:a="{a}"/>',
    )
    for line, mark in zip(made.placeholders[1].text_frame.paragraphs, marks, strict=True):
        line._p.get_or_add_pPr().append(etree.fromstring(mark))
    slide(deck, 1, "One sentence", ("A sentence alone is not a list.",))
    assert saved(deck, tmp_path).text == (
        "Steps\n\n3. Call\n4. Come\n- Words\n(a) Again\n\nPlain\n\nOne sentence\n\nA sentence alone is not a list."
    )


def test_bullets_that_the_master_turns_off(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    slide(deck, 1, "Words", ("First line", "Second line"))
    for level in deck.slide_master._element.iter(f"{{{NAMES['a']}}}lvl1pPr"):
        for mark in level.findall("a:buChar", NAMES):
            level.replace(mark, etree.SubElement(level, f"{{{NAMES['a']}}}buNone"))
    assert saved(deck, tmp_path).text == "Words\n\nFirst line\n\nSecond line"


def test_pictures_groups_and_what_belongs_to_the_page(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    for number in range(3):
        made = slide(deck, 5, f"Part {number + 1}")
        made.shapes.add_picture(picture(1), 0, 0, inches(1), inches(1))
    described = made.shapes.add_picture(picture(2), 0, 0, inches(1), inches(1))
    described._element.nvPicPr.cNvPr.set("descr", "The kidney in the pelvis")
    made.shapes.add_picture(picture(3), 0, 0, inches(0.2), inches(0.2))
    group = made.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, inches(1), inches(1)).text_frame.text = "In a group"
    unseen = made.shapes.add_textbox(0, 0, inches(1), inches(1))
    unseen.text_frame.text = "HIDDEN"
    unseen._element.nvSpPr.cNvPr.set("hidden", "1")
    footer = made.shapes.add_textbox(0, 0, inches(1), inches(1))
    footer.text_frame.text = "FOOTER"
    etree.SubElement(footer._element.nvSpPr.nvPr, f"{{{NAMES['p']}}}ph", type="ftr")
    deck.save(tmp_path / "invented.pptx")
    artefact = import_corpus([tmp_path / "invented.pptx"], tmp_path / "c")
    document = Corpus(artefact).get("invented")
    assert document.text == "Part 1\n\nPart 2\n\nPart 3\n\nThe kidney in the pelvis\n\nIn a group"
    (figure,) = document.figures
    assert (figure.files, figure.page) == (("images/invented/invented-1.png",), 3)
    assert artefact.file(figure.files[0]).read_bytes() == picture(2).getvalue()


def test_a_chart_has_its_title(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    made = slide(deck, 5, "Results")
    data = chart_data.CategoryChartData()
    data.categories = ["2023", "2024"]
    data.add_series("Infections", (4, 2))
    place = (inches(1), inches(1), inches(4), inches(3))
    chart = made.shapes.add_chart(chart_kinds.XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Infections per year"
    assert saved(deck, tmp_path).figures[0].caption == "Infections per year"


@pytest.mark.parametrize(
    ("stated", "first", "title"),
    [
        ("Slide 1", "Kidney care", "Kidney care"),
        ("PowerPoint-Präsentation", "Kidney care", "Kidney care"),
        ("An old deck", "Kidney care", "Kidney care"),
        ("Kidney care", "Kidney care", "Kidney care"),
        ("", "", "Drugs"),
    ],
)
def test_titles(tmp_path: Path, stated: str, first: str, title: str) -> None:
    deck = pptx.Presentation()
    deck.core_properties.title = stated
    slide(deck, 0, first)
    slide(deck, 1, "Drugs", ("Take them.",))
    assert saved(deck, tmp_path).title == title


def _only_hidden(deck: Any) -> None:
    slide(deck, 5, "HIDDEN")._element.set("show", "0")


@pytest.mark.parametrize(
    ("fill", "message"),
    [(lambda deck: slide(deck, 6), "has no text$"), (_only_hidden, "has no text on slides that are not hidden")],
)
def test_a_deck_without_text_says_so(tmp_path: Path, fill: Callable[[Any], Any], message: str) -> None:
    deck = pptx.Presentation()
    fill(deck)
    deck.save(tmp_path / "a.pptx")
    with pytest.raises(InputError) as caught:
        list(read_file(tmp_path / "a.pptx"))
    assert message.removesuffix("$") in caught.value.what


def test_the_language_of_most_of_the_text(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    made = slide(deck, 5, "Nach der Transplantation")
    made.shapes.title.text_frame.paragraphs[0].runs[0].font.language_id = languages.MSO_LANGUAGE_ID.GERMAN
    assert saved(deck, tmp_path).facets["language"] == "de-DE"


def test_alternative_content_is_read_once(tmp_path: Path) -> None:
    deck = pptx.Presentation()
    made = slide(deck, 5, "Signs")
    box = made.shapes.add_textbox(0, 0, inches(1), inches(1))
    box.text_frame.text = "5 mg twice"
    tree = box._element.getparent()
    around = etree.SubElement(tree, f"{{{NAMES['mc']}}}AlternateContent")
    for name in ("Choice", "Fallback"):
        around.append(etree.fromstring(f'<mc:{name} xmlns:mc="{NAMES["mc"]}" Requires="p14"/>'))
        around[-1].append(etree.fromstring(etree.tostring(box._element)))
    tree.remove(box._element)
    assert saved(deck, tmp_path).text == "Signs\n\n5 mg twice"


def test_an_absurd_number_of_slides_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deck = pptx.Presentation()
    for number in range(3):
        slide(deck, 5, f"Part {number}")
    deck.save(tmp_path / "a.pptx")
    monkeypatch.setattr(pptx_slides, "MAX_SLIDES", 2)
    with pytest.raises(HostileInputError, match="more than 2 slides"):
        only(tmp_path / "a.pptx")
