"""Exact log-likelihood of a given continuation, over HTTP, in the two ways that endpoints offer.

`forced`: llama.cpp servers. One call a token: the known token is forced by a logit bias, and the log-probability the
server reports for it is computed from the model's own logits, before the bias. The first call starts from an empty
cache, the next reuse it, so the value does not depend on what was asked before.

`echoed`: vLLM and others whose `/completions` repeats the prompt with its log-probabilities.

Tokens of the continuation are those of the joint text, as the model would see it; white space at the end of the
context belongs to the continuation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from hoofbeat.models.requests import Likelihood
from hoofbeat.models.wire import Trouble

__all__ = ["echoed", "forced", "has_tokens"]

Post = Callable[[str, object], Awaitable[bytes | Trouble]]

_FORCE = 1000.0


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Forced(msgspec.Struct):
    id: int
    token: str
    logprob: float


class _Completion(msgspec.Struct):
    completion_probabilities: list[_Forced]


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


async def forced(post: Post, url: str, context: str, continuation: str) -> Likelihood | Trouble:
    """Score by forcing each token (llama.cpp's own `/tokenize` and `/completion`)."""
    context, continuation = _split(context, continuation)
    encoded = []
    for text in (context, context + continuation):
        data = await post(f"{url}/tokenize", {"content": text, "add_special": True})
        if isinstance(data, Trouble):
            return data
        tokens_of_text = _tokens(data)
        if tokens_of_text is None:
            return Trouble(kind="garbled", message="no tokens came back", retryable=True, sent=True)
        encoded.append(tokens_of_text)
    begin = min(len(encoded[0]), len(encoded[1]) - 1)
    if begin < 1 or not continuation:
        return Trouble(kind="bad-request", message="a log-likelihood needs a context and a continuation")
    whole = encoded[1]
    tokens, logprobs = [], []
    for position in range(begin, len(whole)):
        body = {
            "prompt": whole[:position],
            "n_predict": 1,
            "n_probs": 1,
            "temperature": 0.0,
            "logit_bias": [[whole[position], _FORCE]],
            "cache_prompt": position > begin,
        }
        data = await post(f"{url}/completion", body)
        if isinstance(data, Trouble):
            return data
        try:
            step = msgspec.json.decode(data, type=_Completion).completion_probabilities[0]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, IndexError) as err:
            return Trouble(kind="garbled", message=f"no log-probability came back: {err}", retryable=True, sent=True)
        if step.id != whole[position]:
            return Trouble(kind="unsupported", message="the endpoint did not take the forced token")
        tokens.append(step.token)
        logprobs.append(step.logprob)
    return Likelihood(total=sum(logprobs), tokens=tuple(tokens), logprobs=tuple(logprobs))


async def echoed(post: Post, url: str, name: str, context: str, continuation: str) -> Likelihood | Trouble:
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
