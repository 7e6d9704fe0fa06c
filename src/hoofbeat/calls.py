"""How a call from Python is made: in a thread where an event loop runs already, and written down for the manifest.

Stages run event loops for their model calls, and a second loop can't run in a thread that has one: a notebook's does.
So a call that comes from inside a loop is made in another thread. This is the one place that knows it.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import functools
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from hoofbeat.errors import HoofbeatError
from hoofbeat.python_words import python_words, reword
from hoofbeat.store.artefact import ArtefactFolder

P = ParamSpec("P")
R = TypeVar("R")

_command: contextvars.ContextVar[str] = contextvars.ContextVar("hoofbeat_command")
_verb: contextvars.ContextVar[Callable[..., object]] = contextvars.ContextVar("hoofbeat_verb")
# How a result is shown is not part of how it was made; the address of a database may hold a password.
_NOT_WRITTEN = frozenset({"progress", "database"})


def command_words() -> list[str]:
    """The call under way as Python wrote it, for manifests."""
    return [_command.get()]


def in_python_words(text: str) -> str:
    """A message of the call under way, with options of the command named as arguments of the verb."""
    return python_words(text, _verb.get()) if _verb.get(None) else text


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a verb of the Python face: it may be called inside a running event loop, and is written down."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        def work() -> R:
            _command.set(_written_call(function.__name__, args, kwargs))
            _verb.set(function)
            try:
                return function(*args, **kwargs)
            except HoofbeatError as err:
                reword(err, function)
                raise

        context = contextvars.copy_context()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return context.run(work)
        worker = _Worker(functools.partial(context.run, work))
        try:
            return worker.result.result()
        except BaseException:
            worker.stop(wait=10.0)
            raise

    return call


def asynchronous(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """The asynchronous equivalent of a verb: made in another thread, stopped when the task that waits is cancelled."""

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        context = contextvars.copy_context()
        worker = _Worker(lambda: context.run(function, *args, **kwargs))
        try:
            return await asyncio.wrap_future(worker.result)
        except asyncio.CancelledError:
            worker.stop()
            raise

    return call


class _Worker(Generic[R]):
    """A thread that makes one call and keeps its result."""

    def __init__(self, work: Callable[[], R]) -> None:
        self.result: Future[R] = Future()
        self._work = work
        self._thread = threading.Thread(target=self._run, name="hoofbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            result = self._work()
        except BaseException as err:
            if not self.result.cancelled():
                self.result.set_exception(err)
        else:
            if not self.result.cancelled():
                self.result.set_result(result)

    def stop(self, wait: float = 0.0) -> None:
        """Stop as Ctrl-C would: an interrupt in the thread, so that half-written folders are removed.

        A thread has no signals; without this, a cell that was interrupted would go on calling models. Wait for its end
        for at most `wait` seconds.
        """
        if self._thread.is_alive() and self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(KeyboardInterrupt)
            )
            self._thread.join(wait)


def _written_call(name: str, args: Sequence[object], kwargs: dict[str, object]) -> str:
    words = [_written(value) for value in args]
    words += [f"{key}={_written(value)}" for key, value in kwargs.items() if key not in _NOT_WRITTEN]
    return f"hoofbeat.{name}({', '.join(words)})"


def _written(value: object) -> str:
    """A value as a call would give it again; folders and paths are the paths that were given."""
    if isinstance(value, ArtefactFolder):
        return repr(str(value.path))
    if isinstance(value, Path):
        return repr(str(value))
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_written(each)}' for key, each in value.items())}}}"
    return repr(value)
