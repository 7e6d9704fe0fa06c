"""Concurrency: grows while it helps, shrinks when told to, waits when told to."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.models import CallResult, Model
from hoofbeat.models.pacing import Pacer, backoff_seconds
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, chats, ledger_in


def windows(pacer: Pacer, clock: list[float], rates: dict[int, float] | float, number: int) -> None:
    """So many windows of calls at an endpoint that has these rates at these levels."""
    for _ in range(number):
        rate = rates if isinstance(rates, float) else rates[max(level for level in rates if level <= pacer.limit)]
        for _ in range(max(16, 2 * pacer.limit)):
            clock[0] += 1 / rate
            pacer.succeeded()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("hoofbeat.models.pacing.time.monotonic", lambda: now[0])
    return now


def test_the_level_grows_to_the_most_where_each_call_more_helps(clock: list[float]) -> None:
    pacer = Pacer(max_in_flight=64)
    for _ in range(12):
        windows(pacer, clock, float(pacer.limit), 1)
    assert pacer.limit == 64


def test_the_level_stays_where_more_does_not_help(clock: list[float]) -> None:
    pacer = Pacer(max_in_flight=128)
    windows(pacer, clock, {1: 8.0, 12: 12.0, 18: 12.1}, 10)
    assert pacer.limit in (12, 18)


def test_a_429_halves_the_level_once_for_all_calls_under_way(clock: list[float]) -> None:
    pacer = Pacer(start=64, max_in_flight=128)
    started = clock[0]
    for _ in range(10):
        clock[0] += 0.01
        pacer.overloaded(started, None)
    assert pacer.limit == 32
    pacer.overloaded(clock[0], None)
    assert pacer.limit == 16


def test_the_level_never_falls_below_one(clock: list[float]) -> None:
    pacer = Pacer(start=2)
    for _ in range(5):
        clock[0] += 1
        pacer.overloaded(clock[0], None)
    assert pacer.limit == 1


def test_after_a_429_the_level_that_was_too_much_is_not_tried_soon_again(clock: list[float]) -> None:
    pacer = Pacer(start=16, max_in_flight=128)
    pacer.overloaded(clock[0], None)
    reached = []
    for _ in range(8):
        windows(pacer, clock, float(pacer.limit), 1)
        reached.append(pacer.limit)
    assert max(reached) < 16
    for _ in range(60):
        windows(pacer, clock, float(pacer.limit), 1)
    assert pacer.limit >= 16, "but it is tried again later"


def test_time_between_two_runs_says_nothing(clock: list[float]) -> None:
    pacer = Pacer(max_in_flight=64)
    windows(pacer, clock, 100.0, 1)
    level = pacer.limit
    clock[0] += 3600
    pacer.begin()
    windows(pacer, clock, 200.0, 1)
    assert pacer.limit > level


def test_concurrency_grows_on_a_willing_server(tmp_path: Path) -> None:
    with FaultServer(delay=0.2) as server, ledger_in(tmp_path) as ledger:  # long beside what a busy machine adds to it
        model = a_model(server.spec(), ledger)
        assert model.pacer.limit == 8
        chats(model, [f"question {number}" for number in range(150)])
        assert model.pacer.limit > 8
        assert 8 < server.max_in_flight <= 128


def test_concurrency_shrinks_on_429_and_everything_is_answered(tmp_path: Path) -> None:
    texts = [f"question {number}" for number in range(150)]
    with FaultServer(delay=0.01, busy_over=3) as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, attempts=12, start=32)
        results = chats(model, texts)
        assert all(isinstance(result, CallResult) for result in results)
        assert server.max_in_flight <= 32
        assert model.troubles["rate-limited"] == sum(server.asked.values()) - 150 > 0
        assert model.pacer.limit < 16
        assert max(server.answered.values()) == 1, "a call that was answered is not made again"


def test_the_number_in_flight_follows_the_setting(tmp_path: Path) -> None:
    with FaultServer(delay=0.01) as server, ledger_in(tmp_path) as ledger:
        chats(a_model(server.spec(), ledger, max_in_flight=2), [f"question {number}" for number in range(40)])
        assert server.max_in_flight <= 2
        assert a_model(server.spec(), ledger, max_in_flight=500).pacer.max_in_flight == 500


def starts_of(model: Model) -> list[float]:
    """The moments at which the model's calls start, noted as they do: how long they take to arrive is not in it."""
    admit = model.pacer.admit
    moments: list[float] = []

    async def noting(tokens: int) -> float:
        moments.append(await admit(tokens))
        return moments[-1]

    model.pacer.admit = noting  # type: ignore[method-assign]
    return moments


def test_requests_a_minute_are_spaced_out(tmp_path: Path) -> None:
    with FaultServer() as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, requests_per_minute=1200)
        starts = starts_of(model)
        chats(model, [f"question {number}" for number in range(12)])
        assert len(starts) == server.asked.total() == 12
    assert max(starts) - min(starts) >= 11 * 0.05 - 0.01


def test_tokens_a_minute_are_spaced_out(tmp_path: Path) -> None:
    with FaultServer() as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, tokens_per_minute=60_000)
        starts = starts_of(model)
        chats(model, [f"question {number}" for number in range(4)], max_tokens=190)
        assert len(starts) == server.asked.total() == 4
    assert max(starts) - min(starts) >= 3 * 0.2 - 0.01


def test_a_pause_that_grows_while_it_is_waited_for_is_waited_out() -> None:
    async def scene() -> float:
        pacer = Pacer()
        pacer.overloaded(0.0, 0.1)
        waiting = asyncio.ensure_future(pacer.admit(1))
        await asyncio.sleep(0)  # it waits now; on a busy machine a longer sleep could last until it no longer does
        assert not waiting.done()
        pacer.overloaded(0.0, 0.3)
        told = asyncio.get_running_loop().time()
        await waiting
        return asyncio.get_running_loop().time() - told

    assert asyncio.run(scene()) >= 0.29


@given(st.integers(1, 40), st.none() | st.floats(0, 1e9), st.integers())
def test_waits_are_bounded_and_never_shorter_than_asked(attempt: int, asked: float | None, seed: int) -> None:
    wait = backoff_seconds(attempt, asked, random.Random(seed))
    assert 0 <= wait <= 606
    assert wait >= min(asked or 0.0, 600)
    if asked is None:
        assert wait <= 30
