"""`rerank`: query and text read together, for the top of a ranking.

    rerank@100                                  a language model's Yes against No for each text
    rerank[with=listwise,window=20]@100         a language model puts windows of texts into order
    rerank[with=models/my-cross-encoder]@100    a cross-encoder from a folder
    rerank[with=http://host:8000/v1#NAME]@100   a cross-encoder behind an endpoint (its /rerank)

A language model is shown the beginning of a text (`chars`), less where its window is smaller; a cross-encoder reads a
text that is longer than its window in parts. The question comes first in a prompt, so an endpoint that caches prompts
reads it once for all the texts of a query.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from hoofbeat.errors import UsageError, did_you_mean
from hoofbeat.models import ChatRequest, Model, Reply
from hoofbeat.models.encoders.cross_encoder import CrossEncoder
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure
from hoofbeat.retrieval.line import CostBound, StageOption
from hoofbeat.retrieval.stage_roles import FoundPassage, Reranker, SearchQuery, StageTools, TextReranker, passage_texts
from hoofbeat.window import BYTES_PER_TOKEN, beginning, room_for

_TOP = 20
_NOT_LETTERS = re.compile(r"[\W_Ġ]+")
_PROMPT_TOKENS = 400
_FENCE_BYTES = 60
_MIN_BYTES = 80


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


class _WindowFit:
    """Shortens texts so that they fit a model's window beside the question, and remembers which it cut for that.

    A text may be shown several times, in overlapping windows or for several questions: it counts once.
    """

    def __init__(self, chars: int) -> None:
        self._chars = chars
        self._texts: set[int] = set()
        self._cut: set[int] = set()
        self._tokens = 0

    def fitted(self, texts: Sequence[str], question: str, model: Model, output_tokens: int) -> list[str] | Failure:
        """The beginning of each text, short enough that all of them fit the model's window beside the question."""
        shown = [text[: self._chars] for text in texts]
        self._texts.update(map(hash, shown))
        if model.context is None:
            return shown
        room = room_for(model.context, prompt=_PROMPT_TOKENS, output=output_tokens, beside=[question])
        each = room // len(texts) - _FENCE_BYTES
        if each < _MIN_BYTES:
            why = (
                f"the question and {len(texts)} texts do not fit the model's window of {model.context} tokens together"
            )
            return Failure(kind="context-overflow", message=why, attempts=0)
        cut = [beginning(text, each) for text in shown]
        self._cut.update(hash(text) for part, text in zip(cut, shown, strict=True) if len(part) < len(text))
        self._tokens = model.context
        return cut

    @property
    def notes(self) -> list[str]:
        """What was cut, if anything was."""
        if not self._cut:
            return []
        return [
            f"{len(self._cut):,} of {len(self._texts):,} different texts were cut further, because a request must fit "
            f"the model's window of {self._tokens:,} tokens"
        ]


class _Pair(NamedTuple):
    """A text of a query, by the query's number."""

    query: int
    question: str
    text: str


class YesNoReranker:
    """Scores a text by how much likelier the model is to say Yes, it helps to answer the question, than No.

    Where the endpoint gives no such log-probabilities, each text is labelled instead, 1 or 0: texts of the same label
    then keep the order they had. The first pair finds that out for all, so that scores of two kinds never meet.
    """

    identity = "yesno"

    def __init__(self, *, model: str = "", chars: int = 2000) -> None:
        self.model = model
        self.chars = chars
        self._fit = _WindowFit(chars)
        self._said: list[str] = []
        self._by_logprobs: bool | None = None

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know."""
        return [*self._said, *self._fit.notes]

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: StageTools
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

        scored = model.run(pairs, work, title=f"Rerank: {model.spec}", progress=tools.progress) if pairs else []
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
                self._said.append(
                    f"{model.spec} gives no log-probabilities of Yes and No ({score.message}): texts were labelled "
                    "relevant or not instead, and texts with the same label keep their order"
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
        fitted = self._fit.fitted([pair.text], pair.question, model, prompt.max_tokens)
        if isinstance(fitted, Failure):
            return fitted
        return prompt.request({"question": pair.question, "passage": fitted[0]})


class ListwiseReranker:
    """Orders texts by letting the model order `window` of them at a time, from the back of the ranking to its front.

    Windows overlap by `window - stride`, so a good text at the back can climb to the top. The score of a text is one
    over its place in the end. A text that a reply leaves out follows those that it names, in the order it had; such
    replies are counted. A reply that can't be read is asked for once more, and then fails its query.
    """

    identity = "listwise"

    def __init__(self, *, model: str = "", window: int = 20, stride: int = 10, chars: int = 2000) -> None:
        self.model = model
        self.window = window
        self.stride = stride
        self.chars = chars
        self._fit = _WindowFit(chars)
        self._orders = self._partial = self._left_out = 0

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know."""
        if not self._partial:
            return self._fit.notes
        return [
            f"{self._partial:,} of {self._orders:,} orders left texts out ({self._left_out:,} in total). These come "
            "after the named texts, in their old order",
            *self._fit.notes,
        ]

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: StageTools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        model = tools.model(self.model)
        items = list(zip(queries, texts, strict=True))

        async def work(item: tuple[SearchQuery, Sequence[str]]) -> list[float] | Failure:
            query, found = item
            return query.failure or await self._scores(model, query.text, found)

        title = f"Rerank: {model.spec}"
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
        fitted = self._fit.fitted(texts, question, model, limit)
        if isinstance(fitted, Failure):
            return fitted
        values: Mapping[str, object] = {"question": question, "passages": [{"text": text} for text in fitted]}
        request = load_prompt("rerank-listwise").request(values, schema=_order_of(len(texts)), max_tokens=limit)
        outcome = await model.chat_json(request)
        if isinstance(outcome, Failure):
            return outcome
        named = list(dict.fromkeys(int(number) - 1 for number in outcome.value["order"]))
        self._orders += 1
        self._partial += len(named) < len(texts)
        self._left_out += len(texts) - len(named)
        return list(dict.fromkeys([*named, *range(len(texts))]))


def _order_of(count: int) -> dict[str, object]:
    """The output contract for this number of texts. A number may appear twice: to repair that needs no second call."""
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    order = {"type": "array", "items": number, "minItems": 1, "maxItems": count}
    return {
        "type": "object",
        "properties": {"order": order},
        "required": ["order"],
        "additionalProperties": False,
    }


class CrossEncoderReranker:
    """Scores by a cross-encoder.

    A text that does not fit its window beside the query is read in parts, and the best of them counts (MaxP); with
    `truncate` only the beginning is read.
    """

    def __init__(self, encoder: CrossEncoder, *, truncate: bool = False) -> None:
        self.encoder = encoder
        self.identity = encoder.identity
        self._truncate = truncate
        self._texts = self._longer = self._tokens = self._behind = 0

    @property
    def notes(self) -> list[str]:
        """What a reader of the results should know."""
        if not self._longer:
            return []
        reads = f"the {self.encoder.window} tokens that {self.encoder.name} reads with the query"
        long = f"{self._longer:,} of {self._texts:,} texts are longer than {reads}"
        share = f"{self._behind / max(1, self._tokens):.1%} of the text"
        if self.encoder.cut:
            return [f"{long}: {self.encoder.cut:,} pairs were cut, and up to {share} was not read"]
        return [f"{long} ({share} is behind them): they were read in parts; the best part counts"]

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: StageTools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        asked = [[] if query.failure else list(found) for query, found in zip(queries, texts, strict=True)]
        parts = [[self._parts(query.text, text) for text in found] for query, found in zip(queries, asked, strict=True)]
        pairs = [
            (query.text, part)
            for query, texts_read in zip(queries, parts, strict=True)
            for read in texts_read
            for part in read
        ]
        scores = iter(self.encoder.score(pairs, tools.progress) if pairs else ())
        results: list[list[float] | Failure] = []
        for query, texts_read in zip(queries, parts, strict=True):
            mine = [float(np.max([next(scores) for _ in read])) for read in texts_read]  # NaN stays NaN
            results.append(query.failure or (mine if all(map(math.isfinite, mine)) else _no_number(self.encoder)))
        return results

    def _parts(self, query: str, text: str) -> tuple[str, ...]:
        found = self.encoder.parts(query, text)
        self._texts += 1
        self._longer += found.behind > 0
        self._tokens += found.tokens
        self._behind += found.behind
        return (text,) if self._truncate else found.parts


def _no_number(encoder: CrossEncoder) -> Failure:
    return Failure(kind="unreadable", message=f"{encoder.name} gave a score that is not a number")


class EndpointReranker:
    """Scores by a cross-encoder behind an endpoint, one call for a query; each score is kept in the ledger.

    The endpoint cuts a text that is longer than its window; `chars` is how much of a text is sent.
    """

    def __init__(self, model: str, *, chars: int = 2000) -> None:
        self.notes: list[str] = []
        self.identity = f"{model};rerank"
        self.model = model
        self.chars = chars

    def rerank(
        self, queries: Sequence[SearchQuery], texts: Sequence[Sequence[str]], tools: StageTools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its texts, higher is better; or why there are none."""
        model = tools.model(self.model)

        async def work(item: tuple[SearchQuery, Sequence[str]]) -> list[float] | Failure:
            query, found = item
            return query.failure or await model.relevance(query.text, [text[: self.chars] for text in found])

        items = list(zip(queries, texts, strict=True))
        return model.run(items, work, title=f"Rerank: {model.spec}", progress=tools.progress)


_METHODS = {"yesno": ("window", "stride", "truncate"), "listwise": ("truncate",)}
"""The methods that ask a language model, and the options that mean nothing to them."""

_CROSS_ENCODER = ("model", "chars", "window", "stride")
"""The options that mean nothing to a cross-encoder."""

_ENDPOINT = ("model", "window", "stride", "truncate")
"""The options that mean nothing to a cross-encoder behind an endpoint."""


def _endpoint(method: str) -> str:
    """The model behind `with=`, where it names an endpoint and not a folder or a way to ask a language model."""
    return method.removeprefix("model:") if method.startswith(("http://", "https://", "model:")) else ""


class RerankStage(Reranker):
    """Reads query and text together: by a language model, or by a cross-encoder."""

    name = "rerank"
    summary = "reads query and text together, with a language model (yesno, listwise) or a cross-encoder"
    options = (
        StageOption("with", "yesno", "yesno, listwise, the folder of a cross-encoder, or its endpoint"),
        StageOption("model", "", "the language model; by default the command's"),
        StageOption("read", "passage", "which part of each result to read", choices=("passage", "document")),
        StageOption("chars", 2000, "how many characters of a text to read", min_=100, max_=1e9),
        StageOption("window", 20, "listwise: how many texts to order at a time", min_=2, max_=100),
        StageOption("stride", 10, "listwise: how far the window moves", min_=1, max_=100),
        StageOption(
            "truncate", "no", "yes: a cross-encoder reads only the beginning of long texts", choices=("no", "yes")
        ),
    )

    def reset(self) -> None:
        """Forget the method and what it has loaded."""
        super().reset()
        self._method: TextReranker | None = None

    @property
    def method(self) -> TextReranker:
        """What scores texts; a cross-encoder is loaded here."""
        if self._method is None:
            self._method = self._make()
        return self._method

    def prepare(self) -> None:
        """Check the options together, and load the cross-encoder."""
        self._method = self._make()

    def models(self) -> tuple[str, ...]:
        """The language model, or the endpoint of a cross-encoder."""
        if endpoint := _endpoint(self.word("with")):
            return (endpoint,)
        return (self.word("model"),) if self.word("with") in _METHODS else ()

    def folders(self) -> tuple[str, ...]:
        """The cross-encoder's folder."""
        return () if self.word("with") in _METHODS or _endpoint(self.word("with")) else (self.word("with"),)

    def prompts(self) -> dict[str, str]:
        """The prompts of its method."""
        names = {"yesno": ("rerank-yesno", "rerank-label"), "listwise": ("rerank-listwise",)}.get(self.word("with"), ())
        return {name: load_prompt(name).fingerprint for name in names}

    def describe(self) -> dict[str, object]:
        """Which method, and which weights."""
        return {"rerankers": {str(self): self.method.identity}}

    def cost(self) -> CostBound:
        """A call for each text, or for each window."""
        depth, read = self.depth or self.default_depth, self.count("chars") // BYTES_PER_TOKEN
        if _endpoint(self.word("with")):
            return CostBound(1, depth * read, 0)
        if self.word("with") not in _METHODS:
            return CostBound()
        if self.word("with") != "listwise":
            return CostBound(depth, depth * read, depth)
        window, stride = self.count("window"), self.count("stride")
        calls = 1 + max(0, -(-(depth - window) // stride))
        return CostBound(calls, calls * window * read, calls * 8 * window)

    def rerank(
        self, queries: Sequence[SearchQuery], found: Sequence[Sequence[FoundPassage]], tools: StageTools
    ) -> list[list[float] | Failure]:
        """For each query a score for each of its results, higher is better; or why there are none."""
        texts = [self._texts(each, tools) for each in found]
        scores = self.method.rerank(queries, texts, tools)
        self.notes = [*self.method.notes, *self._unread(texts)]
        return scores

    def _unread(self, texts: Sequence[Sequence[str]]) -> list[str]:
        """A note on what a language model is not shown of long texts."""
        lengths = [len(text) for found in texts for text in found]
        chars = self.count("chars")
        longer = sum(length > chars for length in lengths)
        if not longer or not (self.word("with") in _METHODS or _endpoint(self.word("with"))):
            return []
        share = sum(max(0, length - chars) for length in lengths) / sum(lengths)
        return [
            f"{longer:,} of {len(lengths):,} texts are longer than the {chars:,} characters that are read of each; "
            f"{share:.1%} of the text was not read (chars= reads more)"
        ]

    def _texts(self, found: Sequence[FoundPassage], tools: StageTools) -> list[str]:
        if self.word("read") == "passage":
            return passage_texts(found)
        documents = [tools.indexes.document(each.document) for each in found]
        return [f"{each.title}\n{each.text}" if each.title else each.text for each in documents]

    def _make(self) -> TextReranker:
        method = self.word("with")
        changed = [
            option.name for option, value in zip(self.options, self.values, strict=True) if value != option.value
        ]
        endpoint = _endpoint(method)
        useless = [name for name in _METHODS.get(method, _ENDPOINT if endpoint else _CROSS_ENCODER) if name in changed]
        if useless:
            by = method if method in _METHODS else "a cross-encoder"
            raise self._wrong(f"{' and '.join(useless)} can't be used with {by}", "leave it out")
        if endpoint:
            return EndpointReranker(endpoint, chars=self.count("chars"))
        if method not in _METHODS:
            return CrossEncoderReranker(CrossEncoder(self._folder()), truncate=self.word("truncate") == "yes")
        chars, window, stride = (self.count(name) for name in ("chars", "window", "stride"))
        if method == "yesno":
            return YesNoReranker(model=self.word("model"), chars=chars)
        if stride > window:
            what = f"a stride of {stride} over a window of {window} would leave texts unread"
            raise self._wrong(what, "use a stride up to the window's size; half of it is usual")
        return ListwiseReranker(model=self.word("model"), window=window, stride=stride, chars=chars)

    def _folder(self) -> Path:
        """The folder named by `with`; a word that is no method and looks like no path is a slip."""
        name = self.word("with")
        path = Path(name).expanduser()
        if not path.exists() and not any(mark in name for mark in "/\\~."):
            guess = did_you_mean(name, _METHODS)
            raise self._wrong(
                f"there is no reranker {name!r}", f"{guess}give yesno, listwise or a cross-encoder's folder"
            )
        return path

    def _wrong(self, what: str, fix: str) -> UsageError:
        return UsageError(what, where=f"retriever line, {self}", fix=fix)


STAGE = RerankStage()
