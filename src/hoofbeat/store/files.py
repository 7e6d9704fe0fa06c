"""Files on disk: written beside and renamed, so that a reader never sees half a file; read as streams, within limits.

Streams are plain or gzipped, read line by line. Text compresses five- or tenfold. A stream that grows two hundredfold
past the first hundred megabytes is refused, and so is a line longer than any document.
"""

from __future__ import annotations

import ctypes
import errno
import gzip
import hashlib
import io
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from hoofbeat.errors import HostileInputError, InputError, OutputError
from hoofbeat.text import ascii_letters

_FIXES = {
    errno.ENOSPC: "free some space or choose another folder with -o; what was finished is kept",
    errno.EDQUOT: "your quota is used up: free some space or choose another folder with -o",
    errno.EROFS: "the file system is read-only: choose another folder with -o",
    errno.EACCES: "you may not write there: choose another folder with -o",
    errno.EPERM: "you may not write there: choose another folder with -o",
    errno.ENOTDIR: "a file is where a folder is needed: choose another folder with -o",
    errno.EEXIST: "a file is where a folder is needed: choose another folder with -o",
}


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


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
def atomic_write(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open `path` for writing; it appears whole, or not at all. A `private` file is for its owner alone."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_parts(path)
        try:
            with os.fdopen(os.open(temporary, _NEW, 0o600 if private else 0o666), "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def _clear_parts(path: Path) -> None:
    """Remove what killed processes left of this file. Drafts are removed whole, and may have a million files."""
    if any(part.endswith(".draft") for part in path.parts):
        return
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.part")
    with os.scandir(path.parent) as found:
        left = [each.path for each in found if (match := pattern.fullmatch(each.name)) and not is_alive(int(match[1]))]
    for name in left:
        Path(name).unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether there is a process with this number on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


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


def make_private(path: Path) -> None:
    """Make a file for its owner alone, or create it so. One that its owner shares with a group for writing stays so."""
    with output_errors(path):
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        elif path.is_file() and not path.stat().st_mode & 0o020:
            with suppress(PermissionError):  # another's file
                path.chmod(path.stat().st_mode & 0o700)


def inside(root: Path, name: str) -> Path:
    """The place of a name below a folder. A name that leads outside, by itself or through a link, is refused.

    Names and ids in artefacts may come from others: code that reads or writes a file by such a name calls this.
    """
    if leads_outside(root, name):
        raise HostileInputError(
            f"the name {name[:200]!r} leads outside its folder",
            where=str(root),
            fix="don't use its source, or correct the name there",
        )
    return root / name


def leads_outside(root: Path | None, name: str) -> bool:
    """Whether a name leads outside its folder; without a folder, whether it says so itself."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        return True
    return root is not None and not (root / name).resolve().is_relative_to(root.resolve())


def copy_inside(source: Path, name: str, folder: Path) -> None:
    """Copy a file to the place of a name below a folder."""
    place = inside(folder, name)
    with output_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, place)


def sync_folder(path: Path) -> None:
    """Ask the system to make a rename in this folder durable; file systems that can't do it are ignored."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_AT_CWD = -100
_EXCHANGE = 2


def exchange_folders(one: Path, other: Path) -> bool:
    """Let two folders of one file system change places in one step; False where the system can't."""
    if os.name == "nt":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2"):  # Linux
        done = libc.renameat2(_AT_CWD, names[0], _AT_CWD, names[1], _EXCHANGE)
    elif hasattr(libc, "renamex_np"):  # macOS
        done = libc.renamex_np(*names, _EXCHANGE)
    else:
        return False
    return bool(done == 0)


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


MAX_LINE_BYTES = 64_000_000
MAX_GROWTH = 200
FREE_GROWTH = 100_000_000
STEP = 1_000_000


class BoundedGzipStream(io.RawIOBase):
    """A gzip stream that counts its output, only goes forward, and stops a decompression bomb.

    `read` refuses to hand out more than `MAX_LINE_BYTES` bytes at once: only a hostile file asks for that.
    """

    def __init__(self, stream: IO[bytes], compressed: int) -> None:
        self._inner = gzip.GzipFile(fileobj=stream, mode="rb")
        self._max_bytes = FREE_GROWTH + MAX_GROWTH * compressed
        self._position = 0

    def readable(self) -> bool:
        """A stream to read from."""
        return True

    def tell(self) -> int:
        """How many bytes have been read."""
        return self._position

    def seekable(self) -> bool:
        """Forward only."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go forward to a place."""
        if whence != io.SEEK_SET or offset < self._position:
            raise HostileInputError(
                "compressed file refused as hostile: it has to be read backwards", fix="leave it out"
            )
        while self._position < offset and self.read(min(STEP, offset - self._position)):
            pass
        return self._position

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as many as asked for unless the stream ends."""
        if size < 0 or size > MAX_LINE_BYTES + 1:
            raise HostileInputError(
                "compressed file refused as hostile: one piece of it is too large", fix="leave it out"
            )
        return self._counted(self._inner.read(size))

    def readline(self, size: int | None = -1) -> bytes:
        """The next line, or its first bytes."""
        limit = MAX_LINE_BYTES + 1 if size is None or size < 0 else size
        return self._counted(self._inner.readline(limit))

    def close(self) -> None:
        """Close the stream."""
        if not self.closed:
            self._inner.close()
        super().close()

    def _counted(self, data: bytes) -> bytes:
        self._position += len(data)
        if self._position > self._max_bytes:
            raise HostileInputError(
                f"compressed file refused as hostile: it grows more than {MAX_GROWTH}-fold", fix="leave it out"
            )
        return data


@contextmanager
def stream_errors(path: Path) -> Iterator[None]:
    """The system's and the decompressor's errors as ours."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as err:
        raise InputError(
            f"the compressed file is broken or cut off: {err}", where=str(path), fix="fetch it again"
        ) from err
    except OSError as err:
        raise InputError(
            f"can't read the file: {err.strerror or err}", where=str(path), fix="check the path and its permissions"
        ) from err


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """A file's content as a stream; what ends in `.gz` is decompressed on the way, within limits."""
    with stream_errors(path), path.open("rb") as stream:
        if path.suffix.lower() != ".gz":
            yield stream
            return
        inflating = BoundedGzipStream(stream, path.stat().st_size)
        try:
            yield inflating  # type: ignore[misc]
        finally:
            inflating.close()


def gunzip(path: Path, max_bytes: int) -> bytes:
    """A gzipped file's whole content, at most `max_bytes`."""
    pieces: list[bytes] = []
    held = 0
    with open_stream(path) as stream:
        while piece := stream.read(STEP):
            pieces.append(piece)
            held += len(piece)
            if held > max_bytes:
                raise HostileInputError(
                    f"file too large: more than {max_bytes / 1e6:,.0f} MB when decompressed",
                    fix="split it, or leave it out",
                )
    return b"".join(pieces)


def lines(stream: IO[bytes], max_length: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream with their numbers; one that is longer than any document ends the reading."""
    number = 0
    while line := stream.readline(max_length + 1):
        number += 1
        if len(line) > max_length:
            raise HostileInputError(
                f"line too long: line {number} has more than {max_length / 1e6:,.0f} MB",
                fix="split it, or leave it out",
            )
        yield number, line


def text_of(line: bytes, number: int) -> str:
    """A line's text: UTF-8, else Windows-1252. NUL bytes mean that it is not text."""
    if b"\0" in line:
        raise InputError("NUL bytes in a text file: it is binary, damaged, or not UTF-8", fix="convert it to UTF-8")
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")
