"""Models × conditions × protocols as one piece of work: one plan, one estimate, one stream of answers.

The order of the answers is that of the plan: model, condition, protocol, question, sample. They are made in blocks, so
that a hundred thousand of them never stand in memory together. A grid that was killed is planned again the same way,
and what the ledger has is not asked again.

In deep research the model searches the corpus until it answers, and every step stays with the answer. As in a library,
the question's own source may be found: then the answer says so, because that is a different achievement from answering
without it. `exclude=source` keeps the source out of every search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.answering.answer_calls import (
    PlannedAnswer,
    answer_all,
    blank_answer,
    fit,
    likelihood_calls,
    prompt_for,
    request_for,
    with_choice,
)
from hoofbeat.answering.answerers import GREEDY, Answerer, SamplingSettings
from hoofbeat.answering.condition_material import DocumentStore, PreparedCondition, source_warnings
from hoofbeat.answering.conditions import (
    FREE,
    SCORING,
    AgentOptions,
    Condition,
    letter_options,
    option_trouble,
    ordered_options,
)
from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.models import ChatRequest, Estimate, Model, Reply
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.requests import likelihood_content, request_key
from hoofbeat.progress import SILENT, Progress, Task, Within
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Question, Usage
from hoofbeat.retrieval import Retriever
from hoofbeat.retrieval.search_agents import AgentResult, AgentSettings, run_agents
from hoofbeat.retrieval.stage_roles import FoundPassage
from hoofbeat.window import BYTES_PER_TOKEN, TYPICAL_BYTES_PER_TOKEN, nothing_fits, size, tokens_at_most

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


_BLOCK = 512
_BLOCK_CHARACTERS = 100_000_000
_AGENT_PROMPT_TOKENS = 600


class PromptSettings(Struct, frozen=True, kw_only=True):
    """How all questions of a grid are asked: which instruction, and the seed of the options' order."""

    instruction: str = "best"
    option_seed: int = 0


class System(Struct, frozen=True, kw_only=True):
    """One cell of a grid: a model as written, a condition with its protocol, and the questions it is asked."""

    answerer: Answerer
    condition: Condition
    questions: tuple[Question, ...]

    @property
    def protocol(self) -> str:
        """The protocol; empty for free text."""
        return self.condition.protocol or FREE

    @property
    def samples(self) -> int:
        """How many answers a question gets; what is measured is measured once."""
        return 1 if self.protocol in SCORING else self.answerer.samples

    @property
    def size(self) -> int:
        """How many answers are planned."""
        return len(self.questions) * self.samples


def plan_systems(
    answerers: Sequence[Answerer],
    conditions: Sequence[Condition],
    questions: Sequence[Question],
    protocols: Sequence[str] = (),
) -> list[System]:
    """The systems of a grid, in the order of its answers, each once.

    A condition that names a protocol keeps it. Another is asked under each of `protocols`; without any, by letter
    where a question has options and else in free text.
    """
    systems: dict[tuple[str, str], System] = {}
    for answerer in answerers:
        for condition in conditions:
            for protocol, asked in _protocols(condition, questions, protocols):
                system = System(answerer=answerer, condition=condition.by(protocol), questions=tuple(asked))
                systems.setdefault((answerer.written, system.condition.name), system)
    return list(systems.values())


def _protocols(
    condition: Condition, questions: Sequence[Question], given: Sequence[str]
) -> list[tuple[str, Sequence[Question]]]:
    if condition.kind == "options":
        given = given or ("letter",)
        questions = [question for question in questions if question.options]
    if condition.protocol is None and not given:
        parts = [
            ("letter", [question for question in questions if question.options]),
            (FREE, [question for question in questions if not question.options]),
        ]
        return [(protocol, asked) for protocol, asked in parts if asked]
    wanted = [condition.protocol] if condition.protocol is not None else [FREE if p == "free" else p for p in given]
    for protocol in wanted:
        if protocol and not any(question.options for question in questions):
            raise UsageError(
                f"no question of this benchmark has options, so the protocol {protocol} can't be used",
                fix="leave out --protocol, or choose an edition with options",
            )
    return [(protocol, questions) for protocol in wanted]


def plans(
    system: System, showing: PreparedCondition, window: int | None, asking: PromptSettings
) -> Iterator[PlannedAnswer]:
    """Every answer of a system, as it will be asked: laid out only when it is its turn."""
    protocol = system.protocol
    output = _output_tokens(system, showing, asking)
    for question in system.questions:
        shown = showing.show(question)
        options: tuple[str, ...] = ()
        if protocol != FREE:
            options = ordered_options(question, asking.option_seed) if protocol == "letter" else question.options
        text = question.full_text if shown.text is None else shown.text
        beside = text + (letter_options(options) if protocol == "letter" else max(options, key=len, default=""))
        kept, dropped = fit(shown.passages, beside, window, output)
        failure = option_trouble(question, protocol) or shown.failure or nothing_fits(shown.passages, kept, window)
        warnings = shown.warnings if failure else (*shown.warnings, *showing.doubts(question, kept))
        for sample in range(system.samples):
            yield PlannedAnswer(
                question=question,
                condition=system.condition.name,
                sample=sample,
                protocol=protocol,
                options=options,
                shown=shown.text,
                passages=kept,
                dropped=dropped,
                images=shown.images,
                instruction=asking.instruction,
                warnings=warnings,
                failure=failure,
            )


def _window(model: Model, system: System) -> int | None:
    """The window that documents are fitted into; it is not asked for where none are shown."""
    return model.context if system.condition.needs_corpus else None


def _output_tokens(system: System, showing: PreparedCondition, asking: PromptSettings) -> int:
    if system.protocol in SCORING or showing.condition.kind == "agent":
        return 0
    documents = system.condition.needs_corpus
    limit = system.answerer.sampling.max_tokens
    return limit or prompt_for(system.protocol, asking.instruction, documents=documents).max_tokens


class _Work(NamedTuple):
    """A plan on its way: of which system, and how that is shown."""

    system: System
    showing: PreparedCondition
    planned: PlannedAnswer

    @property
    def characters(self) -> int:
        """About how much memory it takes."""
        shown = sum(len(passage.text) for passage in self.planned.passages)
        return shown + sum(len(image.data) for image in self.planned.images)


def _blocks(work: Iterator[_Work], *, together: bool) -> Iterator[list[_Work]]:
    """The work in blocks of a number of answers, fewer where much is shown; or all of it together."""
    block: list[_Work] = []
    characters = 0
    for each in work:
        block.append(each)
        characters += each.characters
        if not together and (len(block) == _BLOCK or characters > _BLOCK_CHARACTERS):
            yield block
            block, characters = [], 0
    if block:
        yield block


class Grid:
    """Systems with their models and with what they are shown, ready to be estimated or answered.

    `models` are by the answerers' written names, `showings` by written name and the condition's name without protocol.
    """

    def __init__(
        self,
        systems: Sequence[System],
        models: Mapping[str, Model],
        showings: Mapping[tuple[str, str], PreparedCondition],
        asking: PromptSettings,
    ) -> None:
        self.systems = list(systems)
        self.models = dict(models)
        self._showings = showings
        self._asking = asking
        self.seconds: dict[str, float] = dict.fromkeys(models, 0.0)

    @property
    def size(self) -> int:
        """How many answers are planned."""
        return sum(system.size for system in self.systems)

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts that are used, with their fingerprints."""
        names: set[str] = set()
        for system in self.systems:
            if system.condition.kind == "agent":
                names |= set(AGENT_PROMPTS)
            elif system.protocol not in SCORING:
                documents = system.condition.needs_corpus
                names.add(prompt_for(system.protocol, self._asking.instruction, documents=documents).name)
        return {name: load_prompt(name).label for name in sorted(names)}

    def output_limits(self) -> dict[tuple[str, str], int]:
        """How many tokens an answer of each system may have, by model and condition; 0 where no one limit holds."""
        return {
            (system.answerer.written, system.condition.name): _output_tokens(
                system, self._showings[system.answerer.written, system.condition.base], self._asking
            )
            for system in self.systems
        }

    def estimate(self) -> list[tuple[System, Estimate]]:
        """What each system would cost; a call that two of them share counts for the first."""
        seen: set[str] = set()
        return [(system, self._estimate(system, seen)) for system in self.systems]

    def answers(self, task: Task) -> Iterator[list[Answer]]:
        """Every answer in the order of the plan, in blocks; what batches are to answer is written for all models."""
        pending: list[BatchPending] = []
        for written, model in self.models.items():
            together = isinstance(model.backend, BatchBackend)  # a batch folder takes all requests at once
            for block in _blocks(self._work(written), together=together):
                began = time.monotonic()
                try:
                    answers = self._answer(model, block, task)
                except BatchPending as err:
                    pending.append(err)
                    continue
                self.seconds[written] += time.monotonic() - began
                yield answers
        if pending:
            raise BatchPending.together(pending)

    def _work(self, written: str) -> Iterator[_Work]:
        for system in self.systems:
            if system.answerer.written == written:
                showing = self._showing(system)
                for planned in plans(system, showing, _window(self.models[written], system), self._asking):
                    yield _Work(system, showing, planned)

    def _showing(self, system: System) -> PreparedCondition:
        return self._showings[system.answerer.written, system.condition.base]

    def _answer(self, model: Model, block: Sequence[_Work], task: Task) -> list[Answer]:
        """One block: plain calls together, then the agents, condition by condition."""
        answerer = block[0].system.answerer
        parts: dict[str, list[int]] = {}
        for place, work in enumerate(block):
            parts.setdefault(work.system.condition.name if work.showing.condition.kind == "agent" else "", []).append(
                place
            )
        answers: dict[int, Answer] = {}
        for agent, places in sorted(parts.items()):
            planned = [block[place].planned for place in places]
            if agent:
                made = answer_by_agent(
                    model,
                    planned,
                    block[places[0]].showing,
                    name=answerer.written,
                    sampling=answerer.sampling,
                    progress=SILENT,
                )
                task.advance(len(made))
            else:
                made = answer_all(
                    model, planned, name=answerer.written, sampling=answerer.sampling, progress=Within(task)
                )
            answers.update(zip(places, made, strict=True))
        return [answers[place] for place in range(len(block))]

    def _estimate(self, system: System, seen: set[str]) -> Estimate:
        model = self.models[system.answerer.written]
        if system.condition.kind == "agent":
            return self._most_of_agents(system, model)
        total = Estimate(max_money=0.0)
        planned = plans(system, self._showing(system), _window(model, system), self._asking)
        while block := list(islice(planned, _BLOCK)):
            asked = [item for item in block if item.failure is None]
            if system.protocol in SCORING:
                calls = (call for item in asked for call in likelihood_calls(item))
                total += _measuring(model, calls, seen)
            else:
                requests = (request_for(item, system.answerer.sampling) for item in asked)
                total += model.estimate(_unseen(model, requests, seen))
        return total

    def _most_of_agents(self, system: System, model: Model) -> Estimate:
        """The most that agents can spend: every turn a step and, condensing, a reading; then the answer."""
        settings = agent_settings(system.condition)
        each = (2 if settings.condense else 1) * settings.turns + 1
        read = settings.top * settings.reads / BYTES_PER_TOKEN + _AGENT_PROMPT_TOKENS
        asked = sum(tokens_at_most(question.full_text) for question in system.questions)
        calls = each * system.size
        tokens_in = int(each * (asked * system.samples + read * system.size))
        tokens_out = (settings.tokens + each * model.reasoning) * system.size
        money = model.price.of(tokens_in, tokens_out) if model.price else None
        return Estimate(calls=calls, tokens_in=tokens_in, max_tokens_out=tokens_out, max_money=money)


def _unseen(model: Model, requests: Iterable[ChatRequest], seen: set[str]) -> list[ChatRequest]:
    new = []
    for request in requests:
        key = request_key(model.identity, "chat", request.content())[0]
        if key not in seen:
            seen.add(key)
            new.append(request)
    return new


def _measuring(model: Model, calls: Iterable[tuple[str, str]], seen: set[str]) -> Estimate:
    """What measuring these continuations would cost."""
    new: dict[str, int] = {}
    for context, continuation in calls:
        content = likelihood_content(context, continuation, exact=False)
        key = request_key(model.identity, "loglikelihood", content)[0]
        if key not in seen:
            seen.add(key)
            new[key] = size(context + continuation) // TYPICAL_BYTES_PER_TOKEN
    known = model.ledger.known(list(new))
    tokens = sum(size for key, size in new.items() if key not in known)
    money = model.price.of(tokens, 0) if model.price else None
    return Estimate(calls=len(new) - len(known), cached=len(known), tokens_in=tokens, max_money=money)
