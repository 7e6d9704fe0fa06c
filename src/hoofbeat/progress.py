"""How stages report their progress, without knowing who shows it.

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
    """One running piece of work."""

    def advance(self, steps: int = 1) -> None:
        """Report that this number of further steps is done."""

    def note(self, text: str) -> None:
        """Show a short remark beside the bar (retries, cached calls, ...)."""


class Progress(Protocol):
    """Opens tasks."""

    def task(self, title: str, total: int | None) -> AbstractContextManager[Task]:
        """Start a task of `total` steps (None when the number is unknown)."""
        ...


class Within:
    """Progress inside a running task: the steps of any work inside count as that task's steps."""

    def __init__(self, task: Task) -> None:
        self._task = task

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:  # noqa: ARG002
        """The running task, which stays open."""
        yield self._task


class Named:
    """Progress whose tasks have another title: whoever encodes texts does not know what they are."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title

    def task(self, title: str, total: int | None) -> AbstractContextManager[Task]:  # noqa: ARG002
        """A task under the title that is known here."""
        return self._progress.task(self._title, total)


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
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("left"),
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
    """Bars in a terminal (on standard error) or a notebook; nothing elsewhere."""
    from rich.console import Console  # noqa: PLC0415 - as above

    console = Console(stderr=True, highlight=False)
    return Bars(console) if console.is_terminal or console.is_jupyter else SILENT
