"""The ledger in a SQLite file (`ledger_base`): the default.

One file in WAL mode, safe for several processes at once. Rows are kept in the order they came, not of their keys: a
commit then writes few pages. Replies that arrive together are committed together: `put` returns a future that is done
when its transaction is, so a caller that awaits it uses nothing that kill -9 could take back; `sync`, at the end of a
run, makes all of it outlast a power failure too.

Writes happen on the event loop's own thread on purpose: a commit of some dozen rows costs less than handing rows to
another thread under the interpreter lock.

Calls in flight are claimed by locks on single bytes of a second file, at places that the keys give. The system frees
them when the process ends, and a lock costs some microseconds. Where locks belong to an open file (Linux), ledgers of
one process exclude each other as well; elsewhere only processes do, and without such locks (Windows) nobody does.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hoofbeat.errors import InputError, OutputError
from hoofbeat.store.files import make_private, output_errors
from hoofbeat.store.ledger_base import COLUMNS, CallLedger, LedgerEntry, LedgerRow, LedgerStats, conditions, unpack

if TYPE_CHECKING:
    from hoofbeat.store.sqlite_files import SqliteContent

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    key BLOB PRIMARY KEY,
    model TEXT NOT NULL,
    operation TEXT NOT NULL,
    prompt TEXT NOT NULL,
    request BLOB NOT NULL,
    reply BLOB NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_out INTEGER NOT NULL,
    seconds REAL NOT NULL,
    made INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS troubles (
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (model, kind)
) WITHOUT ROWID;
"""
_EARLIER = ("CREATE TABLE calls (key) WITHOUT ROWID", "CREATE INDEX calls_made ON calls (made)")
"""Parts of ledgers that the first versions made."""
_SELECT = "SELECT reply, made FROM calls WHERE key=?"
_INSERT = "INSERT OR IGNORE INTO calls VALUES (?,?,?,?,?,?,?,?,?,?)"
_COUNT_TROUBLE = "INSERT INTO troubles VALUES (?,?,?) ON CONFLICT DO UPDATE SET count=count+excluded.count"
_STATS = (  # sums that stay numbers whatever a file holds
    "SELECT model, operation, COUNT(*), CAST(TOTAL(tokens_in) AS INTEGER), CAST(TOTAL(tokens_out) AS INTEGER),"
    " COALESCE(MIN(TOTAL(seconds), 1e12), 0.0), SUM(LENGTH(request)+LENGTH(reply))"
    " FROM calls GROUP BY model, operation ORDER BY model, operation"
)
_LOOKUP_CHUNK = 500
_WAIT_SECONDS = 60
"""How long another process may keep the file locked."""


class Ledger(CallLedger):
    """An open ledger file."""

    def __init__(self, path: Path, *, gather_seconds: float = 0.004, gather_rows: int = 256) -> None:
        super().__init__()
        self.path = path
        self.place = str(path)
        self._gather_seconds = gather_seconds
        self._gather_rows = gather_rows
        self._rows: list[LedgerRow] = []
        self._waiting: list[asyncio.Future[bytes | None]] = []
        self._troubles: Counter[tuple[str, str]] = Counter()
        self._flush_handle: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_other_files(path)
        make_private(path)  # SQLite's own files beside it take its mode
        with _readable_errors(path):
            self._db = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
            self._db.text_factory = _text  # a file may hold any bytes as text
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise
        self._locks = _KeyLocks(path.with_name(path.name + "-claims"))

    def _prepare(self) -> None:
        from hoofbeat.store.sqlite_files import content_of, use_write_ahead_log  # noqa: PLC0415 - help needs no ledger

        _refuse_content(content_of(self._db), self.path)  # once more: a journal may have put something else there
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > _SCHEMA_VERSION:
            raise InputError(
                f"the ledger was written by a newer Hoofbeat (schema {version})",
                where=str(self.path),
                fix="upgrade Hoofbeat, or name another ledger with --ledger",
            )
        if not use_write_ahead_log(self._db, _WAIT_SECONDS):  # pragma: no cover - network drives
            raise OutputError(
                "the ledger's file system can't do SQLite's write-ahead log",
                where=str(self.path),
                fix="put the ledger on a local disk with --ledger",
            )
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA wal_autocheckpoint=16000")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    def close(self) -> None:
        """Write what is pending and close the file."""
        self.flush()
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA optimize")
        self._db.close()
        self._locks.close()

    def get(self, key: str) -> bytes | None:
        """The reply kept for this key, as JSON bytes, or None."""
        try:
            row = self._db.execute(_SELECT, (bytes.fromhex(key),)).fetchone()
            return self._given(*row) if row else None
        except sqlite3.Error as err:
            raise _trouble(err, self.path) from err

    async def look_up(self, key: str) -> bytes | None:
        """The same without waiting: a lookup in the file costs less than a switch to another task."""
        return self.get(key)

    def known(self, keys: Sequence[str]) -> set[str]:
        """Which of these keys are in the ledger."""
        found: set[str] = set()
        for start in range(0, len(keys), _LOOKUP_CHUNK):
            chunk = [bytes.fromhex(key) for key in keys[start : start + _LOOKUP_CHUNK]]
            marks = ",".join("?" * len(chunk))
            with _readable_errors(self.path):
                rows = self._db.execute(f"SELECT key FROM calls WHERE key IN ({marks})", chunk)  # noqa: S608
                found.update(row[0].hex() for row in rows)
        return found

    def put(self, entry: LedgerEntry) -> asyncio.Future[bytes | None]:
        """Keep a call; await the result before using the reply. Calls that come together are committed together.

        Where another process has kept the same call first, the result is its reply: that one counts.
        """
        loop = asyncio.get_running_loop()
        self._rows.append(LedgerRow.of(entry))
        done: asyncio.Future[bytes | None] = loop.create_future()
        self._waiting.append(done)
        if len(self._rows) >= self._gather_rows:
            self.flush()
        elif self._flush_handle is None or self._loop is not loop:
            self._loop = loop
            self._flush_handle = loop.call_later(self._gather_seconds, self.flush)
        return done

    def trouble(self, model: str, kind: str) -> None:
        """Count an attempt that brought no reply (rate limit, error, cut connection); written with the next calls."""
        self._troubles[model, kind] += 1

    def sync(self) -> None:
        """Write what is pending and have the disk hold it: results outlast a power failure."""
        self.flush()
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def flush(self) -> None:
        """Write what is pending now."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        if not self._rows and not self._troubles:
            return
        rows, waiting, troubles = self._rows, self._waiting, self._troubles
        self._rows, self._waiting, self._troubles = [], [], Counter()
        error: Exception | None = None
        earlier: dict[bytes, bytes] = {}
        try:
            self._db.execute("BEGIN IMMEDIATE")
            before = self._db.total_changes
            self._db.executemany(_INSERT, rows)
            if self._db.total_changes - before < len(rows):
                earlier = self._kept_otherwise(rows)
            self._db.executemany(_COUNT_TROUBLE, [(*what, count) for what, count in troubles.items()])
            self._db.execute("COMMIT")
        except Exception as err:  # whatever it is: those who wait must be told
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            error = _trouble(err, self.path)
        for row, future in zip(rows, waiting, strict=True):
            if future.done():
                continue
            if error is None:
                future.set_result(earlier.get(row.key))
            else:
                future.set_exception(error)

    def _kept_otherwise(self, rows: list[LedgerRow]) -> dict[bytes, bytes]:
        """The replies in the ledger for those of the rows that it has with another reply."""
        found = {row.key: self._db.execute(_SELECT, (row.key,)).fetchone()[0] for row in rows}
        return {row.key: unpack(found[row.key]) for row in rows if found[row.key] != row.reply}

    def rows_of(self, keys: Collection[bytes]) -> list[LedgerRow]:
        """The rows of those keys that are there, in the order of their keys."""
        marks = ",".join("?" * len(keys))
        return self._select(f" WHERE key IN ({marks}) ORDER BY key", list(keys))

    def _page(self, after: bytes, count: int, *, model: str | None, operation: str | None) -> list[LedgerRow]:
        where, values = conditions({"key>?": after, "model=?": model, "operation=?": operation})
        return self._select(f"{where} ORDER BY key LIMIT {count}", values)

    def _select(self, clause: str, values: Sequence[object]) -> list[LedgerRow]:
        with _readable_errors(self.path):
            found = self._db.execute(f"SELECT {COLUMNS} FROM calls{clause}", values)  # noqa: S608
            return [LedgerRow(*row) for row in found]

    def add_rows(self, rows: Iterable[LedgerRow]) -> int:
        """Add rows, all or none; returns how many were new."""
        before = self._db.total_changes
        with _readable_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(_INSERT, rows)
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
        return self._db.total_changes - before

    def prune(self, *, model: str | None = None, before: int | None = None) -> int:
        """Remove calls of one model and/or made before a Unix time; returns how many, and gives the space back."""
        where, values = conditions({"model=?": model, "made<?": before})
        if not where:
            raise ValueError("prune needs a model or a time")
        with _readable_errors(self.path):
            removed = self._db.execute(f"DELETE FROM calls{where}", values).rowcount  # noqa: S608
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def remove(self, key: str) -> None:
        """Remove one call, whose reply can't be read."""
        with _readable_errors(self.path):
            self._db.execute("DELETE FROM calls WHERE key=?", (bytes.fromhex(key),))

    def _prompts(self, model: str) -> list[tuple[str, int]]:
        self.flush()
        return self._db.execute("SELECT prompt, COUNT(*) FROM calls WHERE model=? GROUP BY prompt", (model,)).fetchall()

    def stats(self) -> LedgerStats:
        """Counts, tokens, seconds and size, by model and operation."""
        self.flush()
        with _readable_errors(self.path):
            rows = self._db.execute(_STATS).fetchall()
        names = ("model", "operation", "calls", "tokens_in", "tokens_out", "seconds", "bytes")
        by_model = [dict(zip(names, row, strict=True)) for row in rows]
        troubles: dict[str, dict[str, int]] = {}
        for model, kind, count in self._db.execute("SELECT model, kind, count FROM troubles ORDER BY model, kind"):
            troubles.setdefault(model, {})[kind] = count
        return LedgerStats(
            calls=sum(row[2] for row in rows),
            bytes=self.path.stat().st_size,
            by_model=by_model,
            troubles=troubles,
        )

    async def _lock(self, keys: Collection[str]) -> set[str]:
        return {key for key in keys if self._locks.take(key)}

    def _unlock(self, key: str) -> None:
        self._locks.give_back(key)

    async def _replies(self, keys: Collection[str]) -> dict[str, bytes]:
        return {key: reply for key in keys if (reply := self.get(key)) is not None}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _refuse_other_files(path: Path) -> None:
    """Refuse a file that is neither a ledger nor new, before anything of it is changed.

    A ledger whose making was killed has no table yet, or only the first one.
    """
    from hoofbeat.store.sqlite_files import sqlite_content  # noqa: PLC0415 - help needs no ledger

    with _readable_errors(path):
        content = sqlite_content(path)
    if content is not None:
        _refuse_content(content, path)


def _refuse_content(content: SqliteContent, path: Path) -> None:
    from hoofbeat.store.sqlite_files import refuse_foreign_parts  # noqa: PLC0415 - help needs no ledger

    if content.is_empty:
        return
    columns = content.tables.get("calls", ())
    if {*COLUMNS.split(",")} <= {*columns}:
        refuse_foreign_parts(content, path, (*_SCHEMA.split(";"), *_EARLIER))
        if ",".join(columns) == COLUMNS:  # rows are written by place
            return
    raise InputError(
        "this database is not a ledger: another program made it",
        where=str(path),
        fix="name another file with --ledger, in HOOFBEAT_LEDGER or as ledger in hoofbeat.toml",
    )


class _KeyLocks:
    """Locks on keys that die with the process: each is a lock on one byte of a file that stays empty."""

    def __init__(self, path: Path) -> None:
        with output_errors(path):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)

    def take(self, key: str) -> bool:
        """Lock a key; False where another has it."""
        try:
            self._set(key, lock=True)
        except (BlockingIOError, PermissionError):  # the two that POSIX allows for a lock that another holds
            return False
        return True

    def give_back(self, key: str) -> None:
        """Unlock a key."""
        self._set(key, lock=False)

    def _set(self, key: str, *, lock: bool) -> None:
        place = int(key[:15], 16)  # 60 bits: a place in a file has 63
        if sys.platform == "linux":
            kind = fcntl.F_WRLCK if lock else fcntl.F_UNLCK
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, place, 1, 0))
        elif fcntl is not None:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB if lock else fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Unlock all."""
        os.close(self._file)


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as ours: what is wrong with the file, and what to do."""
    try:
        yield
    except sqlite3.Error as err:
        raise _trouble(err, path) from err


def _trouble(err: Exception, path: Path) -> InputError | OutputError:
    if not isinstance(err, sqlite3.OperationalError):
        return InputError(
            f"the ledger can't be read: {err}",
            where=str(path),
            fix="move the file away (calls in it will be made again), or restore it from a copy",
        )
    text = str(err)
    if "full" in text:
        fix = "free some space and run the same command again: finished calls are not repeated"
    elif "readonly" in text or "unable to open" in text:
        fix = "choose a place you may write to with --ledger"
    elif "locked" in text:
        fix = "another process has locked the ledger for over a minute: end it, then run the same command again"
    else:
        fix = "check the disk, then run the same command again"
    return OutputError(f"the ledger can't be written: {text}", where=str(path), fix=fix)
