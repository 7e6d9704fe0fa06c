"""Pages whose commands are run: what each block of commands prints is written below it, and compared by a test.

A block of commands is a `console` fence; a `text` fence right after it holds its output, `text head=12` only the first
twelve lines. Numbers that differ between machines are `…`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

DOCS = Path(__file__).parents[1] / "docs"
TOUR = ("tour.md",)
ROLES = ("role_researcher.md", "role_informatics.md")
"""Pages that are run in one folder, in this order: the first makes the demo that the second looks at."""

_CONSOLE = re.compile(
    r"^```console\n(?P<commands>.*?)^```\n(?:\n```text(?P<info>[^\n]*)\n(?P<output>.*?)^```\n)?", re.M | re.S
)
_HEAD = re.compile(r"head=(\d+)")
_VARIES = re.compile(r"\b\d+(?:\.\d+)?(?= (?:s|ms|min|MB|KB|GB)\b)")
_PROGRESS = re.compile(r"^  .*: \d+ of (?:\d+|\?)(?:, about .* left)?\n", re.MULTILINE)
_PROCESSOR = re.compile(r"\d+(?:\.\d+)?")
_WIDTH = "100"
Shell = Callable[[str, Path, dict[str, str]], tuple[int, str]]
"""Runs a line in a folder with an environment."""


class Block(Struct, frozen=True):
    """Commands of a page, and where their output is; `head` lines of it are shown, or all."""

    commands: tuple[str, ...]
    output: str | None
    start: int
    end: int
    head: int | None = None


def blocks(text: str) -> Iterator[Block]:
    """The blocks of commands of a page, in order."""
    for found in _CONSOLE.finditer(text):
        lines = [line.removeprefix("$ ") for line in found["commands"].splitlines() if line.strip()]
        head = _HEAD.search(found["info"] or "")
        start, end = found.span("output") if found["output"] is not None else (found.end(), found.end())
        yield Block(tuple(lines), found["output"], start, end, int(head[1]) if head else None)


def in_bash(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a line in a shell of its own: its exit code, and what it prints, messages and output together."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def run(command: str, folder: Path, shell: Shell = in_bash) -> str:
    """What a command prints; one that fails is an error."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "HOOFBEAT_LEDGER"))
    }
    environment |= {"COLUMNS": _WIDTH, "NO_COLOR": "1", "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    code, printed = shell(command, folder, environment)
    if code:
        raise RuntimeError(f"{command}\nended with {code}:\n{printed}")
    printed = _PROGRESS.sub("", printed.replace(f"{folder}{os.sep}", ""))  # said now and then, by the clock
    return _VARIES.sub("…", printed).strip("\n")


def refreshed(text: str, folder: Path, shell: Shell = in_bash) -> str:
    """The page with what its commands print now; they are run in the folder."""
    parts, place = [], 0
    for block in blocks(text):
        printed = [run(command, folder, shell) for command in block.commands]
        if block.output is None:
            continue
        lines = "\n".join(filter(None, printed)).splitlines()
        shown = [*lines[: block.head], "[…]"] if block.head and len(lines) > block.head else lines
        parts += [text[place : block.start], *(line.rstrip() + "\n" for line in shown)]
        place = block.end
    return "".join([*parts, text[place:]])


def comparable(text: str) -> list[str]:
    """Lines of a page; those on vectors have no numbers, because processors differ in the last bits of a vector."""
    return [_PROCESSOR.sub("…", line) if "dense" in line else line for line in text.splitlines()]
