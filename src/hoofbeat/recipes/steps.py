"""The kinds of step a recipe is made of.

- `check`: a rule about one item, without a model.
- `whole`: a rule that must see all items (sampling, near-duplicates, mining).
- `ask`: one model call an item. A prompt file (a name, or a `Prompt` of one's own: `parse_prompt`) says what is asked
  and what the output must look like; `values` fills it, `read` is the deterministic check of what came back.
- `ask_each`: several calls an item, one for each of its parts.
- `together`: steps that ask independently of each other; a batch folder takes their calls in one round.
- `with_calls_ahead`: a step whose round in a batch folder also takes calls of later steps, as the items are by then.
- `sample`: a number of items, drawn by the seed.

Every step returns one outcome an item, in the items' order.

What a rule objects to is not rejected at once: `read` returns `AskAgain`, and the model is asked once more, with its
reply and the objection. The repairs of all items of a step are one more round. Both replies to a request that is
rejected in the end are in the rejection's details.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.errors import BatchPending, HoofbeatError
from hoofbeat.models import ChatRequest, Estimate, Message, Model
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.model import StructuredReply
from hoofbeat.prompts import Prompt, load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.records import Failure, Step
from hoofbeat.store.tables import canonical_json

UNLIMITED = 1_000_000
"""Calls of a step whose number no parameter bounds."""

Part = TypeVar("Part")
Values = Mapping[str, object]
Schema = dict[str, object]

_ONCE_MORE = (
    "Answer the same request once more, as one JSON object of the same form. Correct what the objection is about and "
    "leave the rest as it is. If you are sure that the objection is mistaken, give the same answer again."
)
_SHOWN_REPLY = 2000  # characters of a reply that a rejection's details hold


class RecipeStep(Struct, frozen=True, kw_only=True):
    """One step: its name, what it does, the prompts it uses and how many calls it makes for an item at most.

    `calls` does not count repairs. `asking` is there for steps whose calls may be sent ahead (`together`); `ahead` are
    the calls of later steps that a batch folder takes with its own, and that may be made again.
    """

    name: str
    run: Callable[[Sequence[RecipeItem], RecipeContext], Sequence[Outcome]]
    prompts: tuple[str, ...] = ()
    calls: int = 0
    asking: Asking | None = None
    ahead: int = 0


class PartReply(Struct, frozen=True, kw_only=True):
    """What came back for one part of an item: an object that fits the prompt's schema, or why there is none."""

    part: Any
    value: dict[str, Any] | None = None
    failure: Failure | None = None


class StepEstimate(HoofbeatError):
    """Raised in place of the first calls when only an estimate is wanted: what this step would make of them."""

    def __init__(self, step: str, items: int, estimate: Estimate) -> None:
        super().__init__(f"{step} would make {estimate.calls} calls")
        self.step = step
        self.items = items
        self.estimate = estimate


def check(name: str, judge: Callable[[RecipeItem, RecipeContext], Outcome]) -> RecipeStep:
    """A rule about one item."""

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        with context.progress.task(name, len(items)) as task:
            outcomes = []
            for item in items:
                outcomes.append(_noted(judge(item, context), item, Step(name=name)))
                task.advance()
        return outcomes

    return RecipeStep(name=name, run=run)


def whole(
    name: str,
    judge: Callable[[Sequence[RecipeItem], RecipeContext], Sequence[Outcome]],
    *,
    prompts: tuple[str, ...] = (),
    calls: int = 0,
) -> RecipeStep:
    """A rule that must see all items before it can say anything of one."""

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        outcomes = judge(items, context)
        assert len(outcomes) == len(items), f"the step {name} must return one outcome for each item"
        return [_noted(out, item, Step(name=name)) for out, item in zip(outcomes, items, strict=True)]

    return RecipeStep(name=name, run=run, prompts=prompts, calls=calls)


def sample(name: str, count: int, *, note: str = "not drawn into the sample") -> RecipeStep:
    """`count` of the items, drawn by the seed; the others are rejected as not drawn. 0 takes all."""

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        if not count or count >= len(items):
            return list(items)
        drawn = set(context.rng(name).sample(range(len(items)), count))
        return [item if place in drawn else ItemRejection(reason=note) for place, item in enumerate(items)]

    return whole(name, judge)


def ask(
    name: str,
    prompt: str | Prompt,
    *,
    values: Callable[[RecipeItem, RecipeContext], Values | ItemRejection],
    read: Callable[[RecipeItem, dict[str, Any], RecipeContext], Outcome | AskAgain],
    role: str = "model",
    schema: Callable[[RecipeItem, RecipeContext], Schema] | None = None,
    when: Callable[[RecipeItem], bool] | None = None,
) -> RecipeStep:
    """One call an item; a call that brings nothing usable fails it. Items for which `when` is false pass by."""

    def read_one(item: RecipeItem, answers: Sequence[PartReply], context: RecipeContext) -> Outcome | AskAgain:
        (answer,) = answers
        return answer.failure or read(item, answer.value or {}, context)

    return ask_each(
        name,
        prompt,
        parts=lambda _item, _context: (None,),
        values=lambda item, _part, context: values(item, context),
        read=read_one,
        role=role,
        schema=(lambda item, _part, context: schema(item, context)) if schema else None,
        when=when,
    )


def ask_each(
    name: str,
    prompt: str | Prompt,
    *,
    parts: Callable[[RecipeItem, RecipeContext], Sequence[Part]],
    values: Callable[[RecipeItem, Part, RecipeContext], Values | ItemRejection],
    read: Callable[[RecipeItem, Sequence[PartReply], RecipeContext], Outcome | AskAgain],
    role: str = "model",
    schema: Callable[[RecipeItem, Part, RecipeContext], Schema] | None = None,
    when: Callable[[RecipeItem], bool] | None = None,
    maximum: int = 1,
) -> RecipeStep:
    """A call for each part of an item; `read` sees them all, failures among them. `maximum` is how many at most.

    Where `values` rejects, the item is rejected before any of its calls is made. Where `read` asks again, all parts
    that were answered are asked again, or those that the objection names.
    """
    asking = Asking(
        name=name, prompt=prompt, parts=parts, values=values, read=read, role=role, schema=schema, when=when
    )
    used = prompt if isinstance(prompt, str) else prompt.name
    return RecipeStep(name=name, run=asking.run, prompts=(used,), calls=maximum, asking=asking)


def together(*steps: RecipeStep) -> list[RecipeStep]:
    """The steps in their order, of which none needs what another of them writes.

    With a batch folder the calls of all of them, for all items that reach the first, are written in one round, and so
    are their repairs. A model that answers at once is asked step by step: what a step rejects costs no further calls.
    """
    if not steps:
        return []
    first, *others = steps
    asking = [step.asking for step in steps if step.asking is not None]

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> Sequence[Outcome]:
        if len(asking) > 1 and not context.estimating and (pending := _send_ahead(asking, items, context)):
            raise BatchPending.together(pending)
        return first.run(items, context)

    return [msgspec.structs.replace(first, run=run), *others]


def with_calls_ahead(step: RecipeStep, *later: RecipeStep) -> RecipeStep:
    """The step; with a batch folder, its round also takes the calls of later steps, and its repairs theirs.

    The calls are those that the items need if the step leaves them as they are. Where it changes them, the later step
    asks anew, about the changed item: a few calls more save a round for all others. The step does not wait for them: it
    goes on when its own calls are answered. A model that answers at once is asked step by step.
    """
    asking = [each.asking for each in (step, *later) if each.asking is not None]

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> Sequence[Outcome]:
        try:
            return step.run(items, context)
        except BatchPending as own:
            # The step's own round comes first: calls sent ahead to another folder must not hide it.
            ahead = _send_ahead(asking, items, context) if len(asking) > 1 and not context.estimating else []
            raise BatchPending.together([own, *ahead]) from None

    return msgspec.structs.replace(step, run=run, ahead=sum(each.calls for each in later))


def _send_ahead(steps: Sequence[Asking], items: Sequence[RecipeItem], context: RecipeContext) -> list[BatchPending]:
    """Have the calls of these steps answered where a batch folder does it; the steps then find them in the ledger.

    Returns what waits in each folder, if anything does.
    """
    batched = [step for step in steps if isinstance(context.model(step.role).backend, BatchBackend)]
    plans = [(step, step.plan(items, context)) for step in batched]
    for again in (False, True):
        calls: dict[Model, list[_Call]] = {}
        for step, planned in plans:
            calls.setdefault(context.model(step.role), []).extend(step.due(planned, context, again=again))
        pending: list[BatchPending] = []
        for model, due in calls.items():
            title = ", ".join(dict.fromkeys(call.step.name for call in due))
            try:
                _send(model, due, context, title)
            except BatchPending as err:
                pending.append(err)
        if pending:
            return pending
    return []


class Asking(Struct, frozen=True, kw_only=True, eq=False):
    """What a step asks of a model for each item, and how the replies are read."""

    name: str
    prompt: str | Prompt
    parts: Callable[[RecipeItem, RecipeContext], Sequence[Any]]
    values: Callable[[RecipeItem, Any, RecipeContext], Values | ItemRejection]
    read: Callable[[RecipeItem, Sequence[PartReply], RecipeContext], Outcome | AskAgain]
    role: str
    schema: Callable[[RecipeItem, Any, RecipeContext], Schema] | None
    when: Callable[[RecipeItem], bool] | None

    @property
    def file(self) -> Prompt:
        """The prompt."""
        return load_prompt(self.prompt) if isinstance(self.prompt, str) else self.prompt

    def run(self, items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        """Ask about every item, and once more where a rule objects to the reply."""
        context.prompts_used[self.file.name] = self.file.label
        with context.counting():
            plans = self.plan(items, context)
        spec = ""
        for again in (False, True):
            calls = self.due(plans, context, again=again)
            if calls:
                model = context.model(self.role)
                spec = model.spec
                self._stop_for_estimate(model, calls, len(items), context)
                _send(model, calls, context, self.name)
        outcomes = [self._outcome(plan, context, spec) for plan in plans]
        repaired = [out for plan, out in zip(plans, outcomes, strict=True) if plan.objection is not None]
        if repaired:
            kept = sum(isinstance(out, RecipeItem) for out in repaired)
            context.asked_again[self.name] = {"items": len(repaired), "kept": kept}
        return outcomes

    def plan(self, items: Sequence[RecipeItem], context: RecipeContext) -> list[_Plan]:
        """The calls of every item; none for items that the step passes by or rejects before asking."""
        return [self._planned(item, context) for item in items]

    def _planned(self, item: RecipeItem, context: RecipeContext) -> _Plan:
        plan = _Plan(item)
        if self.when and not self.when(item):
            plan.reading = item
            return plan
        for part in self.parts(item, context):
            filled = self.values(item, part, context)
            if isinstance(filled, ItemRejection):
                rejected = _Plan(item)
                rejected.reading = filled
                return rejected
            plan.parts.append(part)
        plan.asked = True
        return plan

    def due(self, plans: Iterable[_Plan], context: RecipeContext, *, again: bool) -> list[_Call]:
        """The calls of a round: every part of every item, or `again` the parts that a rule objects to."""
        calls: list[_Call] = []
        for plan in plans:
            if not plan.asked:
                continue
            places: Iterable[int] = range(len(plan.parts))
            if again:
                reading = self._read(plan, context)
                if not isinstance(reading, AskAgain):
                    continue
                plan.objection = reading
                places = [place for place in reading.places or places if plan.answered(place)]
            calls += [_Call(self, plan, place) for place in places]
        return calls

    def request(self, plan: _Plan, place: int, context: RecipeContext) -> ChatRequest:
        """Made when it is sent, and made again for a repair: fifty thousand reports are not held at once."""
        part = plan.parts[place]
        filled = self.values(plan.item, part, context)
        assert not isinstance(filled, ItemRejection), (
            f"{self.name}: the values of an item depend on nothing but the item"
        )
        request = self.file.request(filled, schema=self.schema(plan.item, part, context) if self.schema else None)
        if plan.objection is None:
            return request
        before = plan.first[place]
        assert isinstance(before, StructuredReply), "only what was answered is asked again"
        messages = (
            *request.messages,
            Message(role="assistant", content=canonical_json(before.value).decode()),
            Message(role="user", content=f"{plan.objection.say}\n\n{_ONCE_MORE}"),
        )
        return msgspec.structs.replace(request, messages=messages)

    def _stop_for_estimate(self, model: Model, calls: Sequence[_Call], items: int, context: RecipeContext) -> None:
        if context.estimating:
            estimate = model.estimate([self.request(call.plan, call.place, context) for call in calls])
            if estimate.calls:
                raise StepEstimate(self.name, items, estimate)

    def _read(self, plan: _Plan, context: RecipeContext) -> Outcome | AskAgain:
        if plan.reading is None:
            plan.reading = self.read(plan.item, plan.answers(), context)
        return plan.reading

    def _outcome(self, plan: _Plan, context: RecipeContext, spec: str) -> Outcome:
        reading = self._read(plan, context)
        if not plan.asked:
            assert not isinstance(reading, AskAgain)
            return reading
        outcome = reading.otherwise or reading.rejection() if isinstance(reading, AskAgain) else reading
        if isinstance(outcome, ItemRejection) and plan.objection is not None:
            details = "\n".join(filter(None, (outcome.details, plan.replies())))
            outcome = msgspec.structs.replace(outcome, details=details)
        calls = plan.calls()
        note = f"{len(calls)} calls" if len(calls) > 1 else ""
        if plan.objection is not None:
            note += f"; asked again: {plan.objection.reason}"
        step = Step(name=self.name, prompt=self.file.label, model=spec, call=calls[-1] if calls else "", note=note)
        return _noted(outcome, plan.item, step)


class _Plan:
    """The calls of one item, what came of them, and what was read in it."""

    def __init__(self, item: RecipeItem) -> None:
        self.item = item
        self.asked = False
        self.parts: list[Any] = []
        self.first: dict[int, StructuredReply | Failure] = {}
        self.second: dict[int, StructuredReply | Failure] = {}
        self.objection: AskAgain | None = None
        self.reading: Outcome | AskAgain | None = None

    def take(self, place: int, result: StructuredReply | Failure) -> None:
        """Keep what a call brought; what was read before it does not count any more."""
        (self.first if self.objection is None else self.second)[place] = result
        self.reading = None

    def answered(self, place: int) -> bool:
        """Whether a part has a reply that can be read."""
        return isinstance(self.first.get(place), StructuredReply)

    def answers(self) -> list[PartReply]:
        """The latest reply to each part."""
        latest = {**self.first, **self.second}
        return [
            PartReply(part=part, failure=result)
            if isinstance(result := latest[place], Failure)
            else PartReply(part=part, value=result.value)
            for place, part in enumerate(self.parts)
        ]

    def calls(self) -> list[str]:
        """The ledger keys of all calls, in the order of the rounds."""
        results = (*self.first.values(), *self.second.values())
        return [call for result in results if isinstance(result, StructuredReply) for call in result.calls]

    def replies(self) -> str:
        """Both replies to what was asked twice, in short."""
        lines = []
        for place in sorted(self.second):
            for which, result in (("first", self.first[place]), ("second", self.second[place])):
                said = canonical_json(result.value).decode() if isinstance(result, StructuredReply) else result.message
                lines.append(f"{which} reply: {said[:_SHOWN_REPLY]}")
        return "\n".join(lines)


class _Call(NamedTuple):
    """One call of a round."""

    step: Asking
    plan: _Plan
    place: int


def _send(model: Model, calls: Sequence[_Call], context: RecipeContext, title: str) -> None:
    """Have these calls answered, several at once."""

    async def work(call: _Call) -> StructuredReply | Failure:
        return await model.chat_json(call.step.request(call.plan, call.place, context))

    results = model.run(calls, work, title=title, progress=context.progress)
    for call, result in zip(calls, results, strict=True):
        call.plan.take(call.place, result)


def _noted(outcome: Outcome, before: RecipeItem, step: Step) -> Outcome:
    """An item that a step changed carries the step in its lineage; one it only looked at does not."""
    return outcome.done(step) if isinstance(outcome, RecipeItem) and (step.prompt or outcome != before) else outcome
