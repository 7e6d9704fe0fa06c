"""`hoofbeat completion`: the script that lets a shell complete verbs, options and folders."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from hoofbeat.errors import UsageError

_VARIABLE = "_HOOFBEAT_COMPLETE"
_FILES = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/hoofbeat.fish",
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_FILES)))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash: hoofbeat completion bash >> ~/.bashrc
    zsh:  hoofbeat completion zsh >> ~/.zshrc
    fish: hoofbeat completion fish > ~/.config/fish/completions/hoofbeat.fish

    Then open a new terminal: Tab completes commands, options and paths.
    """
    from hoofbeat.cli import cli

    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"there is no completion for {shell}", fix=f"use one of: {', '.join(_FILES)}")
    click.echo(found(cli, {}, "hoofbeat", _VARIABLE).source())
    click.echo(f"next: add this to {_FILES[shell]} and open a new terminal", err=True)
