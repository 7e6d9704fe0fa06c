"""Image versions: figures in their places, descriptions out and listed, everything else left as it was."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from hoofbeat import teaching
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.recipes.cases.image_stems import (
    ImageStem,
    image_stem,
    marker,
    picture_size,
    place_figures,
    usable_figures,
)
from hoofbeat.recipes.cases.stems import stem_spans, stem_text
from hoofbeat.records import Document, Figure, Section


def _png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def _made(text: str, caption: str = "CT of the chest.", quotes: tuple[str, ...] = (), figures: int = 1) -> ImageStem:
    """The image version of an invented case with figures 1, 2, ... whose captions stand at its end."""
    shown = [
        Figure(id=f"f{n}", label=f"Fig. {n}", caption=caption, files=(f"images/{n}.png",))
        for n in range(1, figures + 1)
    ]
    section = Section(heading="", level=1, start=0, body=0, end=len(text), role="case")
    document = Document(id="d", title="Invented", text=text, sections=(section,), figures=tuple(shown))
    spans = ((0, len(text)),)
    placed = place_figures(document, spans, {figure.id: figure.files for figure in shown})
    return image_stem(document, spans, placed, quotes)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("CT of the chest showed a 3 cm mass in the left lung (Figure 1).", "CT of the chest [Figure 1]."),
        ("The CT scan (Fig. 1) revealed a mass and two nodes.", "The CT scan (Fig. 1) [Figure 1]."),
        ("A ring of small grey blisters covered the left arm (Figure 1).", "[Figure 1]"),
        ("CT scans are shown in Figure 1.", "CT scans are shown in Figure 1. [Figure 1]"),
        (
            "Haemoglobin was 90 g/L, and chest CT showed a mass (Fig. 1).",
            "Haemoglobin was 90 g/L, and chest CT [Figure 1].",
        ),
        (
            "CT showed a mass (Fig. 1), so that the man was kept in hospital.",
            "CT [Figure 1], so that the man was kept in hospital.",
        ),
        (
            "A 50-year-old man was admitted with a swollen neck (Figure 1).",
            "A 50-year-old man was admitted with a swollen neck (Figure 1). [Figure 1]",
        ),
        (
            "CT on day 3, which was performed for pain, showed a mass (Fig. 1).",
            "CT on day 3, which was performed for pain [Figure 1].",
        ),
    ],
)
def test_a_sentence_is_cut_down_to_its_examination(said: str, left: str) -> None:
    made = _made(f"He was pale. {said} He went home.")
    assert made.text == f"He was pale. {left} He went home."
    assert made.images == ("images/1.png",)
    for each in made.removed:
        assert each.by == "rule"
        assert each.text in said


def test_neighbours_that_describe_the_same_kind_of_image_go_and_others_stay() -> None:
    text = (
        "Sodium was 130 mmol/L. Chest CT demonstrated a mass. CT showed two nodes as well (Fig. 1). "
        "The mass had sharp borders. Ultrasound of the liver was normal. She was given fluids.\n\n"
        "CT of the head showed nothing."
    )
    made = _made(text)
    assert made.text == (
        "Sodium was 130 mmol/L. CT [Figure 1]. Ultrasound of the liver was normal. She was given fluids.\n\n"
        "CT of the head showed nothing."
    )
    assert [each.text for each in made.removed] == [
        "Chest CT demonstrated a mass.",
        "showed two nodes as well (Fig. 1).",
        "The mass had sharp borders.",
    ]
    assert all(text[each.start : each.end] == each.text for each in made.removed)


def test_a_figure_named_twice_is_placed_once_and_pointed_to_again() -> None:
    made = _made("CT showed a mass (Fig. 1A). MRI showed the mass too (Fig. 1B). She improved.")
    assert made.text == "CT [Figure 1]. MRI (Figure 1). She improved."


def test_several_figures_have_their_images_in_reading_order() -> None:
    made = _made("CT showed a mass (Fig. 2). Later CT showed none (Figs. 1 and 3).", figures=3)
    assert made.images == ("images/2.png", "images/1.png", "images/3.png")
    assert made.text == "CT [Figure 2]. Later CT [Figure 1] [Figure 3]."


def test_a_model_may_name_sentences_of_the_stem_and_no_others() -> None:
    text = "He was pale. CT showed a mass (Fig. 1). Its wall was calcified at the top. He slept."
    made = _made(text, quotes=("Its wall was calcified", "It was on the moon", "", "CT showed a mass"))
    assert made.text == "He was pale. CT [Figure 1]. He slept."
    assert [(each.text, each.by) for each in made.removed] == [
        ("showed a mass (Fig. 1).", "rule"),
        ("Its wall was calcified at the top.", "model"),
    ]
    assert made.unknown == ("It was on the moon", "")


def test_a_figure_that_no_text_names_stands_at_its_caption() -> None:
    text = "He was pale. His arm was red.\n\nFigure 1. The arm.\n\nHe went home."
    at = text.index("Figure 1")
    figure = Figure(id="f1", label="Figure 1", caption="The arm.", files=("images/1.png",), start=at, end=at + 18)
    document = Document(id="d", title="Invented", text=text, figures=(figure,))
    spans = ((0, at - 2), (at + 20, len(text)))
    (placed,) = place_figures(document, spans, {"f1": figure.files})
    assert image_stem(document, spans, [placed]).text == "He was pale. His arm was red. [Figure 1]\n\nHe went home."
    assert place_figures(document, ((at + 20, len(text)),), {"f1": figure.files}) == []
    assert place_figures(document, (), {"f1": figure.files}) == []


def test_markers_take_the_number_of_the_label() -> None:
    assert marker(Figure(id="x", label="Fig. 3"), 1) == "[Figure 3]"
    assert marker(Figure(id="x", label=""), 2) == "[Figure 2]"


def test_only_readable_clinical_images_of_some_size_are_usable() -> None:
    names = ("images/a.png", "images/small.png", "images/broken.png", "images/c.tif", "images/gone.png")
    figures = tuple(Figure(id=name, label="Figure 1", files=(name,)) for name in names)
    chart = Figure(id="chart", label="Figure 2", caption="Flow chart of the search.", files=("images/a.png",))
    document = Document(id="d", title="", text="x", figures=(*figures, chart))
    content = {"images/a.png": _png(200, 100), "images/small.png": _png(200, 20), "images/broken.png": b"nothing",
               "images/c.tif": _png(200, 200)}  # fmt: skip
    assert usable_figures(document, content, min_pixels=64) == ({"images/a.png": ("images/a.png",)}, "")
    assert usable_figures(document, {}, min_pixels=64) == ({}, "no image of the report is usable")
    bare = Document(id="d", title="", text="x", figures=(Figure(id="f", label="Figure 1"),))
    assert usable_figures(bare, {}, min_pixels=64) == ({}, "the corpus has no image files of the report")
    assert usable_figures(Document(id="d", title="", text="x"), {}, min_pixels=64)[1] == "the report has no figures"


def test_the_size_of_a_picture_is_read_from_its_head() -> None:
    jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc0\x00\x11\x08\x00\x40\x00\x80\x03"
    assert picture_size(_png(7, 9)) == (7, 9)
    assert picture_size(b"GIF89a" + struct.pack("<HH", 5, 6)) == (5, 6)
    assert picture_size(jpeg) == (128, 64)
    for broken in (b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", jpeg[:14], b"\xff\xd8\x00\x00" * 4, b"text"):
        assert picture_size(broken) is None


def test_every_figure_of_the_teaching_cases_is_usable(tmp_path: Path) -> None:
    corpus = Corpus(import_corpus([teaching.cases_folder()], tmp_path / "cases", workers=1))
    for document in corpus:
        content = {name: (corpus.path / name).read_bytes() for figure in document.figures for name in figure.files}
        assert content
        assert set(usable_figures(document, content, min_pixels=64)[0]) == {figure.id for figure in document.figures}


def test_real_reports_lose_nothing_but_what_is_listed(real_reports: Path) -> None:
    """With an image supposed for every figure: what is left and what was removed are the stem, and markers are set."""
    corpus = Corpus.open(real_reports)
    illustrated, lost, words = 0, 0, 0
    for place, document in enumerate(corpus):
        if place % 5:
            continue
        spans = stem_spans(document)
        placed = place_figures(document, spans, {figure.id: (f"{figure.id}.png",) for figure in document.figures})
        made = image_stem(document, spans, placed)
        assert len(set(made.images)) == len(made.images) == len({each.figure for each in placed})
        if not placed:
            assert made.text.split() == stem_text(document, spans).split()
            assert not made.removed
            continue
        illustrated += 1
        assert all(each.marker in made.text for each in placed)
        for each in made.removed:
            assert document.text[each.start : each.end] == each.text
        lost += sum(len(each.text.split()) for each in made.removed)
        words += len(stem_text(document, spans).split())
    assert illustrated > 100
    assert 0.02 < lost / words < 0.4
