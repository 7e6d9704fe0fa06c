"""A plain summary as PDF: one A4 page for people who will not read the report.

It says what was asked, what was found, how sure that is, what to do, and what the result is not. The type gets smaller
until all of it fits; where even the smallest does not, the last sentences of the longest part are left out, and the
page says so. A very long sentence is cut. Latin text is set in a font that every reader has. Text in another script
needs a font of this machine.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from msgspec.structs import replace

from hoofbeat.reports.model import PlainSummary
from hoofbeat.text import cut, one_line

_SIZES = (11.0, 10.5, 10.0, 9.5, 9.0, 8.5, 8.0, 7.5)
_FONT = "Helvetica"
_FONT_FILES = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "Arial.ttf", "arial.ttf")
_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts", "C:/Windows/Fonts")
_PLAIN = str.maketrans({"−": "-", "→": "to", "≤": "at most ", "≥": "at least ", "κ": "kappa", "\u202f": " "})
_PARTS = {
    "asked": "What was asked",
    "found": "What was found",
    "sure": "How sure this is",
    "decided": "What was decided",
    "todo": "What to do now",
    "limits": "What this is not",
}
_MARGIN = 56.0
_LONGEST = 400


def to_summary(summary: PlainSummary, notice: str, version: str) -> bytes:
    """The page as PDF; the same summary gives the same bytes."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    stream = io.BytesIO()
    canvas = Canvas(stream, pagesize=A4, invariant=1)
    summary = replace(summary, title=cut(summary.title, 160), subtitle=cut(summary.subtitle, 200))
    summary = replace(summary, warning=cut(summary.warning, _LONGEST))
    canvas.setTitle(summary.title)
    canvas.setAuthor(f"Hoofbeat {version}")
    canvas.setSubject(notice)
    summary = replace(
        summary, **{part: tuple(cut(each, _LONGEST) for each in getattr(summary, part)) for part in _PARTS}
    )
    font = _font_of(summary)
    foot = f"{notice} Made with Hoofbeat {version}. The report has every figure and how it was made."
    while not _draw(canvas, summary, foot, font, A4):
        summary = _shorter(summary)
    canvas.showPage()
    canvas.save()
    return stream.getvalue()


def _draw(canvas: Any, summary: PlainSummary, foot: str, font: str, page: tuple[float, float]) -> bool:
    """Draw at the largest size that fits; False where none does."""
    from reportlab.platypus import Frame

    width, height = page[0] - 2 * _MARGIN, page[1] - 2 * _MARGIN

    def fits(size: float) -> bool:
        flow = _flow(summary, foot, font, size)
        heights = (each.wrap(width, height)[1] + each.getSpaceBefore() + each.getSpaceAfter() for each in flow)
        return float(sum(heights)) <= height

    if not fits(_SIZES[-1]):
        return False
    flow = _flow(summary, foot, font, next(size for size in _SIZES if fits(size)))
    Frame(_MARGIN, _MARGIN, width, height, 0, 0, 0, 0).addFromList(flow, canvas)
    assert not flow
    return True


def _flow(summary: PlainSummary, foot: str, font: str, size: float) -> list[Any]:
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph

    bold = f"{font}-Bold" if font == _FONT else font
    base = ParagraphStyle("base", fontName=font, fontSize=size, leading=1.32 * size, spaceAfter=0.35 * size)
    title = ParagraphStyle("title", base, fontName=bold, fontSize=1.7 * size, leading=2.0 * size, spaceAfter=0.6 * size)
    head = ParagraphStyle(
        "head", base, fontName=bold, fontSize=1.15 * size, spaceBefore=0.7 * size, textColor="#1d3a57"
    )
    item = ParagraphStyle("item", base, leftIndent=1.1 * size, bulletIndent=0)
    small = ParagraphStyle("small", base, fontSize=0.85 * size, textColor="#4a5560", spaceBefore=0.5 * size)

    warning = ParagraphStyle("warning", base, fontName=bold, textColor="#8a1c1c", spaceBefore=0.5 * size)

    def paragraph(text: str, style: ParagraphStyle, bullet: str = "") -> Any:
        return Paragraph(escape(_printable(text, font)), style, bulletText=bullet or None)

    flow = [paragraph(summary.title, title)]
    if summary.subtitle:
        flow.append(paragraph(summary.subtitle, small))
    if summary.warning:
        flow.append(paragraph(summary.warning, warning))
    for name, words in _PARTS.items():
        sentences: Sequence[str] = getattr(summary, name)
        if sentences:
            flow.append(paragraph(words, head))
            flow += [paragraph(each, item, "•") for each in sentences]
    return [*flow, paragraph(foot, small)]


def _shorter(summary: PlainSummary) -> PlainSummary:
    """The summary without the last sentence of its longest part, or with its only sentences cut."""
    name = max(_PARTS, key=lambda part: sum(map(len, getattr(summary, part))))
    sentences: tuple[str, ...] = getattr(summary, name)
    left = "More is in the report."
    if len(sentences) > 2:
        kept = [each for each in sentences if each != left][:-1]
        return replace(summary, **{name: (*kept, left)})
    return replace(summary, **{name: tuple(f"{each[: len(each) // 2]}…" for each in sentences)})


def _printable(text: str, font: str) -> str:
    """One line in the characters that the font has; what it lacks is a question mark."""
    line = one_line(text)
    if font == _FONT:
        return line.translate(_PLAIN).encode("cp1252", "replace").decode("cp1252")
    from reportlab.pdfbase.pdfmetrics import getFont

    known = getFont(font).face.charToGlyph
    return "".join(letter if ord(letter) in known or letter == " " else "?" for letter in line)


def _font_of(summary: PlainSummary) -> str:
    """The font that every reader has, unless the text needs another script and this machine has a font for it."""
    told = [
        summary.title,
        summary.subtitle,
        summary.warning,
        *(each for part in _PARTS for each in getattr(summary, part)),
    ]
    try:
        "".join(map(one_line, told)).translate(_PLAIN).encode("cp1252")
    except UnicodeEncodeError:
        return _found_font() or _FONT
    return _FONT


@cache
def _found_font() -> str:
    from reportlab.pdfbase.pdfmetrics import registerFont
    from reportlab.pdfbase.ttfonts import TTFont

    folders = [Path(name) for name in _FONT_FOLDERS if Path(name).is_dir()]
    for name in _FONT_FILES:
        for path in sorted(found for folder in folders for found in folder.rglob(name)):
            registerFont(TTFont("Found", str(path)))
            return "Found"
    return ""
