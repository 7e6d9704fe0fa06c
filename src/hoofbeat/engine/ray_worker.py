"""The other side of a Ray cluster: what a task does with a few parts.

Parts and results travel packed by this module. Ray by itself takes every array apart, also a small one, and asks Python
about every object: a batch of queries in 800 arrays took a worker 12 to 17 ms to read, packed 3 to 8.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from pickle import PickleBuffer
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.engine.engine import PartGuard
from hoofbeat.engine.local_engine import ProcessPool
from hoofbeat.engine.worker import Raised
from hoofbeat.errors import ClusterError, HoofbeatError

_KEPT = 4
_APART = 1 << 16  # bytes of an array that is worth its own buffer, which is read in place

Packed = Sequence[NDArray[np.uint8]]
"""The bytes of a pickle, then those of large arrays that belong to it: as arrays, which Ray Client can carry too."""


class Envelope(NamedTuple):
    """Work on its way to a cluster, with what it needs there: settings, its folder, files, and a guard."""

    work: bytes
    environment: Mapping[str, str]
    folder: str
    sees: Sequence[str]
    guard: PartGuard | None


_Batch = Callable[[list[Any]], list[Any]]
_known: dict[str, _Batch] = {}  # work that this process has unpacked: what it has loaded is there for the next part


def pack(value: object) -> Packed:
    """A value as a pickle and its large arrays."""
    apart: list[memoryview] = []
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=partial(_is_small, apart))
    return [np.frombuffer(data, np.uint8), *(np.frombuffer(each, np.uint8) for each in apart)]


def _is_small(apart: list[memoryview], buffer: PickleBuffer) -> bool:
    """Whether an array stays in the pickle; one that does not is noted."""
    if buffer.raw().nbytes < _APART:
        return True
    apart.append(buffer.raw())
    return False


def unpack(packed: Packed) -> Any:
    """What was packed. Its large arrays stay where they are, in the memory of the cluster."""
    return pickle.loads(packed[0].data, buffers=packed[1:])  # noqa: S301 - from this command or a task of it


def run_parts(key: str, boxed: list[Any], parts: Packed) -> Packed:
    """A task: the results of a few parts, or the error that one of them raised (`Raised`).

    The envelope comes as a reference in a list, which Ray hands on as it is: each process fetches it once.
    """
    while key not in _known and len(_known) >= _KEPT:
        _known.pop(next(iter(_known)))
    return _run(_known, key, boxed, parts)


class PartKeeper:
    """An actor: it keeps all work that it has unpacked, with what that has opened."""

    def __init__(self) -> None:
        self._known: dict[str, _Batch] = {}

    def run(self, key: str, boxed: list[Any], parts: Packed) -> Packed:
        """The results of a few parts, as `run_parts` gives them."""
        return _run(self._known, key, boxed, parts)


def _run(known: dict[str, _Batch], key: str, boxed: list[Any], parts: Packed) -> Packed:
    import ray  # noqa: PLC0415 - the extra is there where this runs

    try:
        if key not in known:
            known[key] = _unpacked(ray.get(boxed[0]))
        return pack(known[key](unpack(parts)))
    except HoofbeatError as err:
        if not isinstance(err, ClusterError):
            err.where = f"{err.where or 'a worker'} (on {socket.gethostname()})"
        return pack(Raised(err))


def _unpacked(envelope: Envelope) -> _Batch:
    os.environ.update(envelope.environment)
    with suppress(OSError):  # paths may be relative to the command's folder; what is missing here, `sees` names
        os.chdir(envelope.folder)
    for path in envelope.sees:
        if not Path(path).exists():
            raise ClusterError(
                "a worker can't see a file or folder of this command",
                where=f"{path} on {socket.gethostname()}",
                fix="keep inputs, results and HOOFBEAT_CACHE in folders that all machines share under the same path",
            )
    work: Callable[[Any], Any] = pickle.loads(envelope.work)  # noqa: S301 - from the command that this task is of
    if envelope.guard is None:
        return lambda parts: [work(part) for part in parts]
    pool = ProcessPool(work, 1, envelope.guard)  # its process ends with this one: its standard input closes
    return lambda parts: list(pool.map(parts))
