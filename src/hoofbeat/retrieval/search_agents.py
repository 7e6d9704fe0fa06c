"""Search agents: a model that searches while it thinks, until it answers or a limit is reached.

Every step is an object of a schema, not tags in running text: small models keep to it, and nothing in a passage can be
taken for a step. The question, passages, and what the model itself wrote before come as fenced material.

The agent is a generator: it yields what it waits for (a call, or a search) and is sent the result, so that one and the
same agent can be driven alone (`run_agent`) or as one of many, each round's calls and searches together (`run_agents`).
As query writers (`AgentWriter`), agents search with what follows them in their line, or with another line, in the same
documents or in another corpus; their final answer is fused with the question as in HyDE.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.models import ChatRequest, Model, StructuredReply
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure, FailureKind, Passage, TraceStep
from hoofbeat.retrieval.document_writers import PASSAGE_TOKENS, hyde_fusion, room_beside, without_echo
from hoofbeat.retrieval.line import CostBound, Node, StageOption, cost_bound, parse
from hoofbeat.retrieval.stage_roles import FoundPassage, QueryWriter, SearchQuery, StageTools
from hoofbeat.text import caseless
from hoofbeat.window import BYTES_PER_TOKEN, TYPICAL_BYTES_PER_TOKEN, fit_beginnings, size

_MIN_TOKENS = 64
_MAX_RESERVED = 512
_FIELD_CHARS = 30
_UNREADABLE: frozenset[FailureKind] = frozenset({"unreadable", "schema", "truncated"})
_SAME_AGAIN = 2


class AgentSettings(Struct, frozen=True, kw_only=True):
    """How an agent works.

    `turns` is the maximum number of searches, `top` how many passages each returns, `reads` how many characters of a
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
_Got = StructuredReply | Failure | Sequence[FoundPassage]
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
            if self._allowance() < _MIN_TOKENS:
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
            if any(caseless(query) == caseless(earlier.query) for earlier in self.turns):
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
        if passages and self._allowance() >= _MIN_TOKENS:
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

    def _ask(self, name: str, values: Mapping[str, object], *, last: bool = False) -> _Work[StructuredReply | Failure]:
        """One call, its tokens counted; what a call that failed used is not known, so the most likely is taken."""
        prompt = load_prompt(name)
        limit = max(self._allowance(last=last), _MIN_TOKENS)
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
        assert isinstance(got, StructuredReply | Failure)
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
        left = self.left if last else self.left - min(_MAX_RESERVED, self.settings.tokens // 4)
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
        reply: StructuredReply | None = None,
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

    def _answered(self, reply: StructuredReply, thought: str, answer: str) -> AgentResult:
        self._note("answered", answer, reply, thought=thought)
        return self._result(answer)

    def _text(self, reply: StructuredReply, field: str) -> str:
        return without_echo(str(reply.value[field]), self.question)

    def _result(self, answer: str = "", failure: Failure | None = None) -> AgentResult:
        passages = tuple(self.passages.values())
        return AgentResult(answer=answer, steps=tuple(self.steps), passages=passages, failure=failure)


def _within(schema: dict[str, object] | None, tokens: int) -> dict[str, object] | None:
    """The schema with its string lengths shrunk so that the whole object fits into this number of tokens."""
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
    search: Callable[[str], Awaitable[Sequence[FoundPassage]]],
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
    search: Callable[[Sequence[tuple[int, str]]], Sequence[Sequence[FoundPassage]]],
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


def agent_options(turns: int, top: int, reads: int) -> tuple[StageOption, ...]:
    """The options of a search agent."""
    return (
        StageOption("turns", turns, "the maximum number of searches", min_=1, max_=50),
        StageOption("top", top, "how many passages each search returns", min_=1, max_=100),
        StageOption("reads", reads, "how many characters of a passage the model sees", min_=50, max_=20000),
        StageOption("in", "", "the folder of another corpus to search; by default the same corpus"),
        StageOption("with", "", "the line it searches with; by default the stages after it", check=parse),
        StageOption("model", "", "the language model; by default the command's"),
        StageOption("tokens", 4096, "the maximum number of output tokens in total", min_=256, max_=262144),
        StageOption("temperature", 0.0, "sampling temperature", min_=0, max_=2),
        StageOption("seed", 0, "the seed where the temperature is above 0", min_=0, max_=2.0**31 - 1),
    )


class AgentWriter(QueryWriter):
    """A search agent as a query writer. `condense` says whether passages are condensed in a separate call."""

    followed_by = "bm25"
    condense: ClassVar[bool] = True

    def models(self) -> tuple[str, ...]:
        """The model that thinks."""
        return (self.word("model"),)

    def prompts(self) -> dict[str, str]:
        """The prompts of its steps."""
        turns = ("agent-read", "agent-turn-findings") if self.condense else ("agent-turn-passages",)
        names = ("agent-answer", "agent-step", "agent-turn-repeated", *turns)
        return {name: load_prompt(name).label for name in names}

    def folders(self) -> tuple[str, ...]:
        """The other corpus, where one is named."""
        return (self.word("in"),) if self.word("in") else ()

    def inner(self) -> tuple[Node, ...]:
        """The line it searches with, where one is named."""
        return (parse(self.word("with")),) if self.word("with") else ()

    def prepare(self) -> None:
        """Check that the other corpus is there."""
        from hoofbeat.retrieval.corpus_index import check_corpus_folder  # noqa: PLC0415 (reads corpora)

        if self.word("in"):
            check_corpus_folder(self.word("in"))

    def cost(self) -> CostBound:
        """Two calls for each search, and the answer; what its own line spends on each search after the first."""
        turns = self.count("turns")
        calls = 2 * turns + 1
        own = sum(map(cost_bound, self.inner()), start=CostBound()) * (turns - 1)
        return CostBound(calls, calls * self.count("top") * PASSAGE_TOKENS, self.count("tokens")) + own

    def searches(self) -> int:
        """One per turn, where it searches with what follows it."""
        return 0 if self.word("with") else self.count("turns")

    def write(self, queries: Sequence[SearchQuery], tools: StageTools) -> list[SearchQuery]:
        """The queries rewritten, in order; one without text, or that has failed before, stays as it is."""
        places = [place for place, query in enumerate(queries) if query.text.strip() and query.failure is None]
        if not places:
            return list(queries)
        settings = AgentSettings(
            name=str(self),
            condense=self.condense,
            turns=self.count("turns"),
            top=self.count("top"),
            reads=self.count("reads"),
            tokens=self.count("tokens"),
            temperature=self.number("temperature"),
            seed=self.count("seed"),
        )

        line = next(map(str, self.inner()), "")

        def search(looks: Sequence[tuple[int, str]]) -> Sequence[Sequence[FoundPassage]]:
            wanted = [SearchQuery(id=queries[places[number]].id, text=text) for number, text in looks]
            return tools.search(line, wanted, settings.top, corpus=self.word("in"))

        questions = [queries[place].text for place in places]
        found = run_agents(tools.model(self.word("model")), questions, search, settings, progress=tools.progress)
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
