"""Organisms in the names of diagnoses: a name that is nothing but an organism's, and diseases called after one.

The genera are data (`organisms.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import msgspec
from msgspec import Struct

from hoofbeat.corpus.vocabularies.word_forms import tokens
from hoofbeat.recipes.guards.leak_words import forms_of, is_disease, worth
from hoofbeat.recipes.wordlists import word_data

__all__ = ["names_organism", "place_of", "same_infection"]

_SPECIES = re.compile(r"^[a-z]{4,}(?:ae?|ii?|is|us|um|ens|ans|es?|ix|er|or)$")
_AGENT = re.compile(r"(?:virus|cov)$")
_SHORT_GENUS = re.compile(r"^\s*[A-Z](?:\.\s*|\s+)(?=[a-z])")
_BRACKET = re.compile(r"[(\[][^()\[\]]*[)\]]")


class _Lists(Struct, frozen=True, forbid_unknown_fields=True):
    genera: str
    species: frozenset[str]
    strains: frozenset[str]
    acronyms: frozenset[str]
    places: dict[str, str]


@cache
def _lists() -> _Lists:
    return msgspec.convert(word_data("organisms"), _Lists)


@cache
def _genera() -> frozenset[str]:
    return frozenset(form for form in tokens(_lists().genera).forms if form)


def names_organism(text: str) -> bool:
    """Whether a name is that of an organism, not of what it does: Listeria monocytogenes, K. pneumoniae, MRSA."""
    bare = _BRACKET.sub(" ", text)
    if bare.strip() in _lists().acronyms:
        return True
    short = _SHORT_GENUS.match(bare)
    bare = bare[short.end() :] if short else bare
    words = [word for word in re.findall(r"[^\W_]+", bare.lower()) if word not in _lists().strains]
    if not words:
        return False
    if _AGENT.search(words[-1]):
        return True
    if not short and _form(words[0]) not in _genera():
        return False
    return all(_is_species(word) for word in (words if short else words[1:]))


def place_of(word: str) -> str:
    """Where an inflammation is, given and told in normal form; any other word as it is."""
    return _lists().places.get(word, word)


def same_infection(
    one: Sequence[str], other: Sequence[str], telling: frozenset[str], other_telling: frozenset[str]
) -> str:
    """Why two names mean what one organism does in one place: Aspergillus pneumonia, pulmonary aspergillosis.

    The names come as their words in order and those that tell something, in normal form.
    """
    for words, first, second in ((one, telling, other_telling), (other, other_telling, telling)):
        for genus in sorted(first & _genera()):
            derived = {word for word in second if word != genus and genus in forms_of(word)}
            if derived and _in_one_place(_beside(words, first, genus), second - derived):
                return "one is a kind of the other: the same organism"
    return ""


def _beside(words: Sequence[str], telling: frozenset[str], genus: str) -> frozenset[str]:
    """What a name says besides the organism, its species left out."""
    after = next((word for before, word in pairwise(words) if before == genus), "")
    return telling - ({genus, after} if _is_species(after) else {genus})


def _in_one_place(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether words say nothing but a place, and not two places."""
    places = frozenset(_lists().places.values())
    one, other = (frozenset(place_of(word) for word in words if worth(word) != "modifier") for words in (first, second))
    if any(worth(word) != "site" and word not in places for word in one | other):
        return False
    return not one or not other or one == other


def _is_species(word: str) -> bool:
    form = _form(word)
    if not {word, form}.isdisjoint(_lists().species):
        return True
    return bool(_SPECIES.match(word)) and not is_disease(form) and worth(form) == "special"


def _form(word: str) -> str:
    return next(iter(tokens(word).forms), "")
