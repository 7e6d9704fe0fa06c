"""The HTTP backend: any OpenAI-compatible endpoint, over one thin aiohttp client.

The embedded backend is the same, speaking to a server that this process has started.

Endpoints offer the exact log-likelihood of a continuation in two ways:

`score_by_forcing`: llama.cpp servers. One call per token: a logit bias forces the known token, and the server reports
its log-probability from the model's own logits, before the bias. The first call starts from an empty cache, the next
reuse it, so the value does not depend on what was asked before. llama.cpp adds its softmax up in 32 bits and loses the
tail, some 1e-4 per token; `exact` asks for the whole vocabulary and normalises again, which takes some tenths of a
second per token.

`score_by_echo`: vLLM and others whose `/completions` repeats the prompt with its log-probabilities.

Tokens of the continuation are those of the joint text, as the model would see it; white space at the end of the
context belongs to the continuation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable, Sequence
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import ModelError
from hoofbeat.models.bounds import is_count, read_body, read_url
from hoofbeat.models.embedded import start_embedded
from hoofbeat.models.requests import ChatRequest, Likelihood, Reply, Trouble
from hoofbeat.models.wire import PLAIN, Dialect, chat_body, classify, read_chat
from hoofbeat.redaction import without_user
from hoofbeat.trust import is_loopback
from hoofbeat.window import size

_encode = msgspec.json.Encoder().encode


class _WireEmbedding(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _WireRelevance(msgspec.Struct):
    index: int
    relevance_score: float


_Row = TypeVar("_Row", _WireEmbedding, _WireRelevance)


_SECONDS_TO_TELL = 5.0
_MAX_LIST = 16_000_000  # bytes of a list of models; one that is longer is cut and then unreadable
_WINDOW_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""The window in lists of models, as servers call it: vLLM and SGLang; OpenRouter and Together; Groq; Mistral."""


def _proxy(url: str) -> str | None:
    """The proxy through which hospital networks reach the outside, as the environment names it.

    Looked up once: the client by itself would look for it, and for passwords in a file, at every call in a thread.
    """
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
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
        connect_timeout: float = 30.0,
        max_in_flight: int = 128,
        dialect: Dialect = PLAIN,
    ) -> None:
        self.identity = dialect.identity(identity)
        self.max_in_flight = max_in_flight
        self._url = url.rstrip("/")
        self.name = name
        self.key_variable = key_variable
        self._key_required = key_required
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, connect_timeout))
        self._seconds = timeout
        self._dialect = dialect
        self._session: aiohttp.ClientSession | None = None
        self._scoring = ""
        self.lacks = frozenset({"likelihoods"} if dialect.openai else ())  # OpenAI echoes no prompt

    def _key(self) -> str:
        return os.environ.get(self.key_variable, "") if self.key_variable else ""

    @property
    def address(self) -> str:
        """Where calls go."""
        return self._url

    @property
    def places(self) -> tuple[str, ...]:
        """The addresses that replies may come from; ports of this machine say nothing, and differ from run to run."""
        if not self.address:
            return ()
        return ("this machine",) if is_loopback(self.address) else (without_user(self.address),)

    @property
    def sends_key(self) -> bool:
        """Whether there is a key to send."""
        return bool(self._key())

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown: the key, if one is sent."""
        return (self._key(),)

    async def open(self) -> None:
        """Open the client; a missing key is said before anything is sent."""
        key = self._key()
        if self._key_required and not key:
            raise ModelError(
                f"no key for {self.identity}",
                fix=f"set the environment variable {self.key_variable} (keys are never read from files)",
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
                data = await read_body(response)
                if response.status == 200 or isinstance(data, Trouble):
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

    async def answers(self) -> bool:
        """Whether the server is there: it answers a GET, whatever it says to it, and not that it is out of order."""
        assert self._session is not None, "the backend is not open"
        wait = aiohttp.ClientTimeout(total=_SECONDS_TO_TELL)
        try:
            async with self._session.get(f"{self._url}/models", timeout=wait, allow_redirects=False) as response:
                return response.status < 500
        except (aiohttp.ClientError, OSError, ValueError):
            return False

    def served_window(self) -> int | None:
        """How many tokens the endpoint says it serves: in its list of models, or as llama.cpp's server does.

        0 where it answers and does not say it, None where it can't be reached: then another time it may.
        """
        if self._dialect.openai:
            return 0
        listed = self._get(f"{self._url}/models")
        if listed is None:
            return None
        return _listed(listed, self.name) or _served(self._get(f"{self._url.removesuffix('/v1')}/props"))

    def _get(self, url: str) -> object:
        """What a GET answers as JSON: an empty object for any answer that is none, None where nothing answers."""
        try:
            told = read_url(url, key=self._key(), seconds=_SECONDS_TO_TELL, max_bytes=_MAX_LIST, proxy=_proxy(url))
            return msgspec.json.decode(told)
        except (HTTPError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        except (OSError, HTTPException, ValueError):
            return None

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:  # noqa: ARG002 - the seam's signature
        """Continue a conversation."""
        data = await self.post(f"{self._url}/chat/completions", chat_body(self.name, request, self._dialect))
        reply = data if isinstance(data, Trouble) else read_chat(data)
        if isinstance(reply, Trouble) or not self.places:
            return reply
        return msgspec.structs.replace(reply, endpoint=self.places[0])

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        """Score a continuation, by whichever way the endpoint offers; found out once."""
        if not self._scoring:
            native = self._url.removesuffix("/v1")
            probe = await self.post(f"{native}/tokenize", {"content": "probe"})
            if isinstance(probe, Trouble) and probe.retryable:
                return probe
            self._scoring = "forced" if has_tokens(probe) else "echo"
        if self._scoring == "forced":
            return await score_by_forcing(self.post, self._url.removesuffix("/v1"), context, continuation, exact=exact)
        return await score_by_echo(self.post, self._url, self.name, context, continuation)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        """Embed texts by the endpoint's `/embeddings`."""
        body = {"model": self.name, "input": list(texts), "encoding_format": "float"}
        rows = await self._rows("embeddings", body, "data", _WireEmbedding, len(texts))
        if isinstance(rows, Trouble):
            return rows
        if len({len(row.embedding) for row in rows}) > 1:
            return _garbled("the embeddings are of different lengths")
        with np.errstate(over="ignore"):
            vectors = np.array([row.embedding for row in rows], dtype=np.float32)
        return vectors if np.isfinite(vectors).all() else _garbled("an embedding holds a number that is too large")

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:
        """Score texts by the endpoint's `/rerank`, as vLLM, llama.cpp and most services of cross-encoders offer it."""
        body = {"model": self.name, "query": query, "documents": list(texts)}
        rows = await self._rows("rerank", body, "results", _WireRelevance, len(texts))
        if isinstance(rows, Trouble):
            return rows
        return [row.relevance_score for row in rows]

    async def _rows(
        self, path: str, body: dict[str, Any], field: str, kind: type[_Row], count: int
    ) -> list[_Row] | Trouble:
        """The rows under a field of the answer, one for each text, in the order of the texts."""
        data = await self.post(f"{self._url}/{path}", body)
        if isinstance(data, Trouble):
            return data
        try:
            rows = msgspec.json.decode(data, type=dict[str, msgspec.Raw])[field]
            found: list[_Row] = msgspec.json.decode(rows, type=list[kind])  # type: ignore[valid-type]
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            return _garbled(f"the answer of /{path} can't be read: {err}")
        if sorted(row.index for row in found) != list(range(count)):
            return _garbled(f"/{path} answered for a different number of texts")
        return sorted(found, key=lambda row: row.index)


def _listed(answer: object, name: str) -> int:
    """The window of a model in a list of models; 0 where it is not there. A server of one model may name it anyhow."""
    entries: Any = answer.get("data") if isinstance(answer, dict) else None
    models = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    mine = next((each for each in models if each.get("id") == name), models[0] if len(models) == 1 else {})
    return next((mine[field] for field in _WINDOW_FIELDS if is_count(mine.get(field))), 0)


def _served(props: object) -> int:
    """The window of a llama.cpp server, of one of its slots; 0 where this is none."""
    settings: Any = props.get("default_generation_settings") if isinstance(props, dict) else None
    count = settings.get("n_ctx") if isinstance(settings, dict) else None
    return int(count) if isinstance(count, int) and is_count(count) else 0


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
        self.lacks = frozenset({"images"})  # no embedded weights read them

    def _key(self) -> str:
        return self._server.api_key

    @property
    def address(self) -> str:
        """Nowhere: the server is a process of this one, at a port that differs from run to run."""
        return ""


Post = Callable[[str, object], Awaitable[bytes | Trouble]]
_FORCE = 1000.0
_VOCABULARY = 1 << 20
_SPECIAL = 16  # tokens that a tokenizer may add to a text; each of the others is at least a byte of it


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Top(msgspec.Struct):
    id: int
    token: str
    logprob: float


class _Forced(_Top):
    top_logprobs: list[_Top] = msgspec.field(default_factory=list)


class _Completion(msgspec.Struct):
    completion_probabilities: list[_Forced] = msgspec.field(default_factory=list)


class _EchoLogprobs(msgspec.Struct):
    tokens: list[str]
    token_logprobs: list[float | None]
    text_offset: list[int]


class _EchoChoice(msgspec.Struct):
    logprobs: _EchoLogprobs


class _Echo(msgspec.Struct):
    choices: list[_EchoChoice]


def _split(context: str, continuation: str) -> tuple[str, str]:
    kept = context.rstrip()
    return kept, context[len(kept) :] + continuation


def has_tokens(data: bytes | Trouble) -> bool:
    """Whether an answer of `/tokenize` is one: other servers have no such path, or answer anything there."""
    return not isinstance(data, Trouble) and _tokens(data) is not None


def _tokens(data: bytes) -> list[int] | None:
    try:
        return msgspec.json.decode(data, type=_Tokens).tokens
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


async def score_by_forcing(
    post: Post, url: str, context: str, continuation: str, *, exact: bool = False
) -> Likelihood | Trouble:
    """Score by forcing each token (llama.cpp's own `/tokenize` and `/completion`)."""
    context, continuation = _split(context, continuation)
    encoded = []
    for text in (context, context + continuation, "a"):
        data = await post(f"{url}/tokenize", {"content": text, "add_special": True})
        if isinstance(data, Trouble):
            return data
        tokens_of_text = _tokens(data)
        if not tokens_of_text:
            return _garbled("the answer has no tokens")
        if len(tokens_of_text) > size(text) + _SPECIAL:  # each one is a call
            return _garbled("the answer has more tokens than the text has bytes")
        encoded.append(tokens_of_text)
    before, whole, letter = encoded
    begin = min(len(before), len(whole) - 1)
    if begin < 1 or not continuation:
        return Trouble(kind="bad-request", message="a log-likelihood needs a context and a continuation")
    steps = []
    for position in range(begin, len(whole)):
        body = {"prompt": whole[:position], "n_predict": 1, "temperature": 0.0, "cache_prompt": position > begin}
        step = await _force(post, url, body, whole[position], letter[-1], exact=exact)
        if isinstance(step, Trouble):
            return step
        steps.append(step)
    logprobs = tuple(step.logprob for step in steps)
    return Likelihood(total=sum(logprobs), tokens=tuple(step.token for step in steps), logprobs=logprobs)


async def _force(
    post: Post, url: str, body: dict[str, object], token: int, letter: int, *, exact: bool
) -> _Forced | Trouble:
    """One token's log-probability. A token that ends inside a character is held back by the server, log-probability
    and all: then a plain letter is forced instead, and the token found among the whole vocabulary."""
    for pushed, width in ((token, _VOCABULARY if exact else 1), (letter, _VOCABULARY)):
        data = await post(f"{url}/completion", {**body, "n_probs": width, "logit_bias": [[pushed, _FORCE]]})
        if isinstance(data, Trouble):
            return data
        try:
            steps = msgspec.json.decode(data, type=_Completion).completion_probabilities
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            return _garbled(f"the answer has no log-probability: {err}")
        if not steps:
            continue
        found = next((each for each in (steps[0], *steps[0].top_logprobs) if each.id == token), None)
        if found is None:
            return Trouble(kind="unsupported", message="the endpoint did not use the forced token")
        if not exact:
            return _Forced(id=token, token=found.token, logprob=found.logprob)
        try:
            total = math.log(math.fsum(math.exp(each.logprob) for each in steps[0].top_logprobs))
        except (ValueError, OverflowError):
            return _garbled("the log-probabilities in the answer are not valid")
        return _Forced(id=token, token=found.token, logprob=found.logprob - total)
    return Trouble(kind="unsupported", message="the endpoint gives no log-probability of this token")


async def score_by_echo(post: Post, url: str, name: str, context: str, continuation: str) -> Likelihood | Trouble:
    """Score by an echoed prompt (`/completions` with `echo` and `logprobs`)."""
    context, continuation = _split(context, continuation)
    if not context or not continuation:
        return Trouble(kind="bad-request", message="a log-likelihood needs a context and a continuation")
    body = {"model": name, "prompt": context + continuation, "max_tokens": 1, "echo": True, "logprobs": 1}
    data = await post(f"{url}/completions", {**body, "temperature": 0.0})
    if isinstance(data, Trouble):
        return data
    try:
        echo = msgspec.json.decode(data, type=_Echo).choices[0].logprobs
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError):
        return Trouble(kind="unsupported", message="the endpoint gives no log-probabilities of a prompt")
    end = len(context) + len(continuation)
    picked = [
        (token, logprob)
        for token, logprob, offset in zip(echo.tokens, echo.token_logprobs, echo.text_offset, strict=False)
        if len(context) <= offset < end or offset < len(context) < offset + len(token)
    ]
    if not picked or any(logprob is None for _, logprob in picked):
        return Trouble(kind="unsupported", message="the endpoint gives no log-probabilities of a prompt")
    logprobs = tuple(float(logprob) for _, logprob in picked if logprob is not None)
    return Likelihood(total=sum(logprobs), tokens=tuple(token for token, _ in picked), logprobs=logprobs)
