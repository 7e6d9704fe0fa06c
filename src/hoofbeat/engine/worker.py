"""The other side of this machine's engine: what a process does that works on parts.

It and the process that started it exchange frames (length, pickle) over the standard streams: first
the work, then part after part. Each part is answered by its result or by the error that it raised; signs of life come
in between. Only processes of the same program talk to each other here.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NamedTuple

MAX_MEMORY = 6 << 30
_BEAT_EVERY = 0.5
_LENGTH = struct.Struct("<Q")


class Beat(NamedTuple):
    """A sign of life from a long part: how far it is."""

    items: int


class Done(NamedTuple):
    """A part's result."""

    result: Any


class Raised(NamedTuple):
    """The error that a part raised."""

    error: BaseException


class _Pulse:
    """Sends signs of life of the part under way, where somebody listens."""

    def __init__(self) -> None:
        self.listener: Callable[[Beat], None] | None = None
        self._last = 0.0

    def beat(self, count: int) -> None:
        now = time.monotonic()
        if self.listener is not None and now - self._last > _BEAT_EVERY:
            self._last = now
            self.listener(Beat(count))


_pulse = _Pulse()


def beat(count: int) -> None:
    """Give a sign of life from inside a part: how many of its items are done."""
    _pulse.beat(count)


def send(stream: IO[bytes], message: object) -> None:
    """Write one frame."""
    send_bytes(stream, pickle.dumps(message, pickle.HIGHEST_PROTOCOL))


def send_bytes(stream: IO[bytes], data: bytes) -> None:
    """Write a frame that is pickled already, in one go: the other side is woken once."""
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame, or None where the other side has gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    data = stream.read(_LENGTH.unpack(head)[0])
    return data if len(data) == _LENGTH.unpack(head)[0] else None


def serve(*, guarded: bool) -> None:
    """Work on parts from standard input until it closes."""
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if guarded:
        _limit_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not land among the answers
    _pulse.listener = lambda pulse: send(answers, pulse)
    first = receive(sys.stdin.buffer)
    if first is None:
        return
    work = pickle.loads(first)  # noqa: S301 - from the process that started this one
    while (data := receive(sys.stdin.buffer)) is not None:
        with suppress(BrokenPipeError):
            send(answers, _answer(work, pickle.loads(data)))  # noqa: S301 - as above


def _answer(work: Callable[[Any], Any], part: object) -> Done | Raised:
    try:
        return Done(work(part))
    except Exception as err:
        return Raised(err)


def _limit_memory() -> None:
    """Ask the system to stop this process, not the machine, when a part makes it grow without end."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, hard))
