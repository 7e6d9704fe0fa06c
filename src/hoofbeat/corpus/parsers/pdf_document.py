"""PDF: what most institutions publish. Text is read by position, structure from how it looks.

Headings are lines that the bookmarks name, else lines set larger than the body, or bold; their levels follow the
outline or their sizes. Lines become paragraphs again: words parted at line ends are joined, and a paragraph goes on
over columns and pages. Pictures are taken out and given to the captions they stand beside. Pages without text (scans)
are said to be that, not read as empty. Text that a reader of the page can't see is left out (`pdf_hidden`).

JPEG data leaves the file unchanged; every other picture becomes PNG. Small images, images repeated page after page
(logos) and absurd sizes are left out. A picture belongs to the nearest caption of its page, preferably the one below.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pypdfium2 as pdfium
from msgspec import Struct, field

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.pdf_hidden import PageSight
from hoofbeat.corpus.parsers.pdf_lines import (
    HYPHEN,
    LARGER,
    Bookmark,
    PageBox,
    PdfLine,
    TextRun,
    Turn,
    body_size,
    bookmarks,
    marked_lines,
    ordered_lines,
    page_turn,
    turned,
    without_running_heads,
)
from hoofbeat.corpus.parsers.prose import FrontMatter, TextBuilder, assemble, side_file
from hoofbeat.corpus.parsers.titles import is_title
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from hoofbeat.text import safe_id, squeeze

MIN_PIXELS = 40
MAX_PIXELS = 40_000_000
MIN_POINTS = 30.0
MAX_ON_A_PAGE = 100
MAX_DISTANCE = 0.4


class PageImage(NamedTuple):
    """A picture: its page, place (as the page is read), file name and data."""

    page: int
    x0: float
    x1: float
    bottom: float
    top: float
    name: str
    data: bytes


class CaptionPlace(NamedTuple):
    """Where a caption is."""

    page: int
    x0: float
    x1: float
    bottom: float
    top: float


def page_images(page: Any, number: int, stem: str, turn: Turn) -> list[PageImage]:
    """The pictures of one page, from top to bottom."""
    found: list[tuple[tuple[float, float, float, float], str, bytes]] = []
    for image in page.get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_IMAGE]):
        if len(found) >= MAX_ON_A_PAGE:
            break
        try:
            width, height = image.get_px_size()
            x0, x1, bottom, top = turned(*_bounds(image), turn)
            if min(width, height) < MIN_PIXELS or width * height > MAX_PIXELS:
                continue
            if min(x1 - x0, top - bottom) >= MIN_POINTS:
                found.append(((x0, x1, bottom, top), *_content(image)))
        except (pdfium.PdfiumError, ValueError, MemoryError):
            continue
    found.sort(key=lambda each: (-each[0][3], each[0][0]))
    return [
        PageImage(number, *place, f"{stem}-p{number}-{count}{suffix}", data)
        for count, (place, suffix, data) in enumerate(found, start=1)
    ]


def _bounds(image: Any) -> tuple[float, float, float, float]:
    left, bottom, right, top = image.get_bounds()
    return left, right, bottom, top


def _content(image: Any) -> tuple[str, bytes]:
    """File suffix and data of one picture."""
    if image.get_filters()[-1:] == ["DCTDecode"]:
        data = bytes(image.get_data(decode_simple=True))
        if data.startswith(b"\xff\xd8"):
            return ".jpg", data
    return ".png", _png(image.get_bitmap(render=False).to_numpy())


def _png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """Pixels (grey, BGR or BGRA) as a PNG file."""
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.ndim == 3:
        pixels = pixels[:, :, [2, 1, 0, *range(3, pixels.shape[2])]]
    kind = 0 if pixels.ndim == 2 else {3: 2, 4: 6}[pixels.shape[2]]
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    raw = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 6)), (b"IEND", b""))
    chunks = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def without_repeated(images: Sequence[PageImage]) -> list[PageImage]:
    """Images that do not come again on three pages or more."""
    digests = [hashlib.sha256(image.data).digest() for image in images]
    pages = Counter(
        digest for digest, _ in {(digest, image.page) for digest, image in zip(digests, images, strict=True)}
    )
    return [image for digest, image in zip(digests, images, strict=True) if pages[digest] < 3]


def captioned(
    images: Iterable[PageImage], captions: Sequence[CaptionPlace], heights: Sequence[float]
) -> tuple[dict[int, list[PageImage]], list[PageImage]]:
    """The pictures of each caption (by its place in the list), and those without a caption nearby."""
    chosen: defaultdict[int, list[PageImage]] = defaultdict(list)
    alone: list[PageImage] = []
    for image in images:
        costs = [
            (cost, place)
            for place, caption in enumerate(captions)
            if caption.page == image.page and (cost := _cost(image, caption)) <= MAX_DISTANCE * heights[image.page - 1]
        ]
        if costs:
            chosen[min(costs)[1]].append(image)
        else:
            alone.append(image)
    return dict(chosen), alone


def _cost(image: PageImage, caption: CaptionPlace) -> float:
    """How far a caption is from a picture: beside counts like below, above counts more, another column most."""
    below = image.bottom - caption.top
    above = caption.bottom - image.top
    apart = max(0.0, image.x0 - caption.x1, caption.x0 - image.x1)
    if below >= above:
        return max(0.0, below) + 3 * apart
    return 1.5 * max(0.0, above) + 3 * apart


MAX_PAGES = 5_000
MAX_IMAGE_BYTES = 300_000_000
MIN_UNCAPTIONED = 72.0
MAX_CAPTION = 600
NEAR_LINES = 2.5
MAX_HEADING = 200
MAX_WORD = 60
NEW_PARAGRAPH = 1.2
_BULLET = re.compile(r"[•◦▪●○■‣∙·–*-]\s+(?=\S)|(\d{1,3}[.)])\s+(?=\S)")
_HYPHENS = f"-‐{HYPHEN}"
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"[.!?:;]['\"”’)\]]*$")
_FIGURE = re.compile(r"(Fig(?:ure|\.)?\s*\d+[A-Za-z]?)\s*[.:]\s*", re.IGNORECASE)
_REASONS = {
    pdfium.raw.FPDF_ERR_PASSWORD: "the PDF is encrypted and needs a password",
    pdfium.raw.FPDF_ERR_SECURITY: "Hoofbeat can't read this kind of PDF encryption",
    pdfium.raw.FPDF_ERR_FORMAT: "the file is a broken PDF, or not a PDF",
}


class PdfParagraph:
    """Lines that belong together, while they are being put together."""

    def __init__(self, line: PdfLine) -> None:
        self.lines = [line]

    @property
    def first(self) -> PdfLine:
        """The first line."""
        return self.lines[0]

    @property
    def last(self) -> PdfLine:
        """The last line so far."""
        return self.lines[-1]


class _Content(Struct):
    """What a PDF file holds, page by page."""

    pieces: list[TextRun] = field(default_factory=list)
    pages: list[PageBox] = field(default_factory=list)
    images: list[PageImage] = field(default_factory=list)
    outline: list[Bookmark] = field(default_factory=list)
    title: str = ""


def read_pdf(
    data: bytes, path: Path, images: list[tuple[str, bytes]] | None = None, hidden: HiddenTexts | None = None
) -> Iterator[Document]:
    """The one document of a PDF file; what its side file says about it counts first (`side_file`).

    Figures name image files that are put into `images` (name, data); without a list pictures are not taken out.
    `hidden` takes what a reader of the page can't see.
    """
    about = side_file(path)
    content = _load(data, safe_id(path.stem) if images is not None else "", hidden or HiddenTexts())
    if not content.pieces:
        raise InputError(
            f"this PDF has no text: its {len(content.pages)} pages are images or empty, or their text is hidden",
            fix="recognise its text (OCR) first",
        )
    lines = ordered_lines(without_running_heads(content.pieces, content.pages))
    marks = marked_lines(lines, content.outline)
    parts = _paragraphs(lines, marks)
    pictures = _Pictures(parts, without_repeated(content.images), content.pages)
    builder = _Structure(lines, parts, marks, pictures).build()
    if images is not None:
        images += pictures.used
    if not about.title and content.title:
        about = msgspec.structs.replace(about, title=content.title)
    yield assemble(about if about.title else _titled(about, lines), builder, path.stem)


def extract_pdf(data: bytes, path: Path, scratch: Path, hidden: HiddenTexts | None = None) -> Iterator[Document]:
    """The document of a PDF, its pictures put into `scratch`; `path` says where its side file would lie."""
    images: list[tuple[str, bytes]] = []
    documents = list(read_pdf(data, path, images, hidden))
    if images:
        scratch.mkdir(parents=True, exist_ok=True)
    for name, picture in images:
        (scratch / name).write_bytes(picture)
    yield from documents


def _load(data: bytes, image_stem: str, hidden: HiddenTexts) -> _Content:
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as err:
        reason = _REASONS.get(getattr(err, "err_code", None), f"the PDF can't be opened: {err}")
        raise InputError(reason, fix="open it in a viewer and save an unprotected, repaired copy") from err
    content = _Content()
    with closing(document):
        count = len(document)
        if count > MAX_PAGES:
            raise HostileInputError(f"PDF refused as hostile: {count:,} pages, at most {MAX_PAGES:,} are read")
        try:
            for index in range(count):
                with closing(document[index]) as page, closing(page.get_textpage()) as textpage:
                    _load_page(page, textpage, content, image_stem, hidden)
        except pdfium.PdfiumError as err:
            number = len(content.pages) + 1
            raise InputError(f"the PDF is broken: page {number} can't be read", fix="repair the file") from err
        with suppress(pdfium.PdfiumError):
            title = squeeze(document.get_metadata_value("Title"))
            content.title = title if is_title(title) else ""
        content.outline = bookmarks(document)
    return content


def _load_page(page: Any, textpage: Any, content: _Content, image_stem: str, hidden: HiddenTexts) -> None:
    number = len(content.pages) + 1
    turn = page_turn(textpage)
    left, bottom, right, top = page.get_mediabox()
    _, _, bottom, top = turned(left, right, bottom, top, turn)
    pieces = PageSight(page, textpage).runs(number, turn, hidden)
    if image_stem and sum(len(image.data) for image in content.images) < MAX_IMAGE_BYTES:
        content.images += page_images(page, number, image_stem, turn)
    content.pieces += pieces
    content.pages.append(PageBox(bottom, top))


def _titled(about: FrontMatter, lines: list[PdfLine]) -> FrontMatter:
    """The title as the largest print of the first page."""
    first = [line for line in lines if line.page == lines[0].page]
    largest = max(line.size for line in first)
    words = [line.text for line in first if line.size == largest][:4]
    title = squeeze(" ".join(words))
    usable = len(title) <= MAX_HEADING and is_title(title)
    return msgspec.structs.replace(about, title=title) if usable else about


class _Pictures:
    """The pictures of a document: which caption each stands at, and which stand alone on their page."""

    def __init__(self, parts: Sequence[PdfParagraph], images: list[PageImage], pages: Sequence[PageBox]) -> None:
        self.used: list[tuple[str, bytes]] = []
        self._of: dict[int, list[PageImage]] = {}
        heights = [box.top - box.bottom for box in pages]
        labelled = [part for part in parts if _FIGURE.match(part.first.text)]
        alone = self._given(images, labelled, heights)
        body = body_size(line for part in parts for line in part.lines)
        small = [part for part in parts if _is_small_print(part, body) and not _FIGURE.match(part.first.text)]
        alone = self._given(alone, small, [NEAR_LINES * body / MAX_DISTANCE] * len(pages)) if alone else []
        self._alone = [each for each in alone if min(each.x1 - each.x0, each.top - each.bottom) >= MIN_UNCAPTIONED]

    def _given(
        self, images: Sequence[PageImage], captions: Sequence[PdfParagraph], reach: Sequence[float]
    ) -> list[PageImage]:
        """Give pictures to the captions near them; those that are left over."""
        chosen, alone = captioned(images, [_place(part) for part in captions], reach)
        self._of |= {id(captions[place]): found for place, found in chosen.items()}
        return alone

    def __contains__(self, part: PdfParagraph) -> bool:
        return id(part) in self._of

    def at(self, part: PdfParagraph) -> list[str]:
        """The files of a caption's pictures."""
        return self._names(self._of.get(id(part), []))

    def before(self, page: int) -> Iterator[tuple[int, list[str]]]:
        """Pictures without a caption on the pages up to this one, each once."""
        while self._alone and self._alone[0].page < page:
            image = self._alone.pop(0)
            yield image.page, self._names([image])

    def _names(self, images: list[PageImage]) -> list[str]:
        self.used += [(image.name, image.data) for image in images]
        return [image.name for image in images]


def _place(part: PdfParagraph) -> CaptionPlace:
    left, right = min(line.x0 for line in part.lines), max(line.x1 for line in part.lines)
    return CaptionPlace(part.first.page, left, right, part.last.y, part.first.y + part.first.size)


def _is_small_print(part: PdfParagraph, body: float) -> bool:
    """Whether a paragraph is set like a caption: small, short, no list item and no table row."""
    first = part.first
    short = sum(len(line.text) for line in part.lines) <= MAX_CAPTION
    return first.size < 0.96 * body and len(first.cells) == 1 and short and not _BULLET.match(first.text)


class _Structure:
    """Paragraphs on their way into sections, lists, tables and figures."""

    def __init__(
        self, lines: list[PdfLine], parts: list[PdfParagraph], marks: Mapping[PdfLine, int], pictures: _Pictures
    ) -> None:
        self.builder = TextBuilder()
        self.parts = parts
        self.marks = marks
        self.pictures = pictures
        self.body = body_size(lines)
        self.body_bold = _mostly_bold(lines, self.body)
        self.words = {word.lower() for line in lines for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", line.text)}
        self.levels = self._levels()
        self._rows: list[PdfLine] = []
        self._items: list[str] = []

    def build(self) -> TextBuilder:
        """Take every paragraph."""
        for part in self.parts:
            text = _joined(part.lines, self.words)
            bullet = _BULLET.match(text)
            heading = self._is_heading(part)
            if self._items and (heading or not bullet):
                self._flush_items()
            if self._rows and (heading or len(part.first.cells) == 1):
                self._flush_rows()
            for page, files in self.pictures.before(part.first.page):
                self.builder.figure(files=files, page=page)
            if heading:
                self._heading(part, text)
            elif len(part.first.cells) > 1:
                self._rows.extend(part.lines)
            elif bullet:
                self._items.append(f"{bullet.group(1) or '-'} {text[bullet.end() :]}")
            elif _FIGURE.match(text) or part in self.pictures:
                _, label, caption = _FIGURE.split(text, maxsplit=1) if _FIGURE.match(text) else ("", "", text)
                files = self.pictures.at(part)
                self.builder.figure(label=label, caption=caption, files=files, page=part.first.page)
            else:
                self.builder.paragraph(text, page=part.first.page)
        self._flush_items()
        self._flush_rows()
        for page, files in self.pictures.before(MAX_PAGES + 1):
            self.builder.figure(files=files, page=page)
        return self.builder

    def _is_heading(self, part: PdfParagraph) -> bool:
        return part.first in self.marks or _is_heading(part, self.body, self.body_bold)

    def _levels(self) -> dict[tuple[float, bool], int]:
        """The level of each look: by size where there is no outline, else as deep as the outline says."""
        found = [part for part in self.parts if self._is_heading(part)]
        styles = sorted({_style(part) for part in found}, key=lambda style: (-style[0], not style[1]))
        if not self.marks:
            return {style: min(place, 6) for place, style in enumerate(styles, start=1)}
        seen: dict[tuple[float, bool], int] = {}
        for part in found:
            if part.first in self.marks:
                depth = self.marks[part.first]
                seen[_style(part)] = min(seen.get(_style(part), depth), depth)
        above = sum(1 for style in styles if style[0] > max(size for size, _ in seen))
        levels: dict[tuple[float, bool], int] = {}
        deepest = 0
        for place, style in enumerate(styles, start=1):
            level = place if place <= above else above + seen[style] if style in seen else deepest + 1
            levels[style] = min(level, 6)
            deepest = max(deepest, level)
        self.marks = {line: min(above + depth, 6) for line, depth in self.marks.items()}
        return levels

    def _heading(self, part: PdfParagraph, text: str) -> None:
        level = self.marks.get(part.first) or self.levels[_style(part)]
        self.builder.nested_heading(text, level, page=part.first.page)

    def _flush_items(self) -> None:
        if self._items:
            self.builder.paragraph("\n".join(self._items))
            self._items.clear()

    def _flush_rows(self) -> None:
        if self._rows:
            _table(self.builder, self._rows)
            self._rows.clear()


def _table(builder: TextBuilder, rows: list[PdfLine]) -> None:
    if len(rows) == 1:
        builder.paragraph(rows[0].text, page=rows[0].page)
    else:
        builder.table((row.cells for row in rows), page=rows[0].page)


def _mostly_bold(lines: list[PdfLine], body: float) -> bool:
    same = [line for line in lines if line.size == body]
    return sum(len(line.text) for line in same if line.bold) * 2 > sum(len(line.text) for line in same)


def _style(part: PdfParagraph) -> tuple[float, bool]:
    return part.first.size, part.first.bold


def _is_heading(part: PdfParagraph, body: float, body_bold: bool) -> bool:
    text = " ".join(line.text for line in part.lines)
    if len(text) > MAX_HEADING or len(part.lines) > 4 or not any(character.isalpha() for character in text):
        return False
    if len(part.first.cells) > 1:
        return False
    if part.first.size >= body * LARGER:
        return True
    bold = part.first.bold and not body_bold and part.first.size >= body * 0.95
    return bold and not text.endswith((".", ",", ";"))


def _paragraphs(lines: list[PdfLine], marks: Mapping[PdfLine, int]) -> list[PdfParagraph]:
    """Lines grouped: a paragraph ends at a wider gap, a new look, an indent, a list mark, a table row or a bookmark."""
    steps = [
        (above.y - below.y) / below.size
        for above, below in pairwise(lines)
        if _same_column(above, below) and above.size == below.size and 0 < above.y - below.y < 3 * below.size
    ]
    leading = median(steps) if steps else 1.2
    parts: list[PdfParagraph] = []
    for line in lines:
        marked = line in marks or (bool(parts) and parts[-1].last in marks)
        if parts and not marked and _goes_on(parts[-1], line, leading):
            parts[-1].lines.append(line)
        else:
            parts.append(PdfParagraph(line))
    return parts


def _same_column(above: PdfLine, below: PdfLine) -> bool:
    return above.page == below.page and above.column == below.column


def _goes_on(part: PdfParagraph, line: PdfLine, leading: float) -> bool:
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


def _joined(lines: list[PdfLine], words: set[str]) -> str:
    """The text of lines as one; a word parted at a line's end loses its hyphen unless it is written with one."""
    pieces: list[str] = []
    for line, following in pairwise(lines):
        if line.text[-1] not in _HYPHENS:
            pieces += [line.text, " "]
            continue
        pieces.append(line.text[:-1])
        head = _LAST_WORD.search(line.text[-MAX_WORD:-1])
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
