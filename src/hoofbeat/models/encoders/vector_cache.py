"""Vectors kept by content: a text is encoded once by an encoder, whoever asks for it and in whatever collection.

Each encoder (by its identity and dimension) has a folder with two files that only grow: `vectors`, one row of 32-bit
floats after the other, and `keys`, for each row the hash of its text and a checksum. A row is written before its key,
under a lock, so a process that is killed leaves at most a torn end: not counted by readers, cut off by the next writer.
A row whose checksum is wrong is as good as absent: its text is encoded again and written anew.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import OutputError
from hoofbeat.models.encoders.encoder_base import (
    Encoder,
    EncoderBase,
    Instructions,
    Vectors,
    encoded_blocks,
)
from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.files import cache_folder, write_bytes

try:
    import fcntl
except ImportError:  # a system without: two processes at once may lose a row to its checksum, nothing worse
    fcntl = None  # type: ignore[assignment]

_FORMAT = 1
_BLOCK = 256
_GPU_BLOCKS = 32
_WRITE = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_KEY = np.dtype([("first", "<u8"), ("second", "<u8"), ("check", "<u4")])

_Keys = NDArray[np.void]


def vectors_folder() -> Path:
    """Where vectors are kept: `vectors` in `HOOFBEAT_CACHE`, else in the user's cache folder."""
    return cache_folder("vectors")


class VectorCache:
    """The vectors of one encoder in a separate folder under `folder`; other processes may use it at the same time."""

    def __init__(self, folder: Path, identity: str, dimension: int) -> None:
        name = hashlib.sha256(f"{_FORMAT}\n{dimension}\n{identity}".encode()).hexdigest()[:24]
        self.folder = folder / name
        self.identity = identity
        self.dimension = dimension
        self._row = 4 * dimension
        self._seen = -1
        self._rows: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self._keys: _Keys = np.empty(0, _KEY)
        self._sorted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._order: NDArray[np.int64] = np.empty(0, np.int64)

    def find(self, texts: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        """A row for each text, and which of them are there; the others are zero."""
        self._refresh()
        rows = np.zeros((len(texts), self.dimension), np.float32)
        there = np.zeros(len(texts), bool)
        keys = _hashes(texts)
        at = np.searchsorted(self._sorted, keys["first"], side="right") - 1  # the newest of equal keys
        for number in np.flatnonzero(at >= 0):
            row, key = int(self._order[at[number]]), keys[number]
            kept = self._keys[row]
            if kept["first"] == key["first"] and kept["second"] == key["second"]:
                vector = self._rows[row]
                if _check(key, vector) == kept["check"]:
                    rows[number], there[number] = vector, True
        return rows, there

    def add(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors; safe against other processes and against being killed at any moment."""
        vectors = np.ascontiguousarray(vectors, np.float32)
        if vectors.shape != (len(texts), self.dimension):
            raise ValueError(f"{len(texts)} texts and vectors of shape {vectors.shape} don't match")
        keys = _hashes(texts)
        for number, vector in enumerate(vectors):
            keys[number]["check"] = _check(keys[number], vector)
        self.folder.mkdir(parents=True, exist_ok=True)
        about = self.folder / "encoder.json"
        if not about.is_file():
            write_bytes(about, msgspec.json.encode({"identity": self.identity, "dimension": self.dimension}))
        with self._locked(), self._file("vectors") as rows, self._file("keys") as index:
            whole = self._whole()
            os.truncate(rows, whole * self._row)
            os.truncate(index, whole * _KEY.itemsize)
            _append(rows, vectors.tobytes())
            _append(index, keys.tobytes())

    def __len__(self) -> int:
        """How many whole rows there are."""
        return self._whole()

    def _whole(self) -> int:
        try:
            rows = (self.folder / "vectors").stat().st_size // self._row
            return min(rows, (self.folder / "keys").stat().st_size // _KEY.itemsize)
        except OSError:
            return 0

    def _refresh(self) -> None:
        """Look at the files again when they have grown."""
        whole = self._whole()
        if whole == self._seen:
            return
        if whole:
            self._keys = np.fromfile(self.folder / "keys", _KEY, whole)
            self._rows = np.memmap(self.folder / "vectors", np.float32, "r", shape=(whole, self.dimension))
        else:
            self._keys, self._rows = np.empty(0, _KEY), np.empty((0, self.dimension), np.float32)
        self._order = np.argsort(self._keys["first"], kind="stable")
        self._sorted = self._keys["first"][self._order]
        self._seen = whole

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "lock").open("a") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)  # let go by closing, or by the process's end
            yield

    @contextmanager
    def _file(self, name: str) -> Iterator[int]:
        handle = os.open(self.folder / name, _WRITE, 0o644)
        try:
            yield handle
        finally:
            os.close(handle)


class CachedEncoder(EncoderBase):
    """An encoder that encodes only what is not kept; `hits` and `misses` count different texts.

    A cache that can't be written is not used: `trouble` says why, and everything else works as without one.
    """

    def __init__(self, inner: Encoder, folder: Path) -> None:
        self.inner = inner
        self.name = inner.name
        self.identity = inner.identity
        self.hits = 0
        self.misses = 0
        self.trouble = ""
        self._folder = folder
        self._cache: VectorCache | None = None

    def __reduce__(self) -> tuple[type[CachedEncoder], tuple[Encoder, Path]]:
        """Pickled without what it has read: another process reads the folder itself."""
        return CachedEncoder, (self.inner, self._folder)

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.inner.dimension

    @property
    def prompts(self) -> Instructions:  # type: ignore[override]
        """The inner encoder's prompts."""
        return self.inner.prompts

    @property
    def window(self) -> int:
        """The inner encoder's window."""
        return self.inner.window

    @property
    def assumption(self) -> str:  # type: ignore[override]
        """What was assumed of the inner encoder."""
        return self.inner.assumption

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """The inner encoder's tokens."""
        return self.inner.token_spans(text)

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order; each different text is looked up or encoded once."""
        if self._cache is None:
            self._cache = VectorCache(self._folder, self.identity, self.dimension)
        number_of: dict[str, int] = {}
        places = np.array([number_of.setdefault(text, len(number_of)) for text in texts], np.int64)
        different = list(number_of)
        rows, there = self._find(self._cache, different)
        missing = np.flatnonzero(~there)
        self.hits += int(there.sum())
        self.misses += len(missing)
        if len(missing):
            self._encode_missing(self._cache, different, missing, rows, progress)
        return rows[places]

    def _encode_missing(
        self, cache: VectorCache, texts: Sequence[str], missing: NDArray[np.int64], rows: Vectors, progress: Progress
    ) -> None:
        with progress.task("encoding texts", len(missing)) as task:
            on_gpu = isinstance(self.inner, EncoderBase) and self.inner.device == "cuda"
            size = _BLOCK * (_GPU_BLOCKS if on_gpu else 1)
            starts = range(0, len(missing), size)
            blocks = ([texts[number] for number in missing[start : start + size]] for start in starts)
            for start, vectors in zip(starts, encoded_blocks(self.inner, blocks), strict=True):
                numbers = missing[start : start + size]
                block = [texts[number] for number in numbers]
                rows[numbers] = vectors
                if not self.trouble:
                    self._add(cache, block, vectors)
                    if self.trouble:
                        task.note(self.trouble)
                task.advance(len(numbers))

    def _find(self, cache: VectorCache, texts: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        try:
            return cache.find(texts)
        except (OSError, ValueError) as err:
            self.trouble = f"vectors can't be cached: {err}"
            return np.zeros((len(texts), self.dimension), np.float32), np.zeros(len(texts), bool)

    def _add(self, cache: VectorCache, texts: Sequence[str], vectors: Vectors) -> None:
        try:
            cache.add(texts, vectors)
        except (OSError, OutputError) as err:
            self.trouble = f"vectors can't be cached: {err}"


def cached_encoder(encoder: Encoder, folder: Path | None = None) -> CachedEncoder:
    """The encoder with what it has encoded before; `folder` is `vectors_folder()` unless given."""
    return CachedEncoder(encoder, folder or vectors_folder())


def _hashes(texts: Sequence[str]) -> _Keys:
    digests = b"".join(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16] + bytes(4) for text in texts)
    return np.frombuffer(bytearray(digests), _KEY)


def _check(key: np.void, vector: Vectors) -> int:
    return zlib.crc32(vector.tobytes(), zlib.crc32(key.tobytes()[:16]))


def _append(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
