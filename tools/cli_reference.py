"""Write docs/cli.md, every command with every option, from the command line itself.

python tools/cli_reference.py            write it
python tools/cli_reference.py --check    exit with 1 where it is not up to date
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from hoofbeat.cli import cli
from hoofbeat.cli.session import VerbWithOthers

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
HEAD = """\
# Command line reference

Every command and every option, written from the code by `tools/cli_reference.py`. `hoofbeat COMMAND --help` prints the
same in the terminal. Options that many commands share are listed once, under [common options](#common-options).

The option `--plugin FILE` (load [extensions](extending.md)) and the option `--yes` (trust the `hoofbeat.toml` of this
folder) work with every command.

`hoofbeat completion bash` (or `zsh`, `fish`) prints a script that completes commands with the Tab key. Append
it to the start file of your shell.
"""
_SHARED = 6  # an option in that many commands, in the same words, is listed once
_SKIPPED = ("-h, --help", "--help")

Option = tuple[str, str]
"""Names with the metavar, and the help."""


def commands(group: click.Command = cli, name: str = "hoofbeat") -> Iterator[tuple[str, click.Command]]:
    """Every command below a group with its full name, in the order of the help."""
    context = click.Context(group, info_name=name)
    if isinstance(group, VerbWithOthers):
        yield from ((f"{name} {word}", group.under.command(word)) for word in group.under.names)
    if not isinstance(group, click.Group):
        return
    for word in group.list_commands(context):
        found = group.get_command(context, word)
        if found is not None:
            yield f"{name} {word}", found
            yield from commands(found, f"{name} {word}")


def options(name: str, command: click.Command) -> list[Option]:
    """The options of a command as its help names them."""
    context = click.Context(command, info_name=name)
    shown = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    records = [each.get_help_record(context) for each in shown]
    return [(names, " ".join(told.split())) for names, told in filter(None, records) if names not in _SKIPPED]


def reference() -> str:
    """The page."""
    found = [(name, command, options(name, command)) for name, command in commands()]
    counted = Counter(option for *_, all_ in found for option in all_)
    common = [option for option, count in counted.items() if count >= _SHARED and not option[0].startswith("-o,")]
    parts = [HEAD, "\n## Common options\n\n", _table(sorted(common, key=_long_name))]
    for name, command, all_ in found:
        depth = name.count(" ")
        parts += [f"\n{'#' * (depth + 1)} {name}\n\n", f"`{_usage(name, command)}`\n\n", f"{_help(command)}\n"]
        own = [option for option in all_ if option not in common]
        if own:
            parts += ["\n", _table(own)]
        shared = [f"`{_long_name(option)}`" for option in all_ if option in common]
        if shared:
            parts += [f"\n[Common options](#common-options): {', '.join(shared)}.\n"]
    return "".join(parts)


def _usage(name: str, command: click.Command) -> str:
    return " ".join([name, *command.collect_usage_pieces(click.Context(command, info_name=name))])


def _help(command: click.Command) -> str:
    """The help text in paragraphs, as Markdown that means nothing but its words."""
    text = (command.help or command.short_help or "").partition("\f")[0].replace("\b\n", "")
    return "\n\n".join(_plain(" ".join(part.split())) for part in text.strip().split("\n\n"))


def _table(rows: list[Option]) -> str:
    lines = [f"| `{names.replace('|', chr(92) + '|')}` | {_plain(told)} |\n" for names, told in rows]
    return "".join(["| option | what it does |\n", "|---|---|\n", *lines])


def _plain(text: str) -> str:
    """Markdown that means nothing but its words; what is in backticks stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    plain = [re.sub(r"([\\<>|*_\[\]`#$])", r"\\\1", part) for part in parts[::2]]
    code = [part.replace("|", r"\|") for part in parts[1::2]]
    return "".join(word for pair in zip(plain, [*code, ""], strict=True) for word in pair)


def _long_name(option: Option) -> str:
    words = re.findall(r"--[\w-]+", option[0])
    return words[0] if words else option[0]


def is_current() -> bool:
    """Whether the page is what would be written now."""
    return PAGE.is_file() and PAGE.read_text(encoding="utf-8") == reference()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(not is_current())
    PAGE.write_text(reference(), encoding="utf-8")
