"""What a document is called: nothing that software wrote where a title should be."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.corpus import read_file
from hoofbeat.corpus.parsers.titles import best_title, is_title, stated_or_shown
from hoofbeat.records import Section

canvas_module: Any = pytest.importorskip("reportlab.pdfgen.canvas")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-",
        "2024",
        "about:blank",
        "Microsoft Word - x.doc",
        "Microsoft PowerPoint - Talk",
        "untitled",
        "Untitled-2",
        "Untitled Document",
        "PowerPoint Presentation",
        "PowerPoint-Präsentation",
        "Présentation PowerPoint",
        "Slide 1",
        "Folie 12",
        "Document1",
        "[Document title]",
        "handbook_v2_final.docx",
        "C:\\Users\\x\\handbook.pdf",
        "https://example.org/a?b=c",
        "www.example.org",
        "file:///tmp/x.html",
        "0b1c2d3e-0000-4000-8000-0123456789ab",
        "Inhaltsverzeichnis",
        "1 Introduction",
        "KEY POINTS",
        "II. Case presentation:",
    ],
)
def test_not_titles(text: str) -> None:
    assert not is_title(text)


@pytest.mark.parametrize(
    "text",
    [
        "Living with a new kidney",
        "Case report of a swallowed needle",
        "Background to dialysis",
        "Microsoft in hospitals",
        "Document handling in transplant units",
        "Slide 1 of the biopsy: what to look for",
        "Untitled drugs and their risks",
        "Presentation of acute rejection",
        "Table of contents of a drug box",
        "Home dialysis",
        "COVID-19",
        "腎移植後の生活",
        "Section 8 housing",
        "Index patient management",
    ],
)
def test_titles(text: str) -> None:
    assert is_title(text)


def test_the_next_best_title() -> None:
    sections = [
        Section(heading=heading, level=1, start=0, body=0, end=0)
        for heading in ("Slide 1", "Contents", "Drugs", "Food")
    ]
    assert best_title(("about:blank", "Kidney care"), sections, "", "stem") == "Kidney care"
    assert best_title(("about:blank",), sections, "First line", "stem") == "Drugs"
    assert best_title(("about:blank",), sections[:2], "First line", "stem") == "First line"
    assert best_title(("untitled",), (), "", "elm-handbook") == "elm-handbook"
    assert best_title(("x" * 1000,), (), "", "stem") == "stem"


def test_a_title_left_over_from_an_older_file() -> None:
    text = "Kidney care at Elm. Take the drugs."
    assert stated_or_shown("Kidney care at Elm", "Kidney care", text) == "Kidney care at Elm"
    assert stated_or_shown("Liver care at Oak", "Kidney care", text) == "Kidney care"
    assert stated_or_shown("Liver care at Oak", "Untitled", text) == "Liver care at Oak"
    assert stated_or_shown("untitled", "", text) == ""


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>about:blank</title><h2>Drugs</h2><p>x</p>", "Drugs"),
        ("<title>Untitled Document</title><p>Kidney care</p><p>Take the drugs, twice a day.</p>", "Kidney care"),
        ("<title>Kidney care</title><h1>Home</h1><p>x.</p>", "Kidney care"),
        ('<meta property="og:title" content="index.html"><h1>Kidney care</h1>', "Kidney care"),
        ("<title>untitled</title><p>take the drugs, twice a day.</p>", "elm"),
    ],
)
def test_web_pages(tmp_path: Path, page: str, title: str) -> None:
    (tmp_path / "elm.html").write_text(f"<html>{page}</html>")
    assert [document.title for document in read_file(tmp_path / "elm.html")] == [title]


@pytest.mark.parametrize("stated", ["about:blank", "Microsoft Word - x.doc", "untitled", "Slide 1", ""])
@pytest.mark.parametrize(("large", "title"), [("Kidney care", "Kidney care"), ("Slide 1", "Drugs"), ("", "Drugs")])
def test_pdfs(tmp_path: Path, stated: str, large: str, title: str) -> None:
    buffer = io.BytesIO()
    canvas = canvas_module.Canvas(buffer, pagesize=(600, 800))
    canvas.setTitle(stated)
    for text, size, place in ((large, 24, 700), ("Drugs", 14, 650)):
        canvas.setFont("Helvetica-Bold", size)
        canvas.drawString(50, place, text)
    canvas.setFont("Helvetica", 10)
    for line in range(20):
        canvas.drawString(50, 620 - 12 * line, "take the drugs twice a day with water, and call if you vomit.")
    canvas.save()
    (tmp_path / "elm.pdf").write_bytes(buffer.getvalue())
    assert [document.title for document in read_file(tmp_path / "elm.pdf")] == [title]
