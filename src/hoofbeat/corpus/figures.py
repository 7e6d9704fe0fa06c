"""Figures of a document: where its text speaks of them, and their image files on the way into a corpus.

A recipe that asks about an image has to know which sentences refer to it, and one that must not show the answer has to
know which figures a passage gives away. References are found by the words (`Fig. 2`, `Figures 1 and 3`, `Figs. 1–3`),
so this works for every format; a caption is not a reference.

A file name in a document is a stranger's word. Only its last part is used, only in the document's folder and its
`figures` folder, and only for regular image files that really lie there. Articles often name the publisher's file
(`g001.tif`, or `g001` alone) where the package has it as a web image: any image of the same stem will do.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

import msgspec

from hoofbeat.corpus.roles import role_spans
from hoofbeat.errors import InputError
from hoofbeat.records import Document, Figure
from hoofbeat.store.files import output_errors, read_bytes
from hoofbeat.text import safe_id

MAX_RANGE = 20
_ONE = r"[Ss]?\d{1,3}(?![\d.]\d)"
_TAIL = r"(?:\s?[\(\[]?[A-Za-z](?:\s?[-–,]\s?[A-Za-z])*[\)\]]?(?![A-Za-z]))?"
_LIST = rf"{_ONE}{_TAIL}(?:(?:\s*(?:,|and|&|or|to|[-–—])\s*)+(?:Figs?\.?\s*|Figures?\s*|Tables?\s*)?{_ONE}{_TAIL})*"
_FIGURES = re.compile(rf"\bFig(?:ure|\.)?s?\.?\s*({_LIST})", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![A-Za-z\d])[Ss]?\d{1,3}(?!\d)")
_RANGE = re.compile(r"\s*(?:[-–—]|to)\s*")
_LABEL_NUMBER = re.compile(r"\d+")


def figure_references(document: Document) -> list[tuple[int, int, str]]:
    """Start, end and figure id of every place that names a figure by its number, in reading order."""
    return list(_references(document))


def _references(document: Document) -> Iterator[tuple[int, int, str]]:
    ids: dict[str, str] = {}
    for figure in document.figures:
        if number := _NUMBER.search(figure.label):
            ids.setdefault(number.group().upper(), figure.id)
    captions = {figure.start for figure in document.figures}
    for match in _FIGURES.finditer(document.text) if ids else ():
        if match.start() in captions:
            continue
        before = None
        for number in _NUMBER.finditer(document.text, match.start(1), match.end(1)):
            name = number.group().upper()
            for between in _between(before, name, document.text, number.start()):
                if between in ids:
                    yield number.start(), number.end(), ids[between]
            if name in ids:
                yield number.start(), number.end(), ids[name]
            before = name, number.end()


def _between(before: tuple[str, int] | None, name: str, text: str, start: int) -> Iterator[str]:
    """The numbers that a range (`1–3`) names without writing them."""
    if before is None or not _RANGE.fullmatch(text[before[1] : start]):
        return
    first, last = before[0].lstrip("S"), name.lstrip("S")
    if int(first) < int(last) <= int(first) + MAX_RANGE:
        prefix = "S" if name.startswith("S") else ""
        yield from (f"{prefix}{number}" for number in range(int(first) + 1, int(last)))


def figure_roles(document: Document, figure: Figure) -> set[str]:
    """The roles of the sections a figure belongs to."""
    spans = list(role_spans(document))
    found = {role for role, start, end in spans if start <= figure.start < end}
    number = _LABEL_NUMBER.search(figure.label)
    if found or not number:
        return found
    mention = re.compile(rf"\bfig(?:ure|s|ures)?\b\.?\s*{number[0]}(?!\d)", re.IGNORECASE)
    for match in mention.finditer(document.text):
        if not figure.start <= match.start() < figure.end:
            return {role for role, start, end in spans if start <= match.start() < end}
    return found


IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".tif", ".tiff", ".bmp")
MAX_IMAGE = 50_000_000


class ImageStore:
    """The images of a corpus being written, and how many that documents name were not to be had."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.copied = 0
        self.missing = 0

    def keep(self, document: Document, folder: Path) -> Document:
        """Copy the document's images from its folder; its figures then name the copies, and only those."""
        if not any(figure.files for figure in document.figures):
            return document
        names: dict[str, str] = {}
        there = {place: _images_in(place) for place in (folder, folder / "figures")}
        figures = []
        for figure in document.figures:
            copies = (self._copy(reference, document.id, there, names) for reference in figure.files)
            figures.append(msgspec.structs.replace(figure, files=tuple(filter(None, copies))))
        return msgspec.structs.replace(document, figures=tuple(figures))

    def _copy(self, reference: str, document: str, there: Mapping[Path, frozenset[str]], names: dict[str, str]) -> str:
        """The copy's path in the corpus, or nothing.

        `there` are the image files by folder, the document's own first; `names` are those that the document's images
        have, with their hash.
        """
        found = _beside(reference, there)
        data = _image_bytes(found) if found else None
        if found is None or data is None:
            self.missing += 1
            return ""
        digest = hashlib.sha256(data).hexdigest()
        name = safe_id(found.stem) + found.suffix.lower()
        if names.get(name, digest) != digest:
            name = f"{safe_id(found.stem)}-{digest[:8]}{found.suffix.lower()}"
        relative = f"images/{document}/{name}"
        if name not in names:
            names[name] = digest
            place = self.target / relative
            with output_errors(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
            self.copied += 1
        return relative


def _beside(reference: str, there: Mapping[Path, frozenset[str]]) -> Path | None:
    if not any(there.values()):
        return None
    name = PurePosixPath(reference.replace("\\", "/")).name
    if not name or name.startswith(".") or "\0" in name or len(name.encode("utf-8", "replace")) > 200:
        return None
    names = [f"{name}{ending}" for ending in IMAGE_SUFFIXES]
    if PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES:
        names = [name, *(f"{PurePosixPath(name).stem}{ending}" for ending in IMAGE_SUFFIXES)]
    folder = next(iter(there))
    for place, images in there.items():
        for each in names:
            if each in images and (place / each).resolve().is_relative_to(folder.resolve()):
                return place / each
    return None


def _images_in(folder: Path) -> frozenset[str]:
    """The names of the image files in a folder; empty where there is no such folder."""
    try:
        return _listed(str(folder), folder.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=8)
def _listed(folder: str, changed: int) -> frozenset[str]:  # noqa: ARG001 - a folder that changed is listed anew
    with os.scandir(folder) as entries:
        return frozenset(
            entry.name
            for entry in entries
            if PurePosixPath(entry.name).suffix.lower() in IMAGE_SUFFIXES and entry.is_file()
        )


def _image_bytes(path: Path) -> bytes | None:
    try:
        return read_bytes(path) if path.stat().st_size <= MAX_IMAGE else None
    except (InputError, OSError):
        return None
