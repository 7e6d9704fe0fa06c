"""Artefact folders in an object store, by an address such as `s3://bucket/indexes`, through fsspec.

fsspec and what it needs for a kind of store come with the extra `hoofbeat[objects]` (S3) or from that store's package
(gcsfs for `gs://`). Who may read and write is decided by the environment of each machine, as the store's own tools read
it: an address with a key in it is refused, because commands and messages would repeat it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from hoofbeat.errors import ArtefactError, InputError, OutputError, UsageError
from hoofbeat.store.artefact import MANIFEST, Manifest, open_artefact
from hoofbeat.store.files import output_errors

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")  # the parts of an index are plain files
_PROBE = ".hoofbeat-writes-here"


def is_url(place: str) -> bool:
    """Whether this is the address of an object store, and not a folder."""
    return _ADDRESS.fullmatch(place) is not None


def check_url(url: str) -> str:
    """The address without a slash at its end; one with a key or settings in it, or of an unknown kind, is refused."""
    match = _ADDRESS.fullmatch(url)
    if match is None or not match[2].strip("/"):
        raise UsageError(f"{url!r} is not the address of a folder in an object store", fix="write s3://BUCKET/FOLDER")
    host = match[2].partition("/")[0]
    if "@" in host or set("?#") & set(match[2]):
        raise UsageError(
            "the store's address contains a key or settings, which messages and files would repeat",
            where=f"{match[1]}://{host.rpartition('@')[2].partition('?')[0]}/...",
            fix="leave them out: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL, or use a profile",
        )
    _system(url)
    return url.rstrip("/")


def is_there(url: str) -> bool:
    """Whether a whole artefact is there: its manifest is written last."""
    return _manifest(url) is not None


def check_writable(url: str) -> None:
    """Refuse a place that can't be written, before work is done for it."""
    system, path = _system(url)
    with _errors(url, OutputError, "written", missing=True):
        system.pipe_file(f"{path}/{_PROBE}", b"")
        system.rm_file(f"{path}/{_PROBE}")


def put(folder: Path, url: str) -> None:
    """Copy an artefact to the store; its manifest comes last."""
    system, path = _system(url)
    names = [*sorted(open_artefact(folder).manifest.files), MANIFEST]
    with _errors(url, OutputError, "written", missing=True):
        for name in names:
            system.put_file(str(folder / name), f"{path}/{name}")


def fetch(url: str, target: Path) -> bool:
    """Copy an artefact from the store to a folder that is not there yet; False where the store has no whole one.

    It is checked against its manifest, and appears at once when it is whole.
    """
    raw = _manifest(url)
    if raw is None:
        return False
    system, path = _system(url)
    draft = target.with_name(f".{target.name}.{os.getpid()}.fetched")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        names = msgspec.json.decode(raw, type=Manifest).files
        with output_errors(target):
            draft.mkdir(parents=True)
            (draft / MANIFEST).write_bytes(raw)
        if not all(_FILE.fullmatch(name) for name in names):
            return False
        with _errors(url, InputError, "read"):
            for name in names:
                system.get_file(f"{path}/{name}", str(draft / name))
        if open_artefact(draft).verify():
            return False
        draft.rename(target)
    except (ArtefactError, FileNotFoundError, msgspec.MsgspecError):
        return False
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return True


def _manifest(url: str) -> bytes | None:
    system, path = _system(url)
    try:
        with _errors(url, InputError, "read"):
            raw: bytes = system.cat_file(f"{path}/{MANIFEST}")
    except FileNotFoundError:
        return None
    return raw


def _system(url: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        import fsspec  # noqa: PLC0415 - an extra
    except ImportError as err:
        raise UsageError(
            "object stores need fsspec, which is not installed", where=url, fix="pip install 'hoofbeat[objects]'"
        ) from err
    try:
        folders = {"auto_mkdir": True} if url.startswith("file:") else {}  # object stores have none to make
        system, path = fsspec.core.url_to_fs(url, **folders)
    except (ImportError, ValueError) as err:
        raise UsageError(
            f"this kind of store can't be used: {err}",
            where=url,
            fix="pip install 'hoofbeat[objects]' for s3://, gcsfs for gs://; or name a folder",
        ) from err
    return system, str(path).rstrip("/")


@contextmanager
def _errors(url: str, kind: type[InputError | OutputError], what: str, *, missing: bool = False) -> Iterator[None]:
    """A store's errors in our words; `missing` says whether something that is not there is one."""
    try:
        yield
    except (ArtefactError, UsageError):
        raise
    except Exception as err:  # each store raises its own kinds
        if isinstance(err, FileNotFoundError) and not missing:
            raise
        raise kind(
            f"the object store can't be {what}: {_first_line(err)}",
            where=url,
            fix="check the address, that the bucket exists, and the keys in the environment (AWS_ENDPOINT_URL for a "
            "store that is not Amazon's)",
        ) from err


def _first_line(err: Exception) -> str:
    return next((line.strip() for line in str(err).splitlines() if line.strip()), type(err).__name__)[:300]
