"""From files to documents: one reader per format, chosen by the file's suffix, all with the same checks in front.

A file that can't be read raises an `InputError` that says why; one that could do harm raises a `HostileInputError`.
Whoever reads many files (`corpus.importing`) turns either into a rejection and goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hoofbeat.corpus.readers import jats, markdown, pdf
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document, Provenance
from hoofbeat.store.files import read_bytes

__all__ = ["SUFFIXES", "read_file"]

LARGEST_FILE = 200_000_000
SUFFIXES = (".xml", ".nxml", ".md", ".markdown", ".txt", ".pdf")

_READERS = {
    ".xml": jats.READER,
    ".nxml": jats.READER,
    ".md": markdown.MARKDOWN_READER,
    ".markdown": markdown.MARKDOWN_READER,
    ".txt": markdown.TEXT_READER,
    ".pdf": pdf.READER,
}


def read_file(path: Path) -> Iterator[Document]:
    """The documents of one file, each with its provenance."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"no reader for this kind of file: {path.suffix or 'no suffix'}",
            where=str(path),
            fix=f"name files that end in {', '.join(SUFFIXES)}",
        )
    data = _checked_bytes(path, text=reader != pdf.READER)
    digest = hashlib.sha256(data).hexdigest()
    try:
        documents = list(_documents(reader, data, path))
    except InputError as err:
        raise type(err)(err.what, where=err.where or str(path), fix=err.fix) from err
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check its permissions"
        ) from err
    for number, document in enumerate(documents, start=1):
        member = str(number) if len(documents) > 1 else ""
        provenance = Provenance(source=path.name, sha256=digest, reader=reader, member=member)
        yield msgspec.structs.replace(document, provenance=provenance)


def _checked_bytes(path: Path, *, text: bool) -> bytes:
    try:
        size = path.stat().st_size
        regular = path.is_file()
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
        ) from err
    if not regular:
        raise InputError("not a regular file", where=str(path), fix="name a file")
    if size > LARGEST_FILE:
        raise HostileInputError(
            f"file too large: {size / 1e6:,.0f} MB, at most {LARGEST_FILE / 1e6:,.0f} MB are read",
            where=str(path),
            fix="split it, or leave it out",
        )
    data = read_bytes(path)
    if not data.strip():
        raise InputError("the file is empty", where=str(path), fix="leave it out")
    if text and b"\0" in data:
        raise InputError(
            "NUL bytes in a text file: it is binary, damaged, or not UTF-8",
            where=str(path),
            fix="convert it to UTF-8, or leave it out",
        )
    return data


def _documents(reader: str, data: bytes, path: Path) -> Iterator[Document]:
    if reader == jats.READER:
        yield from jats.read_jats(data, path.stem)
    elif reader == pdf.READER:
        yield from pdf.read_pdf(data, path)
    else:
        text, notices = _decoded(data)
        read = markdown.read_text if reader == markdown.TEXT_READER else markdown.read_markdown
        for document in read(text, path.stem):
            yield msgspec.structs.replace(document, notices=(*document.notices, *notices))


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file with `\\n` line ends, and a notice where it had to be guessed."""
    try:
        text, notices = data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
        return _unix(text), ("read as Windows-1252: the file is not valid UTF-8",)
    return _unix(text), notices


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
