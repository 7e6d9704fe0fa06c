"""The embedded backend: the HTTP backend, speaking to a server that this process has started."""

from __future__ import annotations

from hoofbeat.models.embedded import start_embedded
from hoofbeat.models.http import HttpBackend
from hoofbeat.models.wire import PLAIN, Dialect

__all__ = ["EmbeddedBackend"]

_TIMEOUT = 900.0


class EmbeddedBackend(HttpBackend):
    """A local model. One call at a time: answers must not depend on what else is being asked."""

    def __init__(self, name: str, *, context: int | None = None, dialect: Dialect = PLAIN) -> None:
        server = start_embedded(name, context=context)
        self.context = server.context
        self._server = server
        super().__init__(
            url=server.base_url,
            name=server.name,
            identity=server.identity,
            timeout=_TIMEOUT,
            most_in_flight=1,
            dialect=dialect,
        )

    def _key(self) -> str:
        return self._server.api_key
