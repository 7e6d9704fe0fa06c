"""The ledger in a PostgreSQL database (`ledger_base`), for teams and clusters.

One thread has the connection. What tasks ask of the ledger meanwhile waits in a list, and the thread does all of it at
once: one statement adds all calls (one commit), one tries all claims, one looks all keys up. So the event loop never
waits for the network, and a slow network makes larger batches, not fewer calls. Rows travel as one JSON text, because
that is encoded by compiled code on both sides; the driver's own arrays are built in Python.

A claim is an advisory lock of the session: the server frees it when the connection ends. After the server was restarted
the thread connects again, claims again what is in flight, and repeats its batch. Everything in a batch may be repeated:
a call that is there already is not added twice.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import msgspec

from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.store.ledger_base import COLUMNS, CallLedger, LedgerEntry, LedgerRow, LedgerStats, conditions, unpack
from hoofbeat.store.postgres import PostgresServer, is_lost

T = TypeVar("T")
_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS hoofbeat_ledger (version integer NOT NULL);
CREATE TABLE IF NOT EXISTS hoofbeat_calls (
    key bytea PRIMARY KEY,
    model text NOT NULL,
    operation text NOT NULL,
    prompt text NOT NULL,
    request bytea NOT NULL,
    reply bytea NOT NULL,
    tokens_in bigint NOT NULL,
    tokens_out bigint NOT NULL,
    seconds double precision NOT NULL,
    made bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS hoofbeat_troubles (
    model text NOT NULL,
    kind text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (model, kind)
);
INSERT INTO hoofbeat_ledger SELECT 1 WHERE NOT EXISTS (SELECT FROM hoofbeat_ledger);
"""
_TAKE_TURN = "SELECT pg_advisory_xact_lock(1215262567)"  # two that make the tables at once wait for each other
_ADD = """
INSERT INTO hoofbeat_calls
SELECT decode(key, 'base64'), model, operation, prompt, decode(request, 'base64'), decode(reply, 'base64'),
    tokens_in, tokens_out, seconds, made
FROM json_to_recordset(CAST(:rows AS json)) AS given(key text, model text, operation text, prompt text, request text,
    reply text, tokens_in bigint, tokens_out bigint, seconds double precision, made bigint)
ON CONFLICT DO NOTHING RETURNING key
"""
_COUNT_TROUBLE = """
INSERT INTO hoofbeat_troubles VALUES (:model, :kind, :count)
ON CONFLICT (model, kind) DO UPDATE SET count = hoofbeat_troubles.count + excluded.count
"""
_KEYS = "SELECT decode(value, 'hex') FROM json_array_elements_text(CAST(:keys AS json))"
_LOOK_UP = f"SELECT key, reply, made FROM hoofbeat_calls WHERE key IN ({_KEYS})"  # noqa: S608
_KNOWN = f"SELECT key FROM hoofbeat_calls WHERE key IN ({_KEYS})"  # noqa: S608
_ROWS = f"SELECT {COLUMNS} FROM hoofbeat_calls WHERE key IN ({_KEYS}) ORDER BY key"  # noqa: S608
_LOCK = "SELECT value, pg_try_advisory_lock(value::bigint) FROM json_array_elements_text(CAST(:places AS json))"
_UNLOCK = "SELECT pg_advisory_unlock(value::bigint) FROM json_array_elements_text(CAST(:places AS json))"
_RECONNECT_SECONDS = 120.0
_MAX_ROWS = 2000
_json = msgspec.json.Encoder().encode


class _Connection:
    """A connection with its prepared statements: each run is then one exchange with the server."""

    def __init__(self, server: PostgresServer) -> None:
        self._driver = server.connect()
        self._prepared: dict[str, Any] = {}

    def run(self, statement: str, **values: object) -> list[Any]:
        if not values:
            return self._driver.run(statement) or []
        if statement not in self._prepared:
            self._prepared[statement] = self._driver.prepare(statement)
        return self._prepared[statement].run(**values) or []

    def close(self) -> None:
        with suppress(Exception):
            self._driver.close()


class _Answers:
    """Futures with their results, by event loop; each loop is woken once for all its futures."""

    def __init__(self, dropped: Callable[[asyncio.Future[Any], object], None]) -> None:
        self._by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], object]]] = {}
        self._dropped = dropped

    def add(self, future: asyncio.Future[Any], result: object) -> None:
        self._by_loop.setdefault(future.get_loop(), []).append((future, result))

    def send(self) -> None:
        for loop, told in self._by_loop.items():
            try:
                loop.call_soon_threadsafe(self._tell, told)
            except RuntimeError:  # the loop has ended: nobody waits any more
                for future, result in told:
                    self._dropped(future, result)

    def _tell(self, told: list[tuple[asyncio.Future[Any], object]]) -> None:
        for future, result in told:
            if future.done():
                self._dropped(future, result)
            elif isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


class _Batch:
    """What waits for the thread: calls to keep, keys to claim, look up and release, and other jobs."""

    def __init__(self) -> None:
        self.rows: list[LedgerRow] = []
        self.kept: list[asyncio.Future[bytes | None]] = []
        self.claims: list[tuple[list[str], asyncio.Future[set[str]]]] = []
        self.lookups: list[tuple[Collection[str], asyncio.Future[dict[str, tuple[bytes, int]]]]] = []
        self.releases: list[str] = []
        self.troubles: Counter[tuple[str, str]] = Counter()
        self.jobs: list[tuple[Callable[[_Connection], Any], Future[Any]]] = []
        self.last = False

    def futures(self) -> list[asyncio.Future[Any]]:
        return [*self.kept, *(each[1] for each in self.claims), *(each[1] for each in self.lookups)]


class PostgresLedger(CallLedger):
    """An open ledger in a database."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self.place = server.where
        self._server = server
        self._connection = _Connection(server)
        self._held: set[str] = set()
        self._waiting = _Batch()
        self._wake = threading.Condition()
        try:
            self._prepare()
        except HoofbeatError:
            self._connection.close()
            raise
        except Exception as err:
            self._connection.close()
            raise server.error(err) from None
        self._thread = threading.Thread(target=self._serve, name="ledger", daemon=True)
        self._thread.start()

    def _prepare(self) -> None:
        """Make the tables where there are none; a user who may only use them is not asked to."""
        found = self._connection.run("SELECT to_regclass('hoofbeat_troubles') IS NOT NULL")
        if not found[0][0]:
            self._connection.run(f"BEGIN; {_TAKE_TURN}; {_SCHEMA} COMMIT")
        [[version]] = self._connection.run("SELECT version FROM hoofbeat_ledger")
        if version > _SCHEMA_VERSION:
            raise InputError(
                f"the ledger was written by a newer Hoofbeat (schema {version})",
                where=self.place,
                fix="upgrade Hoofbeat, or name another ledger with --ledger",
            )

    def close(self) -> None:
        """Write what is pending and close the connection; the server then frees all claims."""
        with self._wake:
            self._waiting.last = True
            self._wake.notify()
        self._thread.join()
        self._connection.close()

    # What tasks and callers ask for

    def _wait_for(self, job: Callable[[_Connection], T]) -> T:
        """Have the thread do something after what waits already, and wait for it."""
        done: Future[T] = Future()
        with self._wake:
            self._waiting.jobs.append((job, done))
            self._wake.notify()
        return done.result()

    def _run(self, statement: str, **values: object) -> list[Any]:
        return self._wait_for(lambda connection: connection.run(statement, **values))

    def get(self, key: str) -> bytes | None:
        """The reply kept for this key, as JSON bytes, or None."""
        row = self._wait_for(lambda connection: _look_up(connection, [key])).get(key)
        return None if row is None else self._given(*row)

    async def look_up(self, key: str) -> bytes | None:
        """The same; others that look up at this moment are answered together."""
        return (await self._replies([key])).get(key)

    async def _replies(self, keys: Collection[str]) -> dict[str, bytes]:
        found: asyncio.Future[dict[str, tuple[bytes, int]]] = asyncio.get_running_loop().create_future()
        with self._wake:
            self._waiting.lookups.append((keys, found))
            self._wake.notify()
        return {key: self._given(*row) for key, row in (await found).items()}

    async def _lock(self, keys: Collection[str]) -> set[str]:
        ours: asyncio.Future[set[str]] = asyncio.get_running_loop().create_future()
        with self._wake:
            self._waiting.claims.append((list(keys), ours))
            self._wake.notify()
        return await ours

    def _unlock(self, key: str) -> None:
        with self._wake:
            self._waiting.releases.append(key)
            self._wake.notify()

    def put(self, entry: LedgerEntry) -> asyncio.Future[bytes | None]:
        """Keep a call; the result is there when it is committed."""
        kept: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        row = LedgerRow.of(entry)
        with self._wake:
            self._waiting.rows.append(row)
            self._waiting.kept.append(kept)
            self._wake.notify()
        return kept

    def trouble(self, model: str, kind: str) -> None:
        """Count an attempt that brought no reply."""
        with self._wake:
            self._waiting.troubles[model, kind] += 1

    def flush(self) -> None:
        """Wait until what is pending is written."""
        self._wait_for(lambda _: None)

    def sync(self) -> None:
        """The same: a commit of PostgreSQL is on the disk."""
        self.flush()

    def known(self, keys: Sequence[str]) -> set[str]:
        """Which of these keys are in the ledger."""
        found: set[str] = set()
        for start in range(0, len(keys), _MAX_ROWS):
            chunk = _json(keys[start : start + _MAX_ROWS]).decode()
            found.update(row[0].hex() for row in self._run(_KNOWN, keys=chunk))
        return found

    def rows_of(self, keys: Collection[bytes]) -> list[LedgerRow]:
        """The rows of those keys that are there, in the order of their keys."""
        wanted = _json([key.hex() for key in keys]).decode()
        return [LedgerRow(*row) for row in self._run(_ROWS, keys=wanted)]

    def _page(self, after: bytes, count: int, *, model: str | None, operation: str | None) -> list[LedgerRow]:
        given = {"after": after, "model": model, "operation": operation}
        where, _ = conditions({"key>:after": after, "model=:model": model, "operation=:operation": operation})
        statement = f"SELECT {COLUMNS} FROM hoofbeat_calls{where} ORDER BY key LIMIT {count}"  # noqa: S608
        values = {name: value for name, value in given.items() if value is not None}
        return [LedgerRow(*row) for row in self._run(statement, **values)]

    def add_rows(self, rows: Iterable[LedgerRow]) -> int:
        """Add rows, all or none; returns how many were new."""
        wanted = list(rows)

        def add(connection: _Connection) -> int:
            chunks = [wanted[start : start + _MAX_ROWS] for start in range(0, len(wanted), _MAX_ROWS)]
            with _transaction(connection):
                return sum(len(connection.run(_ADD, rows=_rows_text(chunk))) for chunk in chunks)

        return self._wait_for(add)

    def prune(self, *, model: str | None = None, before: int | None = None) -> int:
        """Remove calls of one model and/or made before a Unix time; the server uses the space again."""
        given = {"model": model, "before": before}
        where, _ = conditions({"model=:model": model, "made<:before": before})
        if not where:
            raise ValueError("prune needs a model or a time")
        statement = f"WITH gone AS (DELETE FROM hoofbeat_calls{where} RETURNING 1) SELECT count(*) FROM gone"  # noqa: S608
        values = {name: value for name, value in given.items() if value is not None}
        [[removed]] = self._run(statement, **values)
        self._run("VACUUM hoofbeat_calls")
        return int(removed)

    def remove(self, key: str) -> None:
        """Remove one call, whose reply can't be read."""
        self._run("DELETE FROM hoofbeat_calls WHERE key=:key", key=bytes.fromhex(key))

    def _prompts(self, model: str) -> list[tuple[str, int]]:
        counted = "SELECT prompt, COUNT(*) FROM hoofbeat_calls WHERE model=:model GROUP BY prompt"
        return [(prompt, int(count)) for prompt, count in self._run(counted, model=model)]

    def stats(self) -> LedgerStats:
        """Counts, tokens, seconds and size, by model and operation."""
        rows = self._run(
            "SELECT model, operation, COUNT(*), SUM(tokens_in)::bigint, SUM(tokens_out)::bigint, SUM(seconds),"
            " SUM(LENGTH(request)+LENGTH(reply))::bigint FROM hoofbeat_calls GROUP BY model, operation"
            ' ORDER BY model COLLATE "C", operation COLLATE "C"'
        )
        names = ("model", "operation", "calls", "tokens_in", "tokens_out", "seconds", "bytes")
        troubles: dict[str, dict[str, int]] = {}
        ordered = 'SELECT model, kind, count FROM hoofbeat_troubles ORDER BY model COLLATE "C", kind COLLATE "C"'
        for model, kind, count in self._run(ordered):
            troubles.setdefault(model, {})[kind] = count
        [[size]] = self._run("SELECT pg_total_relation_size('hoofbeat_calls')")
        by_model = [dict(zip(names, row, strict=True)) for row in rows]
        return LedgerStats(calls=sum(row[2] for row in rows), bytes=size, by_model=by_model, troubles=troubles)

    # The thread

    def _serve(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._waiting.last or self._anything())
                batch, self._waiting = self._waiting, _Batch()
            self._do(batch)
            if batch.last:
                return

    def _anything(self) -> bool:
        batch = self._waiting
        return bool(batch.rows or batch.claims or batch.lookups or batch.releases or batch.jobs)

    def _do(self, batch: _Batch) -> None:
        """Do a batch, again on a new connection where the server went away; then tell who waits."""
        deadline = time.monotonic() + _RECONNECT_SECONDS
        while True:
            answers: _Answers = _Answers(self._dropped)
            try:
                self._keep(batch, answers)
                self._claim(batch, answers)
                self._find(batch, answers)
                break
            except Exception as err:
                if is_lost(err) and self._reconnect(deadline):
                    continue
                problem = self._server.error(err)
                answers = _Answers(self._dropped)
                for future in batch.futures():
                    answers.add(future, problem)
                break
        answers.send()
        for job, done in batch.jobs:
            self._do_job(job, done)

    def _do_job(self, job: Callable[[_Connection], Any], done: Future[Any]) -> None:
        deadline = time.monotonic() + _RECONNECT_SECONDS
        while True:
            try:
                done.set_result(job(self._connection))
            except Exception as err:
                if is_lost(err) and self._reconnect(deadline):
                    continue
                done.set_exception(self._server.error(err))
            return

    def _keep(self, batch: _Batch, answers: _Answers) -> None:
        """Add all calls in one transaction; where a key is there already, its reply is the one that counts."""
        added: set[bytes] = set()
        with _transaction(self._connection) if batch.troubles else nullcontext():
            if batch.rows:
                added = {row[0] for row in self._connection.run(_ADD, rows=_rows_text(batch.rows))}
            for (model, kind), count in sorted(batch.troubles.items()):
                self._connection.run(_COUNT_TROUBLE, model=model, kind=kind, count=count)
        all_new = len(added) == len(batch.rows)
        earlier = {} if all_new else _look_up(self._connection, [row.key.hex() for row in batch.rows])
        for row, future in zip(batch.rows, batch.kept, strict=True):
            reply = unpack(earlier[row.key.hex()][0]) if row.key.hex() in earlier else None
            answers.add(future, None if reply == unpack(row.reply) else reply)

    def _claim(self, batch: _Batch, answers: _Answers) -> None:
        if gone := sorted(self._held.intersection(batch.releases)):
            self._connection.run(_UNLOCK, places=_places(gone))
            self._held.difference_update(gone)
        asking = [(keys, future) for keys, future in batch.claims if not future.cancelled()]
        if wanted := {key for keys, _ in asking for key in keys} - self._held:
            self._held |= self._try_locks(sorted(wanted))
        for keys, future in asking:
            answers.add(future, self._held.intersection(keys))

    def _try_locks(self, keys: Sequence[str]) -> set[str]:
        taken = {int(place) for place, taken in self._connection.run(_LOCK, places=_places(keys)) if taken}
        return {key for key in keys if _place(key) in taken}

    def _find(self, batch: _Batch, answers: _Answers) -> None:
        if batch.lookups:
            found = _look_up(self._connection, sorted({key for keys, _ in batch.lookups for key in keys}))
            for keys, future in batch.lookups:
                answers.add(future, {key: found[key] for key in keys if key in found})

    def _dropped(self, _: asyncio.Future[Any], result: object) -> None:
        """Give back what was claimed for a task that was cancelled meanwhile."""
        if isinstance(result, set):
            for key in result:
                self._unlock(key)

    def _reconnect(self, deadline: float) -> bool:
        """A new connection, with the claims that the last one had; False where the server stays away."""
        self._connection.close()
        pause = 0.1
        while True:
            try:
                self._connection = _Connection(self._server)
                held, self._held = sorted(self._held), set()
                self._held = self._try_locks(held) if held else set()
                return True
            except Exception as err:
                if not is_lost(err) or time.monotonic() > deadline:
                    return False
            time.sleep(pause)
            pause = min(2.0, 2 * pause)


@contextmanager
def _transaction(connection: _Connection) -> Iterator[None]:
    connection.run("BEGIN")
    try:
        yield
        connection.run("COMMIT")
    except Exception:
        with suppress(Exception):
            connection.run("ROLLBACK")
        raise


def _place(key: str) -> int:
    return int(key[:15], 16)  # 60 bits: an advisory lock has 63 and a sign


def _places(keys: Iterable[str]) -> str:
    return _json([str(_place(key)) for key in keys]).decode()


def _rows_text(rows: Iterable[LedgerRow]) -> str:
    return _json([row._asdict() for row in rows]).decode()


def _look_up(connection: _Connection, keys: Sequence[str]) -> dict[str, tuple[bytes, int]]:
    found = connection.run(_LOOK_UP, keys=_json(keys).decode())
    return {key.hex(): (reply, made) for key, reply, made in found}
