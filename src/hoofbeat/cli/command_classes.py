"""Kinds of commands: a verb with others under its name, and commands whose options and help list extensions.

Names of extensions are looked up when a command runs or prints its help, because plugins bring more of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click

from hoofbeat.errors import UsageError
from hoofbeat.registry import Extension, registry


class Under:
    """The commands under a verb, loaded when they are called.

    `commands` says for each in which file of this package it is, as `NAME_command`, and what it does; `argument` is
    what the verb itself takes first, in words.
    """

    def __init__(self, verb: str, commands: Mapping[str, tuple[str, str]], argument: str) -> None:
        self.verb = verb
        self.names = {name: what for name, (_, what) in commands.items()}
        self.argument = argument
        self._files = {name: file for name, (file, _) in commands.items()}

    def command(self, name: str) -> click.Command:
        """The command of this name."""
        module = f"hoofbeat.cli.{self._files[name]}"
        try:
            found: click.Command = getattr(importlib.import_module(module), f"{name}_command")
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


class ExtensionName(click.ParamType[Extension]):
    """The name of an extension of one kind; the command gets the extension itself."""

    name = "name"

    def __init__(self, kind: type[Extension]) -> None:
        self._kind = kind

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        """All names, as `click.Choice` shows them."""
        return f"[{'|'.join(registry.names(self._kind))}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Extension:  # noqa: ARG002
        """The extension; an unknown name is a `UsageError` that lists those there are."""
        return registry.get(self._kind, value) if isinstance(value, str) else value


class CommandWithList(click.Command):
    """A command whose help ends with a list, made when the help is printed."""

    listing: Callable[[], str]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list, as it is laid out."""
        self.epilog = f"\b\n{self.listing()}"
        super().format_epilog(ctx, formatter)
