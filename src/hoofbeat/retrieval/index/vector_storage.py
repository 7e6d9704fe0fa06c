"""Vectors as they are stored: 32-bit floats, 16-bit floats, or 8-bit integers with one scale per row.

Rounding happens once, on the way in. Whatever is stored is then searched exactly: a score is the dot product of the
query with the stored (rounded) row, computed in double precision. The narrow kinds take half and a quarter of the
memory; rows are widened block by block, never all at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models.embedded import default_threads
from hoofbeat.retrieval.index.dense_kernels import Reaching, compiled, plain, reaching, widening
from hoofbeat.retrieval.index.topk import Floats, Indices

Storage = Literal["float32", "float16", "int8"]
Vectors = NDArray[np.float32]

_BLOCK = 8192
_PAIRS = 256
_HALVES = 1024
_WORTH_THREADS = 4096
_COMPILE_FROM = 1_000_000
_HALF_BITS = np.int32(-0x7000_2000)  # the sign, 5 bits of exponent, 10 of fraction
_HALF_EXPONENT = np.float32(2.0**112)
_MOST = 1e18  # a product of two lengths below this squared can't overflow 32 bits


def check_storage(name: str) -> Storage:
    """The storage of that name."""
    for known in get_args(Storage):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise UsageError(f"vectors can't be stored as {name!r}", fix=f"choose one of: {', '.join(get_args(Storage))}")


class VectorRows:
    """Rows of numbers in one of the storages; `longest` is the length of the longest, for bounds on rounding errors.

    Contiguous 32-bit rows, also memory-mapped ones, are used in place. `fast` says whether pairs are scored by
    numba, if it is installed; by default once there has been enough to do. It changes no score.
    """

    def __init__(self, vectors: NDArray[Any], storage: Storage = "float32", *, fast: bool | None = None) -> None:
        if vectors.ndim != 2:
            raise InputError(f"vectors must be a table of rows, not an array of {vectors.ndim} dimensions")
        self.storage: Storage = storage
        self.longest = 0.0
        self._fast = fast
        self._pairs = 0
        self._scale: NDArray[np.float32] | None = None
        self._data: NDArray[Any]
        if storage == "float32":
            self._data = np.ascontiguousarray(vectors, np.float32)
        else:
            self._data = np.empty(vectors.shape, storage)
            self._scale = np.zeros(len(vectors), np.float32) if storage == "int8" else None
        for start in range(0, len(vectors), _BLOCK):
            here = slice(start, start + _BLOCK)
            if storage != "float32":
                self._put(here, np.asarray(vectors[here], np.float32))
            wide = self.block(here)
            lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide, dtype=np.float64))
            top = float(lengths.max(initial=0.0))
            if not top < _MOST:  # also when it is no number
                worst = start + int(np.argmax(~(lengths < _MOST)))
                raise InputError(f"vector {worst} is not finite or far too long", fix="encode the texts again")
            self.longest = max(self.longest, top)

    def __len__(self) -> int:
        return len(self._data)

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return int(self._data.shape[1])

    @property
    def nbytes(self) -> int:
        """How much memory the stored rows take."""
        return int(self._data.nbytes + (0 if self._scale is None else self._scale.nbytes))

    def block(self, which: slice | Indices, room: Vectors | None = None) -> Vectors:
        """Some rows as 32-bit floats: in place where they are stored so, else widened (into `room`, if given)."""
        found = self._data[which]
        if self.storage == "float32":
            return found
        wide = np.empty(found.shape, np.float32) if room is None else room[: len(found)]
        scale = None if self._scale is None else self._scale[which]
        fast = widening() if self._worth_compiling else None
        if fast is not None:
            fast(found, scale, wide)
            return wide
        for start in range(0, len(found), _PAIRS):  # pieces that stay in the processor's cache
            here = slice(start, start + _PAIRS)
            if scale is None:
                _widen_half(found[here], wide[here])
            else:
                np.copyto(wide[here], found[here])
                wide[here] *= scale[here, None]
        return wide

    @property
    def reaching(self) -> Reaching | None:
        """What finds scores that reach a bar, where it is compiled and worth it."""
        return reaching() if self._worth_compiling else None

    @property
    def _worth_compiling(self) -> bool:
        return self._pairs > _COMPILE_FROM if self._fast is None else self._fast

    def dots(self, places: Indices, queries: Floats, owners: Indices, *, threads: int = 0) -> Floats:
        """The dot product of each row at `places` with the query its owner names: in double precision, each row summed
        by itself in one fixed order, so that equal rows always have equal scores. `threads` work on it (0: as usual).
        """
        self._pairs += len(places)
        score = (compiled(self.dimension) if self._worth_compiling else None) or plain
        scores = np.empty(len(places), np.float64)

        def some(start: int, end: int) -> None:
            scores[start:end] = score(self._data, places[start:end], queries, owners[start:end])

        def some_halves(start: int, end: int) -> None:
            order = start + np.argsort(places[start:end], kind="stable")
            rows, row_of = _distinct(places[order])
            borders = np.searchsorted(row_of, np.arange(0, len(rows) + _HALVES, _HALVES)).tolist()
            for first, (begin, stop) in zip(range(0, len(rows), _HALVES), pairwise(borders), strict=True):
                pairs = order[begin:stop]
                wide = self.block(rows[first : first + _HALVES])
                scores[pairs] = score(wide, row_of[begin:stop] - first, queries, owners[pairs])

        threads = (threads or default_threads()) if len(places) >= _WORTH_THREADS else 1
        ends = [len(places) * part // threads for part in range(threads + 1)]
        work = some_halves if self.storage == "float16" else some
        if threads == 1:
            work(0, len(places))
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(work, ends[:-1], ends[1:]))
        if self._scale is not None:
            scores *= self._scale[places]
        return scores

    def _put(self, here: slice, wide: Vectors) -> None:
        if self._scale is None:
            with np.errstate(over="ignore"):
                self._data[here] = wide
            if not np.isfinite(self._data[here]).all():
                raise InputError("a vector is not finite, or too long for 16 bits", fix="store vectors as float32")
            return
        scale = np.abs(wide).max(axis=1, initial=0.0) / np.float32(127)
        if not np.isfinite(scale).all():
            raise InputError("a vector is not finite", fix="encode the texts again")
        steps = np.rint(wide / np.where(scale > 0, scale, 1)[:, None])
        self._data[here] = np.clip(steps, -127, 127)
        self._scale[here] = scale


def _distinct(ascending: Indices) -> tuple[Indices, Indices]:
    """The numbers that there are, and for each place which of them stands there."""
    new = np.diff(ascending, prepend=-1) > 0
    return ascending[new], np.cumsum(new) - 1


def _widen_half(half: NDArray[Any], out: Vectors) -> None:
    """16-bit floats, finite ones, as 32-bit ones: the bits are moved to their places and the exponent set right.

    The same numbers as numpy's own conversion, several times as fast.
    """
    bits = out.view(np.int32)
    np.copyto(bits, half.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _HALF_BITS, out=bits)
    np.multiply(out, _HALF_EXPONENT, out=out)
