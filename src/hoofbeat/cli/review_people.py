"""`hoofbeat review invite` and `revoke`: who may take part; and how people, studies and the store are named."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option
from hoofbeat.errors import UsageError
from hoofbeat.review.invitations import LINK_DAYS
from hoofbeat.review.review_records import Person, PersonRole, in_utc
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
            "Where reviews are stored: a file, or postgresql://user:password@host/database. To keep a password out of "
            f"the command, set {DATABASE_VARIABLE} or PGPASSWORD."
        ),
    )(function)


def link_days_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--link-days`: how long an invitation's link can be used."""
    return click.option(
        "--link-days",
        type=click.IntRange(1, 365),
        default=LINK_DAYS,
        show_default=True,
        help="Days after which an unused invitation link ends. A link works once.",
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
    raise UsageError(f"nobody called {wanted!r} was invited", fix="see the page People, or invite them")


def _check_new(store: ReviewStore, name: str) -> None:
    """Refuse a name that somebody has: two people of one name could not be told apart in exports and commands."""
    known = store.person_called(name)
    if known is None:
        return
    state = "their access was ended" if not known.active else "signed in before" if known.link_used else "link not used"
    raise UsageError(
        f"{known.name!r} was invited before ({known.role}, {known.id}; {state})",
        where=store.where,
        fix=f"for a new link: hoofbeat review invite {shlex.quote(known.name)} --again. For another person of this "
        "name, add something to it, such as the department",
    )


@click.command("invite")
@click.argument("name")
@database_option
@click.option(
    "--role", type=click.Choice(["reviewer", "adjudicator", "admin"]), default="reviewer", show_default=True,
    help="What the person may do.",
)  # fmt: skip
@click.option("--group", "groups", multiple=True, help="Group, such as a specialty. Repeat it for several.")
@click.option("--study", "studies", multiple=True, help="Only this study. Repeat it for several.")
@click.option("--again", is_flag=True, help="Give NAME, who was invited before, a new link; the old one ends.")
@link_days_option
@click.option("--url", default="http://127.0.0.1:8350", show_default=True, help="Address of the server.")
@json_option
def invite_command(
    name: str,
    database: str,
    role: PersonRole,
    groups: tuple[str, ...],
    studies: tuple[str, ...],
    again: bool,
    link_days: int,
    url: str,
    as_json: bool,
) -> None:
    """Invite NAME and print their link. It is shown once and works once; whoever uses it can answer in their name."""
    with ReviewStore.open(database) as store:
        if again:
            found = find_person(store, name)
            token = store.renew(found.id, "", days=link_days)
            person = store.person(found.id) or found
        else:
            _check_new(store, name)
            person, token = store.invite(name, role, by="", groups=groups, studies=studies, days=link_days)
    link = f"{url.rstrip('/')}/join/{token}"
    if as_json:
        Screen(as_json=True).emit(
            {"person": msgspec.to_builtins(person), "link": link, "until": in_utc(person.link_until)}
        )
    else:
        click.echo(for_terminal(f"{person.name} ({person.role}, {person.id}): {link}"))
        click.echo(f"The link works once, until {in_utc(person.link_until)}")


@click.command("revoke")
@click.argument("name")
@database_option
@json_option
def revoke_command(name: str, database: str, as_json: bool) -> None:
    """End the access of NAME (a name or an id). Their labels stay."""
    with ReviewStore.open(database) as store:
        person = find_person(store, name)
        store.revoke(person.id, "")
    if as_json:
        Screen(as_json=True).emit({"person": person.id, "revoked": True})
    else:
        click.echo(for_terminal(f"{person.name} ({person.id}) no longer has access"))


def words_without_database() -> list[str]:
    """The command as it was typed, for manifests, without the database's address: a password may stand in it."""
    kept: list[str] = []
    words = command_words()
    for place, word in enumerate(words):
        if word != "--db" and not word.startswith("--db=") and (place == 0 or words[place - 1] != "--db"):
            kept.append(word)
    return kept
