"""`hoofbeat sign`: prove who published a folder, and that nothing in it has changed since."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option


@click.command("sign")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDERS...")
@click.option("--key", type=click.Path(path_type=Path), required=True,
              help="Your OpenSSH private key, or the public key of one that your agent or token holds.")  # fmt: skip
@json_option
def command(folders: tuple[Path, ...], key: Path, as_json: bool) -> None:
    """Sign artefact folders with an OpenSSH key. A folder of folders is signed folder by folder.

    The signature is of manifest.json, which has the hash of every other file. Others check it with `hoofbeat verify
    FOLDER --signed-by SIGNERS`, where SIGNERS is a file with one line per signer: a name and the public key.
    """
    from hoofbeat.store.folder_library import artefact_folders
    from hoofbeat.store.signatures import sign_folder

    screen = Screen(as_json=as_json)
    named = [each for folder in folders for each in artefact_folders(folder) or [folder]]
    signed = [sign_folder(folder, key) for folder in named]
    if as_json:
        screen.emit({"signatures": [str(path) for path in signed]})
        return
    for path in signed:
        click.echo(f"Signed {path.parent} → {path}")
    screen.next("hoofbeat", "verify", *folders, "--signed-by", "SIGNERS")
