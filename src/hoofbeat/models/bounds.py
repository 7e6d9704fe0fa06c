"""What an endpoint says, within bounds.

An endpoint may be broken, or hostile. A body without end fills the memory, a number that JSON or the ledger can't hold
poisons what is kept, a negative usage defeats the budget. So every answer passes through here, whichever backend it is
from: bodies are read up to a limit, and `within_bounds` looks at every result before it is paid, kept or shown. What
can't be right becomes a failure, and keys that an endpoint repeats are taken out. Figures about a reply never cost the
reply: those that can't be right count as not given. What is asked by a GET is asked here as well: it goes to the named
address only, because a redirect would take the key to another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import msgspec

from hoofbeat.models.requests import Likelihood, Reply, TokenLogprob, Trouble
from hoofbeat.records import Usage
from hoofbeat.redaction import Redactor

if TYPE_CHECKING:
    import aiohttp

Result = TypeVar("Result")

MAX_BODY = 64_000_000
"""Bytes of an answer, decompressed: the longest that is asked for, a whole vocabulary with probabilities, has 20 MB."""
MAX_COUNT = 10**9
"""No count of tokens is larger: a million pages."""
MAX_WAIT = 30 * 24 * 3600.0
"""Seconds: no endpoint asks for a longer pause and means it."""
_MAX_REPLY = 16_000_000  # characters that are kept of one call
_MAX_ERROR_BODY = 100_000
_MAX_MESSAGE = 600
_MAX_NAME = 200
_NOTHING_SECRET = Redactor(())


class _NoRedirects(HTTPRedirectHandler):
    """Takes a redirect for what it is, an answer that is none: urllib would follow it, and send the key along."""

    def redirect_request(self, *_: Any) -> None:
        """No other request."""


def read_url(url: str, *, key: str, seconds: float, max_bytes: int, proxy: str | None = None) -> bytes:
    """What this address answers to a GET, cut at a limit of bytes. A redirect is an `HTTPError` and is not followed."""
    opener = build_opener(ProxyHandler({urlsplit(url).scheme: proxy} if proxy else {}), _NoRedirects)
    headers = {"User-Agent": "hoofbeat", **({"Authorization": f"Bearer {key}"} if key else {})}
    with opener.open(Request(url, headers=headers), timeout=seconds) as response:  # noqa: S310
        data: bytes = response.read(max_bytes)
    return data


async def read_body(response: aiohttp.ClientResponse) -> bytes | Trouble:
    """An answer's body; of an error's only the beginning. The client decompresses piece by piece as it is read here."""
    is_error = response.status != 200
    limit = _MAX_ERROR_BODY if is_error else MAX_BODY
    pieces: list[bytes] = []
    held = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        held += len(piece)
        if held > limit:
            response.close()  # the rest is not waited for
            if not is_error:
                message = f"the answer is larger than {MAX_BODY // 1_000_000} MB"
                return Trouble(kind="garbled", message=message, sent=True)
            break
    return b"".join(pieces)[:limit]


def is_count(value: object) -> bool:
    """Whether this can be a number of tokens that somebody has counted."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_COUNT


def within_bounds(result: Result | Trouble, redactor: Redactor = _NOTHING_SECRET) -> Result | Trouble:
    """A result as it may be used: itself, or without figures that can't be right, or the trouble that it is.

    Secrets are taken out of what it says.
    """
    found: Any = result
    if isinstance(result, Reply):
        found = _reply(_redacted(result, redactor))
    elif isinstance(result, Trouble):
        found = _trouble(msgspec.structs.replace(result, message=redactor.in_message(result.message)))
    elif isinstance(result, Likelihood):
        found = result if _finite([result.total, *result.logprobs]) else _no_number()
    elif isinstance(result, list):
        rows = [row if isinstance(row, list) else [row] for row in result]
        found = result if all(map(_finite, rows)) else _no_number()
    return found  # type: ignore[no-any-return]


def _reply(reply: Reply) -> Reply | Trouble:
    held = len(reply.text) + len(reply.reasoning)
    for token in reply.logprobs:
        if not _finite([token.logprob, *token.top.values()]):
            return _no_number()
        held += _size(token)
    if held > _MAX_REPLY:
        return Trouble(
            kind="garbled", message=f"the reply has {held:,} characters, more than Hoofbeat keeps", sent=True
        )
    usage = reply.usage
    if not (0 <= usage.tokens_in <= MAX_COUNT and 0 <= usage.tokens_out <= MAX_COUNT):
        usage = Usage()  # not given: the budget then counts the most that the call could cost
    reasoning = reply.reasoning_tokens if 0 <= reply.reasoning_tokens <= MAX_COUNT else 0
    if usage is reply.usage and reasoning == reply.reasoning_tokens and len(reply.model) <= _MAX_NAME:
        return reply
    return msgspec.structs.replace(reply, usage=usage, reasoning_tokens=reasoning, model=reply.model[:_MAX_NAME])


def _redacted(reply: Reply, redactor: Redactor) -> Reply:
    text, reasoning, model = redactor(reply.text), redactor(reply.reasoning), redactor(reply.model)
    if (text, reasoning, model) == (reply.text, reply.reasoning, reply.model):
        return reply
    logprobs = reply.logprobs if text == reply.text else ()  # a secret may be spread over several tokens
    return msgspec.structs.replace(reply, text=text, reasoning=reasoning, model=model, logprobs=logprobs)


def _size(token: TokenLogprob) -> int:
    return len(token.token) + sum(map(len, token.top))


def _trouble(trouble: Trouble) -> Trouble:
    """A trouble whose message a terminal can show: on one line, without control characters, not too long."""
    message = trouble.message
    if not message.isprintable():
        message = " ".join("".join(each if each.isprintable() else " " for each in message).split())
    if len(message) > _MAX_MESSAGE:
        message = f"{message[: _MAX_MESSAGE - 2]} …"
    return trouble if message is trouble.message else msgspec.structs.replace(trouble, message=message)


def _finite(numbers: list[float]) -> bool:
    return all(map(math.isfinite, numbers))


def _no_number() -> Trouble:
    message = "the answer holds a number that is not finite"
    return Trouble(kind="garbled", message=message, retryable=True, sent=True)
