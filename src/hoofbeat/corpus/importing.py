"""Import: files and folders in, a corpus out, and a list of what was not taken and why.

One bad file never stops an import. The same files give the same bytes: folders are walked in sorted order, and nothing
of the machine or the clock is written down.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.corpus.images import ImageStore
from hoofbeat.corpus.readers import SUFFIXES, read_file
from hoofbeat.errors import InputError
from hoofbeat.progress import SILENT, Progress, Task
from hoofbeat.records import Document, Facets
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import file_sha256
from hoofbeat.store.tables import write_jsonl

__all__ = ["DOCUMENTS", "REJECTED", "Rejection", "import_corpus"]

DOCUMENTS = "documents.jsonl"
REJECTED = "rejected.jsonl"


class Rejection(Struct, frozen=True, kw_only=True):
    """A file, or a document of a file, that was not taken."""

    source: str
    reason: str


class _Source(Struct, frozen=True):
    """A file to import and the name it goes by: its path below the folder that was named."""

    path: Path
    name: str


def import_corpus(
    paths: Sequence[Path],
    target: Path,
    *,
    facets: Mapping[str, str] | None = None,
    title: str = "",
    progress: Progress = SILENT,
    command: Sequence[str] = (),
) -> Artefact:
    """Read files and folders of documents into a corpus at `target`.

    `facets` are given to every document and count more than what a document says itself. Folders are searched for
    files with a known suffix; a file named outright is tried whatever it is. Raises `InputError` when a path does not
    exist or nothing could be taken.
    """
    sources = list(_walk(paths))
    with create(target, replace_kind="corpus") as draft, progress.task("Import documents", len(sources)) as task:
        run = _Import(sources, dict(facets or {}), ImageStore(draft.path))
        kept = write_jsonl(draft.path / DOCUMENTS, run.documents(task))
        write_jsonl(draft.path / REJECTED, run.rejected)
        if not kept:
            raise _nothing(paths, run.rejected)
        draft.finish(
            Manifest(
                kind="corpus",
                title=title or "corpus",
                command=list(command),
                inputs=run.inputs,
                settings={"facets": run.facets},
                counts=Counts(kept=kept, rejected=len(run.rejected), reasons=dict(sorted(run.reasons.items()))),
                metrics={"images": run.images.copied, "images_missing": run.images.missing},
            )
        )
    return open_artefact(target, "corpus")


class _Import:
    """One import under way: which ids and contents are taken, what was rejected."""

    def __init__(self, sources: list[_Source], facets: dict[str, str], images: ImageStore) -> None:
        self.sources = sources
        self.facets = facets
        self.inputs: list[InputRef] = []
        self.rejected: list[Rejection] = []
        self.reasons: Counter[str] = Counter()
        self.images = images
        self._ids: dict[str, tuple[str, str]] = {}
        self._files: dict[str, str] = {}

    def documents(self, task: Task) -> Iterator[Document]:
        """Every document that is taken, with its images copied."""
        for source in self.sources:
            try:
                yield from self._file(source)
            except InputError as err:
                self._reject(source, err.what, err.what.partition(":")[0])
            task.advance()

    def _file(self, source: _Source) -> Iterator[Document]:
        digest = file_sha256(source.path)
        self.inputs.append(InputRef(name=source.name, sha256=digest))
        if digest in self._files:
            self._reject(source, f"same content as {self._files[digest]}", "same content")
            return
        for document in read_file(source.path):
            if self._is_new(document, source):
                self._files.setdefault(digest, source.name)
                own: Facets = {**document.facets, **self.facets}
                with_facets = msgspec.structs.replace(document, facets=own)
                yield self.images.keep(with_facets, source.path.parent)

    def _is_new(self, document: Document, source: _Source) -> bool:
        if not document.text:
            self._reject(source, f"no text: {document.id}", "no text")
            return False
        digest = hashlib.sha256(document.text.encode()).hexdigest()
        if document.id not in self._ids:
            self._ids[document.id] = source.name, digest
            return True
        earlier, content = self._ids[document.id]
        if content == digest:
            self._reject(source, f"same content as {earlier}", "same content")
        else:
            self._reject(source, f"id already used by {earlier}: {document.id}", "id already used")
        return False

    def _reject(self, source: _Source, reason: str, group: str) -> None:
        self.rejected.append(Rejection(source=source.name, reason=reason))
        self.reasons[group] += 1


def _walk(paths: Sequence[Path]) -> Iterator[_Source]:
    """The files to import: those named, and in folders those with a known suffix, in sorted order, each once."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), fix="check the path")
        for source in _below(path) if path.is_dir() else [_Source(path, path.name)]:
            real = source.path.resolve()
            if real not in seen:
                seen.add(real)
                yield source


def _below(folder: Path) -> Iterator[_Source]:
    """Files with a known suffix below a folder; hidden ones and links that lead out of it are left alone."""
    root = folder.resolve()
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if name.startswith(".") or path.suffix.lower() not in SUFFIXES:
                continue
            if path.resolve().is_relative_to(root):
                yield _Source(path, path.relative_to(folder).as_posix())


def _nothing(paths: Sequence[Path], rejected: Sequence[Rejection]) -> InputError:
    where = ", ".join(map(str, paths)) or "no path"
    if not rejected:
        return InputError(
            "nothing to import: no file with a known suffix", where=where, fix=f"name {', '.join(SUFFIXES)} files"
        )
    listed = "; ".join(f"{each.source}: {each.reason}" for each in rejected[:3])
    more = f" (and {len(rejected) - 3} more)" if len(rejected) > 3 else ""
    return InputError(
        f"nothing could be imported: {listed}{more}", where=where, fix="see the reasons, correct the files"
    )
