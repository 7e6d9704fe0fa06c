"""Options of `hoofbeat audit` that would do nothing beside others: they are refused, with words, before any work."""

from __future__ import annotations

import click
from click.core import ParameterSource

from hoofbeat.errors import UsageError

__all__ = ["refuse_idle_options"]

_NOT_ASKED = ("--with", "--passages", "--whole-up-to", "--max-tokens")


def refuse_idle_options(context: click.Context, *, answers: bool, economy: bool) -> None:
    """Refuse options that were given but have nothing to act on; a default that was not asked for is no offence."""
    if answers:
        _refuse(context, _NOT_ASKED, "answers are given, so no source is searched or asked", "leave out {}")
    else:
        _refuse(context, ["--fields"], "there is no file of answers whose fields could be named", "add --answers FILE")
    if not economy:
        _refuse(context, ["--economy-check"], "no label is spread, so none can be checked", "add --economy")


def _refuse(context: click.Context, options: tuple[str, ...] | list[str], why: str, fix: str) -> None:
    names = {option: each.name for each in context.command.params for option in each.opts}
    idle = [
        option
        for option in options
        if context.get_parameter_source(str(names[option])) not in (None, ParameterSource.DEFAULT)
    ]
    if idle:
        said = ", ".join(idle)
        raise UsageError(f"{said} would do nothing: {why}", fix=fix.format(said))
