"""Candidates for the wrong options of a question about a diagnosis: the report's own alternatives and a model's.

Alternatives come from the report, whichever section names them, each with a quote that is found in the source; where
they are too few, more are asked for. What rules object to is told to the model once. Proposals come from the stem
alone. Merging leaves no two that mean the same, and none that means the right answer; which of them become options, a
model says (`option_choice`). Everything that was dropped is in the item's `dropped`, with its origin and why, or in the
details of its rejection.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.roles import CASE_ROLES, Role
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import CORRECT, merge_options, plain_option, shuffled
from hoofbeat.recipes.cases.case_diagnosis import MIN_SHARED, NamedDiagnosis
from hoofbeat.recipes.cases.option_choice import TOO_FEW, Candidate, choose_options
from hoofbeat.recipes.cases.stems import names_test
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import names_measure, names_organism, names_procedure
from hoofbeat.recipes.guards.text_checks import sound
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, Schema, ask, check
from hoofbeat.records import Document
from hoofbeat.window import size

DISCUSSION, ASKED_FOR, STEM = "discussion", "asked for", "stem"
"""Where a wrong option comes from: the report's discussion, a call because that named too few, a call with the stem."""

MAX_WORDS = 15
"""How many words an option has at most, where a recipe does not say otherwise."""

DIFFERENTIALS, FURTHER, PROPOSALS = (f"clinbench-{each}" for each in ("differentials", "further", "proposals"))

_MORE = "more than were asked for"
_SHOWN = 160
_MAX_CANDIDATES = 24
_ICD = "icd10cm"
_SYMPTOMS = "R"
_WEIGHS = frozenset({Role.DISCUSSION, Role.DIAGNOSIS, Role.CONCLUSION, *CASE_ROLES})


def discussed(document: Document, room: int) -> str:
    """A report as far as it weighs diagnoses: all but back matter, or discussion and case where that is too long."""
    for parts in (
        [s for s in document.sections if s.role != Role.BACK],
        [s for s in document.sections if s.role in _WEIGHS],
    ):
        text = "\n\n".join(document.text[s.start : s.end] for s in parts if s.end > s.body)
        if text and size(text) <= room:
            return text
    return text or document.text


def discussed_alternatives(
    name: str,
    count: int,
    *,
    min_match: float,
    max_words: int = MAX_WORDS,
    shared: float = MIN_SHARED,
    vocabularies: Sequence[str] = (),
) -> RecipeStep:
    """So many alternatives that the report itself weighs, each proven by a quote.

    `shared` is the share of an alternative's words that its quote must have. Where rules leave too few, the model is
    told what they object to and asked once more; what they object to then is dropped, and listed.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        prompt = load_prompt(DIFFERENTIALS)
        text = discussed(context.document(item.documents[0]), context.room(prompt) - len(item["diagnosis"]))
        fitted = context.fit(text, prompt, beside=len(item["diagnosis"]))
        return {"count": count, "diagnosis": item["diagnosis"], "text": fitted}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        document = context.document(item.documents[0])
        kept: list[dict[str, str]] = []
        dropped: list[tuple[str, str]] = []
        for each in value["alternatives"]:
            text, quote = plain_option(str(each["name"])), str(each["quote"])
            found = find_quote(document, quote, min_score=min_match)
            why = _unfit(text, document.text, max_words) or _no_disease(text, context, vocabularies)
            if not why and found is None:
                why = "its quote is not in the source"
            elif not why and not NamedDiagnosis(text, (), document, context).in_words(quote, shared):
                why = "its quote does not name it"
            elif not why and len(kept) == count:
                why = _MORE
            if why or found is None:
                dropped.append((text, why))
                continue
            kept.append({"text": text, "quote": quote})
            item = item.proven(*found.spans)
        done = _dropping_all(item.put(alternatives=kept), dropped, DISCUSSION)
        return _repaired(done, dropped, lacking=len(kept) < count)

    return ask(name, DIFFERENTIALS, values=values, read=read)


def further_alternatives(
    name: str, count: int, *, max_words: int = MAX_WORDS, vocabularies: Sequence[str] = ()
) -> RecipeStep:
    """Ask for as many alternatives as the discussion lacks; items that have enough pass by."""

    def lacking(item: RecipeItem) -> int:
        return count - len(item["alternatives"])

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        named = "\n".join(each["text"] for each in item["alternatives"]) or "none"
        beside = len(named) + len(item["diagnosis"])
        return {
            "count": lacking(item),
            "diagnosis": item["diagnosis"],
            "named": named,
            "stem": context.fit(item["stem"], load_prompt(FURTHER), beside=beside),
        }

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        source, names = str(item["stem"]), value["diagnoses"]
        kept, dropped = _fit_ones(names, source, lacking(item), max_words, context, vocabularies)
        done = _dropping_all(item, dropped, ASKED_FOR).put(further=kept)
        return _repaired(done, dropped, lacking=len(kept) < lacking(item))

    return ask(
        name,
        FURTHER,
        values=values,
        read=read,
        schema=lambda item, _context: _at_least(FURTHER, lacking(item)),
        when=lambda item: lacking(item) > 0,
    )


def proposals_from_stem(
    name: str, count: int, *, role: str = "second", max_words: int = MAX_WORDS, vocabularies: Sequence[str] = ()
) -> RecipeStep:
    """The likeliest diagnoses by the stem alone: whoever proposes them does not know the answer."""

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        return {"count": count, "stem": context.fit(item["stem"], load_prompt(PROPOSALS), role)}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        kept, dropped = _fit_ones(value["diagnoses"], str(item["stem"]), count, max_words, context, vocabularies)
        done = _dropping_all(item, dropped, STEM).put(proposals=kept)
        return _repaired(done, dropped, lacking=len(kept) < count)

    return ask(
        name,
        PROPOSALS,
        values=values,
        read=read,
        role=role,
        schema=lambda _item, _context: _at_least(PROPOSALS, count),
    )


def _at_least(prompt: str, count: int) -> Schema:
    """A prompt's contract with a minimum number of diagnoses: a small model stops at none where it may."""
    contract: Any = load_prompt(prompt).schema
    listed = contract["properties"]["diagnoses"]
    bounds = {"minItems": count, "maxItems": max(count, listed["maxItems"])}
    return {**contract, "properties": {"diagnoses": {**listed, **bounds}}}


def merge_step(name: str, *, vocabularies: Sequence[str]) -> RecipeStep:
    """Merge all proposals into the item's `candidates`: none of them means the right answer or another one."""

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        proposals: list[tuple[str, list[str]]] = []
        for origin, texts in (
            (DISCUSSION, [each["text"] for each in item["alternatives"]]),
            (ASKED_FOR, item.get("further", ())),
            (STEM, item.get("proposals", ())),
        ):
            unfit = {text: why for text in texts if (why := _no_disease(text, context, vocabularies))}
            item = _dropping_all(item, unfit.items(), origin)
            proposals.append((origin, [text for text in texts if text not in unfit]))
        loaded = [context.vocabulary(each) for each in vocabularies]
        merged = merge_options(
            item["diagnosis"],
            proposals,
            synonyms=item["synonyms"],
            maximum=_MAX_CANDIDATES,
            vocabularies=loaded,
        )
        for each in merged.dropped:
            item = _dropping(item, each.text, each.origin, each.why)
        found = [{"text": each.text, "origin": each.origin} for each in merged.options if each.origin != CORRECT]
        return item.put(candidates=found)

    return check(name, judge)


def option_steps(
    name: str, *, choose: bool, minimum: int, maximum: int, vocabularies: Sequence[str], max_words: int = MAX_WORDS
) -> list[RecipeStep]:
    """Make `minimum` to `maximum` options of the candidates, the right one counted: a model chooses, or the first are.

    The candidates are in the order of their origins: the report's own first.
    """

    def put(item: RecipeItem, chosen: Sequence[Candidate], context: RecipeContext) -> Outcome:
        wrong = [{"text": each.text, "origin": each.origin} for each in chosen[: maximum - 1]]
        right = {"text": item["diagnosis"], "origin": CORRECT}
        return _enough(item.put(options=[right, *wrong]), minimum, context)

    if choose:
        return [
            choose_options(
                name,
                minimum=minimum - 1,
                maximum=maximum - 1,
                vocabularies=vocabularies,
                put=put,
                shown=_MAX_CANDIDATES,
                max_words=max_words,
            )
        ]
    return [check(name, lambda item, context: put(item, msgspec.convert(item["candidates"], list[Candidate]), context))]


def drop_options(item: RecipeItem, why: Mapping[str, str], context: RecipeContext, *, minimum: int) -> Outcome:
    """The item without these wrong options, by their texts; rejected where too few are left. The right one stays."""
    kept = []
    for option in item["options"]:
        if option["text"] in why and option["origin"] != CORRECT:
            item = _dropping(item, option["text"], option["origin"], why[option["text"]])
        else:
            kept.append(option)
    return _enough(item.put(options=kept), minimum, context)


def _enough(item: RecipeItem, minimum: int, context: RecipeContext) -> Outcome:
    """The item with its options in the order they are shown, if there are enough of them."""
    texts = [str(option["text"]) for option in item["options"]]
    if len(texts) < minimum:
        dropped = "; ".join(f"{each['text']} ({each['origin']}: {each['why']})" for each in item.get("dropped", ()))
        details = f"{len(texts)} of {minimum}: {'; '.join(texts)}" + (f". Dropped: {dropped}" if dropped else "")
        return ItemRejection(reason=TOO_FEW, details=details)
    order = shuffled(texts, context.rng("options", item.id))
    return item.put(options=sorted(item["options"], key=lambda option: order.index(option["text"])))


def _repaired(item: RecipeItem, dropped: Sequence[tuple[str, str]], *, lacking: bool) -> Outcome | AskAgain:
    """The item, or what to tell the model of names that rules drop where too few are left."""
    faults = [f"{text[:_SHOWN]!r}: {why}" for text, why in dropped if why != _MORE]
    if not faults or not lacking:
        return item
    told = "; ".join(faults)
    say = f"Rules object to some of the diagnoses: {told}. Mend these or name others in their place, and keep the rest."
    return AskAgain(reason="a proposed option can't be used", details=told, say=say, otherwise=item)


def _fit_ones(
    texts: Sequence[object],
    source: str,
    count: int,
    max_words: int,
    context: RecipeContext,
    vocabularies: Sequence[str],
) -> tuple[list[str], list[tuple[str, str]]]:
    """The first N names that can be options, and the others with why not."""
    kept: list[str] = []
    dropped: list[tuple[str, str]] = []
    for text in map(plain_option, map(str, texts)):
        why = _unfit(text, source, max_words) or _no_disease(text, context, vocabularies)
        why = why or (_MORE if len(kept) == count else "")
        if why:
            dropped.append((text, why))
        else:
            kept.append(text)
    return kept, dropped


def _unfit(text: str, source: str, max_words: int) -> str:
    wrong = sound(text, what="option", source=source, max_words=max_words)
    return wrong.reason if wrong else ""


def _no_disease(text: str, context: RecipeContext, vocabularies: Sequence[str]) -> str:
    """Why a wrong option names no disease but something done, measured or caught; ICD-10-CM knows symptoms."""
    for is_it, what in (
        (names_test, "an examination"),
        (names_procedure, "a procedure or treatment"),
        (names_measure, "a measured value"),
        (names_organism, "an organism"),
    ):
        if is_it(text):
            return f"names {what}"
    found = context.vocabulary(_ICD).lookup(text) if _ICD in vocabularies else []
    return "names a symptom" if found and found[0].code.startswith(_SYMPTOMS) else ""


def _dropping(item: RecipeItem, text: str, origin: str, why: str) -> RecipeItem:
    return item.put(dropped=[*item.get("dropped", ()), {"text": text, "origin": origin, "why": why}])


def _dropping_all(item: RecipeItem, dropped: Iterable[tuple[str, str]], origin: str) -> RecipeItem:
    for text, why in dropped:
        item = _dropping(item, text, origin, why)
    return item
