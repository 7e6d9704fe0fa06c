"""Where ledgers are: files and databases opened by one name, and copied from one to the other."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.ledger_base import CallLedger
from hoofbeat.store.postgres import PostgresServer, is_postgres

LedgerPlace = Path | str
"""A ledger's file, or the address of a PostgreSQL database."""


def ledger_place(named: LedgerPlace | None, configured: str = "") -> LedgerPlace:
    """The place that is named, else in `HOOFBEAT_LEDGER`, else configured, else `.hoofbeat/ledger.sqlite` here."""
    return named or os.environ.get("HOOFBEAT_LEDGER") or configured or Path(".hoofbeat") / "ledger.sqlite"


def open_ledger(place: LedgerPlace) -> CallLedger:
    """Open the ledger at a place; a file or tables that are not there are made."""
    if not is_postgres(place):
        return Ledger(Path(place))
    from hoofbeat.store.postgres_ledger import PostgresLedger  # noqa: PLC0415 - for teams

    named = str(place)  # only the environment, which nobody writes down, may have a password in it
    return PostgresLedger(PostgresServer(named, password_allowed=named == os.environ.get("HOOFBEAT_LEDGER")))


class LedgerCopy(msgspec.Struct, frozen=True, kw_only=True):
    """What `copy_ledger` did: calls compared, calls that were new there, and those that had another reply there.

    `sha256` is of all calls as the source has them, in the order of their keys, `copied_sha256` as the target has them:
    equal where no call had another reply.
    """

    calls: int
    new: int
    different: int
    sha256: str
    copied_sha256: str


def copy_ledger(source: CallLedger, target: CallLedger, progress: Progress = SILENT) -> LedgerCopy:
    """Copy all calls into another ledger and compare every one there with its original.

    Each page is one transaction, and what is there already is not written again: a copy that was stopped is repeated.
    """
    total = new = different = 0
    original, copied = hashlib.sha256(), hashlib.sha256()
    with progress.task("copying calls", source.stats().calls) as task:
        for page in source.pages():
            known = target.known([row.key.hex() for row in page])
            new += target.add_rows(row for row in page if row.key.hex() not in known)
            there = {row.key: row for row in target.rows_of([row.key for row in page])}
            for row in page:
                original.update(msgspec.msgpack.encode(row))
                copied.update(msgspec.msgpack.encode(there.get(row.key)))
                different += there.get(row.key) != row
            total += len(page)
            task.advance(len(page))
    target.sync()
    return LedgerCopy(
        calls=total, new=new, different=different, sha256=original.hexdigest(), copied_sha256=copied.hexdigest()
    )
