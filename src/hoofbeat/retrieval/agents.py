"""Search agents as query writers: the model searches the collection while it thinks, then for its final answer.

`search-o1` condenses what each search found in a call of its own (reason in documents) and thinks on with that;
`search-r1` thinks on with the passages themselves. Both search with what follows them in their line, and their final
answer is fused with the question as in HyDE.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hoofbeat.retrieval.agent_loop import AgentResult, AgentSettings, run_agent, run_agents
from hoofbeat.retrieval.line import Option, Stage, StageSpec
from hoofbeat.retrieval.stages import Found, SearchQuery, Tools, Writer
from hoofbeat.retrieval.writing import hyde_fusion

__all__ = ["SPECS", "AgentResult", "AgentSettings", "make_writer", "prompts_of", "run_agent", "run_agents"]


def _options(turns: int, top: int, reads: int) -> tuple[Option, ...]:
    return (
        Option("turns", float(turns), 1.0, 50.0, whole=True),
        Option("top", float(top), 1.0, 100.0, whole=True),
        Option("reads", float(reads), 50.0, 20000.0, whole=True),
        Option("model", ""),
        Option("tokens", 4096.0, 256.0, 262144.0, whole=True),
        Option("temperature", 0.0, 0.0, 2.0),
        Option("seed", 0.0, 0.0, 2.0**31 - 1, whole=True),
    )


SPECS: tuple[StageSpec, ...] = (
    StageSpec(
        "search-o1",
        "query",
        _options(turns=5, top=10, reads=800),
        summary="searches while it thinks, condenses what it finds, and searches for its final answer",
        alone="bm25",
    ),
    StageSpec(
        "search-r1",
        "query",
        _options(turns=4, top=3, reads=800),
        summary="searches while it thinks, reads the passages themselves, and searches for its final answer",
        alone="bm25",
    ),
)
"""The search agents, for the catalogue."""


class _AgentWriter:
    """A search agent as a query writer."""

    def __init__(self, stage: Stage) -> None:
        self.model = stage.word("model")
        self.settings = AgentSettings(
            name=str(stage),
            condense=stage.spec.name == "search-o1",
            turns=stage.count("turns"),
            top=stage.count("top"),
            reads=stage.count("reads"),
            tokens=stage.count("tokens"),
            temperature=stage.number("temperature"),
            seed=stage.count("seed"),
        )

    def write(self, queries: Sequence[SearchQuery], tools: Tools) -> list[SearchQuery]:
        """The queries rewritten, in order; one without text, or that has failed before, stays as it is."""
        places = [place for place, query in enumerate(queries) if query.text.strip() and query.failure is None]
        if not places:
            return list(queries)

        def search(looks: Sequence[tuple[int, str]]) -> Sequence[Sequence[Found]]:
            wanted = [SearchQuery(id=queries[places[number]].id, text=text) for number, text in looks]
            return tools.search("", wanted, self.settings.top)

        questions = [queries[place].text for place in places]
        found = run_agents(tools.model(self.model), questions, search, self.settings, progress=tools.progress)
        results = dict(zip(places, found, strict=True))
        return [_fused(query, results.get(place)) for place, query in enumerate(queries)]


def _fused(query: SearchQuery, result: AgentResult | None) -> SearchQuery:
    if result is None:
        return query
    steps = query.steps + result.steps
    if result.failure is not None:
        return msgspec.structs.replace(query, steps=steps, failure=result.failure)
    lexical, dense = hyde_fusion(query.text, [result.answer])
    return msgspec.structs.replace(query, lexical=lexical, dense=dense, steps=steps)


def make_writer(stage: Stage) -> Writer:
    """The search agent for a stage of a line; an option that makes no sense is a `UsageError`."""
    return _AgentWriter(stage)


def prompts_of(stage: Stage) -> tuple[str, ...]:
    """The names of the prompts a stage uses, for the manifest."""
    turns = ("agent-read", "agent-turn-findings") if stage.spec.name == "search-o1" else ("agent-turn-passages",)
    return ("agent-answer", "agent-step", "agent-turn-repeated", *turns)
