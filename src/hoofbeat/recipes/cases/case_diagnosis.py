"""The diagnosis a report comes to: named by a model, proven by a quote, and cut out of the stem with all that follows.

`name_diagnosis` asks for the disease and the words that state it. What a model calls the diagnosis must be one
diagnosis; other names of it in the source are collected. `cut_leaks` cuts the stem at the first sentence in which the
leak guard finds it. A step that asks a model what to leave out instead is in `shown_sentences`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.roles import CASE_ROLES, Role
from hoofbeat.corpus.terms import content_forms, is_candidate, known_abbreviations, tokens, word_lists
from hoofbeat.corpus.vocabulary import Vocabulary, find_words
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import plain_option, same, unfit
from hoofbeat.recipes.cases.redaction import find_made, is_old, is_provisional, is_suspected, last_said_made, redact
from hoofbeat.recipes.cases.stems import cut_before, spans_of, stem_place, trim_treatment, with_stem
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import names_its_organism, names_organism, names_procedure
from hoofbeat.recipes.guards.leaks import Leak, find_leaks
from hoofbeat.recipes.guards.text_checks import prove, sound
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask, check
from hoofbeat.records import Document, Span
from hoofbeat.window import size

VOCABULARIES = ("icd10cm", "rare-diseases")
"""The vocabularies that know diagnoses."""

_FILLING = frozenset({"therapy", "treatment", "related", "associated", "secondary", "patient"})
"""Words that a quote need not repeat: eculizumab and eculizumab therapy are one."""
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
    """A diagnosis that is a short form of the source's own, in full words."""
    return known_abbreviations(document.text).get(diagnosis, diagnosis) if is_candidate(diagnosis) else diagnosis


def other_names(said: Sequence[object], diagnosis: str, document: Document) -> list[str]:
    """Other names that are in the source: those the model gave, and short forms that the source defines.

    A short form counts where the source defines it for the whole diagnosis, not for its cause or a word of it. Everyday
    words don't count: they would take half the case out.
    """
    whole = ("the same", "an abbreviation")
    defined = [
        short for short, long in known_abbreviations(document.text).items() if same(long, diagnosis).startswith(whole)
    ]
    general = word_lists().too_general
    return [
        name
        for name in dict.fromkeys([*(plain_option(str(each)) for each in said), *defined])
        if len(name) >= _SHORTEST_NAME or name.isupper()
        if name.casefold() != diagnosis.casefold() and " ".join(filter(None, tokens(name).forms)) not in general
        if not unfit(name) and (find_words(document.text, name) or _stands_as_written(name, document.text))
    ]


def _stands_as_written(name: str, text: str) -> bool:
    """Whether a name is in a text letter by letter: a full stop inside ("P. shigelloides") ends a phrase elsewhere."""
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE))


def words_stand(diagnosis: str, text: str) -> bool:
    """Whether a text has every word of a diagnosis, in whatever order and inflection."""
    wanted = set(content_forms(diagnosis))
    return bool(wanted) and wanted <= set(tokens(text).forms)


MIN_SHARED = 0.5
"""The share of a disease's words that a text must have to name it, where a recipe does not say otherwise."""

NAMING = "case-diagnosis"
FLAGGED = "flags"
"""The value of an item that lists what rules object to and the model insists on: a reviewer reads these first."""


def flagged(item: RecipeItem, *objections: str) -> RecipeItem:
    """The item with these objections among its flags, each once."""
    if not objections:
        return item
    return item.put(**{FLAGGED: list(dict.fromkeys((*item.get(FLAGGED, ()), *objections)))})


def with_flags(item: RecipeItem, told: dict[str, str]) -> dict[str, str]:
    """What a reviewer is shown, with the flags of the item and its reworded sentences, before and after."""
    changed = [f"{each['text']}\n→ {each['shown']}" for each in item.get("removed", ()) if each.get("shown")]
    flags = {FLAGGED: "; ".join(item[FLAGGED])} if item.get(FLAGGED) else {}
    return {**told, **flags, **({"reworded": "\n\n".join(changed)} if changed else {})}


_DIAGNOSTIC, _NOT_DIAGNOSTIC = "diagnosis", frozenset({"treatment or method", "known on arrival"})
_INSISTED = frozenset(
    {
        "several diagnoses in place of one",
        "the diagnosis is only a symptom",
        "the diagnosis names a procedure or treatment, not a disease",
    }
)
_UNTOLD = frozenset({Role.BACK, Role.INTRODUCTION})
_TELLS = CASE_ROLES | {Role.ABSTRACT, Role.CONCLUSION, ""}
_SHORTEST_SYNONYM = 6
_QUOTE_SHOWN = 300


def name_diagnosis(name: str, *, max_words: int, min_match: float, shared: float = MIN_SHARED) -> RecipeStep:
    """Ask for the final diagnosis: one disease, with words of the report or its title that state it.

    A report about a treatment or a method, and one that leaves nothing to find out, is rejected as not a diagnostic
    case. Where a rule objects (the quote is not
    in the report, does not name the disease, only suspects it or tells of an old one), the model is told and asked once
    more. If it insists, a sentence in which the report says that the diagnosis was made replaces the quote; without one
    the item goes on, flagged, as long as the report names the disease.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        document, prompt = context.document(item.documents[0]), load_prompt(NAMING)
        return {"title": document.title, "report": context.fit(told(document, context.room(prompt)), prompt)}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        document = context.document(item.documents[0])
        said, quote = plain_option(str(value["diagnosis"])), str(value["quote"])
        if value["kind"] != _DIAGNOSTIC:
            if value["kind"] in _NOT_DIAGNOSTIC:
                return ItemRejection(reason="not a diagnostic case", details=value["kind"])
            return ItemRejection(reason="the report comes to no diagnosis")
        diagnosis = _begun_large(written_out(said, document))
        wrong = not_one_diagnosis(diagnosis, document, context, max_words=max_words)
        if wrong and wrong.reason not in _INSISTED:
            return wrong.again(f"A rule objects to the diagnosis {said!r}: {wrong.reason}. {_ONE_DISEASE}")
        synonyms = [each for each in other_names(value["synonyms"], diagnosis, document) if not _everyday(each)]
        named = NamedDiagnosis(diagnosis, synonyms, document, context)
        item = item.put(diagnosis=diagnosis, diagnosis_quote=quote, synonyms=synonyms)
        if diagnosis.casefold() != said.casefold():
            item = item.put(diagnosis_said=said)
        proven = _proven(item, quote, named, min_match, shared)
        if wrong and isinstance(proven, RecipeItem):
            say = f"A rule objects to the diagnosis {said!r}: {wrong.reason}. {_ONE_DISEASE}"
            otherwise = flagged(proven, wrong.reason)
            return AskAgain(reason=wrong.reason, details=wrong.details, say=say, otherwise=otherwise)
        return proven

    return ask(name, NAMING, values=values, read=read)


_ONE_DISEASE = (
    "Name one disease by its usual clinical name, written out, in the words of the report, at most 12 words: no list, "
    "symptom, organism alone or procedure."
)


def _begun_large(name: str) -> str:
    """A name with a capital at its beginning, unless its first word is written with capitals or digits inside."""
    first = name.split(maxsplit=1)[0] if name else ""
    return name[:1].upper() + name[1:] if first.replace("-", "").isalpha() and first.islower() else name


def _proven(
    item: RecipeItem, quote: str, named: NamedDiagnosis, min_match: float, shared: float
) -> RecipeItem | AskAgain:
    """The item with the place of its quote as evidence, or what a rule objects to in the quote."""
    proven = prove(item, named.document, [quote], "diagnosis", min_match=min_match)
    if isinstance(proven, ItemRejection) and _in_title(quote, named.document, min_match):
        proven = item.put(quote_from="title")
    if isinstance(proven, ItemRejection):
        say = (
            f"The quote {quote[:_QUOTE_SHOWN]!r} is not in the report word for word. Copy the words letter by letter "
            "from one place of the report, without leaving any out."
        )
        return AskAgain(
            reason=proven.reason, details=proven.details, say=say, otherwise=_by_rule(item, named) or proven
        )
    wrong = _no_proof(quote, named, shared)
    if wrong is None:
        return proven
    say = (
        f"A rule objects to the quote {quote[:_QUOTE_SHOWN]!r}: {wrong.reason}. Quote words of the report that contain "
        f"the name {named.diagnosis!r}, or a name or abbreviation that you list under synonyms, or the result that "
        "establishes it, and that state it as made, in this patient, now."
    )
    otherwise: Outcome = _by_rule(item, named) or wrong
    if isinstance(otherwise, ItemRejection) and named.may_be_meant(quote):
        otherwise = flagged(proven, wrong.reason)
    return AskAgain(reason=wrong.reason, details=wrong.details, say=say, otherwise=otherwise)


def _in_title(quote: str, document: Document, min_match: float) -> bool:
    title = Document(id=document.id, title="", text=document.title)
    return bool(document.title) and find_quote(title, quote, min_score=min_match) is not None


def _no_proof(quote: str, named: NamedDiagnosis, shared: float) -> ItemRejection | None:
    """Why words of the source prove no diagnosis: they do not name it, only suspect it, or tell an old one."""
    details = f"{named.diagnosis}: {quote}"
    if named.denied(quote):
        return ItemRejection(reason="the quote denies the diagnosis", details=details)
    if not named.in_words(quote, shared):
        return ItemRejection(reason="the quote for the diagnosis does not name it", details=details)
    if is_provisional(quote) or is_suspected(quote):
        return ItemRejection(reason="the quote only suspects the diagnosis", details=details)
    if is_old(quote):
        return ItemRejection(reason="the quote tells of an old diagnosis", details=details)
    return None


def _by_rule(item: RecipeItem, named: NamedDiagnosis) -> RecipeItem | None:
    """The item with the first sentence in which the report says that the diagnosis was made, in place of the quote."""
    place = _made_at(named)
    if place is None:
        return None
    return item.proven(place).put(diagnosis_quote=place.quote, quote_by="rule")


def _made_at(named: NamedDiagnosis) -> Span | None:
    """The first sentence in which a report says that a diagnosis was made: of its case, else of what sums it up."""
    document = named.document

    def mentions(sentence: str) -> list[tuple[int, int]]:
        if not names(sentence, named.diagnosis, document, shared=1.0):
            return []
        return [(leak.start, leak.end) for leak in named.leaks(sentence) if not named.denies(sentence, leak)]

    case = [s for s in document.sections if s.role in CASE_ROLES]
    for section in (*case, *(s for s in document.sections if s.role in _TELLS and s not in case)):
        if place := find_made(redact(document, (section.body, section.end)), mentions):
            start, end = place
            return Span(document=document.id, start=start, end=end, quote=document.text[start:end])
    return None


class NamedDiagnosis:
    """A diagnosis with its other names: where a text mentions it, and whether words of a report name it."""

    def __init__(self, diagnosis: str, synonyms: Sequence[str], document: Document, context: RecipeContext) -> None:
        self.diagnosis = diagnosis
        self.synonyms = list(synonyms)
        self.document = document
        self.vocabularies = [context.vocabulary(name) for name in VOCABULARIES]

    def leaks(self, text: str, *, min_match: float = 0.9) -> list[Leak]:
        """Every mention in a text, by any name."""
        return find_leaks(
            text,
            self.diagnosis,
            synonyms=self.synonyms,
            source=self.document,
            vocabularies=self.vocabularies,
            min_match=min_match,
        )

    def in_words(self, text: str, shared: float = MIN_SHARED) -> bool:
        """Whether a text names the disease: by most of its words, another name, a short form, or its organism."""
        if any(names(text, each, self.document, shared=1.0) for each in self.synonyms):
            return True
        if names(text, self.diagnosis, self.document, shared=shared) or names_its_organism(text, self.diagnosis):
            return True
        return any(leak.kind != "negated" for leak in self.leaks(text))

    def denied(self, text: str) -> bool:
        """Whether a text mentions the disease only to deny it."""
        leaks = self.leaks(text)
        return bool(leaks) and all(self.denies(text, leak) for leak in leaks)

    def may_be_meant(self, quote: str) -> bool:
        """Whether a quote that does not name the disease may mean it: one of its words is there, and none is denied."""
        wanted = frozenset().union(*map(_telling, (self.diagnosis, *self.synonyms)))
        return not self.denied(quote) and not wanted.isdisjoint(_telling(quote)) and self._is_in_report()

    def _is_in_report(self) -> bool:
        text = f"{self.document.title}\n\n{self.document.text}"
        return words_stand(self.diagnosis, text) or self.in_words(text, 1.0)

    def denies(self, text: str, leak: Leak) -> bool:
        """Whether a mention is denied: what is denied before a word that says "made" is something else."""
        if leak.kind != "negated":
            return False
        after = last_said_made(text, leak.start)
        rest = [] if after is None else self.leaks(text[after:])
        return after is None or not any(each.start == leak.start - after and each.kind != "negated" for each in rest)


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
            kept = trim_treatment(document, cut_before(document, spans, stem_place(document, spans, first.start)))
            if not kept:
                return ItemRejection(reason="the report names the diagnosis from the start", details=first.text)
            item = with_stem(item, document, kept).put(cut={"by": "rule", "kind": first.kind, "words": first.text})
        return item

    return check(name, judge)


def told(document: Document, room: int) -> str:
    """A report as far as a diagnosis can be told in it: all but back matter.

    Where that is longer than the limit in bytes, without the introduction, or abstract, case and conclusion alone; all
    of it where no section is known.
    """
    for parts in (
        [s for s in document.sections if s.role != Role.BACK],
        [s for s in document.sections if s.role not in _UNTOLD],
        [s for s in document.sections if s.role in _TELLS],
    ):
        text = "\n\n".join(document.text[s.start : s.end] for s in parts if s.end > s.body)
        if text and size(text) <= room:
            return text
    return text or document.text


def names(text: str, disease: str, document: Document, *, shared: float = MIN_SHARED) -> bool:
    """Whether a text names a disease: by this share of its words, or by a short form that the document defines."""
    if find_words(text, disease):
        return True
    wanted = _telling(disease) - _FILLING or _telling(disease)
    if not wanted:
        return False
    forms = [text, *(long for short, long in known_abbreviations(document.text).items() if find_words(text, short))]
    return len(wanted & set().union(*map(_telling, forms))) >= shared * len(wanted)


def _telling(text: str) -> frozenset[str]:
    return frozenset(content_forms(text))


def _everyday(name: str) -> bool:
    """Whether a name is a single everyday word such as "tumor" or "rash": the stem would end wherever it stands."""
    telling = _telling(name)
    lone = len(telling) == 1 and (not telling.isdisjoint(word_lists().too_general) or len(name) < _SHORTEST_SYNONYM)
    return not telling or (lone and not is_candidate(name))
