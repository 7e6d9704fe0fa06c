"""From files to documents: one reader per format, chosen by the file's name, all with the same checks in front.

A file that can't be read raises an `InputError` that says why; one that could do harm raises a `HostileInputError`.
A row of a table or a member of a package that can't be read is a `Refusal` among the documents. Whoever reads many
files (`corpus.importing`) turns all of them into rejections and goes on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.corpus.readers import beir, html, jats, mapped, markdown, packages, pdf, plain, pmc_patients, r2med
from hoofbeat.corpus.readers.beir import TestCollection, read_beir, write_beir
from hoofbeat.corpus.readers.entries import Entry, Refusal
from hoofbeat.corpus.readers.mapped import parse_mapping
from hoofbeat.corpus.readers.r2med import read_r2med, write_r2med
from hoofbeat.corpus.readers.rows import ROW_SUFFIXES, bare_suffix
from hoofbeat.corpus.readers.streams import gunzip
from hoofbeat.corpus.roles import Role, assign_roles
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document, Provenance
from hoofbeat.store.files import file_sha256, read_bytes

__all__ = [
    "SUFFIXES",
    "Reading",
    "Refusal",
    "TestCollection",
    "check_file",
    "holds_documents",
    "is_known",
    "parse_mapping",
    "read_beir",
    "read_entries",
    "read_file",
    "read_r2med",
    "write_beir",
    "write_r2med",
]

LARGEST_FILE = 200_000_000

_WHOLE_FILE = {
    ".xml": jats.READER,
    ".nxml": jats.READER,
    ".md": markdown.MARKDOWN_READER,
    ".markdown": markdown.MARKDOWN_READER,
    ".txt": plain.TEXT_READER,
    ".html": html.READER,
    ".htm": html.READER,
    ".xhtml": html.READER,
    ".pdf": pdf.READER,
}
_MAY_HOLD_A_CASE = frozenset({jats.READER, pdf.READER, plain.TEXT_READER, packages.READER})
_STUDIES = frozenset({"research-article", "review-article", "systematic-review", "data-paper", "methods-article"})
SUFFIXES = (*_WHOLE_FILE, *ROW_SUFFIXES, *packages.PACKAGE_SUFFIXES)


class Reading(Struct, frozen=True):
    """A document and the folder in which the images it names lie."""

    document: Document
    images: Path


def is_known(path: Path) -> bool:
    """Whether there is a reader for a file of this name."""
    return packages.is_package(path) or bare_suffix(path) in {*_WHOLE_FILE, *ROW_SUFFIXES}


def holds_documents(path: Path, *, mapping: str = "") -> bool:
    """Whether a file found in a folder is taken for documents: tables of something else lie beside documents too."""
    if not is_known(path):
        return False
    if bare_suffix(path) not in ROW_SUFFIXES or packages.is_package(path):
        return True
    if bare_suffix(path) == ".json" and not path.name.lower().startswith("pmc-patients"):
        return False
    return _reader(path) != mapped.READER or mapped.holds_documents(path, mapping)


def read_file(path: Path, *, mapping: str = "") -> Iterator[Document]:
    """The documents of one file, each with its provenance; a document that can't be read is an `InputError`.

    Figures name image files as the source does; `read_entries` (or an import) gets at images in packages and PDFs.
    """
    with tempfile.TemporaryDirectory(prefix="hoofbeat-") as scratch:
        for entry in read_entries(path, Path(scratch), mapping=mapping):
            if isinstance(entry, Refusal):
                raise InputError(
                    f"{entry.member}: {entry.reason}", where=str(path), fix="correct it, or import the rest"
                )
            yield entry.document


def read_entries(path: Path, scratch: Path, *, mapping: str = "", digest: str = "") -> Iterator[Reading | Refusal]:
    """The documents of one file and where their images lie, and what of the file could not be read.

    `scratch` is a folder of the caller's, made if need be, that images in packages and PDFs are put into; `digest`
    is the file's SHA-256 if the caller has it.
    """
    reader = check_file(path)
    digest = digest or file_sha256(path)
    try:
        for entry in _entries(reader, path, scratch, mapping):
            if isinstance(entry, Refusal):
                yield entry
                continue
            provenance = Provenance(source=path.name, sha256=digest, reader=reader, member=entry.member)
            document = msgspec.structs.replace(entry.document, provenance=provenance)
            if reader in _MAY_HOLD_A_CASE and not _is_study(document):
                document = assign_roles(document)
            yield Reading(document, scratch if reader in {packages.READER, pdf.READER} else path.parent)
    except InputError as err:
        raise type(err)(err.what, where=err.where or str(path), fix=err.fix) from err
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check its permissions"
        ) from err


def check_file(path: Path) -> str:
    """The reader for a file, or an `InputError` where a look at it from outside tells that it can't be read."""
    reader = _reader(path)
    _check_size(path, reader)
    return reader


def _is_study(document: Document) -> bool:
    """Whether a document says itself that it reports a study: looking for a case in its text would find none."""
    if document.kind == "case-report":
        return False
    if document.facets.get("article-type") in _STUDIES:
        return True
    roles = {section.role for section in document.sections if section.level == 1}
    return Role.METHODS in roles and Role.RESULTS in roles


def _reader(path: Path) -> str:
    """Which reader a file's name, and for tables its company or its fields, ask for."""
    if packages.is_package(path):
        return packages.READER
    suffix = bare_suffix(path)
    if suffix in _WHOLE_FILE:
        return _WHOLE_FILE[suffix]
    if suffix not in ROW_SUFFIXES:
        raise InputError(
            f"no reader for this kind of file: {path.suffix or 'no suffix'}",
            where=str(path),
            fix=f"name files that end in {', '.join(SUFFIXES)}",
        )
    if path.name == "corpus.jsonl":
        if (path.parent / "query.jsonl").is_file():
            return r2med.READER
        if (path.parent / "queries.jsonl").is_file():
            return beir.READER
    try:
        return pmc_patients.READER if path.is_file() and pmc_patients.is_pmc_patients(path) else mapped.READER
    except InputError:
        return mapped.READER


def _check_size(path: Path, reader: str) -> None:
    """Refuse what is no file, is empty, or is too large to be read whole."""
    try:
        size = path.stat().st_size
        regular = path.is_file()
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
        ) from err
    if not regular:
        raise InputError("not a regular file", where=str(path), fix="name a file")
    if not size:
        raise InputError("the file is empty", where=str(path), fix="leave it out")
    if size > LARGEST_FILE and reader in _WHOLE_FILE.values():
        raise HostileInputError(
            f"file too large: {size / 1e6:,.0f} MB, at most {LARGEST_FILE / 1e6:,.0f} MB are read",
            where=str(path),
            fix="split it, or leave it out",
        )


def _entries(reader: str, path: Path, scratch: Path, mapping: str) -> Iterator[Entry | Refusal]:
    if mapping and bare_suffix(path) in ROW_SUFFIXES:
        yield from mapped.read_mapped(path, mapping)
    elif reader == packages.READER:
        yield from packages.read_package(path, scratch)
    elif reader in {beir.READER, r2med.READER}:
        yield from beir.read_corpus(path)
    elif reader == pmc_patients.READER:
        yield from pmc_patients.read_pmc_patients(path)
    elif reader == mapped.READER:
        yield from mapped.read_mapped(path)
    else:
        documents = list(_documents(reader, _whole(path, text=reader != pdf.READER), path, scratch))
        for number, document in enumerate(documents, start=1):
            yield Entry(document=document, member=str(number) if len(documents) > 1 else "")


def _whole(path: Path, *, text: bool) -> bytes:
    data = gunzip(path, LARGEST_FILE) if path.suffix.lower() == ".gz" else read_bytes(path)
    if not data.strip():
        raise InputError("the file is empty", where=str(path), fix="leave it out")
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if text and not wide and b"\0" in data:
        raise InputError(
            "NUL bytes in a text file: it is binary, damaged, or not UTF-8",
            where=str(path),
            fix="convert it to UTF-8, or leave it out",
        )
    return data


def _documents(reader: str, data: bytes, path: Path, scratch: Path) -> Iterator[Document]:
    stem = Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem
    if reader == jats.READER:
        yield from jats.read_jats(data, stem)
    elif reader == pdf.READER:
        yield from packages.pdf_documents(data, path, scratch)
    elif reader == html.READER:
        yield from html.read_html(data, stem)
    else:
        text, notices = _decoded(data)
        read = plain.read_text if reader == plain.TEXT_READER else markdown.read_markdown
        for document in read(text, stem):
            yield msgspec.structs.replace(document, notices=(*document.notices, *notices))


def _decoded(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file with `\\n` line ends, and a notice where its encoding had to be guessed."""
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return _unix(data.decode("utf-16" if wide else "utf-8-sig")), ()
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
        return _unix(text), ("read as Windows-1252: the file is not valid UTF-8",)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
