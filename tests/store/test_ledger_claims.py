"""Claims on calls in flight: who has claimed a key makes the call, everybody else waits for the answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.store.ledger_base import CallLedger, Claims
from hoofbeat.store.ledger_places import open_ledger
from tests.postgres import new_postgres_url
from tests.store.test_call_ledger import ROOT, entry, key_of

A, B, C = (key_of(name) for name in "abc")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_postgres_url() if request.param == "postgresql" else str(tmp_path / "ledger.sqlite")


@pytest.fixture
def ledger(place: str) -> Iterator[CallLedger]:
    with open_ledger(place) as opened:
        yield opened


@pytest.fixture
def other(place: str) -> Iterator[CallLedger]:
    with open_ledger(place) as opened:
        yield opened


def test_a_claimed_key_is_not_given_to_another(ledger: CallLedger, other: CallLedger) -> None:
    async def work() -> None:
        assert await ledger.try_claims([A, B]) == Claims({A, B}, {})
        assert await other.try_claims([B, C]) == Claims({C}, {})
        assert await ledger.try_claims([A]) == Claims(set(), {}), "nor twice to the same ledger"
        ledger.release(B)
        ledger.flush()
        assert await other.claim(B) is None

    asyncio.run(work())


def test_who_waits_gets_the_reply_of_the_one_who_called(ledger: CallLedger, other: CallLedger) -> None:
    async def work() -> bytes | None:
        assert await ledger.claim(A) is None
        waiting = asyncio.ensure_future(other.claim(A))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await ledger.put(entry("a"))
        ledger.release(A)
        reply = await asyncio.wait_for(waiting, 60)
        assert (await ledger.try_claims([A])).ours == set(), "what is kept needs no claim"
        return reply

    assert asyncio.run(work()) == b'{"text":"a"}'


def test_who_waits_calls_where_the_other_failed(ledger: CallLedger, other: CallLedger) -> None:
    async def work() -> None:
        await ledger.claim(A)
        waiting = asyncio.ensure_future(other.claim(A))
        await asyncio.sleep(0.03)
        ledger.release(A)
        assert await asyncio.wait_for(waiting, 60) is None

    asyncio.run(work())


def test_a_task_that_is_cancelled_keeps_no_claim(ledger: CallLedger, other: CallLedger) -> None:
    async def work() -> None:
        await ledger.claim(A)
        waiting = asyncio.ensure_future(other.claim(A))
        await asyncio.sleep(0.03)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        ledger.release(A)
        asking = asyncio.ensure_future(ledger.claim(B))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        if not asking.cancelled():
            ledger.release(B)
        assert await asyncio.wait_for(ledger.claim(A), 60) is None
        assert await asyncio.wait_for(other.claim(B), 60) is None

    asyncio.run(work())


HOLD = """
import asyncio, os, sys, time
from hoofbeat.store.ledger_places import open_ledger
ledger = open_ledger(sys.argv[1])
assert asyncio.run(ledger.claim(sys.argv[2])) is None
os.write(1, b"claimed")
time.sleep(60)
"""


def test_a_claim_ends_with_a_process_that_is_killed(place: str, ledger: CallLedger) -> None:
    async def wait() -> float:
        assert (await ledger.try_claims([A])).ours == set()
        asyncio.get_running_loop().call_later(0.1, process.kill)
        started = time.monotonic()
        assert await asyncio.wait_for(ledger.claim(A), 20) is None
        return time.monotonic() - started

    process = subprocess.Popen([sys.executable, "-c", HOLD, place, A], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.read(7) == b"claimed"
        assert asyncio.run(wait()) > 0.09
    finally:
        process.kill()
        process.communicate()
