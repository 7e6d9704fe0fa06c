"""Connections that can't block the server: whoever sends half a request, or reads no answer, is cut off.

uvicorn waits without limit for the rest of a request's headers, for its body, and for somebody to read an answer. Each
such wait keeps a socket, and a process has few of them: 300 idle ones were enough where it may open 256 files. Here
every wait ends, and where too many connections are open, the one that has waited longest for its request is closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

HEADER_SECONDS = 15.0
"""How long the headers of a request may take, from the first byte that they could be sent at."""

BODY_SECONDS = 60.0
"""How long a request's body may take: it is at most 1 MiB that counts."""

READ_SECONDS = 60.0
"""How long nobody may read an answer that has more to send."""

MAX_CONNECTIONS = 512
_GRACE_SECONDS = 5
_QUEUE = 1024
_AT_ONCE = 16


def max_connections() -> int:
    """How many connections there may be: half of the files that this process may open, 512 at most."""
    if resource is None:
        return MAX_CONNECTIONS
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_CONNECTIONS if files < 0 else max(8, min(MAX_CONNECTIONS, files // 2))


def server_config(app: FastAPI) -> uvicorn.Config:
    """How every server of Hoofbeat is run."""
    return uvicorn.Config(
        app,
        http=ImpatientProtocol,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=_AT_ONCE,  # asyncio takes as many at once, before any of them is counted
    )


class ListeningServer(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; the system keeps a longer queue than asyncio takes from it at once."""
        await super().startup(sockets)
        if self.started:
            for each in sockets or ():
                each.listen(_QUEUE)
            self._listening()


class ImpatientProtocol(H11Protocol):
    """A connection that is given a time for each request's headers, for its body, and for reading the answer."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.waiting_since: float | None = None
        self._state: object = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; where there are too many, close the one that has waited longest for its request."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > max_connections():
            waiting = (each for each in self.connections if isinstance(each, ImpatientProtocol) and each is not self)
            idle = [each for each in waiting if each.waiting_since is not None]
            min(idle, key=lambda each: each.waiting_since or 0.0, default=self).cut_off()

    def data_received(self, data: bytes) -> None:
        """Take some bytes."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """An answer is sent; the next request may come."""
        super().on_response_complete()
        self._state = None
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over."""
        self._stop(self._timer, self._unread)
        self.waiting_since = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Nobody reads the answer."""
        super().pause_writing()
        self._stop(self._unread)
        self._unread = self.loop.call_later(READ_SECONDS, self.cut_off)

    def resume_writing(self) -> None:
        """Somebody reads it again."""
        super().resume_writing()
        self._stop(self._unread)

    def cut_off(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self.waiting_since = None
        self.transport.abort()

    def _watch(self) -> None:
        """Set the time for what the other side has to send next; bytes that do not complete it give no more time."""
        state = self.conn.their_state
        if state is self._state:
            return
        self._state = state
        self._stop(self._timer)
        allowed = {h11.IDLE: HEADER_SECONDS, h11.SEND_BODY: BODY_SECONDS}.get(state)
        self.waiting_since = self.loop.time() if state is h11.IDLE else None
        self._timer = self.loop.call_later(allowed, self.cut_off) if allowed else None

    def _stop(self, *timers: asyncio.TimerHandle | None) -> None:
        for timer in timers:
            if timer is not None:
                timer.cancel()
