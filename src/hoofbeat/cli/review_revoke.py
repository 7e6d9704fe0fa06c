"""`hoofbeat review revoke`: let somebody into the reviews no more."""

from __future__ import annotations

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_invite import database_option, find_person
from hoofbeat.cli.session import json_option
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import for_terminal


@click.command("revoke")
@click.argument("name")
@database_option
@json_option
def command(name: str, database: str, as_json: bool) -> None:
    """End the link and all sessions of NAME (a name or an id). What they said stays."""
    with ReviewStore.open(database) as store:
        person = find_person(store, name)
        store.revoke(person.id, "")
    if as_json:
        Screen(as_json=True).emit({"person": person.id, "revoked": True})
    else:
        click.echo(for_terminal(f"{person.name} ({person.id}) can't come in any more"))
