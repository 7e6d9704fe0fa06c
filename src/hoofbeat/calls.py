"""How a call from Python is made: its arguments checked, in a thread where an event loop runs, and written down.

What a reader of a result should know becomes a warning at the line of the caller, whatever thread works. Stages run
event loops for their model calls, and a second loop can't run in a thread that has one: a notebook's does. So a call
that comes from inside a loop is made in another thread. This is the one place that knows it.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import functools
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from hoofbeat.errors import HoofbeatError
from hoofbeat.folders import result_notes
from hoofbeat.python_arguments import checked_arguments
from hoofbeat.python_words import python_words, reword
from hoofbeat.store.artefact import ArtefactFolder

P = ParamSpec("P")
R = TypeVar("R")

_command: contextvars.ContextVar[str] = contextvars.ContextVar("hoofbeat_command")
_verb: contextvars.ContextVar[Callable[..., object]] = contextvars.ContextVar("hoofbeat_verb")
_caller: contextvars.ContextVar[_CallerLine] = contextvars.ContextVar("hoofbeat_caller")
# How a result is shown is not part of how it was made; the address of a database may hold a password.
_NOT_WRITTEN = frozenset({"progress", "database"})


def command_words() -> list[str]:
    """The call under way as Python wrote it, for manifests."""
    return [_command.get()]


def warn(notes: Sequence[str]) -> None:
    """Warn whoever called the verb under way, at the line of the call and in the words of Python; empty notes don't."""
    _warn_at(_caller.get(), _verb.get(), notes)


def telling() -> Callable[[str], None]:
    """What warns of a sentence like `warn`, from any thread."""
    line, function = _caller.get(), _verb.get()
    return lambda text: _warn_at(line, function, [text])


def _warn_at(line: _CallerLine, function: Callable[..., object], notes: Sequence[str]) -> None:
    for note in filter(None, notes):
        text = python_words(note.removeprefix("note: ").removeprefix("warning: "), function)
        warnings.warn_explicit(
            text, UserWarning, line.file, line.number, module=line.module, registry=line.names.setdefault(_WARNED, {})
        )


_WARNED = "__warningregistry__"


class _CallerLine(NamedTuple):
    """The line that called a verb, and the names of its module, where Python keeps which warnings were shown."""

    file: str
    number: int
    module: str
    names: dict[str, Any]


def _caller_line() -> _CallerLine:
    """The line that called the function that asks; of an awaited verb, the line that asked for it."""
    known = _caller.get(None)
    if known is not None:
        return known
    frame = sys._getframe(2)
    return _CallerLine(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", ""), frame.f_globals)


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a verb of the Python face: it may be called inside a running event loop, and is written down."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        line = _caller_line()

        def work() -> R:
            _caller.set(line)
            _verb.set(function)
            try:
                given, named = checked_arguments(function, args, kwargs)
                _command.set(_written_call(function.__name__, args, kwargs))
                result = function(*given, **named)
                warn(_notes_on(result))
            except HoofbeatError as err:
                reword(err, function)
                raise err from None  # how it came about inside is nothing that the caller can change
            return result

        context = contextvars.copy_context()
        if not _in_a_loop():
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
    def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        context = contextvars.copy_context()
        context.run(_caller.set, _caller_line())  # known now; a task is resumed from elsewhere

        async def waited() -> R:
            worker = _Worker(lambda: context.run(function, *args, **kwargs))
            try:
                return await asyncio.wrap_future(worker.result)
            except asyncio.CancelledError:
                worker.stop()
                raise

        return waited()

    return call


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _notes_on(result: object) -> list[str]:
    """What a reader must know of the folders that a verb made: what the command prints as warnings at its end."""
    made = [each for each in (result if isinstance(result, list) else [result]) if isinstance(each, ArtefactFolder)]
    return [note for each in made for note in result_notes(each.artefact)]


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
