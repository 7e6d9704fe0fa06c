"""The HTTP backend: any OpenAI-compatible endpoint, over one thin aiohttp client.

The embedded backend is the same, speaking to a server that this process has started.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import ModelError
from hoofbeat.models import likelihood
from hoofbeat.models.embedded import start_embedded
from hoofbeat.models.requests import ChatRequest, Likelihood, Reply
from hoofbeat.models.wire import PLAIN, Dialect, Trouble, chat_body, classify, read_chat

_encode = msgspec.json.Encoder().encode


class _WireEmbedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _WireEmbeddings(msgspec.Struct):
    data: list[_WireEmbedding]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _proxy(url: str) -> str | None:
    """The proxy through which hospital networks reach the outside, as the environment names it.

    Looked up once: the client by itself would look for it, and for passwords in a file, at every call in a thread.
    """
    parts = urlsplit(url)
    if _is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    return None if proxy is None or proxy.startswith("https:") else proxy  # the client can't speak TLS to a proxy


class HttpBackend:
    """`url` ends in `/v1` (or what the endpoint uses in its place); `key_variable` names the environment variable."""

    def __init__(
        self,
        *,
        url: str,
        name: str,
        identity: str,
        key_variable: str = "",
        key_required: bool = False,
        timeout: float = 180.0,
        max_in_flight: int = 128,
        dialect: Dialect = PLAIN,
    ) -> None:
        self.identity = dialect.identity(identity)
        self.max_in_flight = max_in_flight
        self._url = url.rstrip("/")
        self._name = name
        self._key_variable = key_variable
        self._key_required = key_required
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 30.0))
        self._seconds = timeout
        self._dialect = dialect
        self._session: aiohttp.ClientSession | None = None
        self._scoring = ""

    def _key(self) -> str:
        return os.environ.get(self._key_variable, "") if self._key_variable else ""

    async def open(self) -> None:
        """Open the client; a missing key is said before anything is sent."""
        key = self._key()
        if self._key_required and not key:
            raise ModelError(
                f"no key for {self.identity}",
                fix=f"set the environment variable {self._key_variable} (keys are never read from files)",
            )
        # the client adds what is missing one by one, so all that it would add stands here
        headers = {"Content-Type": "application/json", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
        headers["User-Agent"] = "hoofbeat"
        if key:
            headers["Authorization"] = f"Bearer {key}"
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=self._timeout,
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=_proxy(self._url),
        )

    async def close(self) -> None:
        """Close the client."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def abandon(self) -> None:
        """Close the client."""
        await self.close()

    async def post(self, url: str, body: object) -> bytes | Trouble:
        """One POST: the answer's bytes, or what went wrong."""
        assert self._session is not None, "the backend is not open"
        try:
            async with self._session.post(url, data=_encode(body), allow_redirects=False) as response:
                data = await response.read()
                if response.status == 200:
                    return data
                return classify(response.status, {k.lower(): v for k, v in response.headers.items()}, data)
        except aiohttp.ConnectionTimeoutError as err:
            return Trouble(kind="connection", message=f"can't connect: {err}", retryable=True)
        except TimeoutError:
            message = f"no complete answer within {self._seconds:g} s"
            return Trouble(kind="timeout", message=message, retryable=True, sent=True)
        except (aiohttp.InvalidURL, aiohttp.ClientConnectorCertificateError) as err:
            return Trouble(kind="bad-request", message=str(err), fatal="model")
        except aiohttp.ClientConnectorError as err:
            return Trouble(kind="connection", message=f"can't connect: {err.os_error}", retryable=True)
        except (aiohttp.ClientError, ConnectionError) as err:
            reason = str(err) or type(err).__name__
            return Trouble(kind="connection", message=f"the connection broke: {reason}", retryable=True, sent=True)
        except ValueError as err:  # a broken header
            return Trouble(kind="bad-request", message=str(err), fatal="model")

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:  # noqa: ARG002 - the seam's signature
        """Continue a conversation."""
        data = await self.post(f"{self._url}/chat/completions", chat_body(self._name, request, self._dialect))
        return data if isinstance(data, Trouble) else read_chat(data)

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        """Score a continuation, by whichever way the endpoint offers; found out once."""
        if not self._scoring:
            native = self._url.removesuffix("/v1")
            probe = await self.post(f"{native}/tokenize", {"content": "probe"})
            if isinstance(probe, Trouble) and probe.retryable:
                return probe
            self._scoring = "forced" if likelihood.has_tokens(probe) else "echo"
        if self._scoring == "forced":
            return await likelihood.score_by_forcing(
                self.post, self._url.removesuffix("/v1"), context, continuation, exact=exact
            )
        return await likelihood.score_by_echo(self.post, self._url, self._name, context, continuation)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        """Embed texts by the endpoint's `/embeddings`."""
        body = {"model": self._name, "input": list(texts), "encoding_format": "float"}
        data = await self.post(f"{self._url}/embeddings", body)
        if isinstance(data, Trouble):
            return data
        try:
            rows = msgspec.json.decode(data, type=_WireEmbeddings).data
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            return _garbled(f"the answer holds no embeddings: {err}")
        if sorted(row.index for row in rows) != list(range(len(texts))):
            return _garbled("the endpoint embedded another number of texts")
        ordered = sorted(rows, key=lambda row: row.index)
        if len({len(row.embedding) for row in ordered}) > 1:
            return _garbled("the embeddings are of different lengths")
        return np.array([row.embedding for row in ordered], dtype=np.float32)


def _garbled(message: str) -> Trouble:
    return Trouble(kind="garbled", message=message, retryable=True, sent=True)


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
            max_in_flight=1,
            dialect=dialect,
        )

    def _key(self) -> str:
        return self._server.api_key
