"""Packages: `.tar.gz`, `.tgz`, `.tar` and `.zip` files as PubMed Central's open-access service gives them out.

An article's package holds one XML file (or, for scans, a PDF) with its images and supplements; a bulk package holds
thousands of XML files. Nothing is unpacked by the names in the package: XML is read in memory, images go under their
last name into a scratch folder that the caller empties. Names that climb, links, devices, bombs and absurd numbers of
members are refused before anything of a package is read.
"""

from __future__ import annotations

import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from msgspec import Struct

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.archive_members import bounded_content, name_problem, zip_problem
from hoofbeat.corpus.reader import DocumentEntry, Reader, Refusal, SourceFile, refusal
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document
from hoofbeat.store.files import BoundedGzipStream, stream_errors

MAX_MEMBERS = 1_000_000
MAX_ARTICLE = 200_000_000
MAX_IMAGE = 50_000_000
MAX_IMAGE_BYTES = 2_000_000_000

_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".tif", ".tiff", ".bmp"})


class _Member(Struct, frozen=True):
    """A member: its name, its stated size, what forbids it (if anything), and how to open it."""

    name: str
    size: int
    problem: str
    open: Callable[[], IO[bytes]]

    @property
    def suffix(self) -> str:
        """The name's suffix; none for hidden files and macOS's resource forks."""
        path = PurePosixPath(self.name)
        return "" if path.name.startswith(".") else path.suffix.lower()


class _Package(Reader):
    name = "package"
    summary = "PubMed Central's packages: an article's XML or PDF with its images, or many articles"
    suffixes = (".tar.gz", ".tgz", ".tar", ".zip")
    gzipped = False
    max_bytes = None
    may_hold_case = True
    extracts_images = True

    def read(self, source: SourceFile) -> Iterator[DocumentEntry | Refusal]:
        return read_package(source.path, source.scratch, source.hidden)


READER = _Package()


def read_package(path: Path, scratch: Path, hidden: HiddenTexts | None = None) -> Iterator[DocumentEntry | Refusal]:
    """The documents of a package; images of a single article are put into `scratch` (made if need be) first."""
    articles, papers = _survey(path)
    if not articles and not papers:
        raise InputError("no article in this package: it has no XML and no PDF", fix="leave it out")
    wanted = frozenset({".xml", ".nxml"} if articles else {".pdf"})
    alone = (articles or papers) == 1
    scratch.mkdir(parents=True, exist_ok=True)
    held: list[tuple[str, bytes]] = []
    written = 0
    with _members(path) as members:
        for member in members:
            if member.suffix in wanted:
                try:
                    data = _content(member, MAX_ARTICLE)
                    if alone:
                        held.append((member.name, data))
                        continue
                    yield from _entries(member.name, data, scratch, hidden, alone=False)
                except InputError as err:
                    yield refusal(member.name, err)
            elif alone and member.suffix in _IMAGES and member.size <= MAX_IMAGE:
                written += member.size
                if written > MAX_IMAGE_BYTES:
                    raise HostileInputError("package refused as hostile: too many images", fix="leave it out")
                (scratch / _last_name(member.name)).write_bytes(_content(member, MAX_IMAGE))
    for name, data in held:
        yield from _entries(name, data, scratch, hidden, alone=True)


def _entries(
    name: str, data: bytes, scratch: Path, hidden: HiddenTexts | None, *, alone: bool
) -> Iterator[DocumentEntry | Refusal]:
    for document in _documents(name, data, scratch, hidden):
        yield DocumentEntry(document=document, member=name if not alone else PurePosixPath(name).name)


def _documents(name: str, data: bytes, scratch: Path, hidden: HiddenTexts | None) -> Iterator[Document]:
    if not data.strip():
        raise InputError("the file is empty", fix="leave it out")
    stem = PurePosixPath(name).stem
    if PurePosixPath(name).suffix.lower() == ".pdf":
        from hoofbeat.corpus.parsers.pdf_document import extract_pdf  # noqa: PLC0415 - PDFium, only for PDFs

        yield from extract_pdf(data, scratch / _last_name(name), scratch, hidden)
    else:
        from hoofbeat.corpus.parsers.jats_article import read_jats  # noqa: PLC0415 - lxml, only for XML

        yield from read_jats(data, stem)


def _survey(path: Path) -> tuple[int, int]:
    """How many XML files and PDFs a package holds, after every member's name, kind and size was checked."""
    articles = papers = count = 0
    with _members(path) as members:
        for member in members:
            count += 1
            if count > MAX_MEMBERS:
                raise HostileInputError(
                    f"package refused as hostile: more than {MAX_MEMBERS:,} members", fix="leave it out"
                )
            if problem := member.problem or name_problem(member.name):
                raise HostileInputError(f"package refused as hostile: {problem}", fix="leave it out")
            articles += member.suffix in {".xml", ".nxml"}
            papers += member.suffix == ".pdf"
    return articles, papers


def _last_name(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name[-200:]


def _content(member: _Member, max_bytes: int) -> bytes:
    with member.open() as stream:
        return bounded_content(stream, max_bytes)


@contextmanager
def _members(path: Path) -> Iterator[Iterator[_Member]]:
    """A package's members in order, each to be read before the next is asked for."""
    try:
        with stream_errors(path), path.open("rb") as stream:
            yield _zip_members(stream) if path.suffix.lower() == ".zip" else _tar_members(stream, path)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as err:
        raise InputError(f"the package is broken or cut off: {err}", fix="fetch it again") from err


def _tar_members(stream: IO[bytes], path: Path) -> Iterator[_Member]:
    gzipped = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    source: IO[bytes] = BoundedGzipStream(stream, path.stat().st_size) if gzipped else stream  # type: ignore[assignment]
    with tarfile.open(fileobj=source, mode="r:") as package:
        while (info := package.next()) is not None:
            package.members = []  # type: ignore[attr-defined]  # the list would grow with the package
            if info.isdir():
                continue
            problem = "" if info.isreg() else "a member is a link or a device"
            if info.size < 0:
                problem = "a member has a negative size"
            yield _Member(info.name, info.size, problem, partial(_opened, package, info))


def _opened(package: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    stream = package.extractfile(info)
    if stream is None:
        raise InputError("a member can't be read", fix="leave it out")
    return stream


def _zip_members(stream: IO[bytes]) -> Iterator[_Member]:
    with _damaged_zip():
        opened = zipfile.ZipFile(stream)
    with opened as package:
        for info in package.infolist():
            if info.is_dir():
                continue
            yield _Member(info.filename, info.file_size, zip_problem(info), partial(_opened_in_zip, package, info))


def _opened_in_zip(package: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    with _damaged_zip():
        return package.open(info)


@contextmanager
def _damaged_zip() -> Iterator[None]:
    """A damaged directory or name is a damaged file; the library lets the error of its decoding through."""
    try:
        yield
    except (struct.error, ValueError, EOFError) as err:
        raise zipfile.BadZipFile(str(err)) from err
