"""A search agent's loop: a model that searches while it thinks, until it answers or a limit is reached.

Every step is an object of a schema, not tags in running text: small models keep to it, and nothing that stands in a
passage can pass for a step. The question, passages, and what the model itself wrote before come as fenced material.

The agent is a generator: it yields what it waits for (a call, or a search) and is sent the result, so that one and the
same agent can be driven alone (`run_agent`) or as one of many, each round's calls and searches together (`run_agents`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.models import ChatRequest, Model, Structured
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure, FailureKind, Passage, TraceStep
from hoofbeat.retrieval.stages import Found
from hoofbeat.retrieval.writing import room_beside, without_echo
from hoofbeat.window import BYTES_PER_TOKEN, TYPICAL_BYTES_PER_TOKEN, fit_beginnings, size

__all__ = ["AgentResult", "AgentSettings", "run_agent", "run_agents"]

_LEAST_TOKENS = 64
_MOST_RESERVED = 512
_FIELD_CHARS = 30
_UNREADABLE: frozenset[FailureKind] = frozenset({"unreadable", "schema", "truncated"})
_SAME_AGAIN = 2


class AgentSettings(Struct, frozen=True, kw_only=True):
    """How an agent works.

    `turns` is the most searches it may make, `top` how many passages each brings, `reads` how many characters of a
    passage it is shown, `tokens` the most it may write in all (repairs of unreadable output come on top). With
    `condense`, passages are condensed by a call of their own. `name` stands in the trace. Other prompts must take the
    same variables and fill the same fields.
    """

    name: str = "agent"
    condense: bool = True
    turns: int = 5
    top: int = 10
    reads: int = 800
    tokens: int = 4096
    temperature: float = 0.0
    seed: int = 0
    step_prompt: str = "agent-step"
    answer_prompt: str = "agent-answer"
    read_prompt: str = "agent-read"


class AgentResult(Struct, frozen=True, kw_only=True):
    """What an agent came to: its answer or why there is none, every step, and the passages it was shown."""

    answer: str = ""
    steps: tuple[TraceStep, ...] = ()
    passages: tuple[Passage, ...] = ()
    failure: Failure | None = None


class _Look(NamedTuple):
    """A search that an agent waits for."""

    query: str


class _Turn(NamedTuple):
    """A search as the agent remembers it; `passages` only where they are not condensed."""

    thought: str
    query: str
    findings: str = ""
    passages: Sequence[Passage] = ()
    repeated: bool = False


_Wish = ChatRequest | _Look
_Got = Structured | Failure | Sequence[Found]
_T = TypeVar("_T")
_Work = Generator[_Wish, _Got, _T]


class _Agent:
    """One agent at work on one question."""

    def __init__(self, question: str, settings: AgentSettings, window: int | None) -> None:
        self.question = question
        self.settings = settings
        self.window = window
        self.left = settings.tokens
        self.turns: list[_Turn] = []
        self.steps: list[TraceStep] = []
        self.passages: dict[str, Passage] = {}

    def work(self) -> _Work[AgentResult]:
        """Think and search until there is an answer or a limit is reached; then the answer is asked for."""
        repeats = 0
        for turn in range(self.settings.turns):
            if self._allowance() < _LEAST_TOKENS:
                self._note("stopped", "the output limit is near")
                break
            step = yield from self._ask(self.settings.step_prompt, {"left": self.settings.turns - turn})
            if isinstance(step, Failure):
                if step.kind not in _UNREADABLE:
                    return self._result(failure=step)
                break
            thought, query, answer = (self._text(step, field) for field in ("thought", "query", "answer"))
            if answer and (step.value["action"] == "answer" or not query):
                return self._answered(step, thought, answer)
            self._note("thought", thought, step)
            if step.value["action"] == "answer" or not query:
                break
            if any(_same(query, earlier.query) for earlier in self.turns):
                repeats += 1
                self._note("repeated", query)
                if repeats == _SAME_AGAIN:
                    break
                self.turns.append(_Turn(thought, query, repeated=True))
                continue
            failure = yield from self._search(thought, query)
            if failure is not None:
                return self._result(failure=failure)
        return (yield from self._conclude())

    def _search(self, thought: str, query: str) -> _Work[Failure | None]:
        found = yield _Look(query)
        assert isinstance(found, Sequence)
        self._note("searched", query, found=[one.passage for one in found])
        settings = self.settings
        passages = fit_beginnings((one.passage for one in found), settings.reads, self._room(query, thought))
        self.passages |= {passage.id: passage for passage in passages}
        if not settings.condense:
            self._note("read", found=passages)
            self.turns.append(_Turn(thought, query, passages=passages))
            return None
        findings = ""
        if passages and self._allowance() >= _LEAST_TOKENS:
            values = {"thought": thought, "query": query, "passages": passages}
            read = yield from self._ask(settings.read_prompt, values)
            if isinstance(read, Failure):
                if read.kind not in _UNREADABLE:
                    return read
            else:
                findings = self._text(read, "findings") if read.value["helps"] == "yes" else ""
                self._note("read", findings, read, passages)
        self.turns.append(_Turn(thought, query, findings=findings))
        return None

    def _conclude(self) -> _Work[AgentResult]:
        """The final answer, without search, from whatever tokens are left."""
        last = yield from self._ask(self.settings.answer_prompt, {}, last=True)
        if isinstance(last, Failure):
            return self._result(failure=last)
        thought, answer = self._text(last, "thought"), self._text(last, "answer")
        if not answer:
            self._note("thought", thought, last)
            return self._result(failure=Failure(kind="unreadable", message="the agent's final answer is empty"))
        return self._answered(last, thought, answer)

    def _ask(self, name: str, values: Mapping[str, object], *, last: bool = False) -> _Work[Structured | Failure]:
        """One call, its tokens counted; what a call that failed used is not known, so the most likely is taken."""
        prompt = load_prompt(name)
        limit = max(self._allowance(last=last), _LEAST_TOKENS)
        if "history" in prompt.variables:
            values = {**values, "history": self._history()}
        request = prompt.request(
            {"question": self.question, **values},
            schema=_within(prompt.schema, limit),
            max_tokens=limit,
            temperature=self.settings.temperature,
            seed=self.settings.seed if self.settings.temperature else None,
        )
        got = yield request
        assert isinstance(got, Structured | Failure)
        if isinstance(got, Failure):
            self.left -= limit if got.kind == "truncated" else min(limit, prompt.max_tokens)
            self._note("failed", f"{name}: {got.message}")
        else:
            reply = got.reply
            written = reply.usage.tokens_out or size(reply.text + reply.reasoning) // TYPICAL_BYTES_PER_TOKEN
            self.left -= min(written, limit) * len(got.calls)
        return got

    def _allowance(self, *, last: bool = False) -> int:
        """The most that a call may write: before the last, enough must be left for the answer."""
        left = self.left if last else self.left - min(_MOST_RESERVED, self.settings.tokens // 4)
        return min(left, self.window // 4) if self.window else left

    def _history(self) -> str:
        """The searches so far as the next prompt shows them; where room is short, the latest passages only."""
        room = self._room(*(text for turn in self.turns for text in (turn.thought, turn.query, turn.findings)))
        told: list[str] = []
        for turn in reversed(self.turns):
            room -= sum(size(passage.text) for passage in turn.passages)
            told.append(self._told(turn, with_passages=room >= 0 or not told))
        return "\n\n".join(reversed(told))

    def _told(self, turn: _Turn, *, with_passages: bool) -> str:
        """One search as the next prompt shows it."""
        values: dict[str, object] = {"query": turn.query}
        if turn.repeated:
            name = "agent-turn-repeated"
        elif self.settings.condense:
            name = "agent-turn-findings"
            values |= {"thought": turn.thought, "findings": turn.findings}
        else:
            name = "agent-turn-passages"
            values |= {"thought": turn.thought, "passages": turn.passages if with_passages else ()}
        return load_prompt(name).fill(values)[1]

    def _room(self, *taken: str) -> int:
        return room_beside(self.window, self._allowance(), (self.question, *taken))

    def _note(
        self,
        what: str,
        text: str = "",
        reply: Structured | None = None,
        found: Sequence[Passage] = (),
        thought: str = "",
    ) -> None:
        reasoning = "\n".join(part for part in (reply.reply.reasoning if reply else "", thought) if part)
        self.steps.append(
            TraceStep(
                stage=self.settings.name,
                what=what,
                text=text,
                reasoning=reasoning,
                found=tuple(passage.id for passage in found),
                calls=reply.calls if reply else (),
            )
        )

    def _answered(self, reply: Structured, thought: str, answer: str) -> AgentResult:
        self._note("answered", answer, reply, thought=thought)
        return self._result(answer)

    def _text(self, reply: Structured, field: str) -> str:
        return without_echo(str(reply.value[field]), self.question)

    def _result(self, answer: str = "", failure: Failure | None = None) -> AgentResult:
        passages = tuple(self.passages.values())
        return AgentResult(answer=answer, steps=tuple(self.steps), passages=passages, failure=failure)


def _same(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def _within(schema: dict[str, object] | None, tokens: int) -> dict[str, object] | None:
    """The schema with its string lengths shrunk so that the whole object fits into so many tokens."""
    copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    fields = copy["properties"].values()
    limits = sum(field.get("maxLength", 0) for field in fields)
    share = (BYTES_PER_TOKEN * tokens - _FIELD_CHARS * len(fields)) / max(limits, 1)
    for field in fields:
        if share < 1 and "maxLength" in field:
            field["maxLength"] = max(20, int(field["maxLength"] * share))
    return copy


async def run_agent(
    model: Model,
    question: str,
    search: Callable[[str], Awaitable[Sequence[Found]]],
    settings: AgentSettings,
) -> AgentResult:
    """One agent on one question; to be awaited inside `Model.run`.

    `search` gets what the agent looks for and brings at least as many passages as it shall see.
    """
    agent = _Agent(question, settings, model.context).work()
    wish = next(agent)
    while True:
        got = (await search(wish.query))[: settings.top] if isinstance(wish, _Look) else await model.chat_json(wish)
        try:
            wish = agent.send(got)
        except StopIteration as done:
            result: AgentResult = done.value
            return result


def run_agents(
    model: Model,
    questions: Sequence[str],
    search: Callable[[Sequence[tuple[int, str]]], Sequence[Sequence[Found]]],
    settings: AgentSettings,
    *,
    progress: Progress = SILENT,
) -> list[AgentResult]:
    """An agent for each question, in rounds: all calls of a round together, then all its searches.

    `search` gets question numbers with what their agents look for. It runs outside any event loop, so it may itself
    use a model.
    """
    agents = [_Agent(question, settings, model.context).work() for question in questions]
    results: dict[int, AgentResult] = {}
    waiting = {number: next(agent) for number, agent in enumerate(agents)}

    def send(number: int, got: _Got) -> None:
        try:
            waiting[number] = agents[number].send(got)
        except StopIteration as done:
            del waiting[number]
            results[number] = done.value

    calls = 0
    while waiting:
        asked = [(number, wish) for number, wish in waiting.items() if isinstance(wish, ChatRequest)]
        if asked:
            calls += 1
            title = f"{settings.name}: call {calls}"
            replies = model.run([wish for _, wish in asked], model.chat_json, title=title, progress=progress)
            for (number, _), reply in zip(asked, replies, strict=True):
                send(number, reply)
        looks = [(number, wish.query) for number, wish in waiting.items() if isinstance(wish, _Look)]
        if looks:
            for (number, _), found in zip(looks, search(looks), strict=True):
                send(number, found[: settings.top])
    return [results[number] for number in range(len(agents))]
