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
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

import click
import msgspec
from rich.cells import cell_len

from hoofbeat.text import dollars, duration, for_terminal, line_for_terminal

if TYPE_CHECKING:
    import rich.console

    from hoofbeat.models import Estimate, Model
    from hoofbeat.progress import Task
    from hoofbeat.reports.tables import Cell, Column, Table
    from hoofbeat.store import Artefact, Cost, Counts

_FILE_WIDTH = 240
_FLAGS_SHOWN = 5


def _one_line(text: str, breaks: str = "\ufffd") -> str:
    """One line for a terminal; empty lines before it stay."""
    own = text.lstrip("\n")
    return text[: len(text) - len(own)] + line_for_terminal(own, breaks)


class _Line:
    """Progress where standard error is not a terminal: a line every 15 seconds instead of a bar."""

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
                seconds = (now - self._began) * (self._total - self._done) / self._done
                left = f", about {duration(seconds)} left"
            of = f" of {self._total:,}" if self._total else ""
            click.echo(f"  {self._title}: {self._done:,}{of}{left}", err=True)

    def note(self, text: str) -> None:
        pass


class Screen:
    """One command's conversation with its user."""

    def __init__(self, *, as_json: bool, on_stdout: bool = False) -> None:
        from rich.console import Console

        self.as_json = as_json
        self._console = Console(stderr=not on_stdout, highlight=False)
        if not self._console.is_terminal and "COLUMNS" not in os.environ:
            self._console.width = _FILE_WIDTH  # in a file no column need be cut
        self._began = time.monotonic()
        self._endpoints: dict[str, object] = {}
        self._earlier: dict[str, object] = {}

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """A progress bar with the time left (a line every 15 seconds where standard error is not a terminal)."""
        if not self._console.is_terminal:
            yield _Line(title, total)
            return
        from hoofbeat.progress import Bars

        with Bars(self._console).task(title, total) as bar:
            yield bar

    def say(self, text: str, *, indent: int = 0) -> None:
        """A line for the person at the terminal, wrapped between words; in a file it stays one line."""
        from rich.padding import Padding
        from rich.text import Text

        shown = Text(_one_line(text, " "))
        if self._console.is_terminal:
            self._console.print(Padding(shown, (0, 0, 0, indent)) if indent else shown)
        else:
            self._console.print(" " * indent + shown.plain, markup=False, soft_wrap=True)

    def line(self, text: str) -> None:
        """A line that is not wrapped, so that a command or a path in it can be copied."""
        self._console.print(_one_line(text), markup=False, soft_wrap=True)

    def next(self, *words: object) -> None:
        """The command to run next, ready to copy."""
        self.line(f"next: {shlex.join(map(str, words))}")

    def title(self, text: str) -> None:
        """A heading."""
        from rich.text import Text

        shown = Text(f"\n{line_for_terminal(text, ' ')}", style="bold")
        self._console.print(shown, soft_wrap=not self._console.is_terminal)

    def table(self, columns: Sequence[str | Column], rows: Iterable[Sequence[Cell]]) -> None:
        """A small table; all columns but the first are figures, written in their column's form.

        Figures are never cut. Where the terminal is too narrow, long texts are wrapped; where even that does not help,
        each row becomes a short list.
        """
        from hoofbeat.reports.tables import table_of

        self._console.print(fitted_table(table_of(columns, rows), self._console.width))

    def funnel(self, steps: Iterable[FunnelRow], *, waiting: bool = False) -> None:
        """How many items each step kept, and below the table why each step rejected items."""
        every = list(steps)
        shown = [each for place, each in enumerate(every) if each.came or not place]
        columns = ["step", "in", "kept", "rejected", *(["failed"] if any(each.failed for each in shown) else [])]
        columns += ["waiting"] if waiting else []
        counts = ({"in": each.came, "kept": each.kept, "rejected": each.rejected, "failed": each.failed,
                   "waiting": each.waiting} for each in shown)  # fmt: skip
        self.table(
            columns,
            [
                [each.step, *(f"{count[name]:,}" for name in columns[1:])]
                for each, count in zip(shown, counts, strict=True)
            ],
        )
        if len(shown) < len(every):
            self.say(f"No items were left for the {len(every) - len(shown)} steps after that.")
        if any(each.reasons for each in shown):
            self.title("Why items were rejected or failed")
        for each in shown:
            if each.reasons:
                self.say(each.step)
            for reason, count in sorted(each.reasons.items(), key=lambda item: (-item[1], item[0])):
                self.say(f"{count:,} × {reason}", indent=2)

    def reasons(self, counts: Counts) -> None:
        """Why items were rejected, the most frequent reason first."""
        for reason, count in sorted(counts.reasons.items(), key=lambda item: (-item[1], item[0])):
            self.say(f"rejected: {count:,} × {reason}")

    def finish(
        self, artefact: Artefact, *, next_step: Sequence[object] = (), cost: Cost | None = None, **more: object
    ) -> None:
        """Say what was made, where it is and what to run next; with `--json`, print the one object.

        What a reader of the figures must know comes before, what failed is the last line. Where nothing was kept, the
        folder says why and the command ends with exit code 1.
        """
        from hoofbeat.findings.caveats import caveats
        from hoofbeat.folders import failed_in_words, made_in_words

        manifest = artefact.manifest
        warnings = caveats(manifest)
        failed = failed_in_words(manifest)
        if self.as_json:
            self.emit(
                {
                    "artefact": str(artefact.path),
                    "kind": manifest.kind,
                    "counts": msgspec.to_builtins(manifest.counts),
                    "metrics": manifest.metrics,
                    "cost": msgspec.to_builtins(cost or manifest.cost),
                    "seconds": round(time.monotonic() - self._began, 3),
                    **({"endpoints": self._endpoints} if self._endpoints else {}),
                    **({"earlier_replies": self._earlier} if self._earlier else {}),
                    **({"warnings": [*warnings, *filter(None, [failed])]} if warnings or failed else {}),
                    **more,
                }
            )
            self._leave_if_empty(artefact)
            return
        for warning in warnings:
            self.say(f"warning: {warning}")
        click.echo(line_for_terminal(f"{made_in_words(manifest)} → {artefact.path}{replaced_note(artefact.path)}"))
        self._leave_if_empty(artefact)
        if next_step:
            self.next(*next_step)
        if failed:
            self.say(f"warning: {failed}")

    def _leave_if_empty(self, artefact: Artefact) -> None:
        if artefact.manifest.counts.kept == 0:
            listed = [name for name in ("rejected.jsonl", "failed.jsonl") if _has_lines(artefact.path / name)]
            files = " and ".join(listed) or "manifest.json"
            self.say(f"Nothing was kept: see the reasons above, or {files} in the folder.")
            click.get_current_context().exit(1)

    def emit(self, value: object) -> None:
        """Print one JSON object on standard output."""
        sys.stdout.write(msgspec.json.encode(value, enc_hook=str).decode() + "\n")

    def calls(self, *models: Model) -> None:
        """Say what was called, what it cost and which calls had trouble."""
        from hoofbeat.reports.tables import count_of

        for model in dict.fromkeys(models):
            line = f"{model.spec}: {count_of(model.made, 'new call')}, {model.cached:,} from the ledger"
            line += f", {dollars(model.cost.money)}" if model.price and model.cost.money else ""
            if model.troubles:
                line += f". Retried or counted as failed: {_listed(dict(model.troubles))}"
            self.say(line)
            for place, count in sorted(model.elsewhere.items()):
                self.say(
                    f"{model.spec}: {count_of(count, 'reply', 'replies')} in the ledger came from "
                    f"{place[:200]}, where this command sends no calls"
                )
            for note in model.notes:
                self.say(f"warning: {note}")
            if model.check is not None:
                self._tell_check(model, model.check.model, model.check.texts)
            if model.flagged:
                self._tell_flagged(model)
            if model.starved:
                self.say(
                    f"{model.spec}: {count_of(model.starved, 'reply', 'replies')} had reasoning but no answer. Raise "
                    f"the allowance of {model.reasoning:,} tokens with --reasoning, or with reasoning in hoofbeat.toml."
                )
            if endpoints := model.endpoints:
                self._endpoints[model.spec] = msgspec.to_builtins(endpoints)
                rows = [(each.url, each.calls, each.failures, each.seconds, each.set_aside) for each in endpoints]
                self.table(["endpoint", "calls", "failures", "seconds", "not used for a while"], rows)
        for ledger in {id(model.ledger): model.ledger for model in models}.values():
            if (earlier := ledger.earlier).count:
                self._earlier = {"count": earlier.count, "first": _day(earlier.first), "last": _day(earlier.last)}
                days = " to ".join(dict.fromkeys((_day(earlier.first), _day(earlier.last))))
                replies = count_of(earlier.count, "reply", "replies")
                self.say(f"{replies} from earlier commands, made {days} ({ledger.place})")

    def _tell_check(self, model: Model, checker: Model, texts: int) -> None:
        """Say who looked at the texts, and whether some could not be looked at."""
        from hoofbeat.reports.tables import count_of

        calls = f"{count_of(checker.made, 'new call')}, {checker.cached:,} from the ledger"
        self.say(f"{checker.spec} looked for instructions in {count_of(texts, 'text')}: {calls}")
        if model.unchecked:
            done = "were not made" if model.quarantine else "were made all the same"
            self.say(f"warning: {count_of(model.unchecked, 'request')} with texts that it could not check {done}")

    def _tell_flagged(self, model: Model) -> None:
        """Say which texts tell a model what to do: its answers may be theirs."""
        from hoofbeat.reports.tables import count_of

        places = count_of(len(model.flagged), "place")
        done = "Those calls were not made" if model.quarantine else "--quarantine makes no such call"
        self.say(f"warning: {places} in what {model.spec} was shown tell a model what to do. {done}:")
        for text, requests in sorted(model.flagged.items(), key=lambda item: (-item[1], item[0]))[:_FLAGS_SHOWN]:
            self.say(f"{count_of(requests, 'request')}, {text}", indent=2)

    def estimate(self, estimate: Estimate, *, parts: Mapping[str, Estimate] | None = None) -> None:
        """Say what the command would spend; `parts` is what each part of it would spend."""
        if self.as_json:
            told = {name: msgspec.to_builtins(each) for name, each in (parts or {}).items()}
            self.emit({"estimate": msgspec.to_builtins(estimate), **({"parts": told} if told else {})})
            return
        from hoofbeat.reports.tables import count_of

        for name, each in (parts or {}).items():
            calls = each.calls + each.cached
            self.say(f"{name}: at most {count_of(calls, 'call')}" if calls else f"{name}: no calls")
        Screen(as_json=False, on_stdout=True).say(estimate_in_words(estimate))


def _day(made: int) -> str:
    return datetime.fromtimestamp(made, UTC).date().isoformat()


def estimate_in_words(estimate: Estimate) -> str:
    """What a command would spend, in one sentence."""
    from hoofbeat.reports.tables import count_of

    if estimate.max_money is None:
        money = "price unknown (set it in hoofbeat.toml)"
    else:
        money = f"at most {dollars(estimate.max_money, at_most=True)}"
    cached = f" ({estimate.cached:,} more are in the ledger and cost nothing)" if estimate.cached else ""
    return (
        f"Would make at most {count_of(estimate.calls, 'call')}{cached}: about {estimate.tokens_in:,} tokens in, "
        f"at most {estimate.max_tokens_out:,} out, {money}"
    )


class FunnelRow(NamedTuple):
    """One step of a funnel: how many items it took, kept and rejected, and the reasons with their counts."""

    step: str
    came: int
    kept: int
    rejected: int
    failed: int = 0
    waiting: int = 0
    reasons: Mapping[str, int] = MappingProxyType({})


_REPLACES = "hoofbeat.replaces"


def note_target(context: click.Context, path: Path | None) -> None:
    """Remember whether the folder or file that a command will write exists now, so that its last line can say so."""
    if path is not None and (path.is_file() or (path / "manifest.json").is_file()):
        context.meta.setdefault(_REPLACES, set()).add(path.resolve())


def is_replaced(path: Path) -> bool:
    """Whether this folder or file existed before the command that runs now."""
    context = click.get_current_context(silent=True)
    return context is not None and path.resolve() in context.meta.get(_REPLACES, ())


def replaced_note(path: Path) -> str:
    """What a command's last line adds where it replaced what was there."""
    return f" (replaced the earlier {'file' if path.is_file() else 'folder'})" if is_replaced(path) else ""


def _has_lines(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


_FIGURE = 24  # columns up to this width are never wrapped: figures, intervals, labels
_WORDS = 14  # the narrowest column of text
_GAP = 2


def fitted_table(table: Table, width: int) -> rich.console.RenderableType:
    """A table without rules that fits the width: the first column is text, all others are at the right.

    Captions and n are left to the command's own lines.
    """
    import rich.table
    from rich.text import Text

    from hoofbeat.reports.tables import written

    rows = [
        [for_terminal(written(value, column.form)) for value, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    titles = [column.title for column in table.columns]
    widest = [max((cell_len(line) for row in rows for line in row[place].splitlines()), default=0)
              for place in range(len(titles))]  # fmt: skip
    natural = [max(each, cell_len(title)) for each, title in zip(widest, titles, strict=True)]
    wraps = [place == 0 or each > _FIGURE for place, each in enumerate(widest)]
    least = [min(each, _WORDS) if wrap else max(body, _longest_word(title))
             for each, wrap, body, title in zip(natural, wraps, widest, titles, strict=True)]  # fmt: skip
    room = width - _GAP * (len(titles) - 1)
    if sum(least) > room:
        return _as_list(titles, rows)
    made = rich.table.Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for place, size in enumerate(_shared_out(least, natural, room)):
        justify: Literal["left", "right"] = "left" if place == 0 or _are_words(row[place] for row in rows) else "right"
        made.add_column(Text(titles[place]), justify=justify, overflow="fold", width=size)
    for row in rows:
        made.add_row(*map(Text, row))  # as text: a retriever's brackets are no markup
    return made


def _shared_out(least: Sequence[int], natural: Sequence[int], room: int) -> list[int]:
    """The width of every column: what is left over goes to the columns that lack most."""
    widths = list(least)
    while sum(widths) < room and widths != list(natural):
        lacking = max(range(len(widths)), key=lambda place: natural[place] - widths[place])
        widths[lacking] += 1
    return widths


def _are_words(cells: Iterable[str]) -> bool:
    """Whether a column holds words, which are read from the left, and not figures."""
    filled = [cell for cell in cells if cell]
    return bool(filled) and sum(cell[0].isalpha() for cell in filled) > len(filled) / 2


def _longest_word(title: str) -> int:
    return max(map(cell_len, title.split()), default=0)


def _as_list(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> rich.console.RenderableType:
    """Each row as a heading and one line per column, for terminals that are too narrow for the table."""
    from rich.text import Text

    shown = Text()
    for first, *rest in rows:
        shown.append(f"{first or '-'}\n")
        for title, cell in zip(titles[1:], rest, strict=True):
            if cell:
                shown.append(f"  {title}: ", style="dim")
                shown.append(f"{cell}\n")
    shown.rstrip()
    return shown


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
