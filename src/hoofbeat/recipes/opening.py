"""Opening: a multiple-choice question becomes one that can be answered without seeing any options.

The vignette stays as it is, word for word. Only the sentence that asks is touched, and only where it points to its
options; that sentence alone is given to a model and checked.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from msgspec import Struct

from hoofbeat.corpus.vocabularies import find_words
from hoofbeat.recipes.checks import sound
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.steps import RecipeStep, ask, check
from hoofbeat.recipes.workshop import Workshop
from hoofbeat.retrieval.sentences import sentence_spans

__all__ = ["asking_span", "open_steps", "points_to_options"]

_MOST_WORDS = 60
_LISTED = re.compile(r"^\s*\(?[A-Ja-j][).:]\s+\S", re.MULTILINE)
_LETTER = re.compile(r"\b(?:option|choice|answer)s?\s+\(?[A-J]\b|\([A-J]\)")


class _Rules(Struct, frozen=True):
    closed: re.Pattern[str]
    unopenable: re.Pattern[str]


@cache
def _rules() -> _Rules:
    text = (resources.files("hoofbeat.recipes") / "data" / "opening.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    closed, unopenable = (re.compile("|".join(data[part]), re.IGNORECASE) for part in ("closed", "unopenable"))
    return _Rules(closed, unopenable)


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


def open_steps(name: str, prompt: str) -> list[RecipeStep]:
    """Three steps: turn away what can't be asked openly, have the asking sentence rewritten, and check the result."""
    return [
        check(f"{name}: can be asked", _can_be_asked),
        ask(name, prompt, values=_values, read=_rewritten, when=_needs_rewriting),
        check(f"{name}: stands alone", _stands_alone),
    ]


def _can_be_asked(item: Item, _shop: Workshop) -> Outcome:
    if not item.get("options"):
        return item
    asking = _asking(item)
    if found := _rules().unopenable.search(asking):
        return Rejection(reason="the question has no answer without its options", details=found[0])
    return item


def _needs_rewriting(item: Item) -> bool:
    return bool(item.get("options")) and (bool(points_to_options(_asking(item))) or "?" not in _asking(item))


def _asking(item: Item) -> str:
    return str(item["query"])[slice(*asking_span(str(item["query"])))]


def _values(item: Item, _shop: Workshop) -> dict[str, object]:
    return {"question": _asking(item), "answer": item["answer"]}


def _rewritten(item: Item, value: dict[str, Any], _shop: Workshop) -> Outcome:
    written = " ".join(str(value["question"]).split())
    wrong = sound(written, what="open question", source=str(item["query"]), most_words=_MOST_WORDS)
    if wrong is not None:
        return wrong
    if not written.endswith("?"):
        return Rejection(reason="the open question is no question", details=written[:200])
    text = str(item["query"])
    start, end = asking_span(text)
    return item.put(query=text[:start] + written + text[end:], asked_before=text[start:end])


def _stands_alone(item: Item, _shop: Workshop) -> Outcome:
    """Neither options nor letters nor the answer in the sentence that asks, and no list of options anywhere."""
    if not item.get("options"):
        return item
    text, asking = str(item["query"]), _asking(item)
    if (found := points_to_options(asking)) or len(_LISTED.findall(text)) > 1:
        return Rejection(reason="the open question still points to options", details=found or "a list of options")
    if find_words(asking, str(item["answer"])):
        return Rejection(reason="the open question gives the answer away", details=asking[:200])
    named = [each for each in item["options"] if find_words(asking, str(each))]
    if len(named) > 1:
        return Rejection(reason="the open question still points to options", details="; ".join(named)[:200])
    return item
