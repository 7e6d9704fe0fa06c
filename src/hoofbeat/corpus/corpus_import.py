"""Import: files and folders in, a corpus out, and a list of what was not taken and why.

One bad file never stops an import. The same files give the same bytes however many processes read them: folders are
walked in sorted order, documents are written in that order, and nothing of the machine or the clock is written down.
Documents go to the table as they come; what stays in memory is their ids and hashes.

Separate processes read the files (`hoofbeat.engine`, guarded), so that a file on which a parser crashes, hangs or fills
the memory costs that file and nothing else. What a file yields comes back at once, or through a file in the job's
folder when it is large.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from hoofbeat.corpus.corpus import DOCUMENTS, REJECTED, ImportRejection
from hoofbeat.corpus.figures import IMAGE_SUFFIXES, ImageStore
from hoofbeat.corpus.file_facets import FileFacets
from hoofbeat.corpus.hidden_text import HIDDEN, HiddenText
from hoofbeat.corpus.parsers.prose import FrontMatter
from hoofbeat.corpus.reader import (
    CheckedFile,
    DocumentWithImages,
    check_file,
    companions,
    holds_documents,
    is_known,
    known_suffixes,
    read_entries,
)
from hoofbeat.corpus.readers.mapped import parse_mapping
from hoofbeat.engine import PartGuard, available_cores, beat, current_engine
from hoofbeat.engine.engine import PATIENCE
from hoofbeat.errors import ArtefactError, InputError, UsageError
from hoofbeat.progress import SILENT, Progress, Task
from hoofbeat.records import Document
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import atomic_write, file_sha256
from hoofbeat.store.tables import read_jsonl

MAX_FRAME = 4_000_000
_LENGTH = struct.Struct("<Q")


class ReadJob(Struct, frozen=True, array_like=True):
    """One file to read: its path, the folder for its images, the mapping for tables, what is said of its documents.

    `facets` are for the documents of all files, `about` is for those of this one and counts first. `keep_hidden` means
    that text which a person can't see stays in. Reading ends after `limit` documents with different ids.
    """

    number: int
    path: str
    folder: str
    mapping: str
    facets: dict[str, str]
    about: FrontMatter = FrontMatter()
    keep_hidden: bool = False
    limit: int | None = None


class ImportedDocument(Struct, frozen=True, array_like=True, tag=True):
    """A document as a line of the table, with the id and text hash that decide whether it is new."""

    id: str
    digest: bytes
    line: bytes
    empty: bool = False
    images: int = 0
    images_missing: int = 0
    hidden: tuple[HiddenText, ...] = ()


class UnreadableDocument(Struct, frozen=True, array_like=True, tag=True):
    """A document, or a whole file (no member), that can't be read."""

    member: str
    reason: str
    group: str


Item = ImportedDocument | UnreadableDocument


class ReadResult(Struct, frozen=True, array_like=True, tag=True):
    """A file is read: its hash (empty when it could not be opened) and its items, inline or in a spill file."""

    number: int
    digest: bytes
    items: list[Item]
    spill: str = ""


_encoder = msgspec.msgpack.Encoder()


def read_job(job: ReadJob) -> ReadResult:
    """Read one file."""
    folder = Path(job.folder)
    spill = _Spill(folder / "items")
    digest, reason = b"", ""
    try:
        file = check_file(Path(job.path), mapping=job.mapping)
        digest = bytes.fromhex(file.digest)
        for count, item in enumerate(_items(job, folder, file), 1):
            spill.add(item)
            beat(count)
    except InputError as err:
        reason = err.what
    except MemoryError:
        reason = "file refused as hostile: reading it needs too much memory"
    except RecursionError:
        reason = "file refused as hostile: nested too deep"
    except Exception as err:  # one file's trouble, even if it is ours, is never the import's
        reason = f"the reader crashed on it: {type(err).__name__}: {err}"
    if reason:
        spill.add(UnreadableDocument("", reason, reason.partition(":")[0]))
    if folder.exists():
        shutil.rmtree(folder / "scratch", ignore_errors=True)
    return spill.done(job.number, digest)


def _items(job: ReadJob, folder: Path, file: CheckedFile) -> Iterator[Item]:
    seen: set[str] = set()
    for entry in read_entries(file, folder / "scratch", mapping=job.mapping, keep_hidden=job.keep_hidden):
        if isinstance(entry, DocumentWithImages):
            yield _taken(entry, job, folder, seen)
            if len(seen) == job.limit:
                return
        else:
            yield UnreadableDocument(entry.member, entry.reason, entry.group)


def _taken(entry: DocumentWithImages, job: ReadJob, folder: Path, seen: set[str]) -> ImportedDocument:
    document = _described(entry.document, job)
    images = ImageStore(folder)
    if document.text and document.id not in seen:
        document = images.keep(document, entry.images)
    if document.text:
        seen.add(document.id)
    line = msgspec.json.encode(document)  # first: the text keeps its UTF-8 form, which the hash then takes
    return ImportedDocument(
        document.id,
        hashlib.sha256(document.text.encode()).digest(),
        line,
        not document.text,
        images.copied,
        images.missing,
        entry.hidden,
    )


def _described(document: Document, job: ReadJob) -> Document:
    """A document with what the user says about it."""
    about = job.about
    if not job.facets and about == FrontMatter():
        return document
    return msgspec.structs.replace(
        document,
        id=about.id or document.id,
        title=about.title or document.title,
        kind=about.kind or document.kind,
        licence=about.licence or document.licence,
        notices=(*document.notices, *about.notices),
        facets={**document.facets, **job.facets, **about.facets},
    )


class _Spill:
    """Items on their way back: in memory while they are few, in a file when they grow large."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._items: list[Item] = []
        self._held = 0
        self._stream: IO[bytes] | None = None

    def add(self, item: Item) -> None:
        """Take one more."""
        self._items.append(item)
        self._held += len(item.line) if isinstance(item, ImportedDocument) else 100
        if self._held > MAX_FRAME:
            self._write()

    def _write(self) -> None:
        if self._stream is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self._path.open("wb")
        for item in self._items:
            data = _encoder.encode(item)
            self._stream.write(_LENGTH.pack(len(data)) + data)
        self._items, self._held = [], 0

    def done(self, number: int, digest: bytes) -> ReadResult:
        """The answer."""
        if self._stream is None:
            return ReadResult(number, digest, self._items)
        self._write()
        self._stream.close()
        return ReadResult(number, digest, [], str(self._path))


def _unread(job: ReadJob, reason: str) -> ReadResult:
    """The answer for a file that broke its process, or on which it hung."""
    group = reason.partition(" (")[0].partition(":")[0]
    return ReadResult(job.number, b"", [UnreadableDocument("", reason, group)])


SOURCES = "sources.jsonl"
MAX_INPUTS = 1_000
_WORK = ".work"
_OTHER = "other_files"
"""The count in a manifest of files that no reader takes."""
_decode_item = msgspec.msgpack.Decoder(Item).decode


_Read = Callable[[Iterator[ReadJob], Callable[[int], None]], Iterator[ReadResult]]


class _Source(Struct, frozen=True):
    """A file to import and the name it goes by: its path below the folder that was named; `other` is one with it.

    `real` is where the file is once links are followed.
    """

    path: str
    name: str
    other: str
    real: str


class _Choices(Struct, frozen=True, kw_only=True):
    """What the user asks of an import, beside the files."""

    facets: dict[str, str]
    mapping: str
    table: FileFacets | None
    keep_hidden: bool
    limit: int | None

    def settings(self) -> dict[str, object]:
        """What the manifest says of them."""
        return {
            "facets": self.facets,
            **({"mapping": self.mapping} if self.mapping else {}),
            **({"facets_from": self.table.settings()} if self.table else {}),
            **({"hidden": "keep"} if self.keep_hidden else {}),
            **({"limit": self.limit} if self.limit else {}),
        }


def import_corpus(
    paths: Sequence[Path],
    target: Path,
    *,
    facets: Mapping[str, str] | None = None,
    facets_from: Path | None = None,
    title: str = "",
    progress: Progress = SILENT,
    command: Sequence[str] = (),
    mapping: str | None = None,
    keep_hidden: bool = False,
    limit: int | None = None,
    workers: int | None = None,
    patience: float = PATIENCE,
) -> Artefact:
    """Read files and folders of documents into a corpus at `target`.

    `facets` are given to every document and replace what a document says itself; `facets_from` is a table that gives
    them per file (`file_facets`) and counts first. `mapping` says which field
    of JSONL, CSV and TSV rows is what (`readers.mapped`). Folders are searched for files with a known suffix; a file
    that you name is tried whatever its suffix. Text that a person can't see (white on white, off the page) is left out
    and listed in `hidden.jsonl`; with `keep_hidden` it stays in and is listed. With `limit`, reading ends after that
    many documents. `workers` processes read (one per core when None); a file on which two of them die, or one gives no
    document for `patience` seconds, is skipped. Raises `InputError` when a path does not exist or nothing could be
    imported.
    """
    for name, value in (("workers", workers), ("documents", limit)):
        if value is not None and value < 1:
            raise UsageError(f"the number of {name} can't be {value}", fix="give 1 or more")
    if mapping:
        parse_mapping(mapping)
    table = FileFacets.read(facets_from) if facets_from is not None else None
    choices = _Choices(
        facets=dict(facets or {}), mapping=mapping or "", table=table, keep_hidden=keep_hidden, limit=limit
    )

    def sources(other: Counter[str] | None = None) -> Iterator[_Source]:
        return _walk(paths, choices.mapping, facets_from, other)

    other: Counter[str] = Counter()
    total = sum(1 for _ in sources(other))
    if table is not None:
        table.match((source.path, (source.name, source.other)) for source in sources())
    with ExitStack() as stack:
        draft = stack.enter_context(create(target, replace_kind="corpus"))
        task = stack.enter_context(progress.task("Import documents", total))
        run = _Import(draft.path, choices)
        (draft.path / _WORK).mkdir()
        count = min(workers or available_cores(), max(1, total))
        run.all(sources(), _reader(count, patience, [*paths, draft.path / _WORK]), task)
        if not run.kept:
            raise _nothing(paths, run.first_rejected, run.rejected)
        draft.finish(_manifest(run, choices, other, title=title, command=command))
    return open_artefact(target, "corpus")


def _reader(workers: int, patience: float, sees: Sequence[Path]) -> _Read:
    """What reads files, in separate processes, and gives their results in the order of the files."""

    def read(jobs: Iterator[ReadJob], on_beat: Callable[[int], None]) -> Iterator[ReadResult]:
        guard = PartGuard(_unread, patience)
        return current_engine().map(read_job, jobs, workers=workers, guard=guard, on_beat=on_beat, sees=sees)

    return read


def _manifest(run: _Import, choices: _Choices, other: Counter[str], *, title: str, command: Sequence[str]) -> Manifest:
    table = choices.table
    return Manifest(
        kind="corpus",
        title=title or "corpus",
        command=list(command),
        inputs=[*_inputs(run.folder), *([table.reference()] if table else [])],
        settings=choices.settings(),
        counts=Counts(kept=run.kept, rejected=run.rejected, reasons=dict(sorted(run.reasons.items()))),
        metrics={
            "images": run.images,
            "images_missing": run.images_missing,
            **({"files_without_row": len(table.unnamed)} if table else {}),
            **({"hidden": dict(sorted(run.hidden.items()))} if run.hidden else {}),
            **({_OTHER: dict(sorted(other.items()))} if other else {}),
        },
    )


class _Import:
    """One import under way: which ids and contents are taken, what was rejected."""

    def __init__(self, folder: Path, choices: _Choices) -> None:
        self.folder = folder
        self.hidden: Counter[str] = Counter()
        self.kept = self.rejected = self.images = self.images_missing = 0
        self.reasons: Counter[str] = Counter()
        self.first_rejected: list[ImportRejection] = []
        self._choices = choices
        self._ids: dict[str, tuple[str, bytes]] = {}
        self._files: dict[bytes, str] = {}
        self._given: dict[int, str] = {}
        self._work_folder = str(folder / _WORK)

    @property
    def _is_full(self) -> bool:
        return self.kept == self._choices.limit

    def all(self, sources: Iterator[_Source], read: _Read, task: Task) -> None:
        """Read all sources and write the tables."""
        with (
            atomic_write(self.folder / DOCUMENTS) as documents,
            atomic_write(self.folder / REJECTED) as rejected,
            atomic_write(self.folder / SOURCES) as inputs,
        ):
            results = read(self._jobs(sources), lambda count: task.note(f"{self.kept + count:,} documents"))
            for done in results:
                name = self._given.pop(done.number)
                self._file(name, done, documents, rejected, inputs)
                task.note(f"{self.kept:,} documents")
                task.advance()
                if self._is_full:
                    break
            if isinstance(results, Generator):  # ends the processes that read on
                results.close()
        shutil.rmtree(self.folder / _WORK, ignore_errors=True)

    def _jobs(self, sources: Iterator[_Source]) -> Iterator[ReadJob]:
        for number, source in enumerate(sources):
            self._given[number] = source.name
            asked = self._choices
            about = asked.table.about(source.path) if asked.table is not None else FrontMatter()
            folder = self._work(number)
            yield ReadJob(
                number, source.path, folder, asked.mapping, asked.facets, about, asked.keep_hidden, asked.limit
            )

    def _work(self, number: int) -> str:
        """The folder of a job; as text, since a few Paths per file are a good part of what the command itself does."""
        return f"{self._work_folder}{os.sep}{number}"

    def _file(self, name: str, done: ReadResult, documents: IO[bytes], rejected: IO[bytes], inputs: IO[bytes]) -> None:
        work = self._work(done.number)
        if done.digest:
            _write(inputs, InputRef(name=name, sha256=done.digest.hex()))
        if done.digest in self._files:
            self._reject(rejected, name, f"same content as {self._files[done.digest]}", "same content")
        else:
            for item in _spilled(done):
                if self._is_full:
                    break
                problem = self._problem(item, name)
                if problem is not None:
                    member = "" if isinstance(item, ImportedDocument) else item.member
                    self._reject(rejected, f"{name}: {member}" if member else name, *problem)
                    continue
                assert isinstance(item, ImportedDocument)
                documents.write(item.line + b"\n")
                self._files.setdefault(done.digest, name)
                self._keep(item, work)
        if os.path.exists(work):  # noqa: PTH110 - see `_work`
            shutil.rmtree(work, ignore_errors=True)

    def _keep(self, item: ImportedDocument, work: str) -> None:
        self.kept += 1
        if item.hidden:
            self.hidden.update(each.why for each in item.hidden)
            with (self.folder / HIDDEN).open("ab") as stream:
                for each in item.hidden:
                    _write(stream, each)
        self.images += item.images
        self.images_missing += item.images_missing
        if item.images:
            place = self.folder / "images" / item.id
            place.parent.mkdir(exist_ok=True)
            Path(work, "images", item.id).rename(place)

    def _problem(self, item: Item, name: str) -> tuple[str, str] | None:
        """Why an item is not taken (in full, and in short), or None; a document that is taken is remembered."""
        if not isinstance(item, ImportedDocument):
            return item.reason, item.group
        if item.empty:
            return f"no text: {item.id}", "no text"
        if item.id not in self._ids:
            self._ids[item.id] = name, item.digest
            return None
        earlier, content = self._ids[item.id]
        if content == item.digest:
            return f"same content as {earlier}", "same content"
        apart = name.rpartition("/")[0] != earlier.rpartition("/")[0]
        return (
            f"id already used by {earlier}: {item.id}",
            "id already used in another folder" if apart else "id already used",
        )

    def _reject(self, stream: IO[bytes], source: str, reason: str, group: str) -> None:
        rejection = ImportRejection(source=source, reason=reason)
        _write(stream, rejection)
        self.rejected += 1
        self.reasons[group] += 1
        if len(self.first_rejected) < 3:
            self.first_rejected.append(rejection)


def _write(stream: IO[bytes], record: Struct) -> None:
    stream.write(msgspec.json.encode(record) + b"\n")


def _spilled(done: ReadResult) -> Iterator[Item]:
    """The items of an answer, from its spill file where it has one."""
    yield from done.items
    if done.spill:
        with Path(done.spill).open("rb") as stream:
            while head := stream.read(_LENGTH.size):
                yield _decode_item(stream.read(_LENGTH.unpack(head)[0]))


def _inputs(folder: Path) -> list[InputRef]:
    """The files read, for the manifest; when they are many, the manifest names the list of them instead."""
    table = folder / SOURCES
    with table.open("rb") as stream:
        many = sum(1 for _ in stream) > MAX_INPUTS
    if many:
        return [InputRef(name=SOURCES, sha256=file_sha256(table), kind="list of files")]
    inputs = list(read_jsonl(table, InputRef))
    table.unlink()
    return inputs


def _walk(
    paths: Sequence[Path], mapping: str, table: Path | None, other: Counter[str] | None = None
) -> Iterator[_Source]:
    """The files to import: those named, and in folders those with a known suffix, in sorted order, each once.

    A table of facets among them is not a document. `other` counts by suffix what no reader takes, images apart.
    """
    seen: set[bytes] = {_real(str(table))} if table is not None else set()
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), fix="check the path")
        if path.is_dir() and _is_artefact(path):
            kind = open_artefact(path).manifest.kind
            raise InputError(
                f"this is already a {kind}", where=str(path), fix="use it without importing, or name other documents"
            )
        alone = _Source(str(path), path.name, path.as_posix(), os.path.realpath(path))
        for source in _below(path, mapping, other) if path.is_dir() else [alone]:
            real = hashlib.blake2b(os.fsencode(source.real), digest_size=16).digest()
            if real not in seen:
                seen.add(real)
                yield source


def _real(path: str) -> bytes:
    return hashlib.blake2b(os.fsencode(os.path.realpath(path)), digest_size=16).digest()


def _is_artefact(folder: Path) -> bool:
    """Whether Hoofbeat wrote a folder: an import does not read its own results. Exports are there to be read."""
    try:
        return open_artefact(folder).manifest.kind != "export"
    except ArtefactError:
        return False


def _below(folder: Path, mapping: str, other: Counter[str] | None) -> Iterator[_Source]:
    """Files with a known suffix below a folder; hidden files and links that lead out of it are skipped."""
    root = os.path.realpath(folder)
    root_name = Path(root).name
    for place, folders, files in os.walk(folder):
        left_out = companions({*files, *folders})
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in left_out and not _is_artefact(Path(place, name))
        )
        below = os.path.relpath(place, folder).replace(os.sep, "/")
        before = "" if below == "." else f"{below}/"
        real_place = os.path.realpath(place)
        for name in sorted(files):
            if name.startswith(".") or name in left_out:
                continue
            if not is_known(name):
                suffix = Path(name).suffix.lower()
                if other is not None and suffix not in IMAGE_SUFFIXES:
                    other[suffix or "no suffix"] += 1
                continue
            path = os.path.join(place, name)  # noqa: PTH118 - a Path a file is most of the walk's time
            # Folders that are links are not walked into, so only a link can lead elsewhere.
            linked = os.path.islink(path)  # noqa: PTH114 - as above
            real = os.path.realpath(path) if linked else os.path.join(real_place, name)  # noqa: PTH118
            if linked and not Path(real).is_relative_to(root):
                continue
            if holds_documents(Path(path), mapping=mapping):
                yield _Source(path, before + name, f"{root_name}/{before}{name}", real)


def other_files_note(manifest: Manifest) -> str:
    """How many files of folders have a format that no reader knows; empty where there are none."""
    found = manifest.metrics.get(_OTHER)
    if not isinstance(found, dict) or not found:
        return ""
    total = sum(found.values())
    listed = ", ".join(f"{count:,} {suffix}" for suffix, count in found.items())
    return f"note: {total:,} file{'s' * (total != 1)} of other formats left out ({listed}); convert what you need"


def _nothing(paths: Sequence[Path], first: Sequence[ImportRejection], count: int) -> InputError:
    where = ", ".join(map(str, paths)) or "no path"
    if not count:
        return InputError(
            "nothing to import: no file with a known suffix",
            where=where,
            fix=f"name {', '.join(known_suffixes())} files",
        )
    listed = "; ".join(f"{each.source}: {each.reason}" for each in first)
    more = f" (and {count - len(first)} more)" if count > len(first) else ""
    return InputError(f"nothing could be imported: {listed}{more}", where=where, fix="correct the files")
