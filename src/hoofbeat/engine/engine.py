"""What every engine offers: an ordered, streaming map over parts of work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

PATIENCE = 120.0


class PartGuard(NamedTuple):
    """For work on untrusted parts, such as files to parse: a part that breaks a process costs only itself.

    `instead(part, reason)` is the result of a part whose process died twice, or gave no sign of life (`beat`) for
    `patience` seconds. Guarded work always runs in a separate process with a memory limit.
    """

    instead: Callable[[Any, str], Any]
    patience: float = PATIENCE


class Engine(Protocol):
    """Runs work on parts, several side by side."""

    @property
    def name(self) -> str:
        """The engine's name, `local` or `ray`."""
        ...

    def map(
        self,
        work: Callable[[Part], Result],
        parts: Iterable[Part],
        *,
        threads: bool = False,
        workers: int | None = None,
        guard: PartGuard | None = None,
        on_beat: Callable[[int], None] | None = None,
        sees: Sequence[Path] = (),
        home: Callable[[Part], int] | None = None,
        gpu: bool = False,
    ) -> Iterator[Result]:
        """The result of `work` for each part, in the order of the parts; only a few wait at a time.

        `work` depends on nothing but its part. It is a function of a module or an object that can be pickled; each
        worker unpickles it once, so what it loads is loaded once. Work that can't be pickled runs here. `threads` says
        that it may share this process with others like it. `workers` limits those side by side on this machine.
        `on_beat` hears of a guarded part's signs of life. `sees` are the files and folders that a worker on another
        machine needs. `home` numbers what a part needs open: parts with the same number go to the same worker, which
        keeps its work, with what that has opened, until the engine is closed. Here that worker is this process.
        `gpu` gives each worker on a cluster a GPU to itself; a cluster without any has no place for such work.
        """
        ...

    def gpus(self) -> int:
        """How many workers with `gpu` there can be; 0 on this machine, where GPUs are not handed out."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...


def available_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
