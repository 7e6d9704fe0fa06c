"""Files written beside and renamed, so that a reader never sees half a file, and hashed, so that a change is seen."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hoofbeat.errors import InputError, OutputError
from hoofbeat.text import ascii_letters

_FIXES = {
    errno.ENOSPC: "free some space or choose another folder with -o; what was finished is kept",
    errno.EDQUOT: "your quota is used up: free some space or choose another folder with -o",
    errno.EROFS: "the file system is read-only: choose another folder with -o",
    errno.EACCES: "you may not write there: choose another folder with -o",
    errno.EPERM: "you may not write there: choose another folder with -o",
    errno.ENOTDIR: "a file stands where a folder is needed: choose another folder with -o",
    errno.EEXIST: "a file stands where a folder is needed: choose another folder with -o",
}


@contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's write errors into an `OutputError` that says what to do."""
    try:
        yield
    except OSError as err:
        reason = err.strerror or str(err)
        fix = _FIXES.get(err.errno or 0, "choose another folder with -o")
        raise OutputError(f"can't write: {reason}", where=str(path), fix=fix) from err


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing; it appears whole, or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def write_bytes(path: Path, data: bytes) -> None:
    """Write a whole file atomically."""
    with atomic_write(path) as stream:
        stream.write(data)


def read_bytes(path: Path) -> bytes:
    """Read a whole file; a missing or unreadable one is an `InputError`."""
    try:
        return path.read_bytes()
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
        ) from err


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
        ) from err


def sync_folder(path: Path) -> None:
    """Ask the system to make a rename in this folder durable; file systems that can't are left alone."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def slug(text: str) -> str:
    """A name for files and anchors: lower-case letters and digits with hyphens, never empty."""
    return re.sub(r"[^a-z0-9]+", "-", ascii_letters(text).lower()).strip("-")[:60].strip("-") or "x"


def user_cache() -> Path:
    """Hoofbeat's folder among the user's caches."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "hoofbeat"


def cache_folder(name: str) -> Path:
    """Where what can be made again is kept: this folder in `HOOFBEAT_CACHE`, else in the user's cache."""
    chosen = os.environ.get("HOOFBEAT_CACHE")
    return (Path(chosen).expanduser() if chosen else user_cache()) / name
