"""The kinds of step a recipe is made of.

- `check`: a rule about one item, without a model.
- `whole`: a rule that must see all items (sampling, near-duplicates, mining).
- `ask`: one model call an item. A prompt file (a name, or a `Prompt` of one's own: `parse_prompt`) says what is asked
  and what the output must look like; `values` fills it, `read` is the deterministic check of what came back.
- `ask_each`: several calls an item, one for each of its parts.
- `sample`: so many items, drawn by the seed.

Every step returns one outcome an item, in the items' order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.models import ChatRequest, Estimate
from hoofbeat.models.model import StructuredReply
from hoofbeat.prompts import Prompt, load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.records import Failure, Step

UNLIMITED = 1_000_000
"""Calls of a step whose number no parameter bounds."""

Part = TypeVar("Part")
Values = Mapping[str, object]
Schema = dict[str, object]


class RecipeStep(Struct, frozen=True, kw_only=True):
    """One step: its name, what it does, the prompts it uses and how many calls it makes for an item at most."""

    name: str
    run: Callable[[Sequence[RecipeItem], RecipeContext], Sequence[Outcome]]
    prompts: tuple[str, ...] = ()
    calls: int = 0


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
    """So many of the items, drawn by the seed; the others are rejected as not drawn. 0 takes all."""

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
    read: Callable[[RecipeItem, dict[str, Any], RecipeContext], Outcome],
    role: str = "model",
    schema: Callable[[RecipeItem, RecipeContext], Schema] | None = None,
    when: Callable[[RecipeItem], bool] | None = None,
) -> RecipeStep:
    """One call an item; a call that brings nothing usable fails it. Items for which `when` is false pass by."""

    def read_one(item: RecipeItem, answers: Sequence[PartReply], context: RecipeContext) -> Outcome:
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
    read: Callable[[RecipeItem, Sequence[PartReply], RecipeContext], Outcome],
    role: str = "model",
    schema: Callable[[RecipeItem, Part, RecipeContext], Schema] | None = None,
    when: Callable[[RecipeItem], bool] | None = None,
    maximum: int = 1,
) -> RecipeStep:
    """A call for each part of an item; `read` sees them all, failures among them. `maximum` is how many at most.

    Where `values` rejects, the item is rejected before any of its calls is made.
    """

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        file = load_prompt(prompt) if isinstance(prompt, str) else prompt
        context.prompts_used[file.name] = file.label
        with context.counting():
            plans = [_Plan(item) if when and not when(item) else _planned(item, context) for item in items]
        asked = [(plan, place) for plan in plans for place in range(len(plan.parts))]
        model = context.model(role) if asked else None

        def request(plan: _Plan, place: int) -> ChatRequest:
            """Made when it is sent, and made again for a repair: fifty thousand reports are not held at once."""
            part = plan.parts[place]
            filled = values(plan.item, part, context)
            assert not isinstance(filled, ItemRejection), (
                f"{name}: the values of an item depend on nothing but the item"
            )
            return file.request(filled, schema=schema(plan.item, part, context) if schema else None)

        if model is not None:
            if context.estimating:
                estimate = model.estimate([request(plan, place) for plan, place in asked])
                if estimate.calls:
                    raise StepEstimate(name, len(items), estimate)

            async def work(which: tuple[_Plan, int]) -> StructuredReply | Failure:
                plan, place = which
                return await model.chat_json(request(plan, place))

            for (plan, _), result in zip(
                asked, model.run(asked, work, title=name, progress=context.progress), strict=True
            ):
                plan.results.append(result)
        spec = model.spec if model is not None else ""
        return [_read(plan, context, file, spec) for plan in plans]

    def _planned(item: RecipeItem, context: RecipeContext) -> _Plan:
        plan = _Plan(item)
        for part in parts(item, context):
            filled = values(item, part, context)
            if isinstance(filled, ItemRejection):
                return _Plan(item, rejection=filled)
            plan.parts.append(part)
        return plan

    def _read(plan: _Plan, context: RecipeContext, file: Prompt, spec: str) -> Outcome:
        if plan.rejection is not None:
            return plan.rejection
        if when and not when(plan.item):
            return plan.item
        outcome = read(plan.item, plan.answers(), context)
        calls = [call for result in plan.results if isinstance(result, StructuredReply) for call in result.calls]
        note = f"{len(calls)} calls" if len(calls) > 1 else ""
        step = Step(name=name, prompt=file.label, model=spec, call=calls[-1] if calls else "", note=note)
        return _noted(outcome, plan.item, step)

    return RecipeStep(name=name, run=run, prompts=(prompt if isinstance(prompt, str) else prompt.name,), calls=maximum)


class _Plan:
    """The calls of one item and what came of them."""

    def __init__(self, item: RecipeItem, rejection: ItemRejection | None = None) -> None:
        self.item = item
        self.rejection = rejection
        self.parts: list[Any] = []
        self.results: list[StructuredReply | Failure] = []

    def answers(self) -> list[PartReply]:
        return [
            PartReply(part=part, failure=result)
            if isinstance(result, Failure)
            else PartReply(part=part, value=result.value)
            for part, result in zip(self.parts, self.results, strict=True)
        ]


def _noted(outcome: Outcome, before: RecipeItem, step: Step) -> Outcome:
    """An item that a step changed carries the step in its lineage; one it only looked at does not."""
    return outcome.done(step) if isinstance(outcome, RecipeItem) and (step.prompt or outcome != before) else outcome
