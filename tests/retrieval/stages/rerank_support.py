"""What the tests of rerankers share: tools, and an endpoint that judges passages by a number they end with."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from aiohttp import web

from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Failure
from hoofbeat.retrieval import IndexSet
from hoofbeat.retrieval.line import Pipeline, parse
from hoofbeat.retrieval.stage_roles import FoundPassage, SearchQuery
from hoofbeat.retrieval.stages.rerank import RerankStage
from tests.answering.support import asked_for, wire_text
from tests.models.fault_server import FaultServer

QUESTION = "How is a fever treated?"
PASSAGE = re.compile(r'<material name="passage ?\d*">\n(.*?)\n</material>', re.DOTALL)


def _number(passage: str) -> float:
    """The number a passage ends with; none where it was cut off."""
    last = passage.split()[-1:]
    return float(last[0]) if last and re.fullmatch(r"-?[\d.]+", last[0]) else 0.0


class Bench:
    """The tools of a stage that only asks one model."""

    def __init__(self, model: Model | None) -> None:
        self.progress: Progress = SILENT
        self.asked: list[str] = []
        self._model = model

    @property
    def indexes(self) -> IndexSet:
        raise AssertionError("texts are given")

    def model(self, spec: str) -> Model:
        assert self._model is not None, "no model is needed here"
        self.asked.append(spec)
        return self._model

    def search(self, line: str, queries: Sequence[SearchQuery], k: int, corpus: str = "") -> list[list[FoundPassage]]:
        raise AssertionError("a reranker searches nothing")


class Reader(FaultServer):
    """An endpoint that finds a passage as relevant as the number it ends with; faults in a passage are played."""

    def __init__(self, gives: Literal["logprobs", "nothing", "error", "thoughts"] = "logprobs") -> None:
        super().__init__()
        self.gives = gives
        self.orders: list[Any] = []

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        passages = PASSAGE.findall(wire_text(body))
        values = [_number(text) for text in passages]
        asked = asked_for(body)
        logprobs = None
        if body.get("logprobs") and self.gives == "error":
            return web.json_response({"error": {"message": "logprobs are not supported here"}}, status=400)
        if "order" in asked:
            best = sorted(range(1, len(values) + 1), key=lambda number: -values[number - 1])
            text = json.dumps({"order": self.orders.pop(0) if self.orders else best})
        elif "relevant" in asked:
            text = json.dumps({"relevant": "yes" if values[0] > 0 else "no"})
        else:
            text = "Yes" if values[0] > 0 else "No"
            logprobs = self._logprobs(values[0])
        choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
        return await self._play(request, body, wire_text(body), {"choices": [choice]})

    def _logprobs(self, value: float) -> dict[str, Any] | None:
        if self.gives == "nothing":
            return None
        top = {"Yes": -1.0, "No": -1.0 - value} if self.gives == "logprobs" else {"<think>": -0.01, "So": -5.0}
        listed = [{"token": token, "logprob": logprob} for token, logprob in top.items()]
        return {"content": [{**listed[0], "top_logprobs": listed}]}

    def fields(self) -> list[str]:
        """What each call asked for: a field of an object, or `word`."""
        return ["".join(asked_for(seen.body)) or "word" for seen in self.seen]


def query(text: str = QUESTION, failure: Failure | None = None) -> SearchQuery:
    return SearchQuery(id="q", text=text, lexical="never shown", failure=failure)


def stage(line: str) -> RerankStage:
    tree = parse(f"bm25 > {line}")
    assert isinstance(tree, Pipeline)
    assert isinstance(tree.steps[1], RerankStage)
    return tree.steps[1]


def scores(result: list[float] | Failure) -> list[float]:
    assert not isinstance(result, Failure), result
    return result


def ranks(result: list[float] | Failure) -> list[int]:
    """The place of each text."""
    return [round(1 / score) for score in scores(result)]
