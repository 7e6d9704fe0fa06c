"""The rare-disease track: whether a diagnosis is in a catalogue of rare diseases, and under which code.

The catalogue is a vocabulary with OMIM and Orphanet names. A diagnosis is rare when it, or another name of it, is an
entry there, or when an entry makes up most of its words ("Erdheim-Chester disease of the orbit"). Other names are those
of the report, of its code in ICD-10-CM, and exact synonyms of the Human Phenotype Ontology, which comes with the
catalogue's package. A disease that ICD-10-CM knows and the catalogue does not is not rare; what neither knows by its
name is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from hoofbeat.corpus.terms import Match, content_forms, phrase_key
from hoofbeat.corpus.vocabulary import Vocabulary, find_source
from hoofbeat.errors import UsageError
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check

CATALOGUES = ("OMIM", "ORPHA")
VOCABULARY = "rare-diseases"
_ICD = "icd10cm"
_REST = re.compile(r"other\b", re.IGNORECASE)  # a code for the rest of a group: its inclusion terms are not one disease
_OBO_NAME = re.compile(r"^name: (.+)$", re.MULTILINE)
_OBO_EXACT = re.compile(r'^synonym: "([^"]+)" EXACT', re.MULTILINE)


def rare_match(
    vocabulary: Vocabulary, names: Sequence[str], *, cover: float, catalogues: Sequence[str] = CATALOGUES
) -> Match | None:
    """The catalogue's entry for a disease known by these names, or None; whole names go before parts of them."""
    for name in names:
        for match in vocabulary.lookup(name):
            if match.code.startswith(tuple(catalogues)):
                return match
    for name in names:
        size = len(content_forms(name))
        found = [match for match in vocabulary.find_in(name) if match.code.startswith(tuple(catalogues))]
        for match in sorted(found, key=lambda match: match.start - match.end):
            if size and len(content_forms(match.text)) >= cover * size:
                return match
    return None


def known_names(item: RecipeItem, context: RecipeContext) -> str:
    """Every name of an item's diagnosis that the report or a vocabulary gives, a line each."""
    return "\n".join(_known_as([str(item["diagnosis"]), *item.get("synonyms", ())], context))


def _known_as(names: Sequence[str], context: RecipeContext) -> list[str]:
    icd, found = context.vocabulary(_ICD), list(names)
    for name in names:
        for match in icd.lookup(name):
            term = icd.term(match.code)
            if term and not _REST.match(term.name):
                found += [term.name, *term.synonyms]
        found += _phenotype_names().get(phrase_key(name), ())
    return list(dict.fromkeys(found))


@cache
def _phenotype_names() -> dict[str, tuple[str, ...]]:
    """The other names of every term of the Human Phenotype Ontology, by each of its names; none where it is missing."""
    names: dict[str, tuple[str, ...]] = {}
    with suppress(OSError, UsageError):
        text = find_source(VOCABULARY).with_name("hp.obo").read_text(encoding="utf-8")
        for block in text.split("\n[Term]\n")[1:]:
            own = [*_OBO_NAME.findall(block), *_OBO_EXACT.findall(block)]
            for each in own:
                names[phrase_key(each)] = tuple(other for other in own if other != each)
    return names


def rare_track(
    name: str, *, cover: float, catalogues: Sequence[str] = CATALOGUES, answer: str = "diagnosis"
) -> RecipeStep:
    """Label every item with the facet `rare`: yes, no or unknown, and with `rare-code` where the catalogue has it."""

    def judge(item: RecipeItem, context: RecipeContext) -> RecipeItem:
        names = [str(item[answer]), *item.get("synonyms", ())]
        known_as = _known_as(names, context)
        match = rare_match(context.vocabulary(VOCABULARY), known_as, cover=cover, catalogues=catalogues)
        if match is None:
            known = any(context.vocabulary(_ICD).lookup(each) for each in names)
            return item.labelled(rare="no" if known else "unknown")
        return item.labelled(rare="yes", **{"rare-code": match.code}).put(rare_name=match.name, rare_words=match.text)

    return check(name, judge)
