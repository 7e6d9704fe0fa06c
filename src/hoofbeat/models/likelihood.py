"""Exact log-likelihood of a given continuation, over HTTP, in the two ways that endpoints offer.

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
from collections.abc import Awaitable, Callable

import msgspec

from hoofbeat.models.requests import Likelihood
from hoofbeat.models.wire import Trouble

Post = Callable[[str, object], Awaitable[bytes | Trouble]]

_FORCE = 1000.0
_VOCABULARY = 1 << 20


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
            return Trouble(kind="garbled", message="no tokens came back", retryable=True, sent=True)
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
            return Trouble(kind="garbled", message=f"no log-probability came back: {err}", retryable=True, sent=True)
        if not steps:
            continue
        found = next((each for each in (steps[0], *steps[0].top_logprobs) if each.id == token), None)
        if found is None:
            return Trouble(kind="unsupported", message="the endpoint did not take the forced token")
        if not exact:
            return _Forced(id=token, token=found.token, logprob=found.logprob)
        total = math.log(math.fsum(math.exp(each.logprob) for each in steps[0].top_logprobs))
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
