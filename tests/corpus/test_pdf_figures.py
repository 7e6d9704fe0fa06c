"""PDF beyond plain pages: pictures and captions, several columns, turned pages, bookmarks, absurd sizes."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.corpus.parsers import pdf_document as pdf_module
from hoofbeat.corpus.parsers.pdf_document import read_pdf
from hoofbeat.errors import HostileInputError
from hoofbeat.records import Document
from tests.corpus.checks import check_offsets
from tests.corpus.test_pdf import drawn, only, text_at

image_module = pytest.importorskip("PIL.Image")
utils_module = pytest.importorskip("reportlab.lib.utils")

WORDS = ["Some words that make up the body text of this page,", "and a few more of them to fill it well."]


def picture(colour: tuple[int, int, int], kind: str = "PNG") -> Any:
    buffer = io.BytesIO()
    image_module.new("RGB", (120, 80), colour).save(buffer, kind)
    return utils_module.ImageReader(io.BytesIO(buffer.getvalue()))


def with_images(path: Path) -> tuple[Document, dict[str, bytes]]:
    images: list[tuple[str, bytes]] = []
    (document,) = read_pdf(path.read_bytes(), path, images)
    check_offsets(document)
    assert len({name for name, _ in images}) == len(images)
    return document, dict(images)


def colour(data: bytes) -> tuple[int, ...]:
    return tuple(image_module.open(io.BytesIO(data)).convert("RGB").getpixel((5, 5)))


def test_pictures_go_to_the_captions_they_stand_at(tmp_path: Path) -> None:
    red, green, blue, grey = (200, 0, 0), (0, 200, 0), (0, 0, 200), (90, 90, 90)

    def first(canvas: Any) -> None:
        text_at(canvas, 50, 760, WORDS)
        canvas.drawImage(picture(red), 50, 600, 150, 100)
        canvas.drawImage(picture(green), 220, 600, 150, 100)
        text_at(canvas, 50, 585, ["Figure 1. Two panels."])
        canvas.drawImage(picture(blue), 50, 400, 150, 100)
        text_at(canvas, 50, 385, ["Figure 2. One."])
        text_at(canvas, 50, 300, WORDS)

    def second(canvas: Any) -> None:
        text_at(canvas, 50, 760, ["Fig. 3: The caption stands above."])
        canvas.drawImage(picture(red), 50, 600, 200, 140)
        text_at(canvas, 50, 500, WORDS)
        canvas.drawImage(picture(grey), 50, 100, 150, 100)

    document, images = with_images(drawn(tmp_path / "a b.pdf", [first, second]))
    assert [(f.label, f.caption, f.page, len(f.files)) for f in document.figures] == [
        ("Figure 1", "Two panels.", 1, 2),
        ("Figure 2", "One.", 1, 1),
        ("Fig. 3", "The caption stands above.", 2, 1),
        ("", "", 2, 1),
    ]
    assert [colour(images[file]) for f in document.figures for file in f.files] == [red, green, blue, red, grey]
    assert all("/" not in name and " " not in name for name in images)


def test_jpeg_data_is_kept_as_it_is_and_logos_are_left_out(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    image_module.new("RGB", (64, 64), (10, 120, 10)).save(buffer, "JPEG")

    def page(number: int) -> Callable[[Any], None]:
        def draw(canvas: Any) -> None:
            text_at(canvas, 50, 700, [f"Words of page {number} are not the same.", *WORDS])
            canvas.drawImage(picture((1, 2, 3)), 400, 700, 90, 90)
            if number == 2:
                canvas.drawImage(utils_module.ImageReader(io.BytesIO(buffer.getvalue())), 50, 400, 100, 100)
                text_at(canvas, 50, 385, ["Figure 1. A photograph."])
                canvas.drawImage(picture((7, 7, 7)), 300, 400, 12, 12)

        return draw

    document, images = with_images(drawn(tmp_path / "x.pdf", [page(1), page(2), page(3)]))
    assert [(f.label, f.files) for f in document.figures] == [("Figure 1", tuple(images))]
    assert list(images.values()) == [buffer.getvalue()]


def test_an_import_stores_the_pictures(tmp_path: Path) -> None:
    def draw(canvas: Any) -> None:
        text_at(canvas, 50, 700, WORDS)
        canvas.drawImage(picture((0, 99, 0)), 50, 400, 100, 100)
        text_at(canvas, 50, 385, ["Figure 1. Kept."])

    drawn(tmp_path / "in.pdf", [draw])
    corpus = Corpus(import_corpus([tmp_path / "in.pdf"], tmp_path / "out"))
    (document,) = corpus.documents()
    (file,) = document.figures[0].files
    assert colour((corpus.path / file).read_bytes()) == (0, 99, 0)
    again = import_corpus([tmp_path / "in.pdf"], tmp_path / "out2")
    assert (again.path / file).read_bytes() == (corpus.path / file).read_bytes()


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_columns_are_read_one_after_the_other(tmp_path: Path, columns: int) -> None:
    width = 500 / columns
    text = [[f"col {c} row {n:02} " + "w" * int(width / 10 - 5) for n in range(24)] for c in range(columns)]

    def draw(canvas: Any) -> None:
        text_at(canvas, 50, 760, ["A title that stands over all of the columns of this page"], size=16)
        for row in range(24):
            for column in range(columns):
                text_at(canvas, 50 + column * width, 700 - 12 * row, [text[column][row]], size=8)

    document = only(drawn(tmp_path / "columns.pdf", [draw]))
    body = document.section_text(document.sections[0]).replace("\n\n", " ")
    assert body == " ".join(line for column in text for line in column)


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_turned_pages_are_read_upright(tmp_path: Path, turn: int) -> None:
    places = {90: (600, 0), 180: (600, 800), 270: (0, 600)}  # the page is 800 wide and 600 high on its side

    def draw(canvas: Any) -> None:
        canvas.translate(*places[turn])
        canvas.rotate(turn)
        canvas.setPageRotation((360 - turn) % 360 if turn != 180 else 180)
        text_at(canvas, 50, 520, ["A heading"], size=18)
        text_at(canvas, 50, 480, WORDS)
        canvas.drawImage(picture((9, 9, 200)), 50, 300, 120, 90)
        text_at(canvas, 50, 285, ["Figure 1. Turned too."])

    document, images = with_images(drawn(tmp_path / "turned.pdf", [draw]))
    assert document.text.split("\n\n") == ["A heading", " ".join(WORDS), "Figure 1. Turned too."]
    assert [s.heading for s in document.sections] == ["A heading"]
    assert len(document.figures[0].files) == len(images) == 1


def test_bookmarks_say_what_the_headings_are(tmp_path: Path) -> None:
    def page(number: int) -> Callable[[Any], None]:
        def draw(canvas: Any) -> None:
            if number == 1:
                text_at(canvas, 50, 770, ["The whole title"], size=20)
            canvas.bookmarkPage(f"c{number}")
            canvas.addOutlineEntry(f"Chapter {number}", f"c{number}", 0)
            canvas.bookmarkPage(f"p{number}")
            canvas.addOutlineEntry("Plain part", f"p{number}", 1)
            text_at(canvas, 50, 700, [f"Chapter {number}"], font="Helvetica-Bold")
            text_at(canvas, 50, 680, ["1.1 Plain part", *WORDS])
            text_at(canvas, 50, 600, ["Large but unnamed"], size=13)
            text_at(canvas, 50, 580, WORDS)

        return draw

    document = only(drawn(tmp_path / "marks.pdf", [page(1), page(2)]))
    assert [(s.heading, s.level, s.page) for s in document.sections][:5] == [
        ("The whole title", 1, 1),
        ("Chapter 1", 3, 1),
        ("1.1 Plain part", 4, 1),
        ("Large but unnamed", 2, 1),
        ("Chapter 2", 3, 2),
    ]
    assert document.section_text(document.sections[2]) == " ".join(WORDS)


def test_bookmarks_that_name_nothing_in_the_text_are_left_alone(tmp_path: Path) -> None:
    def draw(canvas: Any) -> None:
        canvas.bookmarkPage("x")
        for number in range(5):
            canvas.addOutlineEntry(f"Page {number}", "x", 0)
        text_at(canvas, 50, 700, ["Heading"], size=18)
        text_at(canvas, 50, 680, WORDS)

    assert [(s.heading, s.level) for s in only(drawn(tmp_path / "m.pdf", [draw])).sections] == [("Heading", 1)]


def test_a_pdf_of_ten_thousand_pages_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 10_000
    kids = " ".join(f"{number} 0 R" for number in range(3, count + 3))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>"]
    objects += ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] >>"] * count
    places, pieces, length = [], [b"%PDF-1.4\n"], 9
    for number, content in enumerate(objects, start=1):
        places.append(length)
        pieces.append(f"{number} 0 obj\n{content}\nendobj\n".encode())
        length += len(pieces[-1])
    data = b"".join(pieces)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    data += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n".encode()
    data += f"startxref\n{data.rindex(b'xref')}\n%%EOF".encode()
    path = tmp_path / "long.pdf"
    path.write_bytes(data)
    monkeypatch.setattr(pdf_module, "page_turn", lambda textpage: pytest.fail("a page was read"))
    with pytest.raises(HostileInputError, match="10,000 pages"):
        list(read_file(path))
