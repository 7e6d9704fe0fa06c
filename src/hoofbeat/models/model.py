"""A model ready for use: a backend with the ledger, retries, pacing and the budget around it.

`Model.run` works a list of items with as many in flight as helps, in order, and survives what endpoints do: what can't
be had becomes a `Failure` beside the others, and what was answered is in the ledger before it is used. Repeating a
command asks only for what is missing.

Python's cycle collector runs less often meanwhile. A call leaves hardly any garbage in cycles, but every few hundred
new objects the collector looks through the young ones, and now and then through all objects of a large run. In an
audit that took more than a quarter of the client's CPU time.

Models that reason before they answer count their reasoning in the output limit, so the limit that is sent is the
prompt's with an allowance added (`reasoning`). A limit only cuts: a reply that ended by itself is the same under any.
So the allowance is no part of the ledger's key, and only a reply that reasoning cut short is asked for again where more
is allowed now.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import BatchPending, ModelError, ModelMissing
from hoofbeat.models.bounds import within_bounds
from hoofbeat.models.budget import Budget, Estimate, Price, about_tokens
from hoofbeat.models.pacing import Pacer, backoff_seconds
from hoofbeat.models.reply_text import UnreadableOutput, is_refusal, read_object, repair_request, same_model
from hoofbeat.models.requests import (
    OPENAI,
    Backend,
    ChatRequest,
    EndpointFigures,
    Likelihood,
    Message,
    Reply,
    ReplyPending,
    Trouble,
    likelihood_content,
    request_key,
)
from hoofbeat.progress import SILENT, Progress, Task
from hoofbeat.records import Failure, Usage
from hoofbeat.redaction import Redactor, environment_secrets
from hoofbeat.store.artefact import Cost
from hoofbeat.store.ledger_base import CallLedger, LedgerEntry
from hoofbeat.trust import is_loopback
from hoofbeat.window import ASSUMED_WINDOW, OTHER_MODELS, TYPICAL_BYTES_PER_TOKEN, ContextWindow, size

_NEW_OBJECTS = 50_000
_SPARE = 4  # windows of at least this many allowances keep one free; what fills a smaller one leaves less for reasoning
_OTHERS_PAUSE = 0.05  # seconds until vectors that another process is asking for are looked for again
_NEARLY_ALL = 0.9  # of a limit: some endpoints stop a little before it
_REFUSED = ("context-overflow", "bad-request")
_ABOUT_LIMITS = re.compile(r"context|max(?:imum)?[_ ]?(?:\w+[_ ]?)?tokens|completion tokens", re.IGNORECASE)


@contextmanager
def reduce_collection() -> Iterator[None]:
    """Meanwhile collect more seldom, and not among what is there already; afterwards all is as before.

    The collector is the whole process's, so only the main thread sets it.
    """
    before = gc.get_threshold()
    if threading.current_thread() is not threading.main_thread() or not 0 < before[0] < _NEW_OBJECTS:
        yield
        return
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


Item = TypeVar("Item")
Result = TypeVar("Result")
_encode = msgspec.json.Encoder().encode
_FLAGS_RECORDED = 50
_REPLIES: dict[str, Any] = {"chat": Reply, "loglikelihood": Likelihood, "embed": list[float], "rerank": float}
_DECODE: dict[Any, Callable[[bytes], Any]] = {
    kind: msgspec.json.Decoder(kind).decode for kind in (*_REPLIES.values(), int)
}


class CallResult(Struct, frozen=True, kw_only=True):
    """A reply with the ledger keys of the calls that made it."""

    reply: Reply
    calls: tuple[str, ...]


class StructuredReply(Struct, frozen=True, kw_only=True):
    """A JSON object that fits the schema asked for, with the ledger keys of the calls that made it."""

    value: dict[str, Any]
    reply: Reply
    calls: tuple[str, ...]


class TextCheck(Protocol):
    """Looks for instructions aimed at a model in what requests show it (`prompts.instruction_check`)."""

    model: Model

    @property
    def texts(self) -> int:
        """How many texts were looked at."""
        ...

    def by(self, model: Model) -> TextCheck:
        """A check by another model."""
        ...

    async def open(self) -> None:
        """Get ready inside the running event loop."""

    async def found_in(self, request: ChatRequest) -> tuple[str, ...] | Failure:
        """What is found in the material of a request."""
        ...

    def requests_for(self, requests: Sequence[ChatRequest]) -> list[ChatRequest]:
        """What would be asked about these requests."""
        ...


class Model:
    """One model, named by its spec. Make it with `load_model`."""

    def __init__(
        self,
        *,
        spec: str,
        backend: Backend,
        ledger: CallLedger,
        budget: Budget | None = None,
        price: Price | None = None,
        pacer: Pacer | None = None,
        attempts: int = 6,
        window: ContextWindow | None = None,
        max_window: ContextWindow | None = None,
        max_output: int | None = None,
        reasoning: int = 0,
        quarantine: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`window` is None where the endpoint is to be asked for it; `max_window` is the most that it can be.

        With `quarantine`, requests whose material tells a model what to do are not sent: each is a failure.
        `tell` gets what a user should know.
        """
        self.spec = spec
        self.backend = backend
        self.ledger = ledger
        self.budget = budget or Budget()
        self.price = price
        self.pacer = pacer or Pacer(max_in_flight=backend.max_in_flight)
        self.attempts = attempts
        self.reasoning = reasoning
        self.quarantine = quarantine
        self.max_window = max_window
        self.max_output = max_output
        self.fitted = False
        self.check: TextCheck | None = None
        """Who looks at the texts of each request before it is made, beside the rules."""
        self.unchecked = 0
        self._window = window
        self._tell = tell
        self.starved = 0
        self.troubles: Counter[str] = Counter()
        self.flagged: Counter[str] = Counter()
        """Instructions aimed at a model in what it was shown, and how many requests had each."""
        self.retries = 0
        self.made = 0
        self.cached = 0
        self.elsewhere: Counter[str] = Counter()
        """Endpoints that this model's calls don't go to, and how many of the replies in the ledger came from each."""
        self.others: Counter[str] = Counter()
        """Other models than this one that replies say they are from, and how many replies say so."""
        self._used: set[bytes] = set()
        self._tokens_in = 0
        self._tokens_out = 0
        self._in_flight: dict[str, asyncio.Future[Reply | Trouble]] = {}
        self._measuring: dict[str, asyncio.Task[Likelihood | Failure]] = {}
        self._no_likelihoods: Failure | None = None
        self._jitter = random.Random()  # noqa: S311 - only spreads retries; no result depends on it

    @cached_property
    def _redactor(self) -> Redactor:
        """Takes the environment's secrets and the backend's own keys out of what endpoints say."""
        return Redactor([*environment_secrets(), *getattr(self.backend, "secrets", ())])

    @property
    def identity(self) -> str:
        """Everything about the model that can change its answers, as one string."""
        return self.backend.identity

    @property
    def lacks(self) -> frozenset[str]:
        """What the model is known not to give or take (`images`, `likelihoods`); others show it when they are asked."""
        return getattr(self.backend, "lacks", frozenset())

    @property
    def address(self) -> str:
        """Where calls go, if the identity does not say it (it may be configured) and that is another machine."""
        address: str = getattr(self.backend, "address", "")
        is_told = address in self.identity or (self.identity.startswith("openai:") and address == OPENAI)
        return "" if is_told or is_loopback(address) else address

    @property
    def _places(self) -> tuple[str, ...]:
        """The addresses that replies may come from."""
        return getattr(self.backend, "places", ())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a batch folder has that can't be used."""
        return getattr(self.backend, "notes", ())

    @property
    def endpoints(self) -> tuple[EndpointFigures, ...]:
        """What each server of a fleet did so far; empty for all other models. They differ from run to run."""
        return getattr(self.backend, "figures", ())

    @property
    def window(self) -> ContextWindow:
        """How much the model reads and writes in one call. The endpoint is asked, once, where nothing else says it.

        What it told is in the ledger, so that a command that is run again fits the same texts into the same window.
        """
        if self._window is None:
            self._window = self._asked_window()
            if self._window.source == "assumed" and self._tell is not None:
                able = f" (its weights can read {self.max_window.tokens:,})" if self.max_window else ""
                self._tell(
                    f"{self.spec}: its server does not say how many tokens it reads{able}; Hoofbeat assumes "
                    f"{self._window.tokens:,}. If it reads more, set context in hoofbeat.toml, so that less text "
                    "is cut"
                )
        return self._window

    @window.setter
    def window(self, window: ContextWindow) -> None:
        self._window = window

    def _asked_window(self) -> ContextWindow:
        key, body = request_key(self.identity, "window", {})
        tokens = self._readable(key, self.ledger.get(key), int)
        if tokens is None:
            ask = getattr(self.backend, "served_window", None)
            told: int | None = ask() if ask is not None else None
            if told is None:  # nothing is kept: an endpoint that can't be reached now may tell it the next time
                return self._assumed_window()
            tokens = told
            entry = LedgerEntry(
                key=key,
                model=self.identity,
                operation="window",
                prompt="",
                request=msgspec.Raw(body),
                reply=msgspec.Raw(_encode(told)),
                tokens_in=0,
                tokens_out=0,
                seconds=0.0,
                made=int(time.time()),
            )
            self.ledger.flush()
            self.ledger.add_all([entry])
        return ContextWindow(tokens=tokens, source="endpoint") if tokens else self._assumed_window()

    def _assumed_window(self) -> ContextWindow:
        if self.max_window is not None and self.max_window.tokens <= ASSUMED_WINDOW.tokens:
            return self.max_window
        return ASSUMED_WINDOW

    @property
    def context(self) -> int | None:
        """The tokens that prompts are fitted into: the window without the allowance for reasoning, if it leaves enough.

        None where the window is only assumed.
        """
        window = self.window
        self.fitted = True
        if window.source == "assumed":
            return None
        return window.tokens if window.tokens < _SPARE * self.reasoning else window.tokens - self.reasoning

    @property
    def cost(self) -> Cost:
        """What the calls used so far cost, made now or taken from the ledger; the same in whatever order they came.

        Embeddings are not counted: see `Cost`.
        """
        usage = Usage(tokens_in=self._tokens_in, tokens_out=self._tokens_out)
        own = Cost(
            calls=len(self._used), tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, money=self._money(usage)
        )
        return own + self.check.model.cost if self.check is not None else own

    # One call

    async def chat(self, request: ChatRequest) -> CallResult | Failure:
        """Continue a conversation: from the ledger, or by a call that is kept there."""
        flags = await self._flags(request)
        if isinstance(flags, Failure):
            return flags
        if flags:
            self.flagged.update(flags)
            if self.quarantine:
                return Failure(kind="quarantined", message=flags[0], attempts=0)
        key, body = request_key(self.identity, "chat", request.content())
        result: Reply | Trouble
        kept = await self._kept(key)
        if kept is not None and self._outgrown(kept, request):
            key, body = self._limited_key(request, self.limit(request))
            kept = await self._kept(key)
        if kept is not None:
            self.cached += 1
            if kept.endpoint and kept.endpoint not in self._places:
                self.elsewhere[kept.endpoint] += 1
            result = kept
            self._account(key, result.usage)
        elif (waiting := self._in_flight.get(key)) is not None:
            result = await asyncio.shield(waiting)
        else:
            result = await self._ask(request, key, body)
        if isinstance(result, Trouble):
            return _failure(result)
        if not same_model(getattr(self.backend, "name", ""), result.model):
            self.others[result.model] += 1
        if result.finish == "refusal" or is_refusal(result.text):
            return Failure(kind="refusal", message=result.text[:300] or "refused by the endpoint's content filter")
        if result.finish == "length" and not result.text:
            return self._nothing_visible(result, request)
        return CallResult(reply=result, calls=(key,))

    async def _flags(self, request: ChatRequest) -> tuple[str, ...] | Failure:
        """What the request's texts tell a model to do; with quarantine, a failure if one could not be checked."""
        if self.check is None:
            return request.flags
        found = await self.check.found_in(request)
        if isinstance(found, Failure):
            self.unchecked += 1
            if self.quarantine:
                return Failure(kind="quarantined", message=f"not checked: {found.message}", attempts=0)
            found = ()
        return (*request.flags, *found)

    def limit(self, request: ChatRequest) -> int:
        """The output limit that is sent: the request's, with the allowance for reasoning as far as the window has room.

        A request for the probabilities of its first tokens gets none: it reads no more of the reply. No limit is above
        the one that is known for the model.
        """
        limit = request.max_tokens
        if self.reasoning and not request.top_logprobs:
            raised = room = limit + self.reasoning
            if self._window is not None and self._window.source != "assumed":
                room = self._window.tokens - about_tokens(request)
            limit = max(limit, min(raised, room))
        return min(limit, self.max_output or limit)

    def _limited_key(self, request: ChatRequest, limit: int) -> tuple[str, bytes]:
        return request_key(self.identity, "chat", {**request.content(), "limit": limit})

    def _outgrown(self, reply: Reply, request: ChatRequest) -> bool:
        """Whether reasoning cut a reply short that may now be longer; what it used is the limit it had, or nearly."""
        if reply.finish != "length" or (reply.text and not reply.reasoning and not reply.reasoning_tokens):
            return False
        return (reply.usage.tokens_out or request.max_tokens) < _NEARLY_ALL * self.limit(request)

    def _nothing_visible(self, reply: Reply, request: ChatRequest) -> Failure:
        used = reply.usage.tokens_out or self.limit(request)
        if not (reply.reasoning or reply.reasoning_tokens or self.reasoning):
            return Failure(kind="truncated", message=f"no text within the output limit of {used} tokens")
        self.starved += 1
        return Failure(
            kind="truncated",
            message=f"the model used all {used} tokens for reasoning and wrote no answer; allow more "
            f"than {self.reasoning} tokens of reasoning (--reasoning, or reasoning in hoofbeat.toml)",
        )

    async def chat_json(
        self, request: ChatRequest, *, reads: dict[str, object] | None = None
    ) -> StructuredReply | Failure:
        """Ask for a JSON object of the request's schema; output that does not fit gets one repair.

        `reads` is the schema by which replies are read, where it takes more than the one that is sent.
        """
        assert request.schema is not None, "chat_json needs a schema"
        schema = reads or request.schema
        first = await self.chat(request)
        if isinstance(first, Failure):
            return first
        value = read_object(first.reply, schema)
        if not isinstance(value, UnreadableOutput):
            return StructuredReply(value=value, reply=first.reply, calls=first.calls)
        second = await self.chat(repair_request(request, first.reply, value))
        if isinstance(second, Failure):
            return msgspec.structs.replace(second, attempts=second.attempts + 1)
        calls = first.calls + second.calls
        repaired = read_object(second.reply, schema)
        if isinstance(repaired, UnreadableOutput):
            return Failure(kind=repaired.kind, message=repaired.message, attempts=2)
        return StructuredReply(value=repaired, reply=second.reply, calls=calls)

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Failure:
        """The log-probability of a continuation given its context.

        `exact` sums the whole vocabulary in double precision where the endpoint lets us; it takes much longer. Whoever
        asks for one that is under way waits for it. An endpoint that answers chats and has no path for this is found
        out once: from then on the failure is `unsupported`, without a call.
        """
        content = likelihood_content(context, continuation, exact=exact)
        key, body = request_key(self.identity, "loglikelihood", content)
        usage = _unreported(context + continuation)
        kept: Likelihood | Failure | None = self._readable(key, await self.ledger.look_up(key), Likelihood)
        if kept is None:
            if key not in self._measuring:
                call = functools.partial(self.backend.loglikelihood, context, continuation, exact=exact)
                self._measuring[key] = asyncio.ensure_future(self._measure(call, key, body, usage))
                self._measuring[key].add_done_callback(lambda _: self._measuring.pop(key))
            kept = await self._measuring[key]
        else:
            self.cached += 1
        if not isinstance(kept, Failure):
            self._account(key, usage)
        return kept

    async def _measure(
        self, call: Callable[[], Awaitable[Likelihood | Trouble]], key: str, body: bytes, usage: Usage
    ) -> Likelihood | Failure:
        if self._no_likelihoods is not None:
            return self._no_likelihoods
        if (kept := await self._claim(key, Likelihood)) is not None:
            self.cached += 1
            return kept
        started = time.monotonic()
        try:
            result = await self._attempt(call, usage.tokens_in, 1)
            if isinstance(result, Trouble):
                return _failure(result)
            return await self._keep(key, "loglikelihood", "", body, result, usage, started)
        except ModelMissing as err:
            if not await self._chats():
                raise
            self._no_likelihoods = Failure(kind="unsupported", message=err.what, attempts=0)
            return msgspec.structs.replace(self._no_likelihoods, attempts=1)
        finally:
            self.ledger.release(key)

    async def _chats(self) -> bool:
        """Whether the model is there: it answered before, or it answers a short chat now."""
        if self.made + self.cached:
            return True
        try:
            found = await self.chat(ChatRequest(messages=(Message(role="user", content="Say yes."),), max_tokens=1))
        except ModelError:
            return False
        return not isinstance(found, Failure) or found.kind in ("refusal", "truncated", "unreadable")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Failure:
        """Embeddings of the texts, a row each, each kept in the ledger by its text."""

        async def call(missing: Sequence[str]) -> list[list[float]] | Trouble:
            found = await self.backend.embed(missing)
            return found if isinstance(found, Trouble) else [[float(number) for number in row] for row in found]

        vectors = await self._measured("embed", texts, {text: text for text in texts}, call)
        if isinstance(vectors, Failure):
            return vectors
        if len({len(vector) for vector in vectors.values()}) > 1:
            return Failure(kind="garbled", message="the embeddings are of different lengths")
        return np.array([vectors[text] for text in texts], np.float32) if texts else np.zeros((0, 0), np.float32)

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Failure:
        """How relevant each text is to the query, by an endpoint's cross-encoder; each pair is kept in the ledger."""

        async def call(missing: Sequence[str]) -> list[float] | Trouble:
            return await self.backend.relevance(query, missing)

        scores = await self._measured("rerank", texts, {text: [query, text] for text in texts}, call)
        return scores if isinstance(scores, Failure) else [scores[text] for text in texts]

    async def _measured(
        self,
        kind: str,
        texts: Sequence[str],
        asked: Mapping[str, object],
        call: Callable[[Sequence[str]], Awaitable[Sequence[Result] | Trouble]],
    ) -> dict[str, Result] | Failure:
        """What the endpoint gives for each text, as it is kept in the ledger; only what is not there is asked for."""
        keyed = {text: request_key(self.identity, kind, asked[text]) for text in texts}
        kept: dict[str, Result] = {}
        made = 0
        while missing := [text for text in keyed if text not in kept]:
            keys = {keyed[text][0]: text for text in missing}
            claims = await self.ledger.try_claims(keys)
            for key, row in claims.replies.items():
                if (value := self._readable(key, row, _REPLIES[kind])) is not None:
                    kept[keys[key]] = value
            if claims.ours:
                found = await self._measure_claimed(
                    kind, [keys[key] for key in keys if key in claims.ours], keyed, call
                )
                if isinstance(found, Failure):
                    return found
                made += len(found)
                kept.update(found)
            elif not claims.replies:  # others are at it
                await asyncio.sleep(_OTHERS_PAUSE)
        self.cached += len(kept) - made
        if kind != "embed":  # vectors are kept elsewhere too: which are asked for depends on earlier commands
            for text, (key, _) in keyed.items():
                self._account(key, _unreported(text))
        return kept

    async def _measure_claimed(
        self,
        kind: str,
        texts: Sequence[str],
        keyed: Mapping[str, tuple[str, bytes]],
        call: Callable[[Sequence[str]], Awaitable[Sequence[Result] | Trouble]],
    ) -> dict[str, Result] | Failure:
        """Ask for texts whose keys are claimed, and keep what comes."""
        try:
            tokens = sum(map(size, texts)) // TYPICAL_BYTES_PER_TOKEN
            started = time.monotonic()
            result = await self._attempt(lambda: call(texts), tokens, 0)
            if isinstance(result, Trouble):
                return _failure(result)
            keeping = [
                self._keep(keyed[text][0], kind, "", keyed[text][1], row, _unreported(text), started)
                for text, row in zip(texts, result, strict=True)
            ]
            return dict(zip(texts, await asyncio.gather(*keeping), strict=True))
        finally:
            for text in texts:
                self.ledger.release(keyed[text][0])

    async def _ask(self, request: ChatRequest, key: str, body: bytes) -> Reply | Trouble:
        """Make a call and keep it, unless another process does; whoever asks the same here meanwhile waits for it."""
        future: asyncio.Future[Reply | Trouble] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = future
        try:
            found = await self._claim(key, Reply)
            if found is None:
                try:
                    result = await self._ask_claimed(request, key, body)
                finally:
                    self.ledger.release(key)
            else:
                self.cached += 1
                result = found
            if isinstance(result, Reply):
                self._account(key, result.usage)
        except BaseException as err:
            future.set_exception(err if isinstance(err, Exception) else asyncio.CancelledError())
            future.exception()  # seen: nobody need wait for it
            raise
        finally:
            del self._in_flight[key]
        future.set_result(result)
        return result

    async def _ask_claimed(self, request: ChatRequest, key: str, body: bytes) -> Reply | Trouble:
        started = time.monotonic()
        result = await self._attempt(lambda: self._send(request, key), about_tokens(request), self.limit(request))
        if isinstance(result, Trouble):
            return result
        return await self._keep(key, "chat", request.prompt, body, result, result.usage, started)

    async def _send(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """One attempt; where the endpoint refuses a limit with the allowance in it, another with the request's own."""
        limit = self.limit(request)
        if limit == request.max_tokens:
            return await self.backend.chat(request, key)
        result = await self.backend.chat(msgspec.structs.replace(request, max_tokens=limit), key)
        if isinstance(result, Trouble) and result.kind in _REFUSED and _ABOUT_LIMITS.search(result.message):
            return await self.backend.chat(request, self._limited_key(request, request.max_tokens)[0])
        return result

    async def _attempt(
        self, call: Callable[[], Awaitable[Result | Trouble]], tokens_in: int, tokens_out: int
    ) -> Result | Trouble:
        """Make a call, again where that makes sense, within pace and budget."""
        made_before = self.made
        for attempt in range(1, self.attempts + 1):
            reserved = self.budget.reserve(self.spec, self.price, tokens_in, tokens_out)
            try:
                started = await self.pacer.admit(tokens_in + tokens_out)
                result = within_bounds(await call(), self._redactor)
            except ReplyPending:
                self.budget.settle(reserved, reserved)  # it will be paid when it is answered
                raise
            except BaseException:
                self.budget.release(reserved)
                raise
            if not isinstance(result, Trouble):
                self.made += 1
                usage = result.usage if isinstance(result, Reply) else Usage(tokens_in=tokens_in)
                # An endpoint that does not say what it used is taken to have used the most it could.
                self.budget.settle(reserved, self._money(usage) if usage.tokens_in else reserved)
                self.pacer.succeeded()
                return result
            if result.sent:
                self.budget.settle(reserved, reserved)  # the endpoint may have charged for it
            else:
                self.budget.release(reserved)
            self._note_trouble(result, started)
            if not result.retryable or attempt == self.attempts:
                if result.kind == "connection" and not result.sent and self.made == made_before:
                    raise ModelError(
                        f"{self.spec} can't be reached ({result.message})",
                        fix="check the address and that the server runs, then run the same command again",
                    )
                return msgspec.structs.replace(result, attempts=attempt)
            self.retries += 1
            await asyncio.sleep(backoff_seconds(attempt, result.retry_after, self._jitter))
        raise AssertionError("attempts must be at least 1")

    def _note_trouble(self, trouble: Trouble, started: float) -> None:
        self.troubles[trouble.kind] += 1
        self.ledger.trouble(self.identity, trouble.kind)
        if trouble.kind == "rate-limited":
            self.pacer.overloaded(started, trouble.retry_after)
        if trouble.fatal == "key":
            raise ModelError(
                f"{self.spec} refuses the key ({trouble.message})", fix="check the key in the environment variable"
            )
        if trouble.fatal == "quota":
            raise ModelError(
                f"{self.spec} says that your quota there is used up ({trouble.message})",
                fix="raise it with the provider, then run the same command again: finished calls are kept",
            )
        if trouble.fatal == "model":
            raise ModelMissing(
                f"{self.spec} is not available there ({trouble.message})", fix="check the model's name and the address"
            )

    async def _keep(
        self, key: str, operation: str, prompt: str, body: bytes, reply: Result, usage: Usage, started: float
    ) -> Result:
        """Keep a reply; returns the reply that is in the ledger once it is safe there: what is used is what is kept."""
        entry = LedgerEntry(
            key=key,
            model=self.identity,
            operation=operation,
            prompt=prompt,
            request=msgspec.Raw(body),
            reply=msgspec.Raw(_encode(reply)),
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            seconds=time.monotonic() - started,
            made=int(time.time()),
        )
        earlier = await self.ledger.put(entry)
        found = None if earlier is None else self._readable(key, earlier, _REPLIES[operation])
        return reply if found is None else found

    async def _kept(self, key: str) -> Reply | None:
        return self._readable(key, await self.ledger.look_up(key), Reply)

    async def _claim(self, key: str, kind: type[Result]) -> Result | None:
        """Wait until the call is ours to make (None), or another has made it: then its reply."""
        while (found := await self.ledger.claim(key)) is not None:
            if (result := self._readable(key, found, kind)) is not None:
                return result
        return None

    def _readable(self, key: str, kept: bytes | None, kind: type[Result]) -> Result | None:
        """A reply of the ledger; None where there is none. One that can't be read is removed: it costs one call."""
        if kept is None:
            return None
        try:
            result: Result = _DECODE[kind](kept)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            self.ledger.remove(key)
            if self._tell is not None:
                self._tell(f"{self.ledger.place} holds a reply that can't be read ({err}); Hoofbeat asks for it again")
            return None
        return result

    def _money(self, usage: Usage) -> float:
        return self.price.of(usage.tokens_in, usage.tokens_out) if self.price else 0.0

    def _account(self, key: str, usage: Usage) -> None:
        short = bytes.fromhex(key[:32])  # half of a key is as good as all of it, and there may be a million
        if short not in self._used:
            self._used.add(short)
            self._tokens_in += usage.tokens_in
            self._tokens_out += usage.tokens_out

    # Many calls

    def run(
        self,
        items: Sequence[Item],
        work: Callable[[Item], Awaitable[Result]],
        *,
        title: str = "",
        progress: Progress = SILENT,
    ) -> list[Result]:
        """Do `work` on every item, several at once; results in the items' order.

        `work` awaits this model's calls one after another. The first error that stops the command (budget, key, disk)
        is raised after the calls in flight have come back and been kept.
        """
        with progress.task(title or self.spec, len(items)) as task, reduce_collection():
            try:
                return asyncio.run(_Crew(self, items, work, task).run())
            except BatchPending as err:
                raise err.for_step(title) from None

    def estimate(self, requests: Sequence[ChatRequest]) -> Estimate:
        """What these requests would cost, without making a call."""
        own = self._estimate(requests)
        return own if self.check is None else own + self.check.model.estimate(self.check.requests_for(requests))

    def _estimate(self, requests: Sequence[ChatRequest]) -> Estimate:
        keys = [request_key(self.identity, "chat", request.content())[0] for request in requests]
        known = self.ledger.known(keys)
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in known}
        tokens_in = sum(about_tokens(request) for request in new.values())
        tokens_out = sum(map(self.limit, new.values()))
        return Estimate(
            calls=len(new),
            cached=len(set(keys) & known),
            tokens_in=tokens_in,
            max_tokens_out=tokens_out,
            max_money=self.price.of(tokens_in, tokens_out) if self.price else None,
        )


NOT_IN_LEDGER = "this call is not in the ledger"
"""The message of the failure that a `LedgerModel` gives for a call that was never made."""


class LedgerModel(Model):
    """A model that only repeats what its ledger has: no call is made, and `estimated` adds up what was asked of it.

    A command that goes through its own steps with it learns which calls it would make, as far as earlier replies lead.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(
            spec=model.spec,
            backend=_NoBackend(model.identity),
            ledger=model.ledger,
            price=model.price,
            window=model._window,
            max_window=model.max_window,
            max_output=model.max_output,
            reasoning=model.reasoning,
        )
        self._estimated = Estimate()
        self._asked: set[str] = set()
        self._looks = LedgerModel(model.check.model) if model.check is not None else None
        if model.check is not None and self._looks is not None:
            self.check = model.check.by(self._looks)

    @property
    def estimated(self) -> Estimate:
        """What was asked of it, with what looks at the texts."""
        return self._estimated if self._looks is None else self._estimated + self._looks.estimated

    async def chat(self, request: ChatRequest) -> CallResult | Failure:
        """What the ledger has, else a failure with the message `NOT_IN_LEDGER`."""
        key = request_key(self.identity, "chat", request.content())[0]
        if key not in self._asked:
            self._asked.add(key)
            self._estimated = self._estimated + self._estimate([request])
        return await super().chat(request)

    async def _ask(self, request: ChatRequest, key: str, body: bytes) -> Reply | Trouble:  # noqa: ARG002
        return Trouble(kind="input", message=NOT_IN_LEDGER, attempts=0)


class _NoBackend:
    """Stands for an endpoint that must not be called."""

    max_in_flight = 16

    def __init__(self, identity: str) -> None:
        self.identity = identity

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def abandon(self) -> None:
        """There is nothing to release."""

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:  # noqa: ARG002 - the seam's signature
        """Never a reply."""
        return Trouble(kind="input", message=NOT_IN_LEDGER)

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:  # noqa: ARG002
        """Never a measurement."""
        return Trouble(kind="input", message=NOT_IN_LEDGER)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:  # noqa: ARG002
        """Never a vector."""
        return Trouble(kind="input", message=NOT_IN_LEDGER)

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:  # noqa: ARG002
        """Never a score."""
        return Trouble(kind="input", message=NOT_IN_LEDGER)


def model_facts(models: Mapping[str, Model]) -> dict[str, object]:
    """What a manifest records of models beside their identities, by their roles.

    `windows`: how large the windows are that texts were fitted into, and how that is known. `prices`: where the price
    of a model is from that nobody configured. `addresses`: where calls go, if the identity does not say it. Models for
    which none of it matters are left out. `instructions`: what texts that a model was shown tell it to do, and in how
    many requests (`prompts.instructions`). `other_models`: which other models replies say they are from. `checks`:
    which model looked for more instructions, and in how many texts.
    """
    windows = {role: msgspec.to_builtins(model.window) for role, model in models.items() if model.fitted}
    prices = {role: model.price.source for role, model in models.items() if model.price and model.price.source}
    addresses = {role: model.address for role, model in models.items() if model.address}
    instructions = {role: _most_flagged(model) for role, model in models.items() if model.flagged}
    others = {role: dict(sorted(model.others.items())) for role, model in models.items() if model.others}
    checks = {
        role: {"model": model.check.model.identity, "texts": model.check.texts, "requests not checked": model.unchecked}
        for role, model in models.items()
        if model.check is not None
    }
    found = {
        "windows": windows, "prices": prices, "addresses": addresses, "instructions": instructions, "checks": checks,
        OTHER_MODELS: others,
    }  # fmt: skip
    return {name: each for name, each in found.items() if each}


def _most_flagged(model: Model) -> dict[str, int]:
    """The most frequent instructions in what a model was shown, with how many requests had each."""
    return dict(sorted(model.flagged.items(), key=lambda item: (-item[1], item[0]))[:_FLAGS_RECORDED])


def _failure(trouble: Trouble) -> Failure:
    return Failure(kind=trouble.kind, message=trouble.message, attempts=trouble.attempts)


def _unreported(text: str) -> Usage:
    """What a call that is not counted by its endpoint used: measurements and embeddings are not."""
    return Usage(tokens_in=size(text) // TYPICAL_BYTES_PER_TOKEN)


class _Crew:
    """Workers on one list of items; their number follows the pacer."""

    def __init__(self, model: Model, items: Sequence[Any], work: Callable[[Any], Awaitable[Any]], task: Task) -> None:
        self._model = model
        self._items = items
        self._work = work
        self._task = task
        self._results: list[Any] = [None] * len(items)
        self._next = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._error: BaseException | None = None
        self._all_done = asyncio.Event()

    async def run(self) -> list[Any]:
        await self._model.backend.open()
        self._model.pacer.begin()
        check = self._model.check
        if check is not None:
            await check.open()
        finished = False
        try:
            self._hire()
            if self._workers:
                await self._all_done.wait()
            finished = True
        finally:
            stopped = list(self._workers)
            for worker in stopped:
                worker.cancel()
            await asyncio.gather(*stopped, return_exceptions=True)
            self._model.ledger.sync()
            if check is not None:
                await check.model.backend.close()
            if not finished or self._error is not None:
                await self._model.backend.abandon()
        if self._error is not None:
            raise self._error
        await self._model.backend.close()
        return self._results

    def _hire(self) -> None:
        wanted = min(self._model.pacer.limit, len(self._items) - self._next + len(self._workers))
        while len(self._workers) < wanted and self._next < len(self._items) and self._error is None:
            self._workers.add(asyncio.ensure_future(self._shift()))

    async def _shift(self) -> None:
        """One worker from start to end; it leaves the crew before another can look at the crew's size."""
        try:
            await self._labour()
        finally:
            worker = asyncio.current_task()
            assert worker is not None
            self._workers.discard(worker)
            if not self._workers:
                self._all_done.set()

    async def _labour(self) -> None:
        while self._next < len(self._items) and self._error is None:
            if len(self._workers) > self._model.pacer.limit:
                return
            index = self._next
            self._next += 1
            try:
                self._results[index] = await self._work(self._items[index])
            except ReplyPending:
                pass
            except Exception as err:
                self._error = self._error or err
                return
            self._task.advance()
            if len(self._workers) < self._model.pacer.limit:
                self._hire()
