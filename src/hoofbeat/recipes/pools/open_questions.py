"""Opening: a multiple-choice question becomes one that can be answered without seeing any options.

The vignette stays as it is, word for word. Only the sentence that asks is touched, and only where it points to its
options; that sentence alone is given to a model and checked.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from msgspec import Struct

from hoofbeat.corpus.vocabularies import find_words
from hoofbeat.corpus.vocabularies.word_forms import term_form, tokens, word_lists
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.text_checks import sound
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask, check
from hoofbeat.recipes.wordlists import word_data
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
    """Where the sentence stands that asks: the last with a question mark, else the last."""
    spans = sentence_spans(text) or [(0, len(text))]
    return next((span for span in reversed(spans) if "?" in text[slice(*span)]), spans[-1])


def points_to_options(text: str) -> str:
    """The words by which a question needs its options; nothing where it can stand alone."""
    for pattern in (_rules().closed, _LETTER):
        if found := pattern.search(text):
            return found[0]
    return "a list of options" if len(_LISTED.findall(text)) > 1 else ""


def open_steps(name: str, prompt: str, *, max_words: int = 60, max_new: int = 1) -> list[RecipeStep]:
    """Three steps: turn away what can't be asked openly, have the asking sentence rewritten, and check the result.

    The rewritten sentence has at most `max_words` words, and at most `max_new` telling ones that the old one has not:
    with more of its own it asks for something else.
    """

    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> Outcome:
        return _rewritten(item, value, max_words)

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
