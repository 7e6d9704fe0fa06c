"""How stages tell how far they are, without knowing who shows it.

A stage takes a `Progress` and opens a task; the command line draws bars with the time left, tests and library users
pass `SILENT`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["SILENT", "Progress", "Task", "Within"]


class Task(Protocol):
    """One piece of work under way."""

    def advance(self, steps: int = 1) -> None:
        """Say that so many more steps are done."""

    def note(self, text: str) -> None:
        """Show a short remark beside the bar (retries, cached calls, ...)."""


class Progress(Protocol):
    """Opens tasks."""

    def task(self, title: str, total: int | None) -> AbstractContextManager[Task]:
        """Start a task of `total` steps (None when the number is unknown)."""
        ...


class Within:
    """Progress inside a task that is under way: whatever work it is given, the steps are that task's."""

    def __init__(self, task: Task) -> None:
        self._task = task

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:  # noqa: ARG002
        """The task under way, which stays open."""
        yield self._task


class _Silent:
    def advance(self, steps: int = 1) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:  # noqa: ARG002
        yield self


SILENT: Progress = _Silent()
