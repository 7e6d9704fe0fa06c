"""Exam questions as retrieval queries: asked without their options, and kept where small models do not know the answer.

Opening: the vignette stays as it is, word for word. Only the sentence that asks is touched, and only where it points
to its options; that sentence alone is given to a model and checked.

Difficulty: each member of a committee of models answers by itself. It chooses an option where there are some, else it
writes an answer that a judge compares with the right one. A member whose call failed has said nothing. Where that
leaves open whether too many know the answer, the item fails rather than being guessed about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from string import ascii_uppercase
from typing import Any

from msgspec import Struct

from hoofbeat.corpus.terms import term_form, tokens, word_lists
from hoofbeat.corpus.vocabulary import find_words
from hoofbeat.errors import UsageError
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.text_checks import sound
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask, check, whole
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Failure
from hoofbeat.retrieval.index.chunking import sentence_spans

_STEM = 6
_LISTED = re.compile(r"^\s*\(?[A-Ja-j][).:]\s+\S", re.MULTILINE)
_LETTER = re.compile(r"\b(?:option|choice|answer)s?\s+\(?[A-J]\b|\([A-J]\)")


class _Rules(Struct, frozen=True):
    closed: re.Pattern[str]
    unopenable: re.Pattern[str]
    asking: frozenset[str]


@cache
def _rules() -> _Rules:
    data = word_data("opening")
    closed, unopenable = (re.compile("|".join(data[part]), re.IGNORECASE) for part in ("closed", "unopenable"))
    return _Rules(closed, unopenable, frozenset(map(term_form, data["asking"])))


def asking_span(text: str) -> tuple[int, int]:
    """Where the sentence that asks is: the last with a question mark, else the last."""
    spans = sentence_spans(text) or [(0, len(text))]
    return next((span for span in reversed(spans) if "?" in text[slice(*span)]), spans[-1])


def points_to_options(text: str) -> str:
    """The words by which a question needs its options; nothing where it can stand alone."""
    for pattern in (_rules().closed, _LETTER):
        if found := pattern.search(text):
            return found[0]
    return "a list of options" if len(_LISTED.findall(text)) > 1 else ""


def open_steps(name: str, prompt: str, *, max_words: int = 60, max_new: int = 1) -> list[RecipeStep]:
    """Three steps: reject what can't be asked openly, have the asking sentence rewritten, and check the result.

    The rewritten sentence has at most `max_words` words, and at most `max_new` telling ones that the old one has not:
    with more new ones it asks for something else.
    """

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> Outcome | AskAgain:
        wrong = written = _rewritten(item, value, max_words)
        if isinstance(written, RecipeItem):
            wrong = _stands_alone(written, max_new)
        if not isinstance(wrong, ItemRejection):
            return written
        return wrong.again(
            f"A rule objects: {wrong.reason} ({wrong.details[:200]}). Write one question of at most {max_words} words "
            f"that asks the same as the sentence, in its own words (at most {max_new} new ones), without options."
        )

    def judge(item: RecipeItem, _context: RecipeContext) -> Outcome:
        return _stands_alone(item, max_new)

    return [
        check(f"{name}: can be asked", _can_be_asked),
        ask(name, prompt, values=_values, read=read, when=_needs_rewriting),
        check(f"{name}: stands alone", judge),
    ]


def _can_be_asked(item: RecipeItem, _context: RecipeContext) -> Outcome:
    if not item.get("options"):
        return item
    asking = _asking(item)
    if found := _rules().unopenable.search(asking):
        return ItemRejection(reason="the question has no answer without its options", details=found[0])
    return item


def _needs_rewriting(item: RecipeItem) -> bool:
    return bool(item.get("options")) and (bool(points_to_options(_asking(item))) or "?" not in _asking(item))


def _asking(item: RecipeItem) -> str:
    return str(item["query"])[slice(*asking_span(str(item["query"])))]


def _values(item: RecipeItem, _context: RecipeContext) -> dict[str, object]:
    return {"question": _asking(item), "answer": item["answer"]}


def _rewritten(item: RecipeItem, value: dict[str, Any], max_words: int) -> Outcome:
    written = " ".join(str(value["question"]).split())
    wrong = sound(written, what="open question", source=str(item["query"]), max_words=max_words)
    if wrong is not None:
        return wrong
    if not written.endswith("?"):
        return ItemRejection(reason="the open question is no question", details=written[:200])
    text = str(item["query"])
    start, end = asking_span(text)
    return item.put(query=text[:start] + written + text[end:], asked_before=text[start:end])


def _new_words(written: str, before: str) -> list[str]:
    """The telling words of a sentence that another has not, in any inflection."""
    known = {form[:_STEM] for form in tokens(before).forms}
    passed_by = word_lists().little | _rules().asking
    telling = {form for form in tokens(written).forms if len(form) > 1 and form not in passed_by}
    return sorted(form for form in telling if form[:_STEM] not in known)


def _stands_alone(item: RecipeItem, max_new: int) -> Outcome:
    """Neither options nor letters nor the answer in the sentence that asks, no list of options, no other question."""
    if not item.get("options"):
        return item
    text, asking = str(item["query"]), _asking(item)
    if (found := points_to_options(asking)) or len(_LISTED.findall(text)) > 1:
        return ItemRejection(reason="the open question still points to options", details=found or "a list of options")
    if find_words(asking, str(item["answer"])):
        return ItemRejection(reason="the open question gives the answer away", details=asking[:200])
    named = [each for each in item["options"] if find_words(asking, str(each))]
    if len(named) > 1:
        return ItemRejection(reason="the open question still points to options", details="; ".join(named)[:200])
    new = _new_words(asking, str(item.get("asked_before", asking)))
    if len(new) > max_new:
        return ItemRejection(
            reason="the open question asks for something else", details=f"{', '.join(new)}: {asking[:200]}"
        )
    return item


Tried = str | Failure
"""`right`, `wrong`, or why there is no answer."""


def difficult(
    name: str, *, max_correct: int, max_members: int, choose: str, write: str, judge: str = "equivalence"
) -> RecipeStep:
    """Keep what at most `max_correct` committee members answer; without a committee all stay, and metrics say so.

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
    """Every member is a different model, and there are not too many of them."""
    if len(members) > maximum:
        raise UsageError(
            f"the committee has {len(members)} models, but at most {maximum} are asked",
            fix="name fewer, or raise the limit: --max-members",
        )
    seats: dict[str, str] = {}
    for member in members:
        identity = context.model(member).identity
        if identity in seats:
            raise UsageError(
                f"{identity} is in the committee twice, as {seats[identity]} and {member}",
                fix="name every model once (--committee): otherwise it counts twice",
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
