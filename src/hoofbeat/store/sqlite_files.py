"""What a SQLite file has in it, read before anything opens it for writing.

Opening a database for use changes it: its mode, its write-ahead log, its tables. A file that another program made must
stay as it is, so whoever is about to open one looks here first. A file may also bring what SQLite runs by itself: a
trigger that deletes what was just written, a view without end that no signal stops.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from hoofbeat.errors import HostileInputError
from hoofbeat.text import some_of

_SECONDS = 60
_COLUMNS = (
    "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
    " WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY m.name, c.cid"
)


_RUNS = "SELECT name, sql FROM sqlite_master WHERE type IN ('view', 'trigger') OR sql LIKE 'CREATE VIRTUAL%'"


class SqliteContent(NamedTuple):
    """The columns of every table, and the two numbers by which programs mark their files (0 where none did).

    `runs` are views, triggers and virtual tables, by name, with how they were made.
    """

    tables: Mapping[str, tuple[str, ...]]
    version: int
    application: int
    runs: Mapping[str, str] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no program has used this file yet."""
        return not self.tables and not self.version and not self.application


def sqlite_content(path: Path) -> SqliteContent | None:
    """What is in a file, which stays as it is; None where there is no file, or an empty one.

    Raises `sqlite3.Error` where it is not a database. One that nobody is writing to is read without locks: with them,
    SQLite leaves files beside a database that has a write-ahead log, even if it only reads.
    """
    if not path.is_file() or not path.stat().st_size:
        return None
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or not log.stat().st_size:
        try:
            return _content(path, "immutable=1")
        except (sqlite3.Error, UnicodeDecodeError):
            pass
    try:
        return _content(path, "mode=ro")
    except UnicodeDecodeError as err:  # of SQLite's message, which repeats what is damaged
        raise sqlite3.DatabaseError(f"the database is damaged: {err}") from err


def _content(path: Path, how: str) -> SqliteContent:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", timeout=_SECONDS, uri=True)) as database:
        version, application = (
            int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("user_version", "application_id")
        )
        runs = {str(name): str(made) for name, made in database.execute(_RUNS)}
        tables: dict[str, tuple[str, ...]] = {}
        for table, column in database.execute(_COLUMNS):
            tables[table] = (*tables.get(table, ()), column)
    return SqliteContent(tables, version, application, runs)


def refuse_foreign_code(content: SqliteContent, path: Path, known: Iterable[str] = ()) -> None:
    """Refuse a file with a view, trigger or virtual table that is not among those `known`, by how they are made."""
    own = set(known)
    if foreign := [name for name, made in content.runs.items() if made not in own]:
        raise HostileInputError(
            f"the database runs code that Hoofbeat did not put there: {some_of(foreign, 3)}",
            where=str(path),
            fix="do not use this file; name another one",
        )
