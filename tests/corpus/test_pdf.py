"""The PDF reader over rendered handbooks and over small files drawn for the purpose."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.corpus import read_file
from hoofbeat.corpus.parsers import pdf_document as pdf_module
from hoofbeat.corpus.parsers.pdf_document import read_pdf
from hoofbeat.corpus.readers.markdown import read_markdown
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets

canvas_module = pytest.importorskip("reportlab.pdfgen.canvas")
image_module = pytest.importorskip("PIL.Image")
utils_module = pytest.importorskip("reportlab.lib.utils")

HANDBOOKS = Path(__file__).parents[2] / "src" / "hoofbeat" / "teaching" / "handbooks"


def drawn(path: Path, pages: list[Callable[[Any], None]], **options: Any) -> Path:
    buffer = io.BytesIO()
    canvas = canvas_module.Canvas(buffer, pagesize=(600, 800), **options)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    path.write_bytes(buffer.getvalue())
    return path


def text_at(canvas: Any, x: float, y: float, lines: list[str], *, size: float = 10, font: str = "Helvetica") -> None:
    canvas.setFont(font, size)
    for number, line in enumerate(lines):
        canvas.drawString(x, y - number * size * 1.2, line)


def only(path: Path) -> Document:
    (document,) = read_file(path)
    check_offsets(document)
    return document


def test_teaching_pdfs_come_out_as_their_sources() -> None:
    files = sorted((HANDBOOKS / "pdf").glob("*.pdf"))
    assert len(files) == 4
    for file in files:
        images: list[tuple[str, bytes]] = []
        (document,) = read_pdf(file.read_bytes(), file, images)
        check_offsets(document)
        source = read_markdown((HANDBOOKS / f"{file.stem}.md").read_text(encoding="utf-8"), file.stem)
        assert [(s.heading, s.level) for s in document.sections] == [(s.heading, s.level) for s in source.sections]
        pages = [s.page or 0 for s in document.sections]
        assert pages == sorted(pages)
        assert (pages[0], pages[-1] > 1) == (1, True)
        wanted = source.text.split("\n\n")
        found = document.text.split("\n\n")
        assert [block for block in found if block in wanted] == wanted
        assert len(found) <= len(wanted) + 1
        assert (document.id, document.title, document.facets) == (source.id, source.title, source.facets)
        assert [(f.label, f.caption) for f in document.figures] == [(f.label, f.caption) for f in source.figures]
        data = dict(images)
        for figure, original in zip(document.figures, source.figures, strict=True):
            assert figure.page == page_of(document, figure.start)
            assert pixels(data[figure.files[0]]) == pixels((HANDBOOKS / original.files[0]).read_bytes())
        assert len(images) == len(document.figures) > 0


def page_of(document: Document, place: int) -> int:
    """The page that the text around a place says it is on: between its section's page and the next section's."""
    figure = next(f for f in document.figures if f.start == place)
    before = [s.page or 0 for s in document.sections if s.start <= place]
    after = [s.page or 0 for s in document.sections if s.start > place] or [10_000]
    return min(max(figure.page or 0, before[-1]), after[0])


def pixels(data: bytes) -> bytes:
    """The picture as RGB."""
    return bytes(image_module.open(io.BytesIO(data)).convert("RGB").tobytes())


def test_paragraphs_headings_hyphens_and_running_heads(tmp_path: Path) -> None:
    def page(number: int) -> Callable[[Any], None]:
        def draw(canvas: Any) -> None:
            text_at(canvas, 50, 770, ["Handbook of tests"], size=8)
            text_at(canvas, 280, 30, [f"{number}"], size=8)
            text_at(canvas, 50, 740, [f"Chapter {number}"], size=18)
            text_at(canvas, 50, 660, ["Bold part"], font="Helvetica-Bold")
            text_at(canvas, 50, 640, ["The immuno-", "suppressive medicine is for long-", "term use. It is long-term."])
            text_at(canvas, 50, 580, ["• first point", "• second point"])
            text_at(canvas, 50, 540, ["Figure 1. A drawing."])
            text_at(canvas, 50, 500, ["It goes on over the page and"] if number < 3 else ["The end."])

        return draw

    document = only(drawn(tmp_path / "book.pdf", [page(1), page(2), page(3)]))
    assert [(s.heading, s.level, s.page) for s in document.sections] == [
        (heading, level, page) for page in (1, 2, 3) for heading, level in ((f"Chapter {page}", 1), ("Bold part", 2))
    ]
    assert document.text.split("\n\n")[:6] == [
        "Chapter 1",
        "Bold part",
        "The immunosuppressive medicine is for long-term use. It is long-term.",
        "- first point\n- second point",
        "Figure 1. A drawing.",
        "It goes on over the page and",
    ]
    assert "Handbook" not in document.text
    assert (document.figures[0].label, document.figures[0].page) == ("Figure 1", 1)


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = [f"left column line {number} is filled with words" for number in range(20)]
    right = [f"right column line {number} is filled with words" for number in range(20)]

    def draw(canvas: Any) -> None:
        text_at(canvas, 50, 760, ["A title that stands over both of the columns of this page"], size=16)
        for number in range(20):
            text_at(canvas, 50, 700 - 12 * number, [left[number]])
            text_at(canvas, 320, 700 - 12 * number, [right[number]])

    document = only(drawn(tmp_path / "columns.pdf", [draw]))
    assert document.title == "A title that stands over both of the columns of this page"
    body = document.section_text(document.sections[0])
    assert body == " ".join([*left, *right]) or body == " ".join(left) + "\n\n" + " ".join(right)


def test_tables_keep_rows(tmp_path: Path) -> None:
    def draw(canvas: Any) -> None:
        text_at(canvas, 50, 700, ["Some words that make up the body text of this page,", "and a few more of them."])
        for number, row in enumerate([("Drug", "Dose", "Times"), ("A", "5 mg", "2"), ("Bee", "10 mg", "1")]):
            for column, cell in enumerate(row):
                text_at(canvas, 50 + 150 * column, 600 - 14 * number, [cell])

    document = only(drawn(tmp_path / "table.pdf", [draw]))
    assert document.tables[0].rows[0] == ("Drug", "Dose", "Times")
    assert document.tables[0].rows[2] == ("Bee", "10 mg", "1")


def test_side_file_and_metadata(tmp_path: Path) -> None:
    path = drawn(tmp_path / "x.pdf", [lambda canvas: text_at(canvas, 50, 700, ["Some words."])])
    assert only(path).title in {"x", "Some words."}
    (tmp_path / "x.json").write_text('{"id": "../hb", "title": "T", "institution": "Elm", "year": 2020, "notice": "N"}')
    document = only(path)
    assert (document.id, document.title, document.notices) == ("hb", "T", ("N",))
    assert document.facets == {"institution": "Elm", "year": "2020"}
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(InputError, match="metadata file beside it"):
        only(path)


def test_bad_pdfs_are_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"no pdf at all")
    with pytest.raises(InputError, match="a broken PDF, or not a PDF"):
        only(path)
    whole = drawn(path, [lambda canvas: text_at(canvas, 50, 700, ["words"])]).read_bytes()
    path.write_bytes(whole[:60])
    with pytest.raises(InputError, match="PDF"):
        only(path)
    drawn(path, [lambda canvas: canvas.rect(10, 10, 50, 50)])
    with pytest.raises(InputError, match="no text"):
        only(path)
    drawn(path, [lambda canvas: text_at(canvas, 50, 700, ["words"])], encrypt="secret")
    with pytest.raises(InputError, match="encrypted"):
        only(path)
    monkeypatch.setattr(pdf_module, "MAX_PAGES", 1)
    drawn(path, [lambda canvas: text_at(canvas, 50, 700, ["words"])] * 2)
    with pytest.raises(HostileInputError, match="2 pages"):
        only(path)


def test_a_long_paragraph_takes_time_in_proportion(tmp_path: Path) -> None:
    def draw(canvas: Any) -> None:
        text_at(canvas, 50, 760, ["words without an end go on and on over all of these pages"] * 55)

    began = time.process_time()
    assert len(only(drawn(tmp_path / "long.pdf", [draw] * 100)).text) > 300_000
    assert time.process_time() - began < 15
