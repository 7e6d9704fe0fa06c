"""Who may sign in: people by invitation, their sessions, and how often somebody may try a wrong secret.

A secret (the token of an invitation, a session's cookie) is 256 random bits. Only its hash is kept, so whoever reads
the database, or a copy of it, can't sign in with its content.

An invitation's link works once and ends after some days: mails are forwarded, kept and read by others. The session that
it opens goes on for as long as its person comes back.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, get_args

from msgspec.structs import replace
from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from hoofbeat.errors import UsageError
from hoofbeat.review.database import people, sessions, studies
from hoofbeat.review.review_records import Person, PersonRole, not_here
from hoofbeat.review.store_base import StoreBase, from_json, to_json

SESSION_HOURS = 24.0 * 14
"""How long a session goes on after its person was last here."""

LINK_DAYS = 7
"""For how many days an invitation's link can be used."""

_DAY = 24 * 3600.0
_NAME_LENGTH = 120
_OF_SESSION = (
    select(people, sessions.c.expires)
    .join(sessions, sessions.c.person == people.c.id)
    .where(sessions.c.secret == bindparam("of_secret"), sessions.c.expires > bindparam("now"), people.c.active)
)


def secret_hash(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class PeopleStore(StoreBase):
    """The people of the review store."""

    def invite(
        self,
        name: str,
        role: PersonRole,
        *,
        by: str,
        groups: Sequence[str] = (),
        studies: Sequence[str] = (),
        days: float = LINK_DAYS,
    ) -> tuple[Person, str]:
        """Somebody new, and the token of their invitation: shown once; it works once, within a number of days."""
        name = " ".join(name.split())
        if not 0 < len(name) <= _NAME_LENGTH or not name.isprintable():
            raise UsageError(f"a name has 1 to {_NAME_LENGTH} printable characters", fix="give the person's name")
        if role not in get_args(PersonRole):
            raise UsageError("there is no such role", fix=f"choose one of {', '.join(get_args(PersonRole))}")
        token = secrets.token_urlsafe(32)
        with self._database.write() as connection:
            _check_studies(connection, studies)
            now = time.time()
            person = Person(
                id=f"p-{secrets.token_hex(4)}",
                name=name,
                role=role,
                groups=tuple(groups),
                studies=tuple(studies),
                invited=now,
                link_until=now + days * _DAY,
            )
            connection.execute(
                insert(people).values(
                    id=person.id,
                    name=person.name,
                    role=person.role,
                    groups=to_json(person.groups),
                    studies=to_json(person.studies),
                    active=True,
                    invited=person.invited,
                    token=secret_hash(token),
                    token_until=person.link_until,
                )
            )
            self._note(connection, "invited", by=by, after=person)
        return person, token

    def renew(self, person: str, by: str, *, days: float = LINK_DAYS) -> str:
        """A new token for somebody; the old one and all their sessions end. It also lets a revoked person in again."""
        token = secrets.token_urlsafe(32)
        with self._database.write() as connection:
            found = _person(connection, person)
            until = time.time() + days * _DAY
            self._shut(connection, person, active=True, token=secret_hash(token), token_until=until, token_used=0.0)
            self._note(connection, "renewed", by=by, before={"active": found.active}, after={"person": person})
        return token

    def revoke(self, person: str, by: str) -> None:
        """Somebody may not come in any more: token and sessions end at once. What they said stays."""
        with self._database.write() as connection:
            found = _person(connection, person)
            self._shut(connection, person, active=False, token=None)
            self._note(connection, "revoked", by=by, before={"active": found.active}, after={"person": person})

    def _shut(self, connection: Connection, person: str, **changes: Any) -> None:
        connection.execute(update(people).where(people.c.id == person).values(**changes))
        connection.execute(delete(sessions).where(sessions.c.person == person))

    def person_called(self, name: str) -> Person | None:
        """Somebody of this name, whether or not they may still come in; letters' case and spaces do not count."""
        wanted = " ".join(name.split()).casefold()
        return next((person for person in self.people() if person.name.casefold() == wanted), None)

    def people(self) -> list[Person]:
        """Everybody who was ever invited, in that order."""
        with self._database.read() as connection:
            rows = connection.execute(select(people).order_by(people.c.invited, people.c.id))
            return [_person_of(row) for row in rows]

    def person(self, id: str) -> Person | None:
        """One of them."""
        with self._database.read() as connection:
            row = connection.execute(select(people).where(people.c.id == id)).one_or_none()
            return None if row is None else _person_of(row)

    def invited(self, token: str) -> Person | None:
        """Whose token this is, without signing in; a token that was used, or that ended, is still theirs."""
        with self._database.read() as connection:
            return _by_token(connection, token)

    def sign_in(self, token: str, *, hours: float = SESSION_HOURS) -> tuple[Person, str] | None:
        """The person of a token that was never used and has not ended, with the secret of a new session; or None."""
        known = self.invited(token)
        if known is None or known.link_trouble(time.time()):  # guesses never take a writer's turn
            return None
        secret, now = secrets.token_urlsafe(32), time.time()

        def job(connection: Connection) -> Person | None:
            person = _by_token(connection, token)
            if person is None or person.link_trouble(now):  # another browser was quicker
                return None
            connection.execute(update(people).where(people.c.id == person.id).values(token_used=now))
            connection.execute(delete(sessions).where(sessions.c.expires < now))
            kept = {"secret": secret_hash(secret), "person": person.id, "expires": now + hours * 3600}
            connection.execute(insert(sessions), kept)
            self._note(connection, "signed in", by=person.id, at=now)
            return replace(person, link_used=now)

        person = self._database.together(job)
        return None if person is None else (person, secret)

    def session(self, secret: str) -> Person | None:
        """Whose session this is, while it lasts and the person is not revoked."""
        found = self.session_until(secret)
        return None if found is None else found[0]

    def session_until(self, secret: str) -> tuple[Person, float] | None:
        """The same, with the time at which the session ends."""
        with self._database.read() as connection:
            asked = {"of_secret": secret_hash(secret), "now": time.time()}
            row = connection.execute(_OF_SESSION, asked).one_or_none()
            return None if row is None else (_person_of(row), row.expires)

    def prolong(self, secret: str, *, hours: float = SESSION_HOURS) -> None:
        """Prolong a session by a number of hours from now."""
        until = time.time() + hours * 3600
        change = update(sessions).where(sessions.c.secret == secret_hash(secret)).values(expires=until)
        self._database.together(lambda connection: connection.execute(change).rowcount)

    def sign_out(self, secret: str) -> None:
        """End a session; one that is over already stays over."""
        with self._database.write() as connection:
            ours = sessions.c.secret == secret_hash(secret)
            person = connection.execute(select(sessions.c.person).where(ours)).scalar_one_or_none()
            if person is not None:
                connection.execute(delete(sessions).where(ours))
                self._note(connection, "signed out", by=person)


def _check_studies(connection: Connection, named: Sequence[str]) -> None:
    known = set(connection.execute(select(studies.c.id)).scalars())
    if unknown := [name for name in named if name not in known]:
        raise UsageError(f"there is no study {unknown[0]!r}", fix="name studies that are there, or none for all")


def _by_token(connection: Connection, token: str) -> Person | None:
    query = select(people).where(people.c.token == secret_hash(token), people.c.active)
    row = connection.execute(query).one_or_none()
    return None if row is None else _person_of(row)


def _person(connection: Connection, person: str) -> Person:
    row = connection.execute(select(people).where(people.c.id == person)).one_or_none()
    if row is None:
        raise not_here("there is no such person")
    return _person_of(row)


def _person_of(row: Row[Any]) -> Person:
    return Person(
        id=row.id,
        name=row.name,
        role=row.role,
        groups=from_json(row.groups, tuple[str, ...]),
        studies=from_json(row.studies, tuple[str, ...]),
        active=row.active,
        invited=row.invited,
        link_until=row.token_until,
        link_used=row.token_used,
    )


_MINUTE = 60.0
_MAX_ADDRESSES = 4096


class Throttle:
    """Counts wrong tries of the last minute, per address and in all; whoever is over the limit has to wait.

    Right tries don't count: a whole clinic behind one address may come in at once.
    """

    def __init__(self, per_address: int, in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_address, self._in_all, self._clock = per_address, in_all, clock
        self._tries: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()
        self._lock = threading.Lock()

    def wait(self, address: str) -> int:
        """Seconds until this address may try again; 0 when it may now."""
        with self._lock:
            now = self._clock()
            own = _recent(self._tries.get(_network(address), deque()), now)
            everyone = _recent(self._all, now)
            left = 0.0
            if len(own) >= self._per_address:
                left = own[-self._per_address] + _MINUTE - now
            if len(everyone) >= self._in_all:
                left = max(left, everyone[-self._in_all] + _MINUTE - now)
            return int(left) + 1 if left > 0 else 0

    def failed(self, address: str) -> None:
        """Count a wrong try."""
        with self._lock:
            now = self._clock()
            _recent(self._all, now).append(now)
            if len(self._tries) >= _MAX_ADDRESSES:
                self._tries = {name: tries for name, tries in self._tries.items() if _recent(tries, now)}
            _recent(self._tries.setdefault(_network(address), deque()), now).append(now)


def _recent(tries: deque[float], now: float) -> deque[float]:
    while tries and tries[0] <= now - _MINUTE:
        tries.popleft()
    return tries


def _network(address: str) -> str:
    """An address as it is counted: one customer has a whole /64 of IPv6."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((known, 64), strict=False)) if known.version == 6 else address
