"""A verb with others under its name: without one of their names, it does what it is itself called for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from hoofbeat.errors import UsageError


class Under:
    """The commands under a verb, each in the file `VERB_NAME.py` beside the verb's own; loaded when it is called.

    Several commands can be in one file: `modules` names it, and there each is called `NAME_command`.
    """

    def __init__(
        self, verb: str, names: Mapping[str, str], argument: str, *, modules: Mapping[str, str] | None = None
    ) -> None:
        """`names` says what each command does; `argument` is what the verb itself takes first, in words."""
        self.verb = verb
        self.names = dict(names)
        self.argument = argument
        self.modules = dict(modules or {})

    def command(self, name: str) -> click.Command:
        """The command of this name."""
        module = f"hoofbeat.cli.{self.modules.get(name, f'{self.verb}_{name}')}"
        attribute = f"{name}_command" if name in self.modules else "command"
        try:
            found: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as err:
            if err.name != module:
                raise
            raise UsageError(
                f"hoofbeat {self.verb} {name} is not part of this installation", fix="install a whole Hoofbeat"
            ) from err
        return found

    def epilog(self) -> str:
        """What stands under the verb, for its help."""
        lines = "\n".join(f"  {self.verb} {name:10}{what}" for name, what in self.names.items())
        return f"\b\nCommands under this name ({self.argument} of such a name is given as ./NAME):\n{lines}"


class VerbWithOthers(click.Command):
    """The verb itself, unless its first word names one of the commands under it."""

    under: Under

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the verb, or of the command that is named."""
        if args and args[0] in self.under.names:
            name = args[0]
            return self.under.command(name).make_context(f"{info_name} {name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)
