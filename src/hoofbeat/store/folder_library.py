"""The artefact folders below some paths, each named by a slug. Pages take no path, so no other file can be reached."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import ArtefactError, HoofbeatError, InputError
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.files import slug

T = TypeVar("T")

_MANIFEST = "manifest.json"
_DEPTH = 2


class Folder(Struct, frozen=True, kw_only=True):
    """One artefact that is shown."""

    slug: str
    path: Path
    kind: str

    def artefact(self) -> Artefact:
        """The artefact, opened."""
        return open_artefact(self.path, self.kind)


class UnreadableFolder(Struct, frozen=True):
    """A folder that has a manifest and can't be shown: its name, and why."""

    name: str
    why: str


class FolderLibrary:
    """The artefacts of some folders: each folder itself, or what lies in it, two levels down at most.

    Folders change while a server runs. A folder whose manifest is gone or damaged is not shown until it is whole
    again, and one that became another kind is shown as that: a damaged folder never affects the others.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._roots = tuple(dict.fromkeys(path.resolve() for path in paths))
        self._folders: dict[str, Folder] = {}
        self._stamps: dict[str, tuple[int, int]] = {}
        self._unreadable: dict[Path, tuple[tuple[int, int], str]] = {}
        self._opened: dict[tuple[str, str], tuple[tuple[int, int], object]] = {}
        self._lock = threading.Lock()
        self._turns: dict[tuple[str, str], threading.RLock] = {}
        for root in self._roots:
            if not root.is_dir():
                raise InputError("there is no such folder", where=str(root), fix="name folders that Hoofbeat made")
            found = artefact_folders(root)
            if not found:
                raise ArtefactError(
                    "this folder has no Hoofbeat results",
                    where=str(root),
                    fix="name a corpus, benchmark, run or audit, or a folder that contains them",
                )
            if found == [root]:
                open_artefact(root)  # what was named outright must open, and says readably why it does not
        self.look_again()

    def look_again(self) -> None:
        """Add folders made since, and drop those that are gone; the others keep their slugs."""
        places = [each for root in self._roots for each in artefact_folders(root)]
        with self._lock:
            known = {folder.path: name for name, folder in self._folders.items()}
            for path in known.keys() - set(places):
                del self._folders[known[path]]
            for path in self._unreadable.keys() - set(places):
                del self._unreadable[path]
            for path in places:
                if path in known:
                    self._current(known[path])
                elif read := self._read(path):
                    kind, stamp = read
                    name = self._free_slug(slug(path.name) or kind)
                    self._folders[name], self._stamps[name] = Folder(slug=name, path=path, kind=kind), stamp
                    known[path] = name

    def _read(self, path: Path) -> tuple[str, tuple[int, int]] | None:
        """What kind of artefact a folder is; None where it can't be read: not tried again before it changes."""
        try:
            stamp = _stamp(path)
        except OSError:
            return None
        if path in self._unreadable and self._unreadable[path][0] == stamp:
            return None
        try:
            kind = open_artefact(path).manifest.kind
        except HoofbeatError as err:
            self._unreadable[path] = stamp, err.what
            return None
        except OSError as err:
            self._unreadable[path] = stamp, err.strerror or "it can't be opened"
            return None
        self._unreadable.pop(path, None)
        return kind, stamp

    def _current(self, name: str) -> Folder | None:
        """A folder as it is on disk now; None while it is gone or can't be read."""
        folder = self._folders.get(name)
        if folder is None:
            return None
        try:
            if _stamp(folder.path) == self._stamps[name]:
                self._unreadable.pop(folder.path, None)
                return folder
        except OSError:
            return None
        read = self._read(folder.path)
        if read is None:
            return None
        kind, self._stamps[name] = read
        self._folders[name] = folder if kind == folder.kind else replace(folder, kind=kind)
        return self._folders[name]

    def unreadable(self) -> list[UnreadableFolder]:
        """The folders that have a manifest and can't be shown, as of the last check."""
        with self._lock:
            return [UnreadableFolder(path.name, why) for path, (_, why) in sorted(self._unreadable.items())]

    def _free_slug(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._folders:
            name, number = f"{wanted}-{number}", number + 1
        return name

    def folders(self, *kinds: str) -> list[Folder]:
        """The folders of these kinds, or all, in the order of their names."""
        with self._lock:
            here = [self._current(name) for name in self._folders]
        found = [folder for folder in here if folder is not None and (not kinds or folder.kind in kinds)]
        return sorted(found, key=lambda folder: folder.slug)

    def folder(self, name: str, *kinds: str) -> Folder | None:
        """The folder of this slug, where there is one and it is of one of these kinds."""
        with self._lock:
            folder = self._current(name)
        return folder if folder is not None and (not kinds or folder.kind in kinds) else None

    def opened(self, folder: Folder, purpose: str, load: Callable[[Folder], T]) -> T:
        """What `load` makes of a folder, kept for `purpose` until the folder's manifest changes.

        Whoever wants the same thing meanwhile waits for it; nobody else does.
        """
        key = (folder.slug, purpose)
        try:
            stamp = _stamp(folder.path)
        except OSError as err:
            raise ArtefactError(
                f"the folder {folder.slug} can no longer be read", where=str(folder.path), fix="restore it"
            ) from err
        with self._lock:
            kept = self._opened.get(key)
            turn = self._turns.setdefault(key, threading.RLock())
        if kept is None or kept[0] != stamp:
            with turn:
                kept = self._opened.get(key)
                if kept is None or kept[0] != stamp:
                    kept = (stamp, load(folder))
                    with self._lock:
                        self._opened[key] = kept
        return kept[1]  # type: ignore[return-value]


def _stamp(path: Path) -> tuple[int, int]:
    stat = (path / _MANIFEST).stat()
    return stat.st_mtime_ns, stat.st_size


def artefact_folders(root: Path) -> list[Path]:
    """The folder itself where it is an artefact, else the artefacts in it, two levels down at most."""
    if (root / _MANIFEST).is_file():
        return [root]
    return _artefacts_in(root) if root.is_dir() else []


def whole_tree(root: Path) -> tuple[list[Path], list[Path]]:
    """Every artefact under a folder, at any depth, and what else lies there: files, links, folders without artefacts.

    A folder that has nothing but such entries is named once, not entry by entry.
    """
    if (root / _MANIFEST).is_file():
        return [root], []
    artefacts: list[Path] = []
    others: list[Path] = []
    for each in sorted(root.iterdir()):
        if each.is_symlink() or not each.is_dir():
            others.append(each)
            continue
        inner, left = whole_tree(each)
        artefacts += inner
        others += left if inner else [each]
    return artefacts, others


def _artefacts_in(path: Path, depth: int = _DEPTH) -> list[Path]:
    found: list[Path] = []
    for each in sorted(path.iterdir()):
        if each.name.startswith(".") or not each.is_dir() or each.is_symlink():
            continue
        if (each / _MANIFEST).is_file():
            found.append(each)
        elif depth > 1:
            found += _artefacts_in(each, depth - 1)
    return found
