"""Extensions on the command line: options whose values are names in the registry, and help that lists them.

Names are looked up when the command runs or prints its help, because plugins bring more of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from hoofbeat.registry import Extension, registry


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
