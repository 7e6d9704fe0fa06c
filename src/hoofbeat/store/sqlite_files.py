"""What a SQLite file has in it, read before anything opens it for writing.

Opening a database for use changes it: its mode, its write-ahead log, its tables. A file that another program made must
stay as it is, so whoever is about to open one looks here first. A file may also bring what SQLite runs by itself: a
trigger that deletes what was just written, a condition or an index by which a row is left out without a word, a view
without end that no signal stops. So its tables, indexes and triggers must be those that Hoofbeat makes.
"""

from __future__ import annotations

import re
import sqlite3
import time
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
_MADE = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
_SQLITES_OWN = re.compile(r"CREATE TABLE sqlite_(?:sequence|stat\d)\([\w,]+\)")
_TABLE = re.compile(r"CREATE TABLE (?!sqlite_)", re.IGNORECASE)
_TYPES = {"bigint", "blob", "boolean", "double", "float", "integer", "precision", "real", "text"}
_WORD = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\S")


class SqliteContent(NamedTuple):
    """The columns of every table, and the two numbers by which programs mark their files (0 where none did).

    `made` are the statements by which tables, indexes, views and triggers were made, each with its name.
    """

    tables: Mapping[str, tuple[str, ...]]
    version: int
    application: int
    made: tuple[tuple[str, str], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no program has used this file yet."""
        return not self.tables and not self.version and not self.application


def sqlite_content(path: Path) -> SqliteContent | None:
    """What is in a file, which stays as it is; None where there is no file, or an empty one.

    Raises `sqlite3.Error` where it is not a database. One that nobody is writing to is read without locks: with them,
    SQLite leaves files beside a database that has a write-ahead log, even if it only reads.
    """
    _refuse_beside(path)
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


def _refuse_beside(path: Path) -> None:
    """Refuse links in place of SQLite's files beside a database, and a journal that names another file.

    SQLite removes that file once it has taken back what the journal says, whatever file it is. Only programs that
    change several databases together write such a name, at the journal's end.
    """
    for place in dict.fromkeys((path, path.resolve())):
        for beside in (place.with_name(f"{place.name}-{kind}") for kind in ("journal", "wal", "shm", "claims")):
            if beside.is_symlink():
                raise HostileInputError("a file beside the database is a link", where=str(beside), fix=_REMOVE)
    journal = path.resolve().with_name(f"{path.resolve().name}-journal")
    if journal.is_file():
        with journal.open("rb") as stream:
            stream.seek(max(0, journal.stat().st_size - len(_JOURNAL)))
            if stream.read() == _JOURNAL:
                raise HostileInputError(
                    "the database's journal names another file, which would be removed", where=str(journal), fix=_REMOVE
                )


_JOURNAL = bytes.fromhex("d9d505f920a163d7")
_REMOVE = "do not use this database, or remove this file if you know where it is from"


def _content(path: Path, how: str) -> SqliteContent:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", timeout=_SECONDS, uri=True)) as database:
        return content_of(database)


def content_of(database: sqlite3.Connection) -> SqliteContent:
    """What is in an open database: also what SQLite put back into it from a journal when it was opened."""
    version, application = (
        int(database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("user_version", "application_id")
    )
    made = tuple((str(name), str(statement)) for name, statement in database.execute(_MADE))
    tables: dict[str, tuple[str, ...]] = {}
    for table, column in database.execute(_COLUMNS):
        tables[table] = (*tables.get(table, ()), column)
    return SqliteContent(tables, version, application, made)


def use_write_ahead_log(database: sqlite3.Connection, seconds: float) -> bool:
    """Have SQLite keep a write-ahead log; False where the file system can't do that.

    SQLite waits for another process here only if the file has a log already: whoever opens a new file at the same
    moment is told at once that it is locked. So the waiting is done here.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return bool(database.execute("PRAGMA journal_mode=WAL").fetchone()[0] == "wal")
        except sqlite3.OperationalError as err:
            if "locked" not in str(err) or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def refuse_foreign_parts(content: SqliteContent, path: Path, own: Iterable[str]) -> None:
    """Refuse a file with a part that none of our `own` statements makes.

    A table of ours may lack columns, which a later layout added. Tables of other names do nothing, so they may stay.
    """
    known: dict[str, set[str]] = {}
    for statement in own:
        head, parts = _form(statement)
        known.setdefault(head, set()).update(parts)
    foreign = []
    for name, statement in content.made:
        head, parts = _form(statement)
        if head in known:
            if not parts <= known[head]:
                foreign.append(name)
        elif not _SQLITES_OWN.fullmatch(statement) and not _TABLE.match(statement):
            foreign.append(name)
    if foreign:
        raise HostileInputError(
            f"the database has parts that Hoofbeat did not make: {some_of(foreign, 3)}",
            where=str(path),
            fix="do not use this file, because they may lose or change what is written to it; name another one",
        )


def _form(statement: str) -> tuple[str, set[str]]:
    """What a statement makes, and for a table its columns and conditions.

    Space, quotes and names of types are left out: they may differ between versions of what wrote the statement.
    """
    words = [each.strip('"`').lower() for each in _WORD.findall(re.sub(r"(?i)\bIF NOT EXISTS\b", "", statement))]
    if words[:2] != ["create", "table"]:
        return " ".join(words), set()
    parts: list[list[str]] = [[]]
    depth = 0
    for word in words[3:]:
        depth += (word == "(") - (word == ")")
        if (word == "," and depth == 1) or (word, depth) in (("(", 1), (")", 0)):
            parts.append([])
        elif word not in _TYPES:
            parts[-1].append(word)
    return " ".join(words[:3]), {" ".join(part) for part in parts if part}
