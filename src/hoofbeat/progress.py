"""How stages tell how far they are, without knowing who shows it.

A stage takes a `Progress` and opens a task. `Bars` draws them in a terminal or a notebook; `SILENT` shows nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from hoofbeat.text import for_terminal

if TYPE_CHECKING:
    import rich.console
    import rich.progress

_NOTEBOOK_EVERY = 0.2  # seconds between two drawings: each is a message to the browser


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


class _Bar:
    def __init__(self, progress: rich.progress.Progress, task: rich.progress.TaskID) -> None:
        self._progress = progress
        self._task = task

    def advance(self, steps: int = 1) -> None:
        self._progress.advance(self._task, steps)

    def note(self, text: str) -> None:
        self._progress.update(self._task, note=for_terminal(text))


class _NotebookBar(_Bar):
    """A bar in the output of a notebook's cell, drawn anew in its place. Rich's own needs ipywidgets for that."""

    def __init__(self, progress: rich.progress.Progress, task: rich.progress.TaskID) -> None:
        from IPython.display import display  # noqa: PLC0415 - there in notebooks only

        super().__init__(progress, task)
        self._output: Any = display(progress.make_tasks_table(progress.tasks), display_id=True)  # type: ignore[no-untyped-call]
        self._drawn = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        super().advance(steps)
        if time.monotonic() - self._drawn >= _NOTEBOOK_EVERY:
            self.draw()

    def draw(self) -> None:
        self._output.update(self._progress.make_tasks_table(self._progress.tasks))
        self._drawn = time.monotonic()


class Bars:
    """Progress bars with the time left, by rich, on the console of a terminal or in a notebook."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """Draw a bar until the task is closed."""
        import rich.progress  # noqa: PLC0415 - only where somebody watches

        progress = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", style="bold", markup=False),
            rich.progress.BarColumn(bar_width=28),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TextColumn("left"),
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("{task.fields[note]}", markup=False),
            console=self._console,
        )
        task = progress.add_task(title, total=total, note="")
        if self._console.is_jupyter:
            bar = _NotebookBar(progress, task)
            yield bar
            bar.draw()
            return
        with progress:
            yield _Bar(progress, task)


def default_progress() -> Progress:
    """Bars where a person watches, in a terminal (on standard error) or a notebook; silence elsewhere."""
    from rich.console import Console  # noqa: PLC0415 - as above

    console = Console(stderr=True, highlight=False)
    return Bars(console) if console.is_terminal or console.is_jupyter else SILENT
