"""What the leak guard knows of words: which of them name a disease, which only say where or how, and how they change.

All of it is data (`leak_words.toml`, `inflections.toml`). Words are compared in the vocabulary matcher's normal form,
so plurals, national spellings and accents are settled before any rule here is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Literal

from msgspec import Struct
from rapidfuzz.distance import OSA

from hoofbeat.corpus.vocabularies.word_forms import term_form, word_lists
from hoofbeat.recipes.wordlists import word_data

__all__ = ["Lists", "Worth", "forms_of", "is_disease", "lists", "misspelt", "stem_of", "worth"]

Worth = Literal["little", "modifier", "site", "class", "disease", "qualifier", "special"]

_ADJECTIVE = re.compile(r"(?:ic|al|ous|ive|ary|ar|ed|ing|ent|ant|oid|ean|ile|ible|able|ial|less|like|genic|form)$")
_FILL = "zzzzzzzz"
_SHORTEST_MISSPELT = 7
_LONG_WORD = 6


class _Family(Struct, frozen=True):
    ends: str
    others: tuple[str, ...]
    long: tuple[str, ...]
    stem: int
    long_stem: int
    disease: bool


class Lists(Struct, frozen=True, kw_only=True):
    """The word lists in normal form."""

    little: frozenset[str]
    qualified: frozenset[str]
    modifiers: frozenset[str]
    classes: frozenset[str]
    redundant: frozenset[str]
    qualifiers: frozenset[str]
    titles: frozenset[str]
    not_short: frozenset[str]
    inner_parts: tuple[str, ...]
    sites: dict[str, frozenset[str]]
    class_groups: dict[str, frozenset[str]]
    groups: dict[str, frozenset[str]]
    diseases: frozenset[str]
    not_diseases: frozenset[str]
    families: tuple[_Family, ...]
    prefix_pairs: tuple[tuple[str, str], ...]
    denied_before: tuple[tuple[str, ...], ...]
    denied_after: tuple[tuple[str, ...], ...]
    innocent: tuple[tuple[str, ...], ...]
    passed: frozenset[str]
    persons: frozenset[str]
    conjunctions: frozenset[str]
    auxiliaries: frozenset[str]
    turned: frozenset[str]


def _normal(words: str | Iterable[str]) -> list[str]:
    listed = words.split() if isinstance(words, str) else words
    return [term_form(word) for word in listed]


def _grouped(lines: Iterable[str]) -> dict[str, frozenset[str]]:
    """Each word with the words of every line it stands on."""
    table: dict[str, frozenset[str]] = {}
    for line in lines:
        group = frozenset(_normal(line))
        for word in group:
            table[word] = table.get(word, frozenset()) | group
    return table


def _ending(ending: str) -> str:
    """An ending as it looks after a word was put into normal form."""
    return term_form(_FILL + ending).removeprefix(_FILL)


@cache
def lists() -> Lists:
    """The lists of the data files."""
    words, changes = word_data("leak_words"), word_data("inflections")
    families = tuple(
        _Family(
            ends=_ending(each["ends"]),
            others=tuple(map(_ending, each["others"])),
            long=tuple(map(_ending, each.get("long", ()))),
            stem=each["stem"],
            long_stem=each.get("long_stem", 0),
            disease=each["disease"],
        )
        for each in changes["families"]
    )
    lines = [line for group in changes["groups"] for line in group["words"]]
    naming = [line for group in changes["groups"] if group["disease"] for line in group["words"]]
    return Lists(
        little=frozenset(words["little"].split()),
        qualified=frozenset(_normal(words["qualified"])),
        modifiers=frozenset(_normal(words["modifiers"])),
        classes=frozenset(_normal(words["classes"])),
        redundant=frozenset(_normal(words["redundant"])),
        qualifiers=frozenset(_normal(words["qualifiers"])),
        titles=frozenset(words["titles"].split()),
        not_short=frozenset(words["not_short"].split()),
        inner_parts=tuple(words["inner_parts"].split()),
        sites=_grouped(words["sites"]),
        class_groups=_grouped(words["class_groups"]),
        groups=_grouped(lines),
        diseases=frozenset(word for line in naming for word in _normal(line)),
        not_diseases=frozenset(_normal(words["not_diseases"])),
        families=tuple(sorted(families, key=lambda family: -len(family.ends))),
        prefix_pairs=tuple((a, b) for a, b in map(str.split, words["prefix_pairs"])),
        denied_before=tuple(tuple(_normal(phrase)) for phrase in words["denied_before"]),
        denied_after=tuple(tuple(_normal(phrase)) for phrase in words["denied_after"]),
        persons=frozenset(_normal(words["persons"])),
        conjunctions=frozenset(_normal(words["conjunctions"])),
        auxiliaries=frozenset(_normal(words["auxiliaries"])),
        passed=frozenset(_normal(words["passed"])),
        turned=frozenset(_normal(words["turned"])),
        innocent=tuple(tuple(_normal(phrase)) for phrase in words["innocent"]),
    )


@lru_cache(maxsize=20_000)
def worth(form: str) -> Worth:
    """What a word of a diagnosis, in normal form, is worth as a mention of it."""
    known = lists()
    if form in word_lists().little or form in known.little:
        return "little"
    if form in known.modifiers:
        return "modifier"
    if form in known.sites:
        return "site"
    if form in known.classes:
        return "class"
    if form in known.qualifiers:
        return "qualifier"
    if is_disease(form):
        return "disease"
    plain = form not in known.persons and (_ADJECTIVE.search(form) or len(form) < 3 or form.isdigit())
    return "qualifier" if plain else "special"


def is_disease(form: str) -> bool:
    """Whether a word names a disease by itself, by a list or by its ending."""
    known = lists()
    if form in known.diseases or form in known.not_diseases:
        return form in known.diseases
    family = _family(form)
    return family is not None and family.disease and not _ADJECTIVE.search(form)


@lru_cache(maxsize=20_000)
def _family(form: str) -> _Family | None:
    for family in lists().families:
        if form.endswith(family.ends) and len(form) - len(family.ends) >= family.stem:
            return family
    return None


def stem_of(form: str) -> str:
    """A disease word without its ending, or nothing where it has none."""
    family = _family(form)
    return form.removesuffix(family.ends) if family is not None and family.disease else ""


@lru_cache(maxsize=20_000)
def forms_of(form: str) -> frozenset[str]:
    """A word in all its changes: inflected, as an adjective, by the other name of the same place."""
    known = lists()
    forms = {form}
    for table in (known.sites, known.class_groups, known.groups):
        forms |= table.get(form, frozenset())
    family = _family(form)
    if family is not None and form not in known.sites:
        stem = form.removesuffix(family.ends)
        endings = [*family.others, *(family.long if family.long_stem and len(stem) >= family.long_stem else ())]
        forms |= {stem + ending for ending in endings} - known.sites.keys() - known.modifiers - known.qualifiers
    elif len(form) >= _LONG_WORD and worth(form) in {"special", "class"}:
        forms |= {form + ending for ending in ("ic", "al", "ous")}
    return frozenset(forms)


def misspelt(word: str, wanted: str, least: float) -> bool:
    """Whether a word may be another, given in normal form, misspelt; it is no slip to have another prefix."""
    whole = (
        f"{wanted[:-1]}is" if wanted.endswith("se") else wanted
    )  # as it was before its -sis was put into normal form
    return any(_slip(word, each, least) for each in {wanted, whole})


def _slip(form: str, wanted: str, least: float) -> bool:
    size = len(wanted)
    if least >= 1 or size < _SHORTEST_MISSPELT or form[0] != wanted[0] or form == wanted:
        return False
    most = max(1, round((1 - least) * size))
    if abs(len(form) - size) > most or OSA.distance(form, wanted, score_cutoff=most) > most:
        return False
    return not any(
        {form.startswith(a) and wanted.startswith(b), form.startswith(b) and wanted.startswith(a)} == {True, False}
        and not (a.startswith(b) or b.startswith(a))
        for a, b in lists().prefix_pairs
    )
