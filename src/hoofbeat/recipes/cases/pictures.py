"""How large an image is, read from the first bytes of its file: enough to leave out thumbnails and damaged files."""

from __future__ import annotations

import struct

__all__ = ["picture_size"]

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})


def picture_size(content: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF or JPEG in pixels; None for anything else and for what is cut off."""
    if content.startswith(_PNG) and len(content) >= 24:
        width, height = struct.unpack(">II", content[16:24])
        return int(width), int(height)
    if content[:6] in (b"GIF87a", b"GIF89a") and len(content) >= 10:
        width, height = struct.unpack("<HH", content[6:10])
        return int(width), int(height)
    return _jpeg_size(content) if content.startswith(b"\xff\xd8") else None


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            return None
        kind = content[at + 1]
        if kind == 0xFF or kind in _JPEG_ALONE:
            at += 1 if kind == 0xFF else 2
            continue
        if kind in _JPEG_SIZES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return int(width), int(height)
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return None
