"""The diagnosis a report comes to: named by a model, proven by a quote, and cut out of the stem with all that follows.

Three steps in a row: `name_diagnosis` asks for the disease and the words that state it, and looks itself for a
sentence that says the diagnosis was made where those words do not; `cut_leaks` cuts the stem at the first sentence in
which the leak guard finds it; `cut_giveaway` asks for the first sentence that tells it in other words, or that tells
of its treatment. What a model calls the diagnosis must be one diagnosis; other names of it in the source are
collected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.roles import CASE_ROLES, Role
from hoofbeat.corpus.vocabularies import Vocabulary, find_abbreviations, find_words
from hoofbeat.corpus.vocabularies.terms import content_forms, is_candidate, tokens, word_lists
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import plain_option, same, unfit
from hoofbeat.recipes.cases.redaction import find_made, is_old, is_provisional, is_suspected, redact
from hoofbeat.recipes.cases.stems import cut_before, spans_of, stem_place, trim_treatment, with_stem
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import names_organism, names_procedure
from hoofbeat.recipes.guards.leaks import Leak, find_leaks
from hoofbeat.recipes.guards.text_checks import prove, sound
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask, check
from hoofbeat.records import Document, Span

VOCABULARIES = ("icd10cm", "rare-diseases")
"""The vocabularies that know diagnoses."""

_SEVERAL = re.compile(r"\s*(?:;|,|\n|\+| and | or | as well as | plus | versus | vs\.? )\s*")
_SHORTEST_NAME = 3
_LIST = 3


def not_one_diagnosis(
    diagnosis: str, document: Document, context: RecipeContext, *, max_words: int
) -> ItemRejection | None:
    """Why this is not one diagnosis: empty, a sentence, an organism, a procedure, a symptom, several."""
    if why := sound(diagnosis, what="diagnosis", source=document.text, max_words=max_words):
        return why
    if unfit(diagnosis):
        return ItemRejection(reason="the report comes to no diagnosis", details=diagnosis)
    if names_organism(diagnosis):
        return ItemRejection(reason="the diagnosis names an organism, not a disease", details=diagnosis)
    if names_procedure(diagnosis):
        return ItemRejection(reason="the diagnosis names a procedure or treatment, not a disease", details=diagnosis)
    icd, rare = (context.vocabulary(name) for name in VOCABULARIES)
    codes = {match.code for match in icd.lookup(diagnosis)}
    known = bool(codes or rare.lookup(diagnosis))
    if codes and all(code.startswith("R") for code in codes):
        return ItemRejection(reason="the diagnosis is only a symptom", details=diagnosis)
    if not known and (is_candidate(diagnosis) or sum(map(str.isalpha, diagnosis)) < _SHORTEST_NAME):
        return ItemRejection(reason="the diagnosis is an abbreviation that nothing explains", details=diagnosis)
    if not known and _several([part for part in _SEVERAL.split(diagnosis) if part], (icd, rare)):
        return ItemRejection(reason="several diagnoses in place of one", details=diagnosis)
    return None


def _several(parts: Sequence[str], vocabularies: Sequence[Vocabulary]) -> bool:
    """Whether the parts of a name are conditions: all of two or more, or some of a longer list."""
    if len(parts) < 2:
        return False
    if all(_condition(part, vocabularies) for part in parts):
        return True
    telling = sum(any(vocabulary.find_phrases(part) for vocabulary in vocabularies) for part in parts)
    return len(parts) >= _LIST and telling >= 2


def _condition(name: str, vocabularies: Sequence[Vocabulary]) -> bool:
    """Whether a name, or its last word alone, is that of a condition."""
    return any(vocabulary.lookup(each) for vocabulary in vocabularies for each in (name, name.rsplit(maxsplit=1)[-1]))


def written_out(diagnosis: str, document: Document) -> str:
    """A diagnosis that is a short form of the source's own, in the words it stands for."""
    return find_abbreviations(document.text).get(diagnosis, diagnosis) if is_candidate(diagnosis) else diagnosis


def other_names(said: Sequence[object], diagnosis: str, document: Document) -> list[str]:
    """Other names that stand in the source: what the model said of them, and short forms that the source defines.

    Everyday words are no names: they would take half the case out.
    """
    defined = [short for short, long in find_abbreviations(document.text).items() if same(long, diagnosis)]
    general = word_lists().too_general
    return [
        name
        for name in dict.fromkeys([*(plain_option(str(each)) for each in said), *defined])
        if len(name) >= _SHORTEST_NAME or name.isupper()
        if name.casefold() != diagnosis.casefold() and " ".join(filter(None, tokens(name).forms)) not in general
        if not unfit(name) and find_words(document.text, name)
    ]


def words_stand(diagnosis: str, text: str) -> bool:
    """Whether every word of a diagnosis stands in a text, in whatever order and inflection."""
    wanted = set(content_forms(diagnosis))
    return bool(wanted) and wanted <= set(tokens(text).forms)


MIN_SHARED = 0.5
"""The share of a disease's words that a text must have to name it, where a recipe does not say otherwise."""

NAMING = "clinbench-diagnosis"
GIVEAWAY = "clinbench-giveaway"

_TELLS = CASE_ROLES | {Role.ABSTRACT, Role.CONCLUSION, ""}
_SHORTEST_SYNONYM = 6


def name_diagnosis(name: str, *, max_words: int, min_match: float, shared: float = MIN_SHARED) -> RecipeStep:
    """Ask for the final diagnosis: one disease. The quote must stand in the source and have a share of its words.

    One that stands there but does not name the disease, only suspects it or tells an old one, gives way to the first
    sentence in which the report says that this diagnosis was made; where there is none, the item is turned away.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        document = context.document(item.documents[0])
        return {"title": document.title, "report": context.fit(told(document), load_prompt(NAMING))}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        said, quote = plain_option(str(value["diagnosis"])), str(value["quote"])
        diagnosis = written_out(said, document)
        if diagnosis != said:
            diagnosis = diagnosis[:1].upper() + diagnosis[1:]
        if wrong := not_one_diagnosis(diagnosis, document, context, max_words=max_words):
            return wrong
        synonyms = [each for each in other_names(value["synonyms"], diagnosis, document) if not _everyday(each)]
        proven = prove(item, document, [quote], "diagnosis", min_match=min_match)
        if isinstance(proven, ItemRejection):
            return proven
        if wrong := _no_proof(quote, diagnosis, document, shared):
            place = _made_at(document, diagnosis, synonyms)
            if place is None:
                return wrong
            proven, quote = item.proven(place), place.quote
        return proven.put(diagnosis=diagnosis, diagnosis_quote=quote, synonyms=synonyms)

    return ask(name, NAMING, values=values, read=read)


def _no_proof(quote: str, diagnosis: str, document: Document, shared: float) -> ItemRejection | None:
    """Why words of the source prove no diagnosis: they do not name it, only suspect it, or tell an old one."""
    if not names(quote, diagnosis, document, shared=shared):
        return ItemRejection(reason="the quote for the diagnosis does not name it", details=f"{diagnosis}: {quote}")
    if is_provisional(quote) or is_suspected(quote):
        return ItemRejection(reason="the quote only suspects the diagnosis", details=f"{diagnosis}: {quote}")
    if is_old(quote):
        return ItemRejection(reason="the quote tells of an old diagnosis", details=f"{diagnosis}: {quote}")
    return None


def _made_at(document: Document, diagnosis: str, synonyms: Sequence[str]) -> Span | None:
    """The first sentence in which a report says that a diagnosis was made: of its case, else of what sums it up."""

    def mentions(sentence: str) -> list[tuple[int, int]]:
        if not names(sentence, diagnosis, document, shared=1.0):
            return []
        found = find_leaks(sentence, diagnosis, synonyms=synonyms, source=document)
        return [(leak.start, leak.end) for leak in found if leak.kind != "negated"]

    case = [s for s in document.sections if s.role in CASE_ROLES]
    for section in (*case, *(s for s in document.sections if s.role in _TELLS and s not in case)):
        if place := find_made(redact(document, (section.body, section.end)), mentions):
            start, end = place
            return Span(document=document.id, start=start, end=end, quote=document.text[start:end])
    return None


def cut_leaks(name: str, vocabularies: Sequence[str], *, min_match: float = 0.9, negated: bool = True) -> RecipeStep:
    """Cut the stem before the first sentence that names the diagnosis in any of its wordings.

    `min_match` is how much of a word must be right, `negated` whether a mention that denies the diagnosis counts.
    """

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        loaded: list[Vocabulary] = [context.vocabulary(each) for each in vocabularies]

        def told_in(stem: str) -> list[Leak]:
            found = find_leaks(
                stem,
                item["diagnosis"],
                synonyms=item["synonyms"],
                source=document,
                vocabularies=loaded,
                min_match=min_match,
            )
            return [leak for leak in found if negated or leak.kind != "negated"]

        # a cut may bring others to light: the guard looks for slips only where it finds no plain mention
        while leaks := told_in(item["stem"]):
            spans, first = spans_of(item), min(leaks, key=lambda leak: leak.start)
            kept = trim_treatment(document, cut_before(document, spans, stem_place(spans, first.start)))
            if not kept:
                return ItemRejection(reason="the diagnosis is named from the beginning on", details=first.text)
            item = with_stem(item, document, kept).put(cut={"by": "rule", "kind": first.kind, "words": first.text})
        return item

    return check(name, judge)


def cut_giveaway(name: str, *, min_match: float) -> RecipeStep:
    """Ask for the first sentence that tells the diagnosis or its treatment, and cut the stem there.

    Words that are not in the stem prove nothing, so an item for which they are given is turned away.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        stem = context.fit(item["stem"], load_prompt(GIVEAWAY), beside=len(item["diagnosis"]))
        return {"diagnosis": item["diagnosis"], "stem": stem}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
        kind, quote = str(value["kind"]), str(value["quote"])
        if kind == "nothing":
            return item
        document, spans = context.document(item.documents[0]), spans_of(item)
        found = find_quote(document, quote, min_score=min_match, within=(spans[0][0], spans[-1][1]))
        if found is None:
            return ItemRejection(reason="the sentence to cut at is not in the stem", details=quote[:300])
        kept = trim_treatment(document, cut_before(document, spans, found.spans[0].start))
        if not kept:
            return ItemRejection(reason="the diagnosis is told from the beginning on", details=quote[:300])
        return with_stem(item, document, kept).put(cut={"by": "model", "kind": kind, "words": quote})

    return ask(name, GIVEAWAY, values=values, read=read)


def told(document: Document) -> str:
    """The part of a report in which its diagnosis is told: abstract, case and conclusion; all of it where none is."""
    parts = [document.text[s.start : s.end] for s in document.sections if s.role in _TELLS and s.end > s.body]
    return "\n\n".join(parts) or document.text


def names(text: str, disease: str, document: Document, *, shared: float = MIN_SHARED) -> bool:
    """Whether a text names a disease: by this share of its words, or by a short form that the document defines."""
    if find_words(text, disease):
        return True
    wanted = _telling(disease)
    if not wanted:
        return False
    forms = [text, *(long for short, long in _abbreviations(document.text).items() if find_words(text, short))]
    return len(wanted & set().union(*map(_telling, forms))) >= shared * len(wanted)


def _telling(text: str) -> frozenset[str]:
    return frozenset(content_forms(text))


@lru_cache(maxsize=64)
def _abbreviations(text: str) -> dict[str, str]:
    return find_abbreviations(text)


def _everyday(name: str) -> bool:
    """Whether a name is a single everyday word such as "tumor" or "rash": the stem would end wherever it stands."""
    telling = _telling(name)
    lone = len(telling) == 1 and (not telling.isdisjoint(word_lists().too_general) or len(name) < _SHORTEST_SYNONYM)
    return not telling or (lone and not is_candidate(name))
