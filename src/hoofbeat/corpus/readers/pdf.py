"""PDF: what most institutions publish. Text is read by position, structure from how it looks.

Headings are lines set larger than the body, or bold; their levels follow their sizes. Lines become paragraphs again:
words parted at line ends are joined, and a paragraph goes on over columns and pages. Pages without text (scans) are
said to be that, not read as empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec
import pypdfium2 as pdfium

from hoofbeat.corpus.readers.building import TextBuilder, role_of, squeeze
from hoofbeat.corpus.readers.front_matter import About, side_file
from hoofbeat.corpus.readers.markdown import assemble
from hoofbeat.corpus.readers.pdf_lines import (
    HYPHEN,
    LARGER,
    Line,
    PageBox,
    Piece,
    body_size,
    ordered_lines,
    page_pieces,
    without_running_heads,
)
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document

__all__ = ["READER", "read_pdf"]

READER = "pdf/1"
MOST_PAGES = 5_000
LONGEST_HEADING = 200
LONGEST_WORD = 60
NEW_PARAGRAPH = 1.2

_BULLET = re.compile(r"[•◦▪●○■‣∙·–*-]\s+(?=\S)|(\d{1,3}[.)])\s+(?=\S)")
_HYPHENS = f"-‐{HYPHEN}"
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"[.!?:;]['\"”’)\]]*$")
_FIGURE = re.compile(r"(Fig(?:ure|\.)?\s*\d+[A-Za-z]?)\s*[.:]\s*", re.IGNORECASE)
_UNTITLED = re.compile(r"(untitled|microsoft word\b.*|.*\.(docx?|indd|pdf|qxd|pptx?))", re.IGNORECASE)
_REASONS = {
    pdfium.raw.FPDF_ERR_PASSWORD: "the PDF is encrypted and needs a password",
    pdfium.raw.FPDF_ERR_SECURITY: "the PDF is encrypted in a way that can't be read",
    pdfium.raw.FPDF_ERR_FORMAT: "the PDF is broken or is no PDF",
}


class Paragraph:
    """Lines that belong together, while they are being put together."""

    def __init__(self, line: Line) -> None:
        self.lines = [line]

    @property
    def first(self) -> Line:
        """The first line."""
        return self.lines[0]

    @property
    def last(self) -> Line:
        """The last line so far."""
        return self.lines[-1]


def read_pdf(data: bytes, path: Path) -> Iterator[Document]:
    """The one document of a PDF file; what its side file says about it counts first (`front_matter.side_file`)."""
    about = side_file(path)
    pieces, pages, title = _load(data)
    if not pieces:
        raise InputError(
            f"no text in this PDF: its {len(pages)} pages are images or empty", fix="recognise its text (OCR) first"
        )
    lines = ordered_lines(without_running_heads(pieces, pages))
    builder = _build(lines)
    if not about.title and title:
        about = msgspec.structs.replace(about, title=title)
    yield assemble(about if about.title else _titled(about, lines), builder, path.stem)


def _load(data: bytes) -> tuple[list[Piece], list[PageBox], str]:
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as err:
        reason = _REASONS.get(getattr(err, "err_code", None), f"the PDF can't be opened: {err}")
        raise InputError(reason, fix="open it in a viewer and save an unprotected, repaired copy") from err
    with closing(document):
        count = len(document)
        if count > MOST_PAGES:
            raise HostileInputError(f"PDF refused as hostile: {count:,} pages, at most {MOST_PAGES:,} are read")
        pieces: list[Piece] = []
        boxes: list[PageBox] = []
        try:
            for index in range(count):
                with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
                    _, bottom, _, top = page.get_mediabox()
                    boxes.append(PageBox(bottom, top))
                    pieces.extend(page_pieces(textpage, index + 1))
        except pdfium.PdfiumError as err:
            raise InputError(f"the PDF is broken: page {len(boxes) + 1} can't be read", fix="repair the file") from err
        title = ""
        with suppress(pdfium.PdfiumError):
            title = squeeze(document.get_metadata_value("Title"))
    return pieces, boxes, "" if _UNTITLED.fullmatch(title) else title


def _titled(about: About, lines: list[Line]) -> About:
    """The title as the largest print of the first page."""
    first = [line for line in lines if line.page == lines[0].page]
    largest = max(line.size for line in first)
    words = [line.text for line in first if line.size == largest][:4]
    title = squeeze(" ".join(words))
    return msgspec.structs.replace(about, title=title) if len(title) <= LONGEST_HEADING else about


def _build(lines: list[Line]) -> TextBuilder:
    body = body_size(lines)
    body_bold = _mostly_bold(lines, body)
    words = {word.lower() for line in lines for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", line.text)}
    paragraphs = _paragraphs(lines)
    styles = sorted(
        {_style(part) for part in paragraphs if _is_heading(part, body, body_bold)},
        key=lambda style: (-style[0], not style[1]),
    )
    builder = TextBuilder()
    roles: list[tuple[int, str]] = []
    rows: list[Line] = []
    items: list[str] = []
    for part in paragraphs:
        text = _joined(part.lines, words)
        bullet = _BULLET.match(text)
        heading = _is_heading(part, body, body_bold)
        if items and (heading or not bullet):
            builder.paragraph("\n".join(items))
            items.clear()
        if rows and (heading or len(part.first.cells) == 1):
            _table(builder, rows)
            rows.clear()
        if heading:
            level = min(styles.index(_style(part)) + 1, 6)
            while roles and roles[-1][0] >= level:
                roles.pop()
            role = role_of(text, roles[-1][1] if roles else "")
            roles.append((level, role))
            builder.heading(text, level, role=role, page=part.first.page)
        elif len(part.first.cells) > 1:
            rows.extend(part.lines)
        elif bullet:
            items.append(f"{bullet.group(1) or '-'} {text[bullet.end() :]}")
        elif caption := _FIGURE.match(text):
            builder.figure(label=caption.group(1), caption=text[caption.end() :], page=part.first.page)
        else:
            builder.paragraph(text, page=part.first.page)
    if items:
        builder.paragraph("\n".join(items))
    if rows:
        _table(builder, rows)
    return builder


def _table(builder: TextBuilder, rows: list[Line]) -> None:
    if len(rows) == 1:
        builder.paragraph(rows[0].text, page=rows[0].page)
    else:
        builder.table((row.cells for row in rows), page=rows[0].page)


def _mostly_bold(lines: list[Line], body: float) -> bool:
    same = [line for line in lines if line.size == body]
    return sum(len(line.text) for line in same if line.bold) * 2 > sum(len(line.text) for line in same)


def _style(part: Paragraph) -> tuple[float, bool]:
    return part.first.size, part.first.bold


def _is_heading(part: Paragraph, body: float, body_bold: bool) -> bool:
    text = " ".join(line.text for line in part.lines)
    if len(text) > LONGEST_HEADING or len(part.lines) > 4 or not any(character.isalpha() for character in text):
        return False
    if len(part.first.cells) > 1:
        return False
    if part.first.size >= body * LARGER:
        return True
    bold = part.first.bold and not body_bold and part.first.size >= body * 0.95
    return bold and not text.endswith((".", ",", ";"))


def _paragraphs(lines: list[Line]) -> list[Paragraph]:
    """Lines grouped: a paragraph ends at a wider gap, a new look, an indent, a list mark or a table row."""
    steps = [
        (above.y - below.y) / below.size
        for above, below in pairwise(lines)
        if _same_column(above, below) and above.size == below.size and 0 < above.y - below.y < 3 * below.size
    ]
    leading = median(steps) if steps else 1.2
    parts: list[Paragraph] = []
    for line in lines:
        if parts and _goes_on(parts[-1], line, leading):
            parts[-1].lines.append(line)
        else:
            parts.append(Paragraph(line))
    return parts


def _same_column(above: Line, below: Line) -> bool:
    return above.page == below.page and above.column == below.column


def _goes_on(part: Paragraph, line: Line, leading: float) -> bool:
    last = part.last
    if abs(last.size - line.size) > 0.5 or last.bold != line.bold or _BULLET.match(line.text):
        return False
    if len(last.cells) > 1 or len(line.cells) > 1:
        return False
    if not _same_column(last, line):
        return not _SENTENCE_END.search(last.text) and (line.text[:1].islower() or last.text[-1] in f",-{HYPHEN}")
    if last.y - line.y > NEW_PARAGRAPH * leading * line.size:
        return False
    indented = line.x0 > last.x0 + 0.8 * line.size
    return not (indented and not _BULLET.match(last.text) and bool(_SENTENCE_END.search(last.text)))


def _joined(lines: list[Line], words: set[str]) -> str:
    """The text of lines as one; a word parted at a line's end loses its hyphen unless it is written with one."""
    pieces: list[str] = []
    for line, following in pairwise(lines):
        if line.text[-1] not in _HYPHENS:
            pieces += [line.text, " "]
            continue
        pieces.append(line.text[:-1])
        head = _LAST_WORD.search(line.text[-LONGEST_WORD:-1])
        tail = _FIRST_WORD.match(following.text)
        if not (head and tail and tail.group()[0].islower()):
            pieces.append("-")
            continue
        first, second = head.group().lower(), tail.group().lower()
        if f"{first}-{second}" in words and first + second not in words:
            pieces.append("-")
    last = lines[-1].text
    pieces.append(last[:-1] + "-" if last.endswith(HYPHEN) else last)
    return "".join(pieces).replace(HYPHEN, "")
