"""The pictures of a PDF: taken out as they are stored, and given to the captions they stand beside.

JPEG data leaves the file unchanged; everything else becomes PNG. Small images, images repeated page after page (logos)
and absurd sizes are left out. A picture belongs to the nearest caption of its page, above it or, rather, below it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pypdfium2 as pdfium

from hoofbeat.corpus.parsers.pdf_lines import Turn, turned

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
    """Where a caption stands."""

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
    """The pictures of each caption (by its place in the list), and those that no caption stands near."""
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
