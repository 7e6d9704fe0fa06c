"""Answers by deep research: the model searches the corpus until it answers, and every step stays with the answer.

As in a library, the question's own source may be found: then the answer says so, because it is another feat than to
answer without it. `exclude=source` keeps it out of every search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from hoofbeat.answering.answer_calls import PlannedAnswer, blank_answer, with_choice
from hoofbeat.answering.answerers import GREEDY, SamplingSettings
from hoofbeat.answering.condition_material import DocumentStore, PreparedCondition
from hoofbeat.answering.conditions import AgentOptions, Condition
from hoofbeat.answering.contamination import source_warnings
from hoofbeat.answering.protocols import letter_options
from hoofbeat.models import Model, Reply
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Failure, Usage
from hoofbeat.retrieval import Retriever
from hoofbeat.retrieval.search_agents import AgentResult, AgentSettings, run_agents
from hoofbeat.retrieval.stage_roles import FoundPassage

AGENT_PROMPTS = (
    "answer-agent-step", "answer-agent-final", "agent-read", "agent-turn-findings", "agent-turn-passages",
    "agent-turn-repeated",
)  # fmt: skip
"""The prompts that agents may use."""

AgentSearch = Callable[[Sequence[tuple[int, str]]], Sequence[Sequence[FoundPassage]]]
_decode = msgspec.json.Decoder(Reply).decode


def agent_settings(condition: Condition, sampling: SamplingSettings = GREEDY, sample: int = 0) -> AgentSettings:
    """How the agent of a condition works; sample n has the seed plus n."""
    options = condition.agent or AgentOptions()
    return AgentSettings(
        name="agent",
        condense=options.condense == "yes",
        turns=options.turns,
        top=options.top,
        reads=options.reads,
        tokens=options.tokens,
        temperature=sampling.temperature,
        seed=sampling.seed + sample,
        step_prompt="answer-agent-step",
        answer_prompt="answer-agent-final",
    )


def answer_by_agent(
    model: Model,
    planned: Sequence[PlannedAnswer],
    showing: PreparedCondition,
    *,
    name: str = "",
    sampling: SamplingSettings = GREEDY,
    progress: Progress = SILENT,
) -> list[Answer]:
    """Let an agent answer every plan of one condition; answers in the order of the plans."""
    answers: dict[int, Answer] = {}
    samples: dict[int, list[int]] = {}
    for place, item in enumerate(planned):
        base = blank_answer(item, name or model.spec)
        if base.failure is not None:
            answers[place] = base
        else:
            samples.setdefault(item.sample, []).append(place)
    assert showing.retriever is not None, "an agent needs something to search with"
    for sample, places in samples.items():
        items = [planned[place] for place in places]
        search = _Searching(showing.retriever, items, showing.condition)
        settings = agent_settings(showing.condition, sampling, sample)
        results = run_agents(model, [_asked(item) for item in items], search, settings, progress=progress)
        for number, (place, result) in enumerate(zip(places, results, strict=True)):
            base = blank_answer(planned[place], name or model.spec)
            noted = search.warnings.get(number, ())
            answers[place] = _answer(model, base, planned[place], result, showing.library, noted)
    return [answers[place] for place in range(len(planned))]


def _asked(item: PlannedAnswer) -> str:
    return f"{item.text}\n\nOptions:\n{letter_options(item.options)}" if item.protocol == "letter" else item.text


class _Searching:
    """The search tool of agents: one retriever line, the source left out where the condition says so."""

    def __init__(self, retriever: Retriever, items: Sequence[PlannedAnswer], condition: Condition) -> None:
        self._retriever = retriever
        self._top = (condition.agent or AgentOptions()).top
        sources = condition.agent is not None and condition.agent.exclude == "source"
        self._without = [frozenset(item.question.documents) if sources else frozenset() for item in items]
        self.warnings: dict[int, tuple[str, ...]] = {}

    def __call__(self, looks: Sequence[tuple[int, str]]) -> Sequence[Sequence[FoundPassage]]:
        """The best documents for each look, each with its best passage."""
        more = max((len(self._without[number]) for number, _ in looks), default=0)
        queries = [(str(place), text) for place, (_, text) in enumerate(looks)]
        searched = self._retriever.run(queries, self._top + more)
        found: list[list[FoundPassage]] = []
        for (number, _), query, hits in zip(looks, searched.queries, searched.hits, strict=True):
            if query.failure is not None:
                note = f"a search failed: {query.failure.kind}: {query.failure.message}"
                self.warnings[number] = (*self.warnings.get(number, ()), note)
            passages = [(hit, self._retriever.indexes.passage(hit.passage)) for hit in hits]
            found.append(
                [
                    FoundPassage(hit.document, passage, hit.score)
                    for hit, passage in passages
                    if hit.document not in self._without[number]
                ][: self._top]
            )
        return found


def _answer(
    model: Model, base: Answer, item: PlannedAnswer, result: AgentResult, library: DocumentStore, noted: tuple[str, ...]
) -> Answer:
    """An agent's result as an answer, with what it read and what is doubtful about that."""
    calls = tuple(dict.fromkeys(call for step in result.steps for call in step.calls))
    read = source_warnings(item.question, result.passages, library.document, own=True)
    answer = msgspec.structs.replace(
        base,
        evidence=result.passages,
        trace=result.steps,
        warnings=(*base.warnings, *noted, *read),
        calls=calls,
        usage=_usage(model, calls),
    )
    if result.failure is not None:
        return msgspec.structs.replace(answer, failure=result.failure)
    if not result.answer.strip():
        failure = Failure(kind="unreadable", message="the agent's answer is empty")
        return msgspec.structs.replace(answer, failure=failure)
    reasoning = result.steps[-1].reasoning if result.steps else ""
    return with_choice(msgspec.structs.replace(answer, text=result.answer.strip(), reasoning=reasoning))


def _usage(model: Model, calls: Sequence[str]) -> Usage:
    """What the calls used, as the ledger has it."""
    replies = [_decode(kept) for call in calls if (kept := model.ledger.get(call)) is not None]
    return Usage(
        tokens_in=sum(reply.usage.tokens_in for reply in replies),
        tokens_out=sum(reply.usage.tokens_out for reply in replies),
    )
