"""The ledger: every model call, keyed by the content of its request, written before its result is used.

It is the only durable mutable state. One SQLite file in WAL mode, safe for several processes at once. Rows are kept in
the order they came, not of their keys: a commit then writes few pages. Long requests and replies are compressed.
Replies that arrive together are committed together: `put` returns a future that is done when its transaction is, so a
caller that awaits it uses nothing that kill -9 could take back; `sync`, at the end of a run, makes all of it outlast a
power failure too.

Writes happen on the event loop's own thread on purpose: a commit of some dozen rows costs less than handing rows to
another thread under the interpreter lock.
"""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec

from hoofbeat.errors import InputError, OutputError
from hoofbeat.store.files import output_errors

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
_COLUMNS = "key,model,operation,prompt,request,reply,tokens_in,tokens_out,seconds,made"
_SELECT = "SELECT reply FROM calls WHERE key=?"
_INSERT = "INSERT OR IGNORE INTO calls VALUES (?,?,?,?,?,?,?,?,?,?)"
_COUNT_TROUBLE = "INSERT INTO troubles VALUES (?,?,?) ON CONFLICT DO UPDATE SET count=count+excluded.count"
_LOOKUP_CHUNK = 500
_COMPRESS_OVER = 1000


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it is kept: who was asked what (canonical JSON) and what came back."""

    key: str
    model: str
    operation: str
    prompt: str = ""
    request: msgspec.Raw
    reply: msgspec.Raw
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    made: int = 0


class LedgerStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger holds, by model and operation."""

    calls: int
    bytes: int
    by_model: list[dict[str, str | int | float]]
    troubles: dict[str, dict[str, int]]


def _pack(data: bytes) -> bytes:
    """Compressed where that is worth the time; JSON never begins with the `x` that zlib's output begins with."""
    return zlib.compress(data, 1) if len(data) > _COMPRESS_OVER else data


def _unpack(data: bytes) -> bytes:
    return zlib.decompress(data) if data[:1] == b"x" else data


class Ledger:
    """An open ledger file. Use it as a context manager, or call `close`."""

    def __init__(self, path: Path, *, gather_seconds: float = 0.004, gather_rows: int = 256) -> None:
        self.path = path
        self._gather_seconds = gather_seconds
        self._gather_rows = gather_rows
        self._rows: list[tuple[object, ...]] = []
        self._waiting: list[asyncio.Future[bytes | None]] = []
        self._troubles: Counter[tuple[str, str]] = Counter()
        self._flush_handle: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        with output_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with _readable_errors(path):
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > _SCHEMA_VERSION:
            raise InputError(
                f"the ledger was written by a newer Hoofbeat (schema {version})",
                where=str(self.path),
                fix="upgrade Hoofbeat, or name another ledger with --ledger",
            )
        self._db.execute("PRAGMA busy_timeout=60000")
        if self._db.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":  # pragma: no cover - network drives
            raise OutputError(
                "the ledger's file system can't do SQLite's write-ahead log",
                where=str(self.path),
                fix="put the ledger on a local disk with --ledger",
            )
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA wal_autocheckpoint=16000")
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is pending and close the file."""
        self.flush()
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA optimize")
        self._db.close()

    def get(self, key: str) -> bytes | None:
        """The reply kept for this key, as JSON bytes, or None."""
        try:
            row = self._db.execute(_SELECT, (bytes.fromhex(key),)).fetchone()
            return _unpack(row[0]) if row else None
        except (sqlite3.Error, zlib.error) as err:
            raise _trouble(err, self.path) from err

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
        self._rows.append(_row(entry))
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
        """Write what is pending and have the disk hold it: what leaves a run outlasts a power failure too."""
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
        earlier: dict[object, bytes] = {}
        try:
            self._db.execute("BEGIN IMMEDIATE")
            before = self._db.total_changes
            self._db.executemany(_INSERT, rows)
            if self._db.total_changes - before < len(rows):
                earlier = self._kept_otherwise(rows)
            self._db.executemany(_COUNT_TROUBLE, [(*what, count) for what, count in troubles.items()])
            self._db.execute("COMMIT")
        except sqlite3.Error as err:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            error = _trouble(err, self.path)
        for row, future in zip(rows, waiting, strict=True):
            if future.done():
                continue
            if error is None:
                future.set_result(earlier.get(row[0]))
            else:
                future.set_exception(error)

    def _kept_otherwise(self, rows: list[tuple[object, ...]]) -> dict[object, bytes]:
        """The replies in the ledger for those of the rows that it has with another reply."""
        found = {row[0]: self._db.execute(_SELECT, (row[0],)).fetchone()[0] for row in rows}
        return {row[0]: _unpack(found[row[0]]) for row in rows if found[row[0]] != row[5]}

    def entries(self, *, model: str | None = None, operation: str | None = None) -> Iterator[LedgerEntry]:
        """All calls, or those of one model or operation, in the order of their keys."""
        where, values = _conditions({"model=?": model, "operation=?": operation})
        query = f"SELECT {_COLUMNS} FROM calls{where} ORDER BY key"  # noqa: S608
        with _readable_errors(self.path), closing(self._db.execute(query, values)) as cursor:
            for key, of_model, of_operation, prompt, request, reply, tokens_in, tokens_out, seconds, made in cursor:
                yield LedgerEntry(
                    key=key.hex(),
                    model=of_model,
                    operation=of_operation,
                    prompt=prompt,
                    request=msgspec.Raw(_unpack(request)),
                    reply=msgspec.Raw(_unpack(reply)),
                    tokens_in=tokens_in,
                    tokens_out=tokens_out,
                    seconds=seconds,
                    made=made,
                )

    def add_all(self, entries: Iterable[LedgerEntry]) -> int:
        """Take in calls kept elsewhere (an export); returns how many were new."""
        before = self._db.total_changes
        with _readable_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for entry in entries:
                    self._db.execute(_INSERT, _row(entry))
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise
        return self._db.total_changes - before

    def prune(self, *, model: str | None = None, before: int | None = None) -> int:
        """Remove calls of one model and/or made before a Unix time; returns how many, and gives the space back."""
        where, values = _conditions({"model=?": model, "made<?": before})
        if not where:
            raise ValueError("prune needs a model or a time")
        with _readable_errors(self.path):
            removed = self._db.execute(f"DELETE FROM calls{where}", values).rowcount  # noqa: S608
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed

    def stats(self) -> LedgerStats:
        """Counts, tokens, seconds and size, by model and operation."""
        self.flush()
        rows = self._db.execute(
            "SELECT model, operation, COUNT(*), SUM(tokens_in), SUM(tokens_out), SUM(seconds),"
            " SUM(LENGTH(request)+LENGTH(reply)) FROM calls GROUP BY model, operation ORDER BY model, operation"
        ).fetchall()
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


def _row(entry: LedgerEntry) -> tuple[object, ...]:
    return (
        bytes.fromhex(entry.key),
        entry.model,
        entry.operation,
        entry.prompt,
        _pack(bytes(entry.request)),
        _pack(bytes(entry.reply)),
        entry.tokens_in,
        entry.tokens_out,
        entry.seconds,
        entry.made,
    )


def _conditions(values: Mapping[str, str | int | None]) -> tuple[str, list[str | int]]:
    given = {clause: value for clause, value in values.items() if value is not None}
    return (" WHERE " + " AND ".join(given) if given else ""), list(given.values())


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as ours: what is wrong with the file, and what to do."""
    try:
        yield
    except (sqlite3.Error, zlib.error) as err:
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
        fix = "free some space and run the same command again: calls already kept are not made again"
    elif "readonly" in text or "unable to open" in text:
        fix = "choose a place you may write to with --ledger"
    elif "locked" in text:
        fix = "another process has held the ledger for over a minute: end it, then run the same command again"
    else:
        fix = "check the disk, then run the same command again"
    return OutputError(f"the ledger can't be written: {text}", where=str(path), fix=fix)
