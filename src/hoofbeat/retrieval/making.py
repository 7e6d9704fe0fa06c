"""Stages by their names: the writer or reranker that a stage of a line asks for, and what it may spend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hoofbeat.prompts import load_prompt
from hoofbeat.retrieval import agents, reranking, writing
from hoofbeat.retrieval.line import Fusion, Node, Pipeline, Stage, parse, stages
from hoofbeat.retrieval.reranking_llm import Listwise, YesNo
from hoofbeat.retrieval.stages import Writer
from hoofbeat.window import BYTES_PER_TOKEN

__all__ = [
    "RERANKED",
    "Most",
    "make_reranker",
    "make_writer",
    "models_asked",
    "most_calls",
    "prompts_of",
    "rerank_stage",
]

_AGENTS = {spec.name for spec in agents.SPECS}
_PASSAGE_TOKENS = 600
RERANKED = 100
"""How many are reranked where a line does not say."""


class Most(NamedTuple):
    """The most that a line can spend on one query: calls, tokens read besides the query, tokens written."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


def make_writer(stage: Stage) -> Writer:
    """The query writer of a stage."""
    return agents.make_writer(stage) if stage.spec.name in _AGENTS else writing.make_writer(stage)


def make_reranker(stage: Stage) -> YesNo | Listwise | reranking.ByCrossEncoder:
    """The reranker of a stage."""
    return reranking.make_reranker(stage)


def rerank_stage(method: str, depth: int) -> Stage:
    """The reranking stage of that method and depth."""
    return next(stage for stage in stages(parse(f"bm25 > rerank[with={method}]@{depth}")) if stage.kind == "reranker")


def prompts_of(stage: Stage) -> dict[str, str]:
    """The prompts a stage uses, with their fingerprints, as a manifest records them."""
    if stage.kind == "reranker":
        return reranking.make_reranker(stage).prompts
    if stage.kind != "query":
        return {}
    names = agents.prompts_of(stage) if stage.spec.name in _AGENTS else writing.prompts_of(stage)
    found = {name: load_prompt(name).label for name in names}
    if stage.spec.name == "lamer":
        for inner in stages(parse(stage.word("with"))):
            found |= prompts_of(inner)
    return found


def models_asked(node: Node) -> set[str]:
    """The language models that the writers and rerankers of a line ask, by name; an empty name is the command's."""
    found: set[str] = set()
    for stage in stages(node):
        if stage.kind == "query" or (stage.kind == "reranker" and reranking.asks_a_model(stage)):
            found.add(stage.word("model"))
        if stage.spec.name == "lamer":
            found |= models_asked(parse(stage.word("with")))
    return found


def most_calls(node: Node) -> Most:
    """The most that a line can spend on one query; what follows an agent serves its searches, too."""
    match node:
        case Stage():
            return _most(node)
        case Fusion(parts):
            return _sum([most_calls(part.node) for part in parts])
        case Pipeline(steps):
            spent = [most_calls(step) for step in steps]
            for number, step in enumerate(steps):
                if isinstance(step, Stage) and step.spec.name in _AGENTS:
                    spent += spent[number + 1 :] * step.count("turns")
            return _sum(spent)


def _sum(parts: Sequence[Most]) -> Most:
    return Most(*(sum(column) for column in zip(*parts, strict=True)))


def _most(stage: Stage) -> Most:
    if stage.spec.name in _AGENTS:
        turns = stage.count("turns")
        calls = 2 * turns + 1
        return Most(calls, calls * stage.count("top") * _PASSAGE_TOKENS, stage.count("tokens"))
    if stage.kind == "query":
        count = stage.count("n")
        own = Most(count, 0, count * stage.count("tokens"))
        if stage.spec.name != "lamer":
            return own
        shown = Most(0, count * stage.count("top") * _PASSAGE_TOKENS, 0)
        return _sum([own, shown, most_calls(parse(stage.word("with")))])
    if stage.kind == "reranker" and reranking.asks_a_model(stage):
        return _most_reranking(stage, stage.depth or RERANKED)
    if stage.spec.name == "hero" and stage.word("rerank") != "none":
        return _most(rerank_stage(stage.word("rerank"), stage.count("depth")))
    return Most()


def _most_reranking(stage: Stage, depth: int) -> Most:
    shown = stage.count("chars") // BYTES_PER_TOKEN
    if stage.word("with") != "listwise":
        return Most(depth, depth * shown, depth)
    window, stride = stage.count("window"), stage.count("stride")
    calls = 1 + max(0, -(-(depth - window) // stride))
    return Most(calls, calls * window * shown, calls * 8 * window)
