"""`hoofbeat audit` is one command with others under its name: without one of their names, it is the audit itself."""

from __future__ import annotations

import importlib
from typing import Any

import click

from hoofbeat.errors import UsageError

__all__ = ["SUBCOMMANDS", "AuditCommand", "epilog", "subcommand"]

SUBCOMMANDS = {
    "compare": "set two audits of the same questions against each other",
    "validate": "have people label a sample of the pairs, and measure the judge by them",
    "ablate": "judge a sample again with the label alone, and compare",
    "merge": "put the shards of one audit together",
    "export": "write matrices by question, and tables",
    "themes": "group what sources differ in into themes",
}


def subcommand(name: str) -> click.Command:
    """The command of this name under `audit`: the file `audit_NAME.py` beside this one."""
    module = f"hoofbeat.cli.audit_{name}"
    try:
        found: click.Command = importlib.import_module(module).command
    except ModuleNotFoundError as err:
        if err.name != module:
            raise
        raise UsageError(
            f"hoofbeat audit {name} is not part of this installation", fix="install a whole Hoofbeat"
        ) from err
    return found


def epilog() -> str:
    """What else stands under `audit`, for its help."""
    lines = "\n".join(f"  audit {name:10}{what}" for name, what in SUBCOMMANDS.items())
    return f"\b\nCommands under this name (a corpus of such a name is given as ./NAME):\n{lines}"


class AuditCommand(click.Command):
    """The audit itself, unless its first word names one of the commands under it."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the audit, or of the command that is named."""
        if args and args[0] in SUBCOMMANDS:
            name = args[0]
            return subcommand(name).make_context(f"{info_name} {name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)
