"""Draw the figures and render the PDF versions of four teaching handbooks.

The handbooks are invented teaching material. The Markdown files in
``src/hoofbeat/teaching/handbooks`` are the source; this tool writes

* ``handbooks/figures/*.png``: small schematic drawings (Pillow), and
* ``handbooks/pdf/<id>.pdf``: four rendered handbooks (reportlab),

without dates or random identifiers, so that the same versions of the
libraries give the same bytes::

    python tools/teaching_pdfs.py                 # figures and PDFs in place
    python tools/teaching_pdfs.py --pdf-dir /tmp  # PDFs elsewhere, figures as they are

Needs ``reportlab`` and ``pillow``; neither is needed to use the package.
"""

from __future__ import annotations

import argparse
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import reportlab
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib import pagesizes
from reportlab.lib.colors import HexColor
from reportlab.lib.enums import TA_CENTER
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    KeepTogether,
    ListFlowable,
    ListItem,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)
from reportlab.platypus import Image as Picture

HANDBOOKS = Path(__file__).resolve().parents[1] / "src" / "hoofbeat" / "teaching" / "handbooks"

#: Library versions that wrote the PDFs kept in the repository. With other
#: versions the pages look the same but the bytes may differ.
RENDERED_WITH = {"reportlab": "5.1.0", "zlib": "1.2.13"}

#: Layout of each rendered handbook. ``break_before`` names the sections that
#: start on a new page.
DESIGNS: dict[str, dict[str, Any]] = {
    "hb-alder-kidney": {
        "page": "A5",
        "columns": 1,
        "size": 10,
        "accent": "#1f5f6b",
        "figure_width": 0.72,
        "break_before": ["Your medicines", "Life in the longer run"],
    },
    "hb-cairn-kidney": {
        "page": "A4",
        "columns": 1,
        "size": 11.5,
        "accent": "#6b3f1f",
        "figure_width": 0.55,
        "break_before": ["7 Back to everyday life"],
    },
    "hb-brook-liver": {
        "page": "A5",
        "columns": 1,
        "size": 10.5,
        "accent": "#2f4f7f",
        "figure_width": 0.8,
        "break_before": ["Medicines", "Food and drink"],
    },
    "hb-elm-liver": {
        "page": "A4",
        "columns": 2,
        "size": 11,
        "accent": "#3f6b2f",
        "figure_width": 0.95,
        "break_before": ["Medicines", "At home"],
    },
}


# --------------------------------------------------------------------------
# reading the Markdown


Block = tuple[str, Any]


def read_handbook(path: Path) -> tuple[dict[str, str], list[Block]]:
    """Return the front matter and the blocks of one handbook.

    A block is ``(kind, value)``; the kinds are ``h1``, ``h2``, ``h3``, ``p``,
    ``quote``, ``bullets``, ``numbers``, ``image`` and ``table``.
    """
    text = path.read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    meta = dict(line.split(": ", 1) for line in front.strip().splitlines())
    blocks: list[Block] = []
    for chunk in re.split(r"\n\s*\n", body.strip()):
        lines = chunk.strip().splitlines()
        first = lines[0]
        heading = re.match(r"(#{1,3}) (.+)", first)
        image = re.fullmatch(r"!\[(.*)\]\((.+)\)", first)
        if heading:
            blocks.append((f"h{len(heading[1])}", heading[2].strip()))
        elif image:
            blocks.append(("image", (image[1], image[2])))
        elif first.startswith("> "):
            blocks.append(("quote", " ".join(line.removeprefix("> ") for line in lines)))
        elif first.startswith("- "):
            blocks.append(("bullets", [line[2:] for line in lines]))
        elif re.match(r"\d+\. ", first):
            blocks.append(("numbers", [re.sub(r"^\d+\. ", "", line) for line in lines]))
        elif first.startswith("|"):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            blocks.append(("table", [row for row in rows if not set("".join(row)) <= set("-: ")]))
        else:
            blocks.append(("p", " ".join(lines)))
    return meta, blocks


def inline(text: str) -> str:
    """Markdown emphasis to the small markup that reportlab understands."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))


# --------------------------------------------------------------------------
# PDFs


def render(handbook: str, pdf_dir: Path, source: Path = HANDBOOKS) -> Path:
    """Render one handbook to ``pdf_dir/<id>.pdf`` and return the path."""
    design = DESIGNS[handbook]
    meta, blocks = read_handbook(source / f"{handbook}.md")
    width, height = getattr(pagesizes, design["page"])
    accent, grey = HexColor(design["accent"]), HexColor("#555555")
    size = design["size"]
    margin, gutter = (20 if design["page"] == "A4" else 15) * mm, 8 * mm
    top, bottom = margin + 6 * mm, margin

    def style(name: str, **options: Any) -> ParagraphStyle:
        base = {"fontName": "Helvetica", "fontSize": size, "leading": size * 1.38}
        return ParagraphStyle(name, **{**base, **options})

    def bold(name: str, factor: float, before: float, after: float) -> ParagraphStyle:
        return style(
            name,
            fontName="Helvetica-Bold",
            fontSize=size * factor,
            leading=size * factor * 1.2,
            spaceBefore=before,
            spaceAfter=after,
            textColor=accent,
            keepWithNext=1,
        )

    h1, h2, h3 = bold("h1", 2.1, 0, 8), bold("h2", 1.55, 14, 6), bold("h3", 1.18, 9, 3)
    text = style("p", spaceAfter=size * 0.55)
    small = style("small", fontSize=size * 0.85, leading=size * 1.1, textColor=grey, spaceAfter=8)
    caption = style(
        "caption",
        fontName="Helvetica-Oblique",
        fontSize=size * 0.85,
        leading=size * 1.1,
        alignment=TA_CENTER,
        textColor=grey,
        spaceBefore=3,
        spaceAfter=10,
    )
    notice = style(
        "notice",
        fontSize=size * 0.92,
        leading=size * 1.25,
        borderColor=accent,
        borderWidth=1,
        borderPadding=6,
        leftIndent=7,
        rightIndent=7,
        spaceBefore=14,
        spaceAfter=14,
    )

    columns = design["columns"]
    column = (width - 2 * margin - (columns - 1) * gutter) / columns

    def story() -> list[Flowable]:
        flow: list[Flowable] = []
        for kind, value in blocks:
            if kind == "h1":
                flow.append(Paragraph(inline(value), h1))
                line = f"{meta['institution']} · {meta['phase']} · {meta['year']}"
                flow.append(Paragraph(inline(line), small))
            elif kind == "h2":
                if value in design["break_before"]:
                    flow.append(PageBreak())
                flow.append(Paragraph(inline(value), h2))
            elif kind == "h3":
                flow.append(Paragraph(inline(value), h3))
            elif kind == "p":
                flow.append(Paragraph(inline(value), text))
            elif kind == "quote":
                flow.append(Paragraph(inline(value), notice))
            elif kind in ("bullets", "numbers"):
                items = [ListItem(Paragraph(inline(item), text)) for item in value]
                options = (
                    {"bulletType": "1", "bulletFormat": "%s."}
                    if kind == "numbers"
                    else {"bulletType": "bullet", "start": "•"}
                )
                flow.append(
                    ListFlowable(
                        items,
                        leftIndent=16,
                        bulletFontName="Helvetica",
                        bulletFontSize=size,
                        **options,
                    )
                )
            elif kind == "image":
                words, name = value
                pixels_w, pixels_h = ImageReader(str(source / name)).getSize()
                shown = column * design["figure_width"]
                picture = Picture(str(source / name), shown, shown * pixels_h / pixels_w)
                flow.append(KeepTogether([Spacer(1, 4), picture, Paragraph(inline(words), caption)]))
            elif kind == "table":
                cells = [[Paragraph(inline(cell), text) for cell in row] for row in value]
                grid = Table(cells, hAlign="LEFT")
                grid.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, grey)]))
                flow.append(grid)
        return flow

    def furniture(canvas: Canvas, doc: BaseDocTemplate) -> None:
        canvas.saveState()
        canvas.setFillColor(grey)
        canvas.setStrokeColor(grey)
        canvas.setLineWidth(0.4)
        canvas.setFont("Helvetica", 8)
        head = height - margin + 1 * mm
        canvas.drawString(margin, head, meta["title"])
        canvas.drawRightString(width - margin, head, meta["institution"])
        canvas.line(margin, head - 2 * mm, width - margin, head - 2 * mm)
        canvas.drawCentredString(width / 2, margin - 7 * mm, f"Page {doc.page}")
        canvas.restoreState()

    pdf_dir.mkdir(parents=True, exist_ok=True)
    target = pdf_dir / f"{handbook}.pdf"
    document = BaseDocTemplate(
        str(target),
        pagesize=(width, height),
        title=meta["title"],
        author=meta["institution"],
        subject=meta["notice"],
        creator="hoofbeat tools/teaching_pdfs.py",
        invariant=1,
    )
    frames = [
        Frame(
            margin + number * (column + gutter),
            bottom,
            column,
            height - top - bottom,
            leftPadding=0,
            rightPadding=0,
            topPadding=0,
            bottomPadding=0,
        )
        for number in range(columns)
    ]
    document.addPageTemplates([PageTemplate("page", frames, onPage=furniture)])
    document.build(story())
    return target


def versions() -> dict[str, str]:
    """The library versions that decide about the bytes of a PDF."""
    return {"reportlab": reportlab.Version, "zlib": zlib.ZLIB_RUNTIME_VERSION}


# --------------------------------------------------------------------------
# figures

Pen = ImageDraw.ImageDraw
Colour = tuple[int, int, int]

INK, SOFT, PALE = (60, 60, 60), (140, 170, 190), (225, 235, 240)
SKIN, RED, GREEN, AMBER = (240, 222, 205), (225, 150, 140), (130, 165, 110), (225, 185, 100)


def draw_figures(folder: Path) -> list[Path]:
    """Draw every schematic figure into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    font, tiny = ImageFont.load_default(17), ImageFont.load_default(12)
    done: list[Path] = []

    def figure(name: str, size: tuple[int, int], paint: Callable[[Pen], None]) -> None:
        picture = Image.new("RGB", size, "white")
        pen = ImageDraw.Draw(picture)
        pen.rectangle((0, 0, size[0] - 1, size[1] - 1), outline=SOFT)
        paint(pen)
        pen.text((size[0] - 8, size[1] - 6), "invented figure", fill=INK, font=tiny, anchor="rs")
        path = folder / name
        picture.quantize(32).save(path, optimize=True)
        done.append(path)

    def label(pen: Pen, at: tuple[float, float], words: str, anchor: str = "mm") -> None:
        pen.text(at, words, fill=INK, font=font, anchor=anchor)

    def box(pen: Pen, area: tuple[int, int, int, int], words: str, fill: Colour = PALE) -> None:
        pen.rounded_rectangle(area, 10, fill=fill, outline=INK, width=2)
        label(pen, ((area[0] + area[2]) / 2, (area[1] + area[3]) / 2), words)

    def torso(pen: Pen, left: int, top: int, wide: int, tall: int) -> None:
        pen.rounded_rectangle((left, top, left + wide, top + tall), 45, fill=SKIN, outline=INK, width=2)

    def kidney_position(pen: Pen) -> None:
        torso(pen, 60, 20, 200, 290)
        for left in (95, 190):
            pen.ellipse((left, 70, left + 38, 130), fill=PALE, outline=INK, width=2)
        pen.line((160, 262, 195, 225), fill=INK, width=4)
        pen.ellipse((178, 180, 226, 250), fill=RED, outline=INK, width=2)
        pen.ellipse((132, 248, 188, 294), fill=AMBER, outline=INK, width=2)
        for y, start, words in ((100, 232, "own kidneys"), (215, 228, "new kidney"), (272, 190, "bladder")):
            pen.line((start, y, 300, y), fill=INK, width=1)
            label(pen, (306, y), words, "lm")

    def pill_box(pen: Pen) -> None:
        for column, day in enumerate(("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")):
            left = 105 + column * 52
            label(pen, (left + 22, 34), day)
            for row in range(2):
                topline = 52 + row * 62
                pen.rounded_rectangle((left, topline, left + 44, topline + 52), 6, fill=PALE, outline=INK, width=2)
                pen.ellipse((left + 8, topline + 12, left + 22, topline + 26), fill=AMBER, outline=INK)
                pen.ellipse((left + 22, topline + 26, left + 36, topline + 40), fill=RED, outline=INK)
        label(pen, (14, 78), "morning", "lm")
        label(pen, (14, 140), "evening", "lm")

    def drinks(pen: Pen) -> None:
        for number in range(8):
            left, topline = 24 + (number % 4) * 62, 34 + (number // 4) * 92
            pen.polygon(
                [(left, topline), (left + 44, topline), (left + 37, topline + 70), (left + 7, topline + 70)],
                fill="white",
                outline=INK,
            )
            pen.polygon(
                [
                    (left + 3, topline + 18),
                    (left + 41, topline + 18),
                    (left + 36, topline + 68),
                    (left + 8, topline + 68),
                ],
                fill=SOFT,
            )
        label(pen, (294, 120), "=")
        pen.rounded_rectangle((330, 40, 420, 200), 8, fill="white", outline=INK, width=2)
        pen.rectangle((333, 80, 417, 197), fill=SOFT)
        pen.arc((400, 80, 450, 150), 270, 90, fill=INK, width=4)
        label(pen, (375, 138), "2 to 3 L")
        label(pen, (235, 226), "spread over the day")

    def luggage(pen: Pen) -> None:
        pen.rounded_rectangle((24, 60, 184, 200), 14, fill=AMBER, outline=INK, width=3)
        pen.arc((74, 28, 134, 92), 180, 360, fill=INK, width=5)
        label(pen, (104, 130), "hand luggage")
        for row, words in enumerate(("medicines", "prescription copy", "transplant card")):
            y = 70 + row * 52
            pen.rectangle((214, y - 11, 236, y + 11), outline=INK, width=2)
            pen.line((218, y, 224, y + 7, 233, y - 8), fill=GREEN, width=4)
            label(pen, (248, y), words, "lm")

    def steps(words: Sequence[str], fills: Sequence[Colour]) -> Callable[[Pen], None]:
        def paint(pen: Pen) -> None:
            for number, word in enumerate(words):
                left = 14 + number * 122
                box(pen, (left, 40, left + 96, 120), word, fills[number])
                label(pen, (left + 48, 24), str(number + 1))
                if number + 1 < len(words):
                    pen.line((left + 99, 80, left + 114, 80), fill=INK, width=3)
                    pen.polygon([(left + 112, 74), (left + 112, 86), (left + 120, 80)], fill=INK)

        return paint

    def bile_drain(pen: Pen) -> None:
        torso(pen, 50, 16, 210, 300)
        pen.polygon([(85, 90), (205, 78), (215, 110), (150, 140), (92, 132)], fill=RED, outline=INK)
        label(pen, (142, 108), "liver")
        pen.line((150, 138, 156, 172, 240, 190, 286, 210, 290, 268), fill=GREEN, width=6, joint="curve")
        pen.line((40, 228, 330, 228), fill=SOFT, width=2)
        label(pen, (336, 228), "waist", "lm")
        pen.rounded_rectangle((262, 264, 318, 332), 8, fill=GREEN, outline=INK, width=2)
        label(pen, (326, 298), "bag", "lm")
        label(pen, (298, 196), "drain", "lm")

    figure("alder-kidney-position.png", (430, 330), kidney_position)
    figure("alder-pill-box.png", (480, 200), pill_box)
    figure("cairn-drinks.png", (480, 260), drinks)
    figure("cairn-luggage.png", (420, 230), luggage)
    figure("brook-hands.png", (490, 160), steps(("wet", "soap", "rub", "rinse"), (SOFT, AMBER, PALE, SOFT)))
    figure("brook-clinic-day.png", (490, 160), steps(("sample", "scan", "talk", "new list"), (RED, PALE, AMBER, GREEN)))
    figure("elm-bile-drain.png", (400, 356), bile_drain)
    figure("elm-travel.png", (490, 160), steps(("card", "letter", "medicines", "+ 1 week"), (PALE, AMBER, RED, GREEN)))
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures and PDFs of the invented teaching handbooks")
    parser.add_argument("--pdf-dir", type=Path, help="write only the PDFs, into this folder")
    options = parser.parse_args()
    if options.pdf_dir is None:
        for path in draw_figures(HANDBOOKS / "figures"):
            print(path.relative_to(HANDBOOKS), path.stat().st_size)
    for handbook in DESIGNS:
        path = render(handbook, options.pdf_dir or HANDBOOKS / "pdf")
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
