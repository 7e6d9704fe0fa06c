"""Is a file that arrived whole?

Told from the file itself, since a stated length can be wrong and a proxy can answer in a server's place: packages are
read to their checksum at the end, XML must end with the tag it began with.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import zlib
from pathlib import Path

__all__ = ["damage", "file_md5"]

LARGEST_UNPACKED = 20 * 1024**3
MOST_MEMBERS = 20_000

_ROOT = re.compile(rb"<(?![?!])([A-Za-z_][\w:.-]*)")
_PROLOGUE = re.compile(rb"<\?.*?\?>|<!--.*?-->|<!DOCTYPE(?:[^\[>]|\[.*?\])*>", re.DOTALL)
_BLOCK = 1 << 20


def damage(path: Path, name: str) -> str:
    """What is wrong with a file that is to be called `name`; empty when nothing is."""
    low = name.lower()
    if path.stat().st_size == 0:
        return "the file is empty"
    if low.endswith((".tar.gz", ".tgz")):
        return _package_damage(path)
    if low.endswith(".gz"):
        return _gzip_damage(path)
    if low.endswith((".xml", ".nxml")):
        return _xml_damage(path)
    return ""


def file_md5(path: Path) -> str:
    """The MD5 of a file, which some services give as its checksum; never used against an adversary."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _package_damage(path: Path) -> str:
    """Read the whole archive: gzip's own checksum comes at its end, and every member's header must make sense."""
    seen = 0
    try:
        with tarfile.open(path, "r|gz") as archive:
            for _ in archive:
                seen += 1
                if seen > MOST_MEMBERS:
                    return f"refused: more than {MOST_MEMBERS} files in the package"
    except (tarfile.TarError, OSError, EOFError, zlib.error) as err:
        return f"not a whole .tar.gz: {err}"
    if not seen:
        return "not a whole .tar.gz: no file in it"
    return _gzip_damage(path)


def _gzip_damage(path: Path) -> str:
    size = 0
    try:
        with gzip.open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > LARGEST_UNPACKED:
                    return f"refused: unpacks to more than {LARGEST_UNPACKED} bytes"
    except (OSError, EOFError, zlib.error) as err:
        return f"not a whole gzip file: {err}"
    return ""


def _xml_damage(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(256 * 1024)
        stream.seek(max(0, path.stat().st_size - 4096))
        tail = stream.read().rstrip()
    root = _ROOT.search(_PROLOGUE.sub(b"", head))
    if root is None:
        return "not an XML file"
    if root.group(1).lower() == b"html":
        return "a web page, not an article"
    closing = re.compile(rb"</" + re.escape(root.group(1)) + rb"\s*>(?:\s*<!--.*?-->)*$", re.DOTALL)
    return "" if closing.search(tail) else "the XML breaks off before its end"
