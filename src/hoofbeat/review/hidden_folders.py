"""Which folders open studies hide: what an exam asks, and what reviewers are blinded against.

A study hides the folder it is about, whatever that was made from, and everything made from any of these: a run holds a
benchmark's gold answers, and the corpus holds the reports that its questions were written from. Folders are followed by
the hashes of their content, so a copy, an export or an import of an export is hidden as well. A folder made from one
that is not served (judgments without their run) is hidden too: nobody knows what that was made from. Who asks is not
looked at before that: only a study's owner, an admin who may see it, is shown what it hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.review.forms import form_hides
from hoofbeat.review.review_records import Person, ReviewRefusalError, Study
from hoofbeat.store.folder_library import Folder, FolderLibrary, UnreadableFolder

T = TypeVar("T")

_RECORDS = ".jsonl"
_CARRIERS = frozenset({
    "audit", "audit-comparison", "benchmark", "check", "comparison", "evidence", "export", "judgments", "rankings",
    "report", "run", "themes",
})  # fmt: skip
"""Kinds of folders that may hold questions, answers or sources of a study, or were made from one that does."""
_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # the SHA-256 of an empty file


class _Content(Struct, frozen=True):
    """A folder by its hashes: its own, its inputs', its files', and those of its files that hold records.

    `carriers` are the inputs that were folders of a kind that carries answers on.
    """

    own: str
    inputs: frozenset[str]
    carriers: frozenset[str]
    files: frozenset[str]
    records: frozenset[str]


def _content(folder: Folder) -> _Content:
    artefact = folder.artefact()
    files = {name: sha256 for name, sha256 in artefact.manifest.files.items() if sha256 != _NOTHING}
    return _Content(
        artefact.reference().sha256,
        frozenset(ref.sha256 for ref in artefact.manifest.inputs),
        frozenset(ref.sha256 for ref in artefact.manifest.inputs if ref.kind in _CARRIERS),
        frozenset(files.values()),
        frozenset(sha256 for name, sha256 in files.items() if name.endswith(_RECORDS)),
    )


def hiding_studies(studies: Iterable[Study], person: Person | None) -> list[Study]:
    """The open studies that hide something from a person, or from somebody who is not signed in."""
    return [
        study
        for study in studies
        if not study.closed
        and form_hides(study.form)
        and not (person is not None and person.role == "admin" and person.sees(study.id))
    ]


def hidden_folders(library: FolderLibrary, studies: Iterable[Study]) -> frozenset[str]:
    """The names of the folders that these studies hide."""
    origins = {sha256 for study in studies for sha256 in (study.source_sha256, *study.made_from)}
    if not origins:
        return frozenset()
    contents: dict[str, _Content] = {}
    hidden: set[str] = set()
    for folder in library.folders():
        try:
            contents[folder.slug] = library.opened(folder, "hashes", _content)
        except HoofbeatError:  # nobody knows what is in it
            hidden.add(folder.slug)
    while found := {sha256 for each in contents.values() if each.own in origins for sha256 in each.inputs - origins}:
        origins |= found
    records = frozenset().union(*(each.records for each in contents.values() if each.own in origins))
    known = origins | {each.own for each in contents.values()}
    hidden |= {name for name, each in contents.items() if each.carriers - known}
    marks = origins | {contents[name].own for name in hidden if name in contents}
    while more := {
        name
        for name, each in contents.items()
        if name not in hidden and (each.own in marks or each.inputs & marks or each.records & records)
    }:
        hidden |= more
        marks |= {sha256 for name in more for sha256 in (contents[name].own, *contents[name].files)}
    return frozenset(hidden)


def hidden_by_another(library: FolderLibrary, study: Study, studies: Iterable[Study], person: Person | None) -> bool:
    """Whether another open study hides from a person what this one is about, or what both were made from."""
    others = [other for other in hiding_studies(studies, person) if other.id != study.id]
    own = {study.source_sha256, *study.made_from}
    if any(own & {other.source_sha256, *other.made_from} for other in others):
        return True
    hidden = hidden_folders(library, others)
    for folder in library.folders():
        with suppress(HoofbeatError):  # a folder that can't be read is not what the study was made of
            if folder.slug in hidden and library.opened(folder, "hashes", _content).own == study.source_sha256:
                return True
    return False


class VisibleLibrary(FolderLibrary):
    """A library as somebody may see it: hidden folders are in no list, and asking for one says why it can't be seen.

    `hidden` is None where it is not known, and then nothing is shown.
    """

    def __init__(self, whole: FolderLibrary, hidden: frozenset[str] | None) -> None:
        self._whole, self._hidden = whole, hidden

    def _hides(self, name: str) -> bool:
        return self._hidden is None or name in self._hidden

    def look_again(self) -> None:
        """Add folders made since, and drop those that are gone."""
        self._whole.look_again()

    def unreadable(self) -> list[UnreadableFolder]:
        """The folders that have a manifest and can't be shown."""
        return self._whole.unreadable()

    def folders(self, *kinds: str) -> list[Folder]:
        """The folders of these kinds, or all, that are not hidden."""
        return [folder for folder in self._whole.folders(*kinds) if not self._hides(folder.slug)]

    def folder(self, name: str, *kinds: str) -> Folder | None:
        """The folder of this slug; a hidden one is refused."""
        found = self._whole.folder(name, *kinds)
        if found is not None and self._hides(name):
            raise hidden_now()
        return found

    def opened(self, folder: Folder, purpose: str, load: Callable[[Folder], T]) -> T:
        """What `load` makes of a folder; nothing of a hidden one."""
        if self._hides(folder.slug):
            raise hidden_now()
        return self._whole.opened(folder, purpose, load)


def hidden_now() -> ReviewRefusalError:
    """The refusal for what an open study hides."""
    return ReviewRefusalError(
        "this is hidden while a study is open",
        fix="wait until the study is closed, or sign in as its admin",
        status=403,
    )
