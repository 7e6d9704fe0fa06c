"""The rare-disease track: whether a diagnosis stands in a catalogue of rare diseases, and under which code.

The catalogue is a vocabulary with OMIM and Orphanet names. A diagnosis is rare when it, or another name of it, is an
entry there, or when an entry makes up most of its words ("Erdheim-Chester disease of the orbit").
"""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.corpus.vocabularies import Match, Vocabulary
from hoofbeat.corpus.vocabularies.terms import content_forms
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check

CATALOGUES = ("OMIM", "ORPHA")
VOCABULARY = "rare-diseases"


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


def rare_track(
    name: str, *, cover: float, catalogues: Sequence[str] = CATALOGUES, answer: str = "diagnosis"
) -> RecipeStep:
    """Label every item with the facet `rare`, yes or no, and with `rare-code` where the catalogue has its diagnosis."""

    def judge(item: RecipeItem, context: RecipeContext) -> RecipeItem:
        known_as = [str(item[answer]), *item.get("synonyms", ())]
        match = rare_match(context.vocabulary(VOCABULARY), known_as, cover=cover, catalogues=catalogues)
        if match is None:
            return item.labelled(rare="no")
        return item.labelled(rare="yes", **{"rare-code": match.code}).put(rare_name=match.name, rare_words=match.text)

    return check(name, judge)
