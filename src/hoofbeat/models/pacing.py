"""How many calls are in flight: grows while that helps, shrinks when the endpoint says it is too much.

Each level is held for a window of completed calls and its throughput measured. A level that is faster than the one
before is followed by a higher one; one that is not is left again. A 429 halves the level once for all calls that were
under way, and Retry-After holds back every call, not only the one that was told. Requests and tokens per minute, where
configured, are spaced out evenly.
"""

from __future__ import annotations

import asyncio
import random
import time

_GROWTH = 1.5
_HELPS = 1.03
_REPROBE_WINDOWS = 24
_WORST_WAIT = 600.0


class Pacer:
    """Decides the number of workers and the moments calls may start."""

    def __init__(
        self,
        *,
        start: int = 8,
        max_in_flight: int = 128,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self.max_in_flight = max(1, max_in_flight)
        self.limit = max(1, min(start, self.max_in_flight))
        self._request_gap = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._token_gap = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_start = 0.0
        self._paused_until = 0.0
        self._cut_at = 0.0
        self._ceiling = self.max_in_flight
        self._window_began = time.monotonic()
        self._window_done = 0
        self._before: tuple[int, float] | None = None
        self._settled = 0

    def begin(self) -> None:
        """A run begins: the time since the last one says nothing about the endpoint."""
        self._new_window(settled=self._settled)

    async def admit(self, tokens: int) -> float:
        """Wait until a call of about this many tokens may start; returns the moment it starts."""
        now = time.monotonic()
        if self._request_gap or self._token_gap:
            begin = max(now, self._paused_until, self._next_start)
            self._next_start = begin + max(self._request_gap, self._token_gap * tokens)
            if begin > now:
                await asyncio.sleep(begin - now)
                now = time.monotonic()
        while self._paused_until > now:  # a pause may grow while it is slept through
            await asyncio.sleep(self._paused_until - now)
            now = time.monotonic()
        return now

    def succeeded(self) -> None:
        """A call came back well: count it, and reconsider the level at the end of a window."""
        self._window_done += 1
        if self._window_done >= 2 * self.limit and self._window_done >= 16:
            self._end_window()

    def overloaded(self, started: float, retry_after: float | None) -> None:
        """The endpoint said it is too much to a call that started then."""
        now = time.monotonic()
        if retry_after:
            self._paused_until = max(self._paused_until, now + min(retry_after, _WORST_WAIT))
        if started >= self._cut_at:
            self._cut_at = now
            self._ceiling = max(1, self.limit - 1)
            self.limit = max(1, self.limit // 2)
            self._new_window(settled=0)
            self._before = None

    def _end_window(self) -> None:
        rate = self._window_done / max(1e-6, time.monotonic() - self._window_began)
        if self._settled:
            self._new_window(settled=self._settled - 1)
            if self._settled == 0:
                self._ceiling = min(self.max_in_flight, self._ceiling + max(1, self._ceiling // 4))
                self._before = None
            return
        if self._before is None or rate > self._before[1] * _HELPS:
            self._before = (self.limit, rate)
            grown = min(self.max_in_flight, self._ceiling, max(self.limit + 1, int(self.limit * _GROWTH)))
            settled = _REPROBE_WINDOWS if grown == self.limit else 0
            self.limit = grown
            self._new_window(settled=settled)
        else:
            self.limit = self._before[0]
            self._new_window(settled=_REPROBE_WINDOWS)

    def _new_window(self, *, settled: int) -> None:
        self._settled = settled
        self._window_done = 0
        self._window_began = time.monotonic()


def backoff_seconds(attempt: int, retry_after: float | None, jitter: random.Random) -> float:
    """How long to wait before attempt `attempt` + 1: doubling with jitter, or a little over what the endpoint asks."""
    doubling = min(60.0, 2.0 ** (attempt - 1)) * jitter.uniform(0.5, 1.0)
    if retry_after is not None:
        return min(retry_after, _WORST_WAIT) + 0.1 * doubling
    return 0.5 * doubling
