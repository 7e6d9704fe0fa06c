"""Parts of an index as they are kept: folders of this machine, and behind them an object store where one is named.

A part is a separate artefact folder, written beside and renamed when it is whole: a part that is there is complete and
is memory-mapped, and one whose making was interrupted is made again. With an object store, a part is copied there when
it is made, and copied from there by every machine that needs it.
"""

from __future__ import annotations

import contextvars
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import MsgspecError

from hoofbeat.errors import ArtefactError, OutputError, UsageError
from hoofbeat.store import Manifest, create, open_artefact
from hoofbeat.store.artefact import MANIFEST
from hoofbeat.store.files import output_errors
from hoofbeat.store.object_store import check_url, check_writable, fetch, is_there, is_url, put

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

INDEX_KIND = "index"
Part = TypeVar("Part")

_DAMAGE = (ArtefactError, MsgspecError, ValueError, OSError, EOFError)
_MAX_SHARDS = 10_000


class PartPlace(NamedTuple):
    """Where a part lies, or several: a folder, and the same folder in an object store, where there is one."""

    folder: Path
    url: str = ""

    def inside(self, name: str) -> PartPlace:
        """A place in this one."""
        return PartPlace(self.folder / name, f"{self.url}/{name}" if self.url else "")

    def sees(self) -> list[Path]:
        """What a worker must see to read it: nothing where it can fetch it from the store."""
        return [] if self.url else [self.folder]


class IndexHome(NamedTuple):
    """Where a command keeps its indexes (a folder or a store's address; empty for the cache), in how many shards."""

    place: str = ""
    shards: int = 1


_home: contextvars.ContextVar[IndexHome | None] = contextvars.ContextVar("hoofbeat_index_home", default=None)


def index_home() -> IndexHome:
    """Where indexes are kept now, and in how many shards."""
    return _home.get() or IndexHome()


@contextmanager
def keeping_indexes(place: str = "", *, shards: int = 1) -> Iterator[IndexHome]:
    """Keep the indexes of what is called inside in a folder or an object store, cut into shards. Rankings are the same.

    `place` is a folder that all machines see, or an address such as `s3://bucket/indexes`; without one it is the
    user's cache.
    """
    if not 1 <= shards <= _MAX_SHARDS:
        raise UsageError(f"an index can't have {shards} shards", fix=f"choose from 1 to {_MAX_SHARDS}")
    home = IndexHome(check_url(place) if is_url(place) else _checked_folder(place), shards)
    token = _home.set(home)
    try:
        yield home
    finally:
        _home.reset(token)


def _checked_folder(place: str) -> str:
    """Refuse a folder that can't be written or must not change, before work; an empty name is the cache."""
    folder = Path(place).expanduser()
    if place and any((each / MANIFEST).exists() for each in (folder, folder.absolute().parent)):
        raise OutputError(
            "indexes would be inside a Hoofbeat folder, which must not change",
            where=place,
            fix="name another folder with --index",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as err:
        raise OutputError(
            f"indexes can't be stored there: {err.strerror}", where=place, fix="name another folder with --index"
        ) from err
    return str(folder) if place else ""


def kept(
    place: PartPlace, settings: dict[str, object], build: Callable[[Path], None], load: Callable[[Path], Part]
) -> Part:
    """A part of an index: as it lies there, or, where it is not there or can't be read, built now.

    It is written beside and renamed, by one process at a time: another that wants the same part waits and finds it.
    What was changed after it was written (a file cut short by a full disk, say) no longer has the hashes of its
    manifest, and is removed and built again. Hashing takes half a second for a gigabyte.
    """
    target, url = place
    with _alone(target):
        found = _loaded(place, load)
        if found is not None:
            if url and not is_there(url):
                put(target, url)
            return found
        if url:
            check_writable(url)
        try:
            with create(target, replace_kind=INDEX_KIND) as draft:
                build(draft.path)
                draft.finish(Manifest(kind=INDEX_KIND, title=target.name, settings=settings))
        except OutputError as err:
            fix = "free some space, or keep indexes elsewhere: --index, or HOOFBEAT_CACHE"
            raise OutputError(f"an index can't be stored: {err.what}", where=err.where, fix=fix) from err
        if url:
            put(target, url)
        return load(target)


def found_part(place: PartPlace, load: Callable[[Path], Part]) -> Part:
    """A part that another process has made; one that can't be found is an `ArtefactError`."""
    with _alone(place.folder):
        found = _loaded(place, load)
    if found is None:
        raise ArtefactError(
            "a part of an index is missing or damaged",
            where=place.url or str(place.folder),
            fix="run the command again",
        )
    return found


def _loaded(place: PartPlace, load: Callable[[Path], Part]) -> Part | None:
    """The part from the folder, else from the object store; None where neither has a whole one."""
    for source in ("folder", "store"):
        if source == "store" and not (place.url and fetch(place.url, place.folder)):
            continue
        try:
            if problems := open_artefact(place.folder, INDEX_KIND).verify():
                raise ArtefactError("; ".join(problems), where=str(place.folder))
            return load(place.folder)
        except _DAMAGE:
            shutil.rmtree(place.folder, ignore_errors=True)
    return None


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold the lock of a part; systems without file locks go without."""
    with output_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = (target.parent / f".{target.name}.lock").open("a")
    with lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
