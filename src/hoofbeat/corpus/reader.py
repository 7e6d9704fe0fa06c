"""From files to documents. A reader is one format: `corpus/readers` has one file per format, plugins bring more.

Hoofbeat chooses the reader by the file's name and, where several formats share a suffix, by a look at the file. A file
that can't be read raises an `InputError` that says why; one that could do harm raises a `HostileInputError`. A row of a
table or a member of a package that can't be read is a `Refusal` among the documents, so that one bad row never costs
the others. `corpus_import` turns all of them into rejections and goes on.
"""

from __future__ import annotations

import hashlib
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.corpus.hidden_text import HiddenText, HiddenTexts, without_hidden_characters
from hoofbeat.corpus.roles import Role, assign_roles
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document, Provenance
from hoofbeat.registry import registry
from hoofbeat.store.files import file_sha256, gunzip, read_bytes

MAX_FILE_BYTES = 200_000_000
"""The largest file, decompressed, that is read whole."""

_HELD_BYTES = 4_000_000
_GZIP = ".gz"
_STUDIES = frozenset({"research-article", "review-article", "systematic-review", "data-paper", "methods-article"})


class Refusal(Struct, frozen=True, kw_only=True):
    """One document of a file that was not taken: where in the file, why, and the reason without its particulars."""

    member: str
    reason: str
    group: str


class DocumentEntry(Struct, frozen=True, kw_only=True):
    """One document of a file and its place in the file (empty when it is the whole file)."""

    document: Document
    member: str = ""


class DocumentWithImages(Struct, frozen=True):
    """A document, the folder that holds the images it names, and the hidden text that was found in it."""

    document: Document
    images: Path
    hidden: tuple[HiddenText, ...] = ()


class SourceFile:
    """A file to read. `scratch` is a folder for extracted images, `mapping` the user's line about fields of tables.

    `content` are the file's bytes where they have been read. A reader that finds text which a person can't see asks
    `hidden` whether to leave it out, before it gives the document.
    """

    def __init__(
        self, path: Path, scratch: Path, mapping: str = "", *, keep_hidden: bool = False, content: bytes | None = None
    ) -> None:
        self.path = path
        self._content = content
        self.scratch = scratch
        self.mapping = mapping
        self.hidden = HiddenTexts(keep=keep_hidden)
        self.notices: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The file's name without its suffix and without `.gz`."""
        return Path(self.path.stem).stem if self.path.suffix.lower() == _GZIP else self.path.stem

    def data(self, *, binary: bool = False) -> bytes:
        """The whole content, decompressed. Text with NUL bytes is refused: it is binary, damaged or not UTF-8."""
        path = self.path
        if path.suffix.lower() == _GZIP:
            data = gunzip(path, MAX_FILE_BYTES)
        else:
            data = read_bytes(path) if self._content is None else self._content
        if not data.strip():
            raise InputError("the file is empty", where=str(path), fix="leave it out")
        if not binary and not _is_wide(data) and b"\0" in data:
            raise InputError(
                "NUL bytes in a text file: it is binary, damaged, or not UTF-8",
                where=str(path),
                fix="convert it to UTF-8, or leave it out",
            )
        return data

    def text(self) -> str:
        """The whole text with `\\n` line ends. Where the encoding had to be guessed, documents get a notice."""
        data = self.data()
        try:
            return _unix(data.decode("utf-16" if _is_wide(data) else "utf-8-sig"))
        except UnicodeDecodeError:
            self.notices = ("read as Windows-1252: the file is not valid UTF-8",)
            return _unix(data.decode("cp1252", errors="replace"))

    def keep_images(self, images: Iterable[tuple[str, bytes]]) -> None:
        """Put images that were taken out of the file into the scratch folder, by name."""
        for name, data in images:
            self.scratch.mkdir(parents=True, exist_ok=True)
            (self.scratch / name).write_bytes(data)


class Reader:
    """A file format. A subclass sets the attributes that differ and defines `read`; one object of it is enough."""

    extension_kind: ClassVar[str] = "reader"
    extension_package: ClassVar[str] = "hoofbeat.corpus.readers"

    name: str
    summary: str
    version: int = 1
    """Goes up when the same file gives another text; documents keep `name/version` in their provenance."""
    suffixes: tuple[str, ...] = ()
    """How names of such files end, in lower case."""
    gzipped: bool = True
    """Whether the file may also be compressed, with `.gz` after its suffix."""
    takes_any: bool = True
    """Whether it takes every file with its suffixes that no other reader recognises."""
    takes_mapping: bool = False
    """Whether it reads files with its suffixes whenever the user gives a mapping of fields."""
    max_bytes: int | None = MAX_FILE_BYTES
    """The largest file it reads; None for a reader that never holds a whole file."""
    may_hold_case: bool = False
    """Whether a document may be a case report whose sections say nothing about their roles."""
    gives_passages: bool = False
    """Whether its documents were published as passages, which retrieval does not cut again."""
    extracts_images: bool = False
    """Whether images are put into the scratch folder; else they lie beside the file."""

    @property
    def label(self) -> str:
        """Name and version."""
        return f"{self.name}/{self.version}"

    def has_suffix(self, suffix: str) -> bool:
        """Whether a file with this suffix (lower case, `.gz` included) may be in this format."""
        return suffix in self.suffixes or (
            self.gzipped and suffix.endswith(_GZIP) and suffix.removesuffix(_GZIP) in self.suffixes
        )

    def recognises(self, path: Path) -> bool:  # noqa: ARG002 - subclasses look at it
        """Whether a look at the file shows this format; for formats that share a suffix with others."""
        return False

    def holds_documents(self, path: Path, mapping: str) -> bool:  # noqa: ARG002 - subclasses look at them
        """Whether a file found in a folder is taken for documents; folders hold other tables as well."""
        return True

    def companions(self, names: Collection[str]) -> frozenset[str]:  # noqa: ARG002 - subclasses look at them
        """Which of these names in one folder belong to a data set in this format without being its documents."""
        return frozenset()

    def read(self, source: SourceFile) -> Iterator[DocumentEntry | Refusal]:
        """The documents of a file, and what of it could not be read."""
        raise NotImplementedError


def numbered(documents: Iterable[Document]) -> Iterator[DocumentEntry]:
    """Documents of a file that was read whole: numbered when there are several."""
    found = list(documents)
    for number, document in enumerate(found, start=1):
        yield DocumentEntry(document=document, member=str(number) if len(found) > 1 else "")


def refusal(member: str, err: InputError) -> Refusal:
    """An error about one member as a refusal; the group is the message up to its first colon."""
    return Refusal(member=member, reason=err.what, group=err.what.partition(":")[0])


def member_of(number: int) -> str:
    """How a row is named: by its line."""
    return f"line {number}"


def known_suffixes() -> tuple[str, ...]:
    """The suffixes of all readers."""
    return tuple(dict.fromkeys(suffix for reader in registry.all(Reader) for suffix in reader.suffixes))


def is_known(name: str) -> bool:
    """Whether there is a reader for a file of this name."""
    return bool(_readers_for(name))


def companions(names: Collection[str]) -> frozenset[str]:
    """Which of these names in one folder (queries, judgments) belong to a data set without being its documents."""
    return frozenset().union(*(reader.companions(names) for reader in registry.all(Reader)))


def holds_documents(path: Path, *, mapping: str = "") -> bool:
    """Whether a file found in a folder is taken for documents."""
    return _find_reader(path).holds_documents(path, mapping)


def is_passage(document: Document) -> bool:
    """Whether a document was published as a passage: its reader says so."""
    origin = document.provenance
    return origin is not None and any(
        reader.gives_passages and reader.label == origin.reader for reader in registry.all(Reader)
    )


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


class CheckedFile(NamedTuple):
    """A file that can be read as far as a look from outside tells: its reader and SHA-256, and a small one's bytes."""

    path: Path
    reader: Reader
    digest: str
    content: bytes | None


def read_entries(
    file: Path | CheckedFile, scratch: Path, *, mapping: str = "", keep_hidden: bool = False
) -> Iterator[DocumentWithImages | Refusal]:
    """The documents of one file with the folder of their images, and what of the file could not be read.

    `scratch` is a folder of the caller's, made if need be, for images in packages and PDFs. Text that a person can't
    see is left out unless `keep_hidden`.
    """
    path, reader, digest, content = file if isinstance(file, CheckedFile) else check_file(file, mapping=mapping)
    source = SourceFile(path, scratch, mapping, keep_hidden=keep_hidden, content=content)
    try:
        for entry in reader.read(source):
            if isinstance(entry, Refusal):
                source.hidden.take("")  # of a document that is not taken
                yield entry
                continue
            document = msgspec.structs.replace(
                without_hidden_characters(entry.document, source.hidden),
                provenance=Provenance(source=path.name, sha256=digest, reader=reader.label, member=entry.member),
                notices=(*entry.document.notices, *source.notices),
            )
            if reader.may_hold_case and not _is_study(document):
                document = assign_roles(document)
            images = scratch if reader.extracts_images else path.parent
            yield DocumentWithImages(document, images, source.hidden.take(document.id))
    except InputError as err:
        raise type(err)(err.what, where=err.where or str(path), fix=err.fix) from err
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check its permissions"
        ) from err


def check_file(path: Path, *, mapping: str = "") -> CheckedFile:
    """A file with its reader, or an `InputError` where a look at it from outside tells that it can't be read.

    A small file is read here, once for its hash and for its reader.
    """
    reader = _find_reader(path, mapping)
    try:
        found = path.stat()
        size, regular = found.st_size, stat.S_ISREG(found.st_mode)
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
        ) from err
    if not regular:
        raise InputError("not a regular file", where=str(path), fix="name a file")
    if not size:
        raise InputError("the file is empty", where=str(path), fix="leave it out")
    if reader.max_bytes is not None and size > reader.max_bytes:
        raise HostileInputError(
            f"file too large: {size / 1e6:,.0f} MB, at most {reader.max_bytes / 1e6:,.0f} MB are read",
            where=str(path),
            fix="split it, or leave it out",
        )
    if reader.max_bytes is None or size > _HELD_BYTES:
        return CheckedFile(path, reader, file_sha256(path), None)
    content = read_bytes(path)
    return CheckedFile(path, reader, hashlib.sha256(content).hexdigest(), content)


def _find_reader(path: Path, mapping: str = "") -> Reader:
    """Which reader a file's name, and where that is not enough a look at it, asks for; plugins are asked first."""
    readers = _readers_for(path.name)
    if mapping:
        readers = tuple(reader for reader in readers if reader.takes_mapping) or readers
    found = next((reader for reader in readers if reader.recognises(path)), None)
    found = found or next((reader for reader in readers if reader.takes_any), None)
    if found is None:
        raise InputError(
            f"Hoofbeat can't read this kind of file: {path.suffix or 'no suffix'}",
            where=str(path),
            fix=f"name files that end in {', '.join(known_suffixes())}",
        )
    return found


def _readers_for(name: str) -> tuple[Reader, ...]:
    stem, _, last = name.lower().rpartition(".")
    if not stem:
        return ()
    inner, _, before = stem.rpartition(".")
    suffix = f".{before}.{last}" if f".{last}" == _GZIP and inner else f".{last}"
    return _with_suffix(suffix, registry.all(Reader))


@lru_cache(maxsize=256)
def _with_suffix(suffix: str, readers: tuple[Reader, ...]) -> tuple[Reader, ...]:
    found = [reader for reader in readers if reader.has_suffix(suffix)]
    return tuple(sorted(found, key=lambda reader: type(reader).__module__.startswith("hoofbeat.")))


def _is_study(document: Document) -> bool:
    """Whether a document says itself that it reports a study: looking for a case in its text would find none."""
    if document.kind == "case-report":
        return False
    if document.facets.get("article-type") in _STUDIES:
        return True
    roles = {section.role for section in document.sections if section.level == 1}
    return Role.METHODS in roles and Role.RESULTS in roles


def _is_wide(data: bytes) -> bool:
    return data.startswith((b"\xff\xfe", b"\xfe\xff"))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")
