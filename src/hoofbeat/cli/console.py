"""What a person sees: progress bars with the time left, tables and next steps, all on standard error.

Standard output is for results: with `--json` one object, otherwise the few lines that say where the results are.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import msgspec

from hoofbeat.text import for_terminal

if TYPE_CHECKING:
    import rich.table

    from hoofbeat.models import Estimate, Model
    from hoofbeat.progress import Task
    from hoofbeat.reports.tables import Cell, Column, Table
    from hoofbeat.store import Artefact, Cost

_FILE_WIDTH = 240


class _Line:
    """Progress where nobody watches a terminal: a line now and then, not a bar."""

    _EVERY = 15.0

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total = title, total
        self._done = 0
        self._began = self._told = time.monotonic()

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        now = time.monotonic()
        if now - self._told >= self._EVERY:
            self._told = now
            left = ""
            if self._total and self._done:
                left = f", about {(now - self._began) * (self._total - self._done) / self._done:.0f} s left"
            click.echo(f"  {self._title}: {self._done} of {self._total or '?'}{left}", err=True)

    def note(self, text: str) -> None:
        pass


class Screen:
    """One command's conversation with its user."""

    def __init__(self, *, as_json: bool) -> None:
        from rich.console import Console

        self.as_json = as_json
        self._console = Console(stderr=True, highlight=False)
        if not self._console.is_terminal and "COLUMNS" not in os.environ:
            self._console.width = _FILE_WIDTH  # in a file no column need be cut
        self._began = time.monotonic()
        self._endpoints: dict[str, object] = {}

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """A progress bar with the time left (a line now and then where standard error is no terminal)."""
        if not self._console.is_terminal:
            yield _Line(title, total)
            return
        from hoofbeat.progress import Bars

        with Bars(self._console).task(title, total) as bar:
            yield bar

    def say(self, text: str) -> None:
        """A line for the person at the terminal."""
        self._console.print(for_terminal(text), markup=False, soft_wrap=True)

    def title(self, text: str) -> None:
        """A heading."""
        from rich.text import Text

        self._console.print(Text(f"\n{for_terminal(text)}", style="bold"), soft_wrap=True)

    def table(self, columns: Sequence[str | Column], rows: Iterable[Sequence[Cell]]) -> None:
        """A small table; all columns but the first are figures, written in their column's form."""
        from hoofbeat.reports.tables import table_of

        self._console.print(terminal_table(table_of(columns, rows)))

    def finish(
        self, artefact: Artefact, *, next_step: Sequence[object] = (), cost: Cost | None = None, **more: object
    ) -> None:
        """Say where the result is and what to run next; with `--json`, print the one object.

        Where nothing was kept, the folder says why and the command ends with exit code 1.
        """
        manifest = artefact.manifest
        counts = manifest.counts
        if self.as_json:
            self.emit(
                {
                    "artefact": str(artefact.path),
                    "kind": manifest.kind,
                    "counts": msgspec.to_builtins(counts),
                    "metrics": manifest.metrics,
                    "cost": msgspec.to_builtins(cost or manifest.cost),
                    "seconds": round(time.monotonic() - self._began, 3),
                    **({"endpoints": self._endpoints} if self._endpoints else {}),
                    **more,
                }
            )
            self._leave_if_empty(artefact)
            return
        parts = [f"{counts.kept} kept"]
        parts += [f"{counts.rejected} rejected"] if counts.rejected else []
        parts += [f"{counts.failed} failed ({_listed(counts.failures)})"] if counts.failed else []
        click.echo(for_terminal(f"{manifest.kind}: {artefact.path} ({', '.join(parts)})"))
        self._leave_if_empty(artefact)
        if next_step:
            self.say(f"next: {shlex.join(map(str, next_step))}")

    def _leave_if_empty(self, artefact: Artefact) -> None:
        if artefact.manifest.counts.kept == 0:
            listed = [name for name in ("rejected.jsonl", "failed.jsonl") if _has_lines(artefact.path / name)]
            files = " and ".join(listed) or "manifest.json"
            self.say(f"nothing was kept; the reasons are in {files} of the folder")
            click.get_current_context().exit(1)

    def emit(self, value: object) -> None:
        """Print one JSON object on standard output."""
        sys.stdout.write(msgspec.json.encode(value, enc_hook=str).decode() + "\n")

    def calls(self, *models: Model) -> None:
        """Say what was called and what went wrong on the way."""
        for model in dict.fromkeys(models):
            line = f"{model.spec}: {model.made} calls made, {model.cached} taken from the ledger"
            if model.troubles:
                line += f"; overcome or counted: {_listed(dict(model.troubles))}"
            self.say(line)
            if model.starved:
                self.say(
                    f"{model.spec}: {model.starved} replies were reasoning without an answer; raise the allowance of "
                    f"{model.reasoning} tokens with --reasoning, or reasoning in hoofbeat.toml"
                )
            if endpoints := model.endpoints:
                self._endpoints[model.spec] = msgspec.to_builtins(endpoints)
                rows = [(each.url, each.calls, each.failures, each.seconds, each.set_aside) for each in endpoints]
                self.table(["endpoint", "calls", "failures", "seconds", "set aside"], rows)

    def estimate(self, estimate: Estimate, *, parts: Mapping[str, Estimate] | None = None) -> None:
        """Say what the command would spend; `parts` is what each part of it would spend."""
        if self.as_json:
            told = {name: msgspec.to_builtins(each) for name, each in (parts or {}).items()}
            self.emit({"estimate": msgspec.to_builtins(estimate), **({"parts": told} if told else {})})
            return
        for name, each in (parts or {}).items():
            calls = each.calls + each.cached
            self.say(f"{name}: at most {calls} calls" if calls else f"{name}: no calls")
        money = "no price known" if estimate.max_money is None else f"at most {estimate.max_money:.4f} in money"
        click.echo(
            f"would make at most {estimate.calls} calls ({estimate.cached} more are in the ledger): about "
            f"{estimate.tokens_in} tokens in, at most {estimate.max_tokens_out} out, {money}"
        )


def _has_lines(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def terminal_table(table: Table, *, header_style: str = "dim", cut: bool = True) -> rich.table.Table:
    """A table for the terminal, without rules: the first column at the left, all others at the right.

    Caption and n are left to the command's own lines. Where a line is too long, cells are cut, or else folded.
    """
    import rich.table
    from rich.text import Text

    from hoofbeat.reports.tables import written

    made = rich.table.Table(box=None, pad_edge=False, header_style=header_style)
    for place, column in enumerate(table.columns):
        justify: Literal["left", "right"] = "left" if place == 0 else "right"
        made.add_column(Text(column.title), justify=justify, no_wrap=cut, overflow="ellipsis" if cut else "fold")
    for row in table.rows:
        cells = (written(value, column.form) for value, column in zip(row, table.columns, strict=True))
        made.add_row(*(Text(for_terminal(cell)) for cell in cells))  # as text: a retriever's brackets are no markup
    return made


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
