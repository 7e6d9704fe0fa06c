"""What a model is asked and what it answers, independent of any provider, and the key that identifies a request.

The key is the hash of everything that can change the answer: the model's identity, the operation, messages, parameters,
output schema, sample number. Images count by their content hash, so the ledger does not hold them again.

`Backend` is the one seam to whatever answers: all else speaks to it through `Model`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from hoofbeat.records import FailureKind, Usage
from hoofbeat.store.tables import canonical_json

OPENAI = "https://api.openai.com/v1"
"""The address behind `openai:NAME`, unless the environment names another one."""
MessageRole = Literal["system", "user", "assistant"]
Finish = Literal["stop", "length", "refusal"]


class Image(Struct, frozen=True, kw_only=True):
    """An image shown to a model: its media type, content hash, and bytes as base64."""

    media_type: str
    sha256: str
    data: str

    @staticmethod
    def of(content: bytes, media_type: str) -> Image:
        """An image from its file's bytes."""
        return Image(
            media_type=media_type,
            sha256=hashlib.sha256(content).hexdigest(),
            data=base64.b64encode(content).decode("ascii"),
        )


class Message(Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: MessageRole
    content: str
    images: tuple[Image, ...] = ()


class ChatRequest(Struct, frozen=True, kw_only=True):
    """A conversation to be continued.

    Two fields are not part of the key: `prompt` names the prompt file's fingerprint, `flags` are instructions aimed at
    a model that were found in the request's material (`prompts.instructions`).
    """

    messages: tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    schema: dict[str, object] | None = None
    top_logprobs: int = 0
    sample: int = 0
    prompt: str = ""
    flags: tuple[str, ...] = ()

    def content(self) -> dict[str, object]:
        """The request as plain data without image bytes: what is hashed, kept in the ledger and shown to people."""
        messages: list[dict[str, object]] = []
        for message in self.messages:
            entry: dict[str, object] = {"role": message.role, "content": message.content}
            if message.images:
                entry["images"] = [f"{image.media_type};sha256={image.sha256}" for image in message.images]
            messages.append(entry)
        content: dict[str, object] = {
            "messages": messages,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "sample": self.sample,
        }
        if self.top_p is not None:
            content["top_p"] = self.top_p
        if self.seed is not None:
            content["seed"] = self.seed
        if self.stop:
            content["stop"] = self.stop
        if self.schema is not None:
            content["schema"] = self.schema
        if self.top_logprobs:
            content["top_logprobs"] = self.top_logprobs
        return content

    def characters(self) -> int:
        """Length of all messages, for estimates."""
        return sum(len(message.content) for message in self.messages)


class TokenLogprob(Struct, frozen=True, kw_only=True):
    """One generated token with its log-probability and the most likely alternatives."""

    token: str
    logprob: float
    top: dict[str, float] = field(default_factory=dict)


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model said. `reasoning` is what it said in a thinking block or field; `text` is without it.

    `endpoint` is the address that it came from, for replies over the network.
    """

    text: str
    finish: Finish = "stop"
    reasoning: str = ""
    reasoning_tokens: int = 0
    usage: Usage = Usage()
    logprobs: tuple[TokenLogprob, ...] = ()
    model: str = ""
    endpoint: str = ""


class Likelihood(Struct, frozen=True, kw_only=True):
    """The log-probability of a continuation given its context: the sum, and each token's part."""

    total: float
    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]

    @property
    def per_token(self) -> float:
        """The length-normalised log-likelihood."""
        return self.total / max(1, len(self.logprobs))


def likelihood_content(context: str, continuation: str, *, exact: bool) -> dict[str, object]:
    """A request for a log-likelihood as plain data."""
    content: dict[str, object] = {"context": context, "continuation": continuation}
    return {**content, "exact": True} if exact else content


def request_key(identity: str, operation: str, content: object) -> tuple[str, bytes]:
    """The key of a request and the canonical JSON it was made from."""
    body = canonical_json({"model": identity, "operation": operation, "request": content})
    return hashlib.sha256(body).hexdigest(), body


class Trouble(Struct, frozen=True, kw_only=True):
    """An attempt that brought no reply: what kind, whether another attempt makes sense, and when.

    `sent` says that the endpoint took the request and may charge for it; `attempts` counts the calls made in all.
    """

    kind: FailureKind
    message: str
    retryable: bool = False
    retry_after: float | None = None
    fatal: Literal["", "key", "model", "quota"] = ""
    sent: bool = False
    attempts: int = 1


class EndpointFigures(Struct, frozen=True, kw_only=True):
    """What one server of a fleet did: attempts, how many of them failed, their seconds, how often it was set aside."""

    url: str
    calls: int = 0
    failures: int = 0
    seconds: float = 0.0
    set_aside: int = 0


class ReplyPending(Exception):
    """The request was written down and will be answered later (batch folders)."""


class Backend(Protocol):
    """One attempt at a time: no retries, no ledger, no budget; those are `Model`'s."""

    identity: str
    max_in_flight: int

    async def open(self) -> None:
        """Get ready inside the running event loop."""

    async def close(self) -> None:
        """Let go of connections; for batch folders, write the requests that wait."""

    async def abandon(self) -> None:
        """Let go of connections after an error or Ctrl-C; nothing is written."""

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """Continue a conversation."""
        ...

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        """The log-probability of a continuation."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        """Embed texts, one row each."""
        ...

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:
        """How relevant each text is to the query, by a cross-encoder; higher is more."""
        ...
