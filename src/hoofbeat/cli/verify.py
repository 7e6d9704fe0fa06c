"""`hoofbeat verify`: artefact folders against their manifests, and retrieval against published figures."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.references import verify_retrieval
from hoofbeat.cli.session import json_option
from hoofbeat.errors import ArtefactError
from hoofbeat.store import open_artefact

__all__ = ["command"]

_DATA = Path("..") / "shared" / "data" / "retrieval"


@click.command("verify")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDERS|retrieval")
@click.option("--data", type=click.Path(path_type=Path), default=_DATA, show_default=True,
              help="For retrieval: where the reference sets lie, a folder each in BEIR's layout.")  # fmt: skip
@json_option
def command(folders: tuple[Path, ...], data: Path, as_json: bool) -> None:
    """Check that every file of each artefact folder is there and unchanged.

    `hoofbeat verify retrieval` runs retriever lines with published figures on the reference sets instead, and says for
    each what was expected and what was observed.
    """
    screen = Screen(as_json=as_json)
    if folders == (Path("retrieval"),) and not (folders[0] / "manifest.json").exists():
        verify_retrieval(screen, data)
        return
    problems = {str(folder): _problems(folder) for folder in folders}
    damaged = [folder for folder, found in problems.items() if found]
    if not as_json:
        for folder, found in problems.items():
            click.echo(f"{folder}: {'as written' if not found else '; '.join(found)}")
    if damaged:
        raise ArtefactError(
            f"{len(damaged)} of {len(folders)} folders are not as they were written",
            where=", ".join(damaged),
            fix="restore them from a copy, or make them again",
            details={"problems": problems},
        )
    if as_json:
        screen.emit({"problems": problems})


def _problems(folder: Path) -> list[str]:
    try:
        return open_artefact(folder).verify()
    except ArtefactError as err:
        return [err.what]
