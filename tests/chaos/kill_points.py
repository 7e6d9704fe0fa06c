"""Where a command is killed: at the Nth thing it does to the outside, so that a kill can be repeated on any machine.

Counted are files opened for writing, renamed, removed and locked, folders made and removed, connections, processes, and
every statement to SQLite: Python's audit events show them all. A kill may also come some milliseconds after such an
event, in the middle of a call, a computation or native code. Only the command's own process is killed; what it has
started must notice that itself.
"""

from __future__ import annotations

import atexit
import itertools
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_COUNTED = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
    *("shutil.rmtree", "ctypes.dlsym", "fcntl.fcntl", "fcntl.flock", "fcntl.lockf"),
    *("socket.connect", "subprocess.Popen"),
}


class KillPoint(NamedTuple):
    """A moment: the number of an event, from 1, and how many seconds after it; event 0 never comes."""

    event: int
    later: float = 0.0

    def __str__(self) -> str:
        return f"{self.event}+{self.later * 1000:.0f}ms" if self.later else str(self.event)


def arm(point: KillPoint, counted: Path) -> None:
    """Have this process killed at this point; one that ends before writes how many events it had into `counted`."""
    own = os.getpid()
    killer = _killer(own, point.later) if point.later else -1
    numbers = itertools.count(1)
    last = [0]

    def happen(*_: object) -> None:
        number = last[0] = next(numbers)
        if number != point.event:
            return
        if killer >= 0:
            os.write(killer, b"!")
        else:
            os.kill(own, signal.SIGKILL)

    def hear(event: str, values: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(values[2], int) and values[2] & _WRITING and os.getpid() == own:
                happen()
        elif event in _COUNTED and os.getpid() == own:
            happen()

    connect = sqlite3.connect

    def traced(*place: Any, **options: Any) -> sqlite3.Connection:
        opened: sqlite3.Connection = connect(*place, **options)
        opened.set_trace_callback(happen)
        return opened

    sqlite3.connect = traced  # type: ignore[assignment]
    sqlite3.dbapi2.connect = traced  # type: ignore[assignment]  # the review store's, through SQLAlchemy

    atexit.register(lambda: counted.write_text(str(last[0]), "ascii"))
    sys.addaudithook(hear)


def _killer(victim: int, later: float) -> int:
    """A process that kills this one a while after a byte is written to the descriptor returned.

    A thread would not do: native code that holds the interpreter would keep it waiting.
    """
    waiting, telling = os.pipe()
    if os.fork() == 0:
        os.close(telling)
        if os.read(waiting, 1):
            time.sleep(later)
            if os.getppid() == victim:
                os.kill(victim, signal.SIGKILL)
        os._exit(0)
    os.close(waiting)
    return telling
