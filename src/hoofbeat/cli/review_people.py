"""`hoofbeat review invite` and `revoke`: who may take part; and how people, studies and the store are named."""

from __future__ import annotations

from collections.abc import Callable

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option
from hoofbeat.errors import UsageError
from hoofbeat.review.review_records import Person, PersonRole
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import for_terminal

DATABASE_VARIABLE = "HOOFBEAT_REVIEW_DB"


def database_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--db`: where the reviews are kept."""
    return click.option(
        "--db",
        "database",
        envvar=DATABASE_VARIABLE,
        default="review.db",
        show_default=True,
        help=(
            "Where the reviews are kept: a file, or postgresql://user:password@host/database. "
            f"{DATABASE_VARIABLE} can hold it, so that no password stands in the command; PGPASSWORD works, too."
        ),
    )(function)


def find_person(store: ReviewStore, wanted: str) -> Person:
    """Somebody by id, or by a name that only one person has."""
    everybody = store.people()
    found = [person for person in everybody if person.id == wanted]
    found = found or [person for person in everybody if person.name.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(person.id for person in found)
        raise UsageError(f"{len(found)} people are called {wanted!r}", fix=f"name one by id: {ids}")
    raise UsageError(f"nobody called {wanted!r} was invited", fix="look at the people's page, or invite them")


@click.command("invite")
@click.argument("name")
@database_option
@click.option(
    "--role", type=click.Choice(["reviewer", "adjudicator", "admin"]), default="reviewer", show_default=True,
    help="What the person may do.",
)  # fmt: skip
@click.option("--group", "groups", multiple=True, help="Specialty or the like; several may be given.")
@click.option("--study", "studies", multiple=True, help="Only this study; several may be given.")
@click.option("--again", is_flag=True, help="NAME was invited before: a new link, which ends the old one.")
@click.option("--url", default="http://127.0.0.1:8350", show_default=True, help="Where the server is reached.")
@json_option
def invite_command(
    name: str,
    database: str,
    role: PersonRole,
    groups: tuple[str, ...],
    studies: tuple[str, ...],
    again: bool,
    url: str,
    as_json: bool,
) -> None:
    """Invite NAME and print their link: it is shown once, and whoever has it can answer in their name."""
    with ReviewStore.open(database) as store:
        if again:
            person = find_person(store, name)
            token = store.renew(person.id, "")
        else:
            person, token = store.invite(name, role, by="", groups=groups, studies=studies)
    link = f"{url.rstrip('/')}/join/{token}"
    if as_json:
        Screen(as_json=True).emit({"person": msgspec.to_builtins(person), "link": link})
    else:
        click.echo(for_terminal(f"{person.name} ({person.role}, {person.id}): {link}"))


@click.command("revoke")
@click.argument("name")
@database_option
@json_option
def revoke_command(name: str, database: str, as_json: bool) -> None:
    """End the link and all sessions of NAME (a name or an id). What they said stays."""
    with ReviewStore.open(database) as store:
        person = find_person(store, name)
        store.revoke(person.id, "")
    if as_json:
        Screen(as_json=True).emit({"person": person.id, "revoked": True})
    else:
        click.echo(for_terminal(f"{person.name} ({person.id}) can't come in any more"))


def words_without_database() -> list[str]:
    """The command as it was typed, for manifests, without the database's address: a password may stand in it."""
    kept: list[str] = []
    words = command_words()
    for place, word in enumerate(words):
        if word != "--db" and not word.startswith("--db=") and (place == 0 or words[place - 1] != "--db"):
            kept.append(word)
    return kept
