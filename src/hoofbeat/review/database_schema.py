"""The tables behind the review store, the same on SQLite and PostgreSQL, with the version of their layout.

What has a shape of its own (values, items, settings) is kept as JSON text. The trail can't be changed afterwards: the
database itself refuses it. A save's request id stands in its line of the trail and is unique per person, so that the
line that records a save is also what makes a repeated one harmless.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
    text,
    update,
)

from hoofbeat.errors import InputError

_ALL = MetaData()

_version = Table("review_schema", _ALL, Column("version", Integer, nullable=False))

studies = Table(
    "review_studies",
    _ALL,
    Column("id", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("form", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("source_sha256", Text, nullable=False),
    Column("settings", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("closed", Boolean, nullable=False),
)

items = Table(
    "review_items",
    _ALL,
    Column("study", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

people = Table(
    "review_people",
    _ALL,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("groups", Text, nullable=False),
    Column("studies", Text, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("invited", Double, nullable=False),
    Column("token", Text, unique=True),
)

sessions = Table(
    "review_sessions",
    _ALL,
    Column("secret", Text, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("expires", Double, nullable=False),
)

assignments = Table(
    "review_assignments",
    _ALL,
    Column("study", Text, primary_key=True),
    Column("person", Text, primary_key=True),
    Column("item", Text, primary_key=True),
    Column("place", Integer, nullable=False),
    Column("why", Text, nullable=False),
)

labels = Table(
    "review_labels",
    _ALL,
    Column("study", Text, primary_key=True),
    Column("person", Text, primary_key=True),
    Column("item", Text, primary_key=True),
    Column("values", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("origin", Integer, nullable=False),  # the version whose content this is; an undo goes back to an earlier one
    Column("seconds", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("changed", Double, nullable=False),
)

decisions = Table(
    "review_decisions",
    _ALL,
    Column("study", Text, primary_key=True),
    Column("item", Text, primary_key=True),
    Column("person", Text, nullable=False),
    Column("values", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("changed", Double, nullable=False),
    Column("version", Integer, nullable=False),
)

events = Table(
    "review_events",
    _ALL,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("person", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("study", Text, nullable=False),
    Column("item", Text, nullable=False),
    Column("before", Text),
    Column("after", Text),
    Column("request", Text),
    UniqueConstraint("person", "request", name="review_events_request"),
    Index("review_events_item", "study", "item", "person"),
    sqlite_autoincrement=True,
)

_KEEP_SQLITE = (
    "CREATE TRIGGER review_events_{0} BEFORE {0} ON review_events "
    "BEGIN SELECT RAISE(ABORT, 'the trail is only added to'); END"
)
_KEEP_POSTGRESQL = (
    "CREATE FUNCTION review_events_keep() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the trail is only added to'; END $$",
    "CREATE TRIGGER review_events_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON review_events "
    "FOR EACH STATEMENT EXECUTE FUNCTION review_events_keep()",
)


def _first(connection: Connection) -> None:
    _ALL.create_all(connection)
    if connection.dialect.name == "sqlite":
        for act in ("UPDATE", "DELETE"):
            connection.execute(text(_KEEP_SQLITE.format(act)))
    else:
        for statement in _KEEP_POSTGRESQL:
            connection.exec_driver_sql(statement)
    connection.execute(insert(_version).values(version=0))


_RENAMED = {"least_passed": "min_passed"}
_RENAMED_IN_PLAN = {"most": "max_per_person"}


def _second(connection: Connection) -> None:
    """Settings of studies: limits are named `min_` and `max_`."""
    for name, kept in connection.execute(select(studies.c.id, studies.c.settings)).all():
        settings = {_RENAMED.get(key, key): value for key, value in msgspec.json.decode(kept).items()}
        if isinstance(plan := settings.get("plan"), dict):
            settings["plan"] = {_RENAMED_IN_PLAN.get(key, key): value for key, value in plan.items()}
        words = msgspec.json.encode(settings).decode()
        connection.execute(update(studies).where(studies.c.id == name).values(settings=words))


_STEPS: tuple[Callable[[Connection], None], ...] = (_first, _second)
"""Step n brings a database of version n to version n + 1; a new layout adds a step and never changes an old one."""


def prepare(connection: Connection, where: str) -> None:
    """Make the tables, or bring older ones up to date, inside the caller's transaction."""
    present = set(inspect(connection).get_table_names())
    found = 0
    if _version.name in present:
        found = connection.execute(select(_version.c.version)).scalar_one()
    elif present and connection.dialect.name == "sqlite":
        raise InputError(
            "this file is a database of something else", where=where, fix="name a new file for the reviews"
        )
    if found > len(_STEPS):
        raise InputError(
            f"the reviews were written by a newer Hoofbeat (schema {found})", where=where, fix="upgrade Hoofbeat"
        )
    for step in _STEPS[found:]:
        step(connection)
    if found < len(_STEPS):
        connection.execute(update(_version).values(version=len(_STEPS)))
