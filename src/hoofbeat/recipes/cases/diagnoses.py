"""Whether what a model calls the diagnosis is one diagnosis, and what else the source calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hoofbeat.corpus.vocabularies import Vocabulary, find_abbreviations, find_words
from hoofbeat.corpus.vocabularies.abbreviations import is_candidate
from hoofbeat.corpus.vocabularies.word_forms import content_forms, tokens, word_lists
from hoofbeat.recipes.cases.options import plain_option, same, unfit
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.checks import sound
from hoofbeat.recipes.guards.deeds import names_deed
from hoofbeat.recipes.guards.organisms import names_organism
from hoofbeat.recipes.items import Rejection
from hoofbeat.records import Document

__all__ = ["VOCABULARIES", "not_one_diagnosis", "other_names", "words_stand", "written_out"]

VOCABULARIES = ("icd10cm", "rare-diseases")
"""The vocabularies that know diagnoses."""

_SEVERAL = re.compile(r"\s*(?:;|,|\n|\+| and | or | as well as | plus | versus | vs\.? )\s*")
_SHORTEST_NAME = 3
_LIST = 3


def not_one_diagnosis(
    diagnosis: str, document: Document, context: RecipeContext, *, most_words: int
) -> Rejection | None:
    """Why this is not one diagnosis: empty, a sentence, an organism, a deed, a symptom, several."""
    if why := sound(diagnosis, what="diagnosis", source=document.text, most_words=most_words):
        return why
    if unfit(diagnosis):
        return Rejection(reason="the report comes to no diagnosis", details=diagnosis)
    if names_organism(diagnosis):
        return Rejection(reason="the diagnosis names an organism, not a disease", details=diagnosis)
    if names_deed(diagnosis):
        return Rejection(reason="the diagnosis names a procedure or treatment, not a disease", details=diagnosis)
    icd, rare = (context.vocabulary(name) for name in VOCABULARIES)
    codes = {match.code for match in icd.lookup(diagnosis)}
    known = bool(codes or rare.lookup(diagnosis))
    if codes and all(code.startswith("R") for code in codes):
        return Rejection(reason="the diagnosis is only a symptom", details=diagnosis)
    if not known and (is_candidate(diagnosis) or sum(map(str.isalpha, diagnosis)) < _SHORTEST_NAME):
        return Rejection(reason="the diagnosis is an abbreviation that nothing explains", details=diagnosis)
    if not known and _several([part for part in _SEVERAL.split(diagnosis) if part], (icd, rare)):
        return Rejection(reason="several diagnoses in place of one", details=diagnosis)
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
