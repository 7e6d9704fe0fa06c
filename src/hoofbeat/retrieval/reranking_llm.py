"""Reranking by a language model: by how likely it says Yes to each passage, or by the order it puts passages into.

Both show a text up to so many characters, fewer where the model's window is smaller. The question comes first in a
prompt, so an endpoint that caches prompts reads it once for all the texts of a query.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from hoofbeat.models import ChatRequest, Model, Reply
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure
from hoofbeat.retrieval.stages import SearchQuery, Tools
from hoofbeat.window import beginning, room_for

__all__ = ["Listwise", "YesNo", "yes_over_no"]

_TOP = 20
_NOT_LETTERS = re.compile(r"[\W_Ġ]+")
_PROMPT_TOKENS = 400
_FENCE_BYTES = 60
_LEAST_BYTES = 80


def yes_over_no(reply: Reply) -> float | None:
    """How much likelier the reply's first token is Yes than No, as a difference of log-probabilities.

    All ways to write either word count. A word that is not listed is at most as likely as the least likely token that
    is. None: the reply lists neither, or has no log-probabilities.
    """
    if not reply.logprobs:
        return None
    first = reply.logprobs[0]
    listed = {first.token: first.logprob, **first.top}
    sides: dict[str, list[float]] = {"yes": [], "no": []}
    for token, logprob in listed.items():
        word = _NOT_LETTERS.sub("", token).casefold()
        if word in sides and math.isfinite(logprob):
            sides[word].append(logprob)
    if not any(sides.values()):
        return None
    least = min(logprob for logprob in listed.values() if math.isfinite(logprob))
    yes, no = (_log_sum(found) if found else least for found in sides.values())
    return yes - no


def _log_sum(logprobs: Sequence[float]) -> float:
    most = max(logprobs)
    return most + math.log(math.fsum(math.exp(logprob - most) for logprob in logprobs))


def _fitted(texts: Sequence[str], question: str, model: Model, chars: int, output_tokens: int) -> list[str] | Failure:
    """The beginning of each text, short enough that all of them fit the model's window beside the question."""
    shown = [text[:chars] for text in texts]
    if model.context is None:
        return shown
    room = room_for(model.context, prompt=_PROMPT_TOKENS, output=output_tokens, beside=[question])
    each = room // len(texts) - _FENCE_BYTES
    if each < _LEAST_BYTES:
        why = f"the question and {len(texts)} texts beside it do not fit the model's window of {model.context} tokens"
        return Failure(kind="context-overflow", message=why, attempts=0)
    return [beginning(text, each) for text in shown]


class _Pair(NamedTuple):
    """A text of a query, by the query's number."""

    query: int
    question: str
    text: str


class YesNo:
    """Scores a text by how much likelier the model is to say Yes, it helps to answer the question, than No.

    Where the endpoint gives no such log-probabilities, each text is labelled instead, 1 or 0: texts of the same label
    then keep the order they had. The first pair finds that out for all, so that scores of two kinds never meet.
    """

    identity = "yesno"

    def __init__(self, *, model: str = "", chars: int = 2000) -> None:
        self.model = model
        self.chars = chars
        self.notes: list[str] = []
        self._by_logprobs: bool | None = None

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts it asks by: name and fingerprint of each."""
        return {name: load_prompt(name).fingerprint for name in ("rerank-yesno", "rerank-label")}

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: Tools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        model = tools.model(self.model)
        pairs = [
            _Pair(number, query.text, text)
            for number, (query, found) in enumerate(zip(queries, texts, strict=True))
            if query.failure is None
            for text in found
        ]
        gate = asyncio.Lock()

        async def work(pair: _Pair) -> float | Failure:
            async with gate:
                if self._by_logprobs is None:
                    return await self._find_out(model, pair)
            return await (self._likelihood(model, pair) if self._by_logprobs else self._label(model, pair))

        scored = model.run(pairs, work, title=f"reranking: {model.spec}", progress=tools.progress) if pairs else []
        results: list[list[float] | Failure] = [query.failure or [] for query in queries]
        for pair, score in zip(pairs, scored, strict=True):
            known = results[pair.query]
            if isinstance(score, Failure):
                results[pair.query] = known if isinstance(known, Failure) else score
            elif not isinstance(known, Failure):
                known.append(score)
        return results

    async def _find_out(self, model: Model, pair: _Pair) -> float | Failure:
        """Score the first pair, and learn by it whether the endpoint gives log-probabilities."""
        score = await self._likelihood(model, pair)
        if isinstance(score, Failure) and score.kind in ("unsupported", "bad-request"):
            label = await self._label(model, pair)
            if not isinstance(label, Failure):
                self._by_logprobs = False
                self.notes.append(
                    f"{model.spec} gives no log-probabilities of Yes and No ({score.message}): texts were labelled "
                    "relevant or not instead, and texts of the same label keep the order they had"
                )
            return label
        if not isinstance(score, Failure):
            self._by_logprobs = True
        return score

    async def _likelihood(self, model: Model, pair: _Pair) -> float | Failure:
        request = self._request("rerank-yesno", model, pair)
        if isinstance(request, Failure):
            return request
        outcome = await model.chat(msgspec.structs.replace(request, top_logprobs=_TOP))
        if isinstance(outcome, Failure):
            return outcome
        score = yes_over_no(outcome.reply)
        if score is not None:
            return score
        if not outcome.reply.logprobs:
            return Failure(kind="unsupported", message="the reply has no log-probabilities")
        return Failure(kind="unsupported", message=f"the model began with {outcome.reply.logprobs[0].token!r}")

    async def _label(self, model: Model, pair: _Pair) -> float | Failure:
        request = self._request("rerank-label", model, pair)
        if isinstance(request, Failure):
            return request
        outcome = await model.chat_json(request)
        return outcome if isinstance(outcome, Failure) else float(outcome.value["relevant"] == "yes")

    def _request(self, name: str, model: Model, pair: _Pair) -> ChatRequest | Failure:
        prompt = load_prompt(name)
        fitted = _fitted([pair.text], pair.question, model, self.chars, prompt.max_tokens)
        if isinstance(fitted, Failure):
            return fitted
        return prompt.request({"question": pair.question, "passage": fitted[0]})


class Listwise:
    """Orders texts by letting the model order `window` of them at a time, from the back of the ranking to its front.

    Windows overlap by `window - stride`, so a good text at the back can climb to the top. The score of a text is one
    over its place in the end.
    """

    identity = "listwise"

    def __init__(self, *, model: str = "", window: int = 20, stride: int = 10, chars: int = 2000) -> None:
        self.model = model
        self.notes: list[str] = []
        self.window = window
        self.stride = stride
        self.chars = chars

    @property
    def prompts(self) -> dict[str, str]:
        """The prompt it asks by: name and fingerprint."""
        return {"rerank-listwise": load_prompt("rerank-listwise").fingerprint}

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: Tools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        model = tools.model(self.model)
        items = list(zip(queries, texts, strict=True))

        async def work(item: tuple[SearchQuery, Sequence[str]]) -> list[float] | Failure:
            query, found = item
            return query.failure or await self._scores(model, query.text, found)

        title = f"reranking: {model.spec}"
        return model.run(items, work, title=title, progress=tools.progress)

    async def _scores(self, model: Model, question: str, texts: Sequence[str]) -> list[float] | Failure:
        order = list(range(len(texts)))
        end = len(texts)
        while end > 1:
            begin = max(0, end - self.window)
            permuted = await self._permute(model, question, [texts[place] for place in order[begin:end]])
            if isinstance(permuted, Failure):
                return permuted
            order[begin:end] = [order[begin + place] for place in permuted]
            if begin == 0:
                break
            end -= self.stride
        places = {number: place for place, number in enumerate(order, start=1)}
        return [1 / places[number] for number in range(len(texts))]

    async def _permute(self, model: Model, question: str, texts: Sequence[str]) -> list[int] | Failure:
        """The numbers of these texts, from 0, in the model's order: each once, what it left out last."""
        limit = 32 + 8 * len(texts)
        fitted = _fitted(texts, question, model, self.chars, limit)
        if isinstance(fitted, Failure):
            return fitted
        values: Mapping[str, object] = {"question": question, "passages": [{"text": text} for text in fitted]}
        request = load_prompt("rerank-listwise").request(values, schema=_order_of(len(texts)), max_tokens=limit)
        outcome = await model.chat_json(request)
        if isinstance(outcome, Failure):
            return outcome
        named = [int(number) - 1 for number in outcome.value["order"]]
        return list(dict.fromkeys([*named, *range(len(texts))]))


def _order_of(count: int) -> dict[str, object]:
    """The output contract for so many texts. It lets a number come twice: to repair that needs no second call."""
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    order = {"type": "array", "items": number, "minItems": 1, "maxItems": count}
    return {
        "type": "object",
        "properties": {"order": order},
        "required": ["order"],
        "additionalProperties": False,
    }
