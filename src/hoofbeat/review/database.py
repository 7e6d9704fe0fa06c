"""One database for the review store: a SQLite file, or a PostgreSQL server by its URL.

Writers wait for each other (`BEGIN IMMEDIATE` on SQLite, a lock of the transaction on PostgreSQL), so a transaction
sees everything before it and lines of the trail are numbered in the order they were committed. On SQLite a commit is on
the disk before it returns. What the database says when it fails is put into our own words; passwords stand in none.

The tables are the same on SQLite and PostgreSQL and have a version. Values, items and settings are kept as JSON text.
The trail can't be changed afterwards: the database itself refuses it. A save's request id is in its line of the trail
and unique per person, so the line that records a save also makes a repeated save harmless.
"""

from __future__ import annotations

import math
import os
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from hoofbeat.errors import HoofbeatError, InputError, UsageError
from hoofbeat.review.review_records import DatabaseError, ReviewRefusalError, not_here
from hoofbeat.store.postgres import error_code, known_password, public_address, server_words, ssl_setting, ssl_words
from hoofbeat.store.sqlite_files import content_of, refuse_foreign_parts, sqlite_content, use_write_ahead_log

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
    Column("made_from", Text, nullable=False, server_default="[]"),
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
    Column("token_until", Double, nullable=False, server_default="0"),
    Column("token_used", Double, nullable=False, server_default="0"),
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
case_decisions = Table(
    "review_case_decisions",
    _ALL,
    Column("case", Text, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("status", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("follow", Text, nullable=False),
    Column("position", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("audit", Text, nullable=False),
    Column("audit_sha256", Text, nullable=False),
    Column("seen", Text, nullable=False),
)
_KEEP_SQLITE = (
    "CREATE TRIGGER {table}_{act} BEFORE {act} ON {table} BEGIN SELECT RAISE(ABORT, 'the trail is only added to'); END"
)


@cache
def _own_parts() -> tuple[str, ...]:
    """How the tables, indexes and triggers of a SQLite file are made."""
    dialect = sqlite.dialect()
    made: list[CreateTable | CreateIndex] = [CreateTable(table) for table in _ALL.sorted_tables]
    made += [CreateIndex(index) for table in _ALL.sorted_tables for index in table.indexes]
    kept = [(table.name, act) for table in (events, case_decisions) for act in ("UPDATE", "DELETE")]
    triggers = [_KEEP_SQLITE.format(table=table, act=act) for table, act in kept]
    return (*(str(each.compile(dialect=dialect)) for each in made), *triggers)


_REFUSE_POSTGRESQL = (
    "CREATE FUNCTION review_events_keep() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the trail is only added to'; END $$"
)
_KEEP_POSTGRESQL = (
    "CREATE TRIGGER {table}_keep BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION review_events_keep()"
)


def _keep(connection: Connection, table: Table) -> None:
    """Have the database refuse every change of what is in a table."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(_KEEP_POSTGRESQL.format(table=table.name))
        return
    for act in ("UPDATE", "DELETE"):
        connection.execute(text(_KEEP_SQLITE.format(table=table.name, act=act)))


def _first(connection: Connection) -> None:
    _ALL.create_all(connection)
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(_REFUSE_POSTGRESQL)
    _keep(connection, events)
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


def _third(connection: Connection) -> None:
    """Decisions on the disagreements of audits: as with the trail, the database refuses to change one."""
    case_decisions.create(connection, checkfirst=True)
    _keep(connection, case_decisions)


def _fourth(connection: Connection) -> None:
    """Invitations end: those made before this have a week from now. Studies keep what their artefact was made from."""
    for table, name in ((studies, "made_from"), (people, "token_until"), (people, "token_used")):
        if name not in {each["name"] for each in inspect(connection).get_columns(table.name)}:
            made = CreateColumn(table.c[name]).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {made}"))
    connection.execute(update(people).values(token_until=time.time() + OLD_LINK_HOURS * 3600))


OLD_LINK_HOURS = 24.0 * 7
"""How long links go on that were made before links ended."""

_STEPS: tuple[Callable[[Connection], None], ...] = (_first, _second, _third, _fourth)
"""Step n brings a database of version n to version n + 1; a new layout adds a step and never changes an old one."""


def prepare(connection: Connection, where: str) -> None:
    """Make the tables, or bring older ones up to date, inside the caller's transaction."""
    present = set(inspect(connection).get_table_names())
    found = 0
    if _version.name in present:
        found = connection.execute(select(_version.c.version)).scalar_one()
    if found > len(_STEPS):
        raise InputError(
            f"the reviews were written by a newer Hoofbeat (schema {found})", where=where, fix="upgrade Hoofbeat"
        )
    for step in _STEPS[found:]:
        step(connection)
    if found < len(_STEPS):
        connection.execute(update(_version).values(version=len(_STEPS)))


T = TypeVar("T")
_WAIT_SECONDS = 30
_IDLE_SECONDS = 2.0
_TAKE_TURN = "SELECT pg_advisory_xact_lock(1215262566)"  # any number that nobody else takes in this database
_POSTGRES = ("postgresql", "postgres", "postgresql+pg8000")


class _Waiting(Generic[T]):
    """A job whose caller waits for its turn, or for another to do it along."""

    def __init__(self, job: Callable[[Connection], T]) -> None:
        self.job = job
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def end(self, value: T) -> None:
        self._value, self.done = value, True

    def fail(self, error: BaseException) -> None:
        self._error, self.done = error, True

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Database:
    """An open database. `where` names it without its password."""

    def __init__(self, url_or_path: str) -> None:
        url = _url_of(url_or_path)
        self.kind = "sqlite" if url.drivername == "sqlite" else "postgresql"
        self.where = public_address(url) if self.kind == "postgresql" else str(url.database)
        self._turn = threading.Lock()
        self._adding = threading.Lock()
        self._queue: list[_Waiting[Any]] = []
        self._file: tuple[int, int] | None = None
        if self.kind == "sqlite":
            self._reader = self._writer = _sqlite(url)
            self._file = _identity(self.where)
        else:  # readers ask one thing at a time and need no transaction; writers wait for each other anyway
            self._reader = _postgresql(url, pool_size=32, max_overflow=8, isolation_level="AUTOCOMMIT")
            self._writer = _postgresql(url, pool_size=1, max_overflow=1)
        try:
            with self.write() as connection:
                prepare(connection, self.where)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Database({self.where!r})"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for one question: what it sees is what was committed before."""
        with self._told(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes: all of it is kept when the block ends, nothing if it fails."""
        with self._turn, self._told(), self._transaction() as connection:
            yield connection

    def together(self, job: Callable[[Connection], T]) -> T:
        """What `job` returns, once it is committed, in one transaction with the jobs that wait at the same moment.

        A commit waits for the disk; many people who save at once share that wait. If any of the jobs fails, each is
        done again in a separate transaction, so that nobody's failure is another's.
        """
        waiting: _Waiting[T] = _Waiting(job)
        with self._adding:
            self._queue.append(waiting)
        with self._turn:
            if not waiting.done:
                with self._adding:
                    batch, self._queue = self._queue, []
                self._do_all(batch)
        return waiting.result()

    def _do_all(self, batch: list[_Waiting[Any]]) -> None:
        if len(batch) > 1:
            try:
                with self._told(), self._transaction() as connection:
                    values = [each.job(connection) for each in batch]
            except Exception:  # noqa: S110 - one of them fails again below, by itself, and is told there
                pass
            else:
                for each, value in zip(batch, values, strict=True):
                    each.end(value)
                return
        for each in batch:
            try:
                with self._told(), self._transaction() as connection:
                    value = each.job(connection)
            except BaseException as err:
                each.fail(err)
            else:
                each.end(value)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        self._check_file()
        with self._writer.connect() as connection:
            writing = connection.execution_options(hoofbeat_write=True)
            with writing.begin():
                if self.kind == "postgresql":
                    writing.exec_driver_sql(_TAKE_TURN)
                yield writing

    def _check_file(self) -> None:
        """That the file is still where it was: what goes into one that was removed is kept by nobody."""
        if self._file is not None and self._file != _identity(self.where):
            raise DatabaseError(
                "the file of the reviews was removed or replaced while the server was running: nothing was saved",
                where=self.where,
                fix="stop the server, put the file back, and start it again",
            )

    def close(self) -> None:
        """Close all connections."""
        for engine in (self._reader, self._writer):
            engine.dispose()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except HoofbeatError:
            raise
        except PoolTimeout:
            raise DatabaseError("the database is too busy", where=self.where, fix="try again in a moment") from None
        except UnicodeError:
            raise not_here("this name does not exist") from None
        except ssl.SSLError as err:
            what, fix = ssl_words(err)
            raise DatabaseError(what, where=self.where, fix=fix) from None
        except DBAPIError as err:
            raise _in_words(err, self.kind, self.where) from None
        except (SQLAlchemyError, OSError) as err:
            raise DatabaseError(
                f"the database can't be used ({type(err).__name__})", where=self.where, fix="check its address"
            ) from None


def _identity(path: str) -> tuple[int, int] | None:
    """Which file this is, whatever it is called; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _url_of(given: str) -> URL:
    if "://" not in given:
        return URL.create("sqlite", database=str(Path(given).absolute()))
    try:
        url = make_url(given)
    except ArgumentError:
        raise UsageError("this is not the address of a database", fix=_ADDRESS) from None
    if url.drivername == "sqlite" and url.database and url.database != ":memory:":
        return URL.create("sqlite", database=str(Path(url.database).absolute()))
    if url.drivername in _POSTGRES:
        return url.set(drivername="postgresql+pg8000")
    raise UsageError("reviews are kept in a SQLite file or in PostgreSQL", fix=_ADDRESS)


_ADDRESS = "give a file such as review.db, or postgresql://user:password@host/database"


def _sqlite(url: URL) -> Engine:
    path = Path(str(url.database))
    with suppress(sqlite3.Error):  # not a database, or damaged: told when it is opened
        content = sqlite_content(path)
        if content is not None and _version.name in content.tables:
            refuse_foreign_parts(content, path, _own_parts())
        if content is not None and not content.is_empty and _version.name not in content.tables:
            raise InputError(
                "this file is a database of something else", where=str(path), fix="name a new file for the reviews"
            )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # for the owner alone: it holds what people said
    except OSError as err:
        raise DatabaseError(
            f"the reviews file can't be written: {err.strerror}", where=str(path), fix="name another file"
        ) from None
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_size=40,
        max_overflow=24,
        pool_timeout=_WAIT_SECONDS,
        connect_args={"timeout": _WAIT_SECONDS, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def settle(connection: sqlite3.Connection, _: object) -> None:
        refuse_foreign_parts(content_of(connection), path, _own_parts())  # once more: a journal may have changed it
        connection.execute(f"PRAGMA busy_timeout={_WAIT_SECONDS * 1000}")
        use_write_ahead_log(connection, _WAIT_SECONDS)
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("hoofbeat_write"):  # a question alone needs no transaction
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _postgresql(url: URL, **pool: Any) -> Engine:
    query = dict(url.query)
    asked: dict[str, Any] = {"timeout": 2 * _WAIT_SECONDS, "application_name": "hoofbeat"}
    folder = query.pop("host", "")
    if isinstance(folder, str) and folder.startswith("/"):
        asked["unix_sock"] = f"{folder}/.s.PGSQL.{query.pop('port', None) or url.port or 5432}"
    mode, root = str(query.pop("sslmode", "")), str(query.pop("sslrootcert", ""))
    encrypting = ssl_setting(mode, root)
    asked["ssl_context"] = False if "unix_sock" in asked else encrypting  # a socket does not leave the machine
    if query:
        raise UsageError(
            f"the database's address has settings that are not known: {', '.join(sorted(query))}",
            fix="only host (a folder with the server's socket), sslmode and sslrootcert can be given there",
        )
    if not url.password and (password := known_password(url.host or "", url.port or 5432, url.database, url.username)):
        url = url.set(password=password)
    try:
        engine = create_engine(
            url.set(query={}),
            hide_parameters=True,
            pool_timeout=_WAIT_SECONDS,
            connect_args=asked,
            **pool,
        )
    except (ImportError, NoSuchModuleError):
        raise UsageError(
            "PostgreSQL needs a driver that is not installed", fix="install it: pip install 'hoofbeat[postgres]'"
        ) from None

    @event.listens_for(engine, "checkin")
    def leave(_: Any, record: ConnectionPoolEntry) -> None:
        record.info["left"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def look(connection: Any, record: ConnectionPoolEntry, _: Any) -> None:
        """A line that was idle may be dead since (the server was started anew): then the pool takes another."""
        if time.monotonic() - record.info.get("left", math.inf) > _IDLE_SECONDS:
            try:
                connection.cursor().execute("SELECT 1")
                connection.rollback()
            except Exception as err:
                raise DisconnectionError from err

    return engine


def _in_words(err: DBAPIError, kind: str, where: str) -> DatabaseError | ReviewRefusalError:
    """What went wrong, in our words: the driver's own may quote statements, values and addresses."""
    if kind == "postgresql" and error_code(err.orig) == "22021":  # a zero character, which no text here has
        return not_here("this name does not exist")
    what, fix = _sqlite_words(str(err.orig)) if kind == "sqlite" else server_words(err.orig)
    return DatabaseError(what, where=where, fix=fix)


def _sqlite_words(said: str) -> tuple[str, str]:
    if "not a database" in said or "malformed" in said:
        return "this file is not a database of reviews, or it is damaged", "name another file, or restore a copy"
    if "readonly" in said or "unable to open" in said:
        return "the reviews file can't be written", "check the permissions of the file and its folder"
    if "full" in said or "I/O error" in said:
        return "the disk is full or broken: nothing was saved", "free some space and try again"
    if "locked" in said or "busy" in said:
        return "another program uses the file of the reviews", "wait until it has finished, then try again"
    return "the reviews file can't be used", "check the file, or name another"
