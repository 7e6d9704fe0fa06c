"""Difficulty: a question that several small models answer needs no retrieval and is turned away.

Each member of the committee answers by itself: it chooses an option where there are some, else it writes an answer
that a judge compares with the right one. A member whose call failed has said nothing. Where that leaves open whether
too many know the answer, the item fails rather than being guessed about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import Any

from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask, whole
from hoofbeat.records import Failure

Tried = str | Failure
"""`right`, `wrong`, or why there is no answer."""


def difficult(
    name: str, *, max_correct: int, max_members: int, choose: str, write: str, judge: str = "equivalence"
) -> RecipeStep:
    """Keep what at most so many members of the committee answer; without a committee all stay, and metrics say so.

    `choose` takes `question` and `options` and gives `choice`; `write` takes `question` and gives `answer`; `judge`
    takes `question`, `reference` and `answer` and gives `label`. A model that sits in the committee twice is refused,
    and so are more than `max_members`: a member answers with one call, or with two where a judge is needed.
    """

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        members = context.committee()
        if not members:
            context.metrics[name] = {"skipped": "no committee of models was given (--committee)"}
            return list(items)
        _check(members, context, max_members)
        context.metrics[name] = {"members": len(members), "max_correct": max_correct}
        tried: list[dict[str, Tried]] = [{} for _ in items]
        for member in members:
            for place, result in enumerate(_try(name, items, context, member, choose, write, judge)):
                tried[place][member] = result
        return [_judged(item, each, max_correct) for item, each in zip(items, tried, strict=True)]

    return whole(name, run, prompts=(choose, write, judge), calls=2 * max_members)


def _check(members: Sequence[str], context: RecipeContext, maximum: int) -> None:
    """Every member is a model of its own, and there are not too many of them."""
    if len(members) > maximum:
        raise UsageError(
            f"{len(members)} models are in the committee, at most {maximum} are asked",
            fix="name fewer, or raise the limit: --max-members",
        )
    seats: dict[str, str] = {}
    for member in members:
        identity = context.model(member).identity
        if identity in seats:
            raise UsageError(
                f"{identity} is in the committee twice, as {seats[identity]} and {member}",
                fix="name every model once (--committee): one that is asked twice would count twice",
            )
        seats[identity] = member


def _try(
    name: str, items: Sequence[RecipeItem], context: RecipeContext, member: str, choose: str, write: str, judge: str
) -> list[Tried]:
    """What one member made of every item."""
    chosen = ask(
        name,
        choose,
        values=lambda item, context: {
            "question": _shown(item, context, choose, member, beside=len(_lettered(item))),
            "options": _lettered(item),
        },
        read=lambda item, value, _context: item.put(tried=_chosen(item, str(value["choice"]))),
        role=member,
        schema=lambda item, _context: _choice_schema(len(item["options"])),
        when=_has_options,
    )
    written = ask(
        name,
        write,
        values=lambda item, context: {"question": _shown(item, context, write, member)},
        read=lambda item, value, _context: item.put(tried=str(value["answer"])),
        role=member,
        when=lambda item: not _has_options(item),
    )
    judged = ask(
        name,
        judge,
        values=lambda item, context: {
            "question": _shown(item, context, judge, beside=len(item["answer"]) + len(item["tried"])),
            "reference": item["answer"],
            "answer": item["tried"],
        },
        read=lambda item, value, _context: item.put(tried=_verdict(value)),
        when=lambda item: not _has_options(item) and item["tried"].strip() != "",
    )
    outcomes: Sequence[Outcome] = list(items)
    for step in (chosen, written, judged):
        outcomes = _onward(outcomes, lambda alive, step=step: step.run(alive, context))  # type: ignore[misc]
    return [_said(each) for each in outcomes]


def _shown(item: RecipeItem, context: RecipeContext, prompt: str, role: str = "model", *, beside: int = 0) -> str:
    """The question, as much of it as the model's window holds."""
    return context.fit(str(item["query"]), load_prompt(prompt), role, beside=beside)


def _onward(outcomes: Sequence[Outcome], run: Callable[[Sequence[RecipeItem]], Sequence[Outcome]]) -> list[Outcome]:
    """Run a step on what is still alive; what failed stays as it is."""
    alive = [each for each in outcomes if isinstance(each, RecipeItem)]
    done = iter(run(alive) if alive else ())
    return [next(done) if isinstance(each, RecipeItem) else each for each in outcomes]


def _said(outcome: Outcome) -> Tried:
    if isinstance(outcome, Failure):
        return outcome
    assert isinstance(outcome, RecipeItem), "no step of a committee rejects"
    return "right" if outcome["tried"] == "right" else "wrong"


def _judged(item: RecipeItem, tried: dict[str, Tried], maximum: int) -> Outcome:
    right = sum(result == "right" for result in tried.values())
    failures = [result for result in tried.values() if isinstance(result, Failure)]
    if right > maximum:
        return ItemRejection(
            reason="too many models of the committee answer it", details=f"{right} of {len(tried)}, at most {maximum}"
        )
    if right + len(failures) > maximum and failures:
        return failures[0]
    told = {member: result if isinstance(result, str) else f"failed: {result.kind}" for member, result in tried.items()}
    return item.put(tried=told)


def _has_options(item: RecipeItem) -> bool:
    return bool(item.get("options"))


def _lettered(item: RecipeItem) -> str:
    return "\n".join(f"{letter}. {text}" for letter, text in zip(ascii_uppercase, item["options"], strict=False))


def _chosen(item: RecipeItem, letter: str) -> str:
    place = ascii_uppercase.find(letter.strip().upper()[:1])
    options = item["options"]
    return "right" if 0 <= place < len(options) and options[place] == item["answer"] else "wrong"


def _choice_schema(count: int) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"choice": {"type": "string", "enum": list(ascii_uppercase[:count])}},
        "required": ["choice"],
        "additionalProperties": False,
    }


def _verdict(value: dict[str, Any]) -> str:
    return "right" if value["label"] == "equivalent" else "wrong"
