"""The options of a question about a diagnosis: the report's own alternatives and a model's proposals, merged.

Alternatives come from the report's discussion, each with a quote that is found in the source and names it; where they
are too few, more are asked for. Proposals come from the stem alone. Merging leaves exactly one right option and no two
that mean the same; a last call names wrong options that could also be counted right, which no rule can see. Everything
that was dropped stands in the item's `dropped`, with its origin and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hoofbeat.benchmarks.evidence import find_quote
from hoofbeat.corpus.roles import Role
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.checks import sound
from hoofbeat.recipes.diagnosing import names
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.options import CORRECT, merge_options, plain_option, shuffled
from hoofbeat.recipes.stems import names_test
from hoofbeat.recipes.steps import RecipeStep, Schema, ask, check
from hoofbeat.recipes.workshop import Workshop
from hoofbeat.records import Document

__all__ = [
    "ASKED_FOR",
    "DISCUSSION",
    "STEM",
    "discussed",
    "discussed_alternatives",
    "drop_options",
    "further_alternatives",
    "merge_step",
    "overlap_step",
    "proposals_from_stem",
]

DISCUSSION, ASKED_FOR, STEM = "discussion", "asked for", "stem"
"""Where a wrong option comes from: the report's discussion, a call because that named too few, a call with the stem."""

DIFFERENTIALS, FURTHER, PROPOSALS, OVERLAP = (
    f"clinbench-{each}" for each in ("differentials", "further", "proposals", "overlap")
)
TOO_FEW = "too few options are left"

_MOST_WORDS = 15
_ICD = "icd10cm"
_SYMPTOMS = "R"
_WEIGHS = frozenset({Role.DISCUSSION, Role.DIAGNOSIS, Role.CONCLUSION})


def discussed(document: Document) -> str:
    """Where a report weighs diagnoses: its discussion and what it says of the diagnosis; else all of it."""
    parts = [document.text[s.start : s.end] for s in document.sections if s.role in _WEIGHS and s.end > s.body]
    return "\n\n".join(parts) or document.text


def discussed_alternatives(name: str, count: int, *, least: float) -> RecipeStep:
    """So many alternatives that the report itself weighs; one whose quote does not prove it is dropped."""

    def values(item: Item, shop: Workshop) -> dict[str, object]:
        text = discussed(shop.document(item.documents[0]))
        fitted = shop.fit(text, load_prompt(DIFFERENTIALS), beside=len(item["diagnosis"]))
        return {"count": count, "diagnosis": item["diagnosis"], "text": fitted}

    def read(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
        document = shop.document(item.documents[0])
        kept: list[dict[str, str]] = []
        for each in value["alternatives"]:
            text, quote = plain_option(str(each["name"])), str(each["quote"])
            found = find_quote(document, quote, least=least)
            why = _unfit(text, document.text)
            if not why and found is None:
                why = "its quote is not in the source"
            elif not why and not names(quote, text, document):
                why = "its quote does not name it"
            elif not why and len(kept) == count:
                why = "more than were asked for"
            if why or found is None:
                item = _dropping(item, text, DISCUSSION, why)
                continue
            kept.append({"text": text, "quote": quote})
            item = item.proven(*found.spans)
        return item.put(alternatives=kept)

    return ask(name, DIFFERENTIALS, values=values, read=read)


def further_alternatives(name: str, count: int) -> RecipeStep:
    """Ask for as many alternatives as the discussion lacks; items that have enough pass by."""

    def lacking(item: Item) -> int:
        return count - len(item["alternatives"])

    def values(item: Item, shop: Workshop) -> dict[str, object]:
        named = "\n".join(each["text"] for each in item["alternatives"]) or "none"
        beside = len(named) + len(item["diagnosis"])
        return {
            "count": lacking(item),
            "diagnosis": item["diagnosis"],
            "named": named,
            "stem": shop.fit(item["stem"], load_prompt(FURTHER), beside=beside),
        }

    def read(item: Item, value: dict[str, Any], _shop: Workshop) -> Outcome:
        return _listed(item, value["diagnoses"], lacking(item), ASKED_FOR, "further")

    return ask(name, FURTHER, values=values, read=read, when=lambda item: lacking(item) > 0)


def proposals_from_stem(name: str, count: int, *, role: str = "second") -> RecipeStep:
    """The likeliest diagnoses by the stem alone: whoever proposes them does not know the answer."""

    def values(item: Item, shop: Workshop) -> dict[str, object]:
        return {"count": count, "stem": shop.fit(item["stem"], load_prompt(PROPOSALS), role)}

    def read(item: Item, value: dict[str, Any], _shop: Workshop) -> Outcome:
        return _listed(item, value["diagnoses"], count, STEM, "proposals")

    return ask(name, PROPOSALS, values=values, read=read, role=role)


def merge_step(name: str, *, least: int, most: int, vocabularies: Sequence[str]) -> RecipeStep:
    """Merge all proposals with the right answer into `least` to `most` options that exclude each other."""

    def judge(item: Item, shop: Workshop) -> Outcome:
        merged = merge_options(
            item["diagnosis"],
            [
                (DISCUSSION, [each["text"] for each in item["alternatives"]]),
                (ASKED_FOR, item.get("further", ())),
                (STEM, item.get("proposals", ())),
            ],
            most=most,
            vocabularies=[shop.vocabulary(each) for each in vocabularies],
        )
        for each in merged.dropped:
            item = _dropping(item, each.text, each.origin, each.why)
        options = []
        for option in merged.options:
            why = "" if option.origin == CORRECT else _no_disease(option.text, shop, vocabularies)
            if why:
                item = _dropping(item, option.text, option.origin, why)
            else:
                options.append({"text": option.text, "origin": option.origin})
        return _enough(item.put(options=options), least, shop)

    return check(name, judge)


def overlap_step(name: str, *, least: int) -> RecipeStep:
    """Ask which wrong options could also be counted right, and drop them."""

    def wrong(item: Item) -> list[str]:
        return [each["text"] for each in item["options"] if each["origin"] != CORRECT]

    def schema(item: Item, _shop: Workshop) -> Schema:
        contract: Any = load_prompt(OVERLAP).schema
        each = contract["properties"]["overlapping"]["items"]
        option = {"type": "string", "enum": wrong(item)}
        limited = {**each, "properties": {**each["properties"], "option": option}}
        listed = {"type": "array", "items": limited, "maxItems": len(wrong(item))}
        return {**contract, "properties": {"overlapping": listed}}

    def read(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
        found = {str(each["option"]): str(each["reason"]) for each in value["overlapping"]}
        return drop_options(item, {text: f"could be counted right: {why}" for text, why in found.items()}, least, shop)

    return ask(
        name,
        OVERLAP,
        values=lambda item, _shop: {"diagnosis": item["diagnosis"], "options": "\n".join(wrong(item))},
        read=read,
        schema=schema,
    )


def drop_options(item: Item, why: dict[str, str], least: int, shop: Workshop) -> Outcome:
    """The item without these wrong options, by their texts; rejected where too few are left. The right one stays."""
    kept = []
    for option in item["options"]:
        if option["text"] in why and option["origin"] != CORRECT:
            item = _dropping(item, option["text"], option["origin"], why[option["text"]])
        else:
            kept.append(option)
    return _enough(item.put(options=kept), least, shop)


def _enough(item: Item, least: int, shop: Workshop) -> Outcome:
    """The item with its options in the order they are shown, if there are enough of them."""
    texts = [str(option["text"]) for option in item["options"]]
    if len(texts) < least:
        return Rejection(reason=TOO_FEW, details=f"{len(texts)} of {least}: {'; '.join(texts)}")
    order = shuffled(texts, shop.rng("options", item.id))
    return item.put(options=sorted(item["options"], key=lambda option: order.index(option["text"])))


def _listed(item: Item, texts: Sequence[object], count: int, origin: str, value: str) -> Item:
    """The first so many names that can be options."""
    kept: list[str] = []
    for text in map(plain_option, map(str, texts)):
        why = _unfit(text, str(item["stem"])) or ("more than were asked for" if len(kept) == count else "")
        if why:
            item = _dropping(item, text, origin, why)
        else:
            kept.append(text)
    return item.put(**{value: kept})


def _unfit(text: str, source: str) -> str:
    wrong = sound(text, what="option", source=source, most_words=_MOST_WORDS)
    return wrong.reason if wrong else ""


def _no_disease(text: str, shop: Workshop, vocabularies: Sequence[str]) -> str:
    """Why a wrong option names no disease: it names an examination, or ICD-10-CM has it among signs and symptoms."""
    if names_test(text):
        return "names an examination"
    found = shop.vocabulary(_ICD).lookup(text) if _ICD in vocabularies else []
    return "names a symptom" if found and found[0].code.startswith(_SYMPTOMS) else ""


def _dropping(item: Item, text: str, origin: str, why: str) -> Item:
    return item.put(dropped=[*item.get("dropped", ()), {"text": text, "origin": origin, "why": why}])
