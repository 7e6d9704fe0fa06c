"""Several servers of one model behind one name, such as the vLLM servers of a Slurm job.

A call goes to the server with the fewest calls in flight. A server that can't be reached, breaks off, times out, is
overloaded (429), fails three times in a row or is far slower than the others is set aside: it gets no calls for a
second, and for twice as long every further time, up to a minute. Then a GET asks whether it is there, and one call
tries it before it gets its share again. Setting aside by mistake costs little, so the rules are simple.

What a server certainly did not take (no connection, 429) goes to another one at once; all else is a failed attempt, and
`Model` decides about the next one. A wrong key or name at one server stops the command only when every server says so.
With all servers set aside, calls are tried anyway: the fleet then fails as a single endpoint would.

Ledger, budget and pacing are `Model`'s and see one endpoint, so answers are kept whichever server gave them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models.http_backend import HttpBackend
from hoofbeat.models.requests import ChatRequest, EndpointFigures, Likelihood, Reply, Trouble
from hoofbeat.redaction import redact_message
from hoofbeat.trust import is_loopback

_TICK = 1.0  # seconds between looks at the file and at the servers that are set aside
_FIRST_REST = 1.0
_LONGEST_REST = 60.0
_FAILURES_IN_A_ROW = 3
_SLOWER = 4.0  # than the median of the others; two generations of GPUs differ by 2 to 3
_MUCH_SLOWER = 10.0  # a single call may be long, so its age says less than the mean
_SLOW_SECONDS = 1.0  # what takes less is never slow
_OLD_SECONDS = 5.0
_MEASURED = 8  # calls after which a mean says something
_NEWEST = 0.2  # the weight of the newest call in the mean
_AT_ONCE = ("connection", "timeout", "rate-limited")

Result = TypeVar("Result")


class _Endpoint:
    """One server: what it has in flight, what it did so far, and whether it gets calls."""

    def __init__(self, url: str, backend: HttpBackend) -> None:
        self.url = url
        self.backend = backend
        self.starts: dict[object, float] = {}  # when the calls in flight began, oldest first
        self.calls = 0
        self.failures = 0
        self.seconds = 0.0
        self.times_set_aside = 0
        self.state: Literal["used", "aside", "trial", "tried"] = "used"
        self.since = 0.0  # calls that began before the last change of state say nothing about it
        self.until = 0.0
        self.rest = 0.0
        self.failed_in_a_row = 0
        self.measured = 0
        self.mean = 0.0

    @property
    def load(self) -> tuple[int, int]:
        """The smallest is chosen: the fewest calls in flight, then the fewest so far."""
        return len(self.starts), self.calls

    def enter(self, state: Literal["used", "aside", "trial", "tried"]) -> None:
        self.state = state
        self.since = time.monotonic()

    def set_aside(self, seconds: float | None = None) -> None:
        now = time.monotonic()
        if self.state == "aside" and now < self.until:
            return
        self.rest = min(_LONGEST_REST, max(_FIRST_REST, 2 * self.rest))
        self.until = now + max(self.rest, min(seconds or 0.0, _LONGEST_REST))
        self.times_set_aside += self.state != "aside"
        self.failed_in_a_row = self.measured = 0
        self.enter("aside")

    def figures(self) -> EndpointFigures:
        return EndpointFigures(
            url=self.url,
            calls=self.calls,
            failures=self.failures,
            seconds=round(self.seconds, 3),
            set_aside=self.times_set_aside,
        )


class FleetBackend:
    """`endpoints` are addresses, or `file` has one per line and is read again when it changes.

    `make` gives the client of an address and raises `UsageError` for a wrong one; `tell` gets what is wrong in the file
    during a run. The file's last usable list counts while it is empty, missing or unreadable.
    """

    def __init__(
        self,
        *,
        identity: str,
        endpoints: Sequence[str],
        file: Path | None,
        make: Callable[[str], HttpBackend],
        max_in_flight: int,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.identity = identity
        self.max_in_flight = max_in_flight
        self._file = file
        self._make = make
        self._tell = tell
        self._text = _text(file) if file is not None else ""
        self._known: dict[str, _Endpoint] = {}
        addresses = _addresses(self._text) if file is not None else [each.rstrip("/") for each in endpoints]
        if not addresses:
            raise InputError("the file names no endpoint", where=str(file), fix="write one address per line")
        self._current = [self._endpoint(address) for address in dict.fromkeys(addresses)]
        self.lacks = frozenset[str]().union(*(each.backend.lacks for each in self._current))
        self._watcher: asyncio.Task[None] | None = None
        # `Model` makes all attempts of a call in one task. Without this, one unlucky call could be the one that tries a
        # hanging server every time, and use up its attempts there.
        self._failed_at: WeakKeyDictionary[asyncio.Task[Any], set[_Endpoint]] = WeakKeyDictionary()

    @property
    def figures(self) -> tuple[EndpointFigures, ...]:
        """What each server did so far, also those that are no longer in the file."""
        return tuple(each.figures() for each in self._known.values())

    @property
    def address(self) -> str:
        """Where calls go on other machines: the endpoints, or their file, whose content may change meanwhile."""
        others = [address for address in self._known if not is_loopback(address)]
        return self._file.name if self._file is not None and others else " ".join(others)

    @property
    def places(self) -> tuple[str, ...]:
        """The addresses that replies may come from, also those that are no longer in the file."""
        return tuple(place for each in self._known.values() for place in each.backend.places)

    @property
    def name(self) -> str:
        """The name under which the servers know the model."""
        name: str = self._current[0].backend.name
        return name

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: the key, which all servers share."""
        return self._current[0].backend.secrets

    @property
    def servers(self) -> int:
        """How many servers there are now."""
        return len(self._current)

    async def open(self) -> None:
        """Open every server's client, and watch the servers and the file meanwhile."""
        for endpoint in self._known.values():
            await endpoint.backend.open()
        await self._reread()
        self._watcher = asyncio.ensure_future(self._watch())

    async def close(self) -> None:
        """Close every client."""
        if self._watcher is not None:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher
            self._watcher = None
        for endpoint in self._known.values():
            await endpoint.backend.close()

    async def abandon(self) -> None:
        """Close every client."""
        await self.close()

    def served_window(self) -> int | None:
        """What the first server that answers says of its window; the servers are taken to be alike."""
        told = (each.backend.served_window() for each in self._current)
        return next((window for window in told if window is not None), None)

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """Continue a conversation."""
        return await self._call(lambda backend: backend.chat(request, key))

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        """Score a continuation; all its tokens at one server."""
        return await self._call(lambda backend: backend.loglikelihood(context, continuation, exact=exact))

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        """Embed texts."""
        return await self._call(lambda backend: backend.embed(texts))

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:
        """Score texts by a cross-encoder."""
        return await self._call(lambda backend: backend.relevance(query, texts))

    # One call

    async def _call(self, call: Callable[[HttpBackend], Awaitable[Result | Trouble]]) -> Result | Trouble:
        untaken: dict[_Endpoint, Trouble] = {}
        task = asyncio.current_task()
        assert task is not None
        while (endpoint := self._choose(untaken, self._failed_at.get(task, ()))) is not None:
            result = await self._call_at(endpoint, call)
            if isinstance(result, Trouble) and _is_untaken(result):
                untaken[endpoint] = result
                continue
            for other, trouble in untaken.items():
                if trouble.fatal:  # the call is right, so that server is wrong
                    other.set_aside()
            if isinstance(result, Trouble) and result.retryable:
                self._failed_at.setdefault(task, set()).add(endpoint)
            else:
                self._failed_at.pop(task, None)
            return result
        return next((each for each in untaken.values() if not each.fatal), next(iter(untaken.values())))

    def _choose(self, untaken: dict[_Endpoint, Trouble], failed_at: Collection[_Endpoint]) -> _Endpoint | None:
        """The next server for a call, rather one where it has not failed before.

        One that is set aside gets it only if no other can tell what is wrong with the call.
        """
        left = [each for each in self._current if each not in untaken] if untaken else self._current
        ready = [each for each in left if each.state in ("used", "trial")]
        if failed_at:
            ready = [each for each in ready if each not in failed_at] or ready
        if not ready and left and all(trouble.fatal for trouble in untaken.values()):
            ready = left
        return min(ready, key=lambda each: each.load, default=None)

    async def _call_at(
        self, endpoint: _Endpoint, call: Callable[[HttpBackend], Awaitable[Result | Trouble]]
    ) -> Result | Trouble:
        is_trial = endpoint.state == "trial"
        if is_trial:
            endpoint.enter("tried")
        mark = object()
        endpoint.starts[mark] = began = time.monotonic()
        try:
            result = await call(endpoint.backend)
        except BaseException:
            if is_trial:  # stopped by Ctrl-C or an error: nothing was learned
                endpoint.enter("trial")
            raise
        finally:
            del endpoint.starts[mark]
        self._note(endpoint, result, began, time.monotonic() - began)
        return result

    def _note(self, endpoint: _Endpoint, result: object, began: float, seconds: float) -> None:
        endpoint.calls += 1
        endpoint.seconds += seconds
        trouble = result if isinstance(result, Trouble) and (result.retryable or result.fatal) else None
        endpoint.failures += trouble is not None
        if began < endpoint.since:
            return
        if trouble is not None:
            endpoint.failed_in_a_row += 1
            if (
                trouble.kind in _AT_ONCE
                or endpoint.failed_in_a_row >= _FAILURES_IN_A_ROW
                or endpoint.state in ("tried", "aside")
            ):
                endpoint.set_aside(trouble.retry_after)
            return
        if endpoint.state == "tried" and seconds > self._slow_from(endpoint, _SLOWER, _SLOW_SECONDS):
            endpoint.set_aside()
            return
        if endpoint.state != "used":
            endpoint.enter("used")
        endpoint.failed_in_a_row = 0
        endpoint.mean += (seconds - endpoint.mean) * (_NEWEST if endpoint.measured else 1.0)
        endpoint.measured += 1
        if endpoint.measured == _MEASURED:
            endpoint.rest = 0.0

    # Meanwhile

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            await self._reread()
            self._set_slow_aside()
            now = time.monotonic()
            due = [each for each in self._current if each.state == "aside" and now >= each.until]
            await asyncio.gather(*map(self._look_again, due))

    async def _look_again(self, endpoint: _Endpoint) -> None:
        is_there = await endpoint.backend.answers()
        if endpoint.state != "aside":  # a call was made there meanwhile
            return
        if is_there:
            endpoint.enter("trial")
        else:
            endpoint.set_aside()

    def _slow_from(self, endpoint: _Endpoint, times: float, floor: float) -> float:
        """The seconds above which this server is slow, compared with the others."""
        means = [each.mean for each in self._current if each is not endpoint and each.measured >= _MEASURED]
        return max(floor, times * float(np.median(means))) if means else float("inf")

    def _set_slow_aside(self) -> None:
        now = time.monotonic()
        for endpoint in self._current:
            if endpoint.state != "used":
                continue
            age = now - next((start for start in endpoint.starts.values() if start >= endpoint.since), now)
            mean = endpoint.mean if endpoint.measured >= _MEASURED else 0.0
            if mean > self._slow_from(endpoint, _SLOWER, _SLOW_SECONDS) or age > self._slow_from(
                endpoint, _MUCH_SLOWER, _OLD_SECONDS
            ):
                endpoint.set_aside()

    # The file

    async def _reread(self) -> None:
        """Take the file's servers if it has changed."""
        if self._file is None:
            return
        try:
            text = await asyncio.to_thread(_text, self._file)
        except InputError:
            return
        if text == self._text:
            return
        self._text = text
        found = []
        for address in dict.fromkeys(_addresses(text)):
            is_new = address not in self._known
            try:
                endpoint = self._endpoint(address)
            except UsageError as err:
                if self._tell is not None:
                    self._tell(f"{self._file}: {redact_message(err.what)}; Hoofbeat ignores this line")
                continue
            if is_new:
                await endpoint.backend.open()
            found.append(endpoint)
        self._current = found or self._current

    def _endpoint(self, address: str) -> _Endpoint:
        if address not in self._known:
            self._known[address] = _Endpoint(address, self._make(address))
        return self._known[address]


def _is_untaken(trouble: Trouble) -> bool:
    """Whether the server certainly did nothing for the call, and another one might."""
    if trouble.sent or trouble.fatal == "quota":
        return False
    return bool(trouble.fatal) or trouble.kind in ("connection", "rate-limited")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise InputError(
            f"the file of endpoints can't be read: {err}", where=str(file), fix="write one address per line"
        ) from err


def _addresses(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line.rstrip("/") for line in lines if line and not line.startswith("#")]
