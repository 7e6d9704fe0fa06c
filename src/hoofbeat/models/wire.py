"""The OpenAI-compatible protocol: requests to JSON bodies, JSON bodies to replies, error answers to troubles.

Providers differ in how they say the same thing; every such difference is known here and nowhere else.
"""

from __future__ import annotations

import email.utils
import re
import time
from typing import Literal

import msgspec
from msgspec import Struct, field

from hoofbeat.models.bounds import MAX_WAIT
from hoofbeat.models.reply_text import split_reasoning, without_limits
from hoofbeat.models.requests import ChatRequest, Message, Reply, TokenLogprob, Trouble
from hoofbeat.records import Usage
from hoofbeat.store.tables import content_sha256


class Dialect(Struct, frozen=True, kw_only=True):
    """How an endpoint wants its requests: fields to add, fields to leave out, and whether it is OpenAI's own.

    OpenAI names the output limit otherwise and refuses string lengths in schemas.
    """

    extra: dict[str, object] = field(default_factory=dict)
    omit: tuple[str, ...] = ()
    openai: bool = False

    def identity(self, model: str) -> str:
        """The model's identity with what every request to it adds or leaves out: it can change the answers."""
        if not self.extra and not self.omit:
            return model
        changes = {"extra": self.extra, "omit": sorted(self.omit)}
        return f"{model};extra={content_sha256(changes)[:12]}"


PLAIN = Dialect()


def chat_body(name: str, request: ChatRequest, dialect: Dialect = PLAIN) -> dict[str, object]:
    """The body of a chat completion request."""
    body: dict[str, object] = {
        "model": name,
        "messages": [_message(message) for message in request.messages],
        "max_completion_tokens" if dialect.openai else "max_tokens": request.max_tokens,
        "temperature": request.temperature,
    }
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.seed is not None:
        body["seed"] = request.seed + request.sample
    if request.stop:
        body["stop"] = request.stop
    if request.schema is not None:
        wanted = without_limits(request.schema) if dialect.openai else request.schema
        schema = {"name": "output", "strict": True, "schema": wanted}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.top_logprobs:
        body["logprobs"] = True
        body["top_logprobs"] = request.top_logprobs
    if not dialect.extra and not dialect.omit:
        return body
    return {name: value for name, value in {**body, **dialect.extra}.items() if name not in dialect.omit}


def _message(message: Message) -> dict[str, object]:
    if not message.images:
        return {"role": message.role, "content": message.content}
    parts: list[dict[str, object]] = [{"type": "text", "text": message.content}]
    for image in message.images:
        url = f"data:{image.media_type};base64,{image.data}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return {"role": message.role, "content": parts}


class _WireTop(Struct):
    token: str
    logprob: float


class _WireToken(Struct):
    token: str
    logprob: float
    top_logprobs: list[_WireTop] = field(default_factory=list)


class _WireLogprobs(Struct):
    content: list[_WireToken] | None = None


class _WireMessage(Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None


class _WireChoice(Struct):
    message: _WireMessage
    finish_reason: str | None = None
    logprobs: _WireLogprobs | None = None


class _WireDetails(Struct):
    reasoning_tokens: int | None = 0


class _WireUsage(Struct):
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    completion_tokens_details: _WireDetails | None = None


class _WireChat(Struct):
    choices: list[_WireChoice]
    usage: _WireUsage | None = None
    model: str | None = None


_decode_chat = msgspec.json.Decoder(_WireChat).decode


def read_chat(data: bytes) -> Reply | Trouble:
    """A chat completion as a reply; anything else is a `Trouble`."""
    try:
        wire = _decode_chat(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        reported = _error_message(data)
        if reported:
            return Trouble(kind="server-error", message=reported, retryable=True)
        return Trouble(kind="garbled", message=f"the answer is not a chat completion: {err}", retryable=True, sent=True)
    if not wire.choices:
        return Trouble(kind="garbled", message="the answer has no choices", retryable=True, sent=True)
    choice = wire.choices[0]
    message = choice.message
    text = message.content or ""
    reasoning = message.reasoning_content or message.reasoning or ""
    parted = split_reasoning(text)
    if parted.text != text:
        reasoning = "\n\n".join(part for part in (reasoning.strip(), parted.reasoning) if part)
        text = parted.text
    usage = wire.usage or _WireUsage()
    refused = message.refusal or choice.finish_reason == "content_filter"
    return Reply(
        text=(message.refusal or text) if refused else text,
        finish="refusal" if refused else "length" if choice.finish_reason == "length" else "stop",
        reasoning=reasoning,
        reasoning_tokens=(usage.completion_tokens_details or _WireDetails()).reasoning_tokens or 0,
        usage=Usage(tokens_in=usage.prompt_tokens or 0, tokens_out=usage.completion_tokens or 0),
        logprobs=_logprobs(choice.logprobs),
        model=wire.model or "",
    )


def _logprobs(wire: _WireLogprobs | None) -> tuple[TokenLogprob, ...]:
    if wire is None or not wire.content:
        return ()
    return tuple(
        TokenLogprob(token=item.token, logprob=item.logprob, top={top.token: top.logprob for top in item.top_logprobs})
        for item in wire.content
    )


_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (size|window|length)"
    r"|prompt is too long|too many tokens|too large to process|input length .* exceeds",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(r"not_supported|(?:is|are) not supported|does not support", re.IGNORECASE)
_FILTERED = re.compile(r"content_filter|content_policy|safety system|flagged", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)


_MAX_DETAIL = 20_000  # `bounds` cuts what is shown, after secrets are out: half a key would not be known as one


def classify(status: int, headers: dict[str, str], data: bytes) -> Trouble:
    """What an HTTP error answer means for the call."""
    detail = _error_message(data) or data[:_MAX_DETAIL].decode("utf-8", "replace").strip() or "no message"
    raw = data[:4000].decode("utf-8", "replace")
    message = f"HTTP {status}: {detail}"
    wait = retry_after_seconds(headers.get("retry-after"))
    if status == 429:
        spent = wait is None and bool(_QUOTA.search(raw))  # some endpoints call a limit per minute a quota, too
        fatal: Literal["", "quota"] = "quota" if spent else ""
        return Trouble(kind="rate-limited", message=message, retryable=not spent, retry_after=wait, fatal=fatal)
    if 300 <= status < 400:  # following it could turn the POST into a GET, and would carry the text elsewhere
        place = headers.get("location", "another address")
        return Trouble(kind="bad-request", message=f"HTTP {status}: moved to {place}", fatal="model")
    if status in (401, 403):
        return Trouble(kind="bad-request", message=message, fatal="key")
    if status in (404, 405):
        return Trouble(kind="bad-request", message=message, fatal="model")
    if status in (408, 504):
        return Trouble(kind="timeout", message=message, retryable=True, retry_after=wait)
    if status in (400, 413, 422, 500) and _OVERFLOW.search(raw):
        return Trouble(kind="context-overflow", message=message)
    if status in (400, 500, 501) and _UNSUPPORTED.search(raw):
        return Trouble(kind="unsupported", message=message)
    if status >= 500 or status == 409:
        return Trouble(kind="server-error", message=message, retryable=status != 501, retry_after=wait)
    if status == 400 and _FILTERED.search(raw):
        return Trouble(kind="refusal", message=message)
    return Trouble(kind="bad-request", message=message)


def _error_message(data: bytes) -> str:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or ""
    return str(error)[:_MAX_DETAIL] if error else ""


def retry_after_seconds(value: str | None) -> float | None:
    """The Retry-After header in seconds from now: a number or an HTTP date; None when absent, unreadable or absurd."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds <= MAX_WAIT else None
