"""What the leak guard knows of words: which of them name a disease, which only say where or how, and how they change.

All of it is data (`leak_words.toml`, `inflections.toml`). Words are compared in the vocabulary matcher's normal form,
so plurals, national spellings and accents are settled before any rule here is asked.

A stem is read as words with their places: which are close together, and which are denied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import Literal

from msgspec import Struct
from rapidfuzz.distance import OSA

from hoofbeat.corpus.terms import BREAK, COMMA, term_form, tokens, word_lists
from hoofbeat.recipes.wordlists import word_data

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


class LeakWordLists(Struct, frozen=True, kw_only=True):
    """The word lists in normal form."""

    little: frozenset[str]
    qualified: frozenset[str]
    modifiers: frozenset[str]
    classes: frozenset[str]
    redundant: frozenset[str]
    qualifiers: frozenset[str]
    everyday: frozenset[str]
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
def lists() -> LeakWordLists:
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
    return LeakWordLists(
        little=frozenset(words["little"].split()),
        qualified=frozenset(_normal(words["qualified"])),
        modifiers=frozenset(_normal(words["modifiers"])),
        classes=frozenset(_normal(words["classes"])),
        redundant=frozenset(_normal(words["redundant"])),
        qualifiers=frozenset(_normal(words["qualifiers"])),
        everyday=frozenset(words["everyday"].split()),
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


def misspelt(word: str, wanted: str, min_match: float) -> bool:
    """Whether a word may be another, given in normal form, misspelt; it is no slip to have another prefix."""
    whole = (
        f"{wanted[:-1]}is" if wanted.endswith("se") else wanted
    )  # as it was before its -sis was put into normal form
    return any(_slip(word, each, min_match) for each in {wanted, whole})


def _slip(form: str, wanted: str, min_match: float) -> bool:
    size = len(wanted)
    if min_match >= 1 or size < _SHORTEST_MISSPELT or form[0] != wanted[0] or form == wanted:
        return False
    maximum = max(1, round((1 - min_match) * size))
    if abs(len(form) - size) > maximum or OSA.distance(form, wanted, score_cutoff=maximum) > maximum:
        return False
    return not any(
        {form.startswith(a) and wanted.startswith(b), form.startswith(b) and wanted.startswith(a)} == {True, False}
        and not (a.startswith(b) or b.startswith(a))
        for a, b in lists().prefix_pairs
    )


_JOINT = re.compile(r"[-\u2010\u2011\u00ad\u200b\u200c\u2060]\n?")
_MAX_JOINED = 3
_MAX_BETWEEN = 7
_FEW_BETWEEN = 2
_LOOKED_BACK = 9
_LOOKED_AHEAD = 7
_LONG_NAME = 8
_NAME = 5
_PERSON = (" et al", " is ", " and colleagues", " and co")


class NormalisedText:
    """The words of a text in normal form. Words joined by hyphens are also there as one word, under `joined`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.forms, self.starts, self.ends = tokens(text)

    @staticmethod
    @lru_cache(maxsize=64)
    def of(text: str) -> NormalisedText:
        """A text that is read for one name after another: its words are looked up once."""
        return NormalisedText(text)

    @cached_property
    def joined(self) -> list[tuple[str, int, int]]:
        """Words that a hyphen or an invisible sign cuts in two: the whole, its first and its last part."""
        found = []
        for first in range(len(self.forms)):
            whole = first
            while (
                whole + 1 < len(self.forms)
                and whole - first < _MAX_JOINED
                and _JOINT.fullmatch(self.text[self.ends[whole] : self.starts[whole + 1]])
            ):
                whole += 1
                raw = "".join(self.text[self.starts[at] : self.ends[at]] for at in range(first, whole + 1))
                found.append((term_form(raw), first, whole))
        return found

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The characters of these words."""
        return self.starts[first], self.ends[last]

    def raw(self, place: int) -> str:
        """A word as it is written."""
        return self.text[self.starts[place] : self.ends[place]]

    def where(self, fits: Callable[[str], bool]) -> list[tuple[int, int, str]]:
        """The places of words that fit, as first and last word, in the order of the text."""
        return sorted(each for form, places in self._places.items() if fits(form) for each in places)

    def where_one_of(self, forms: frozenset[str]) -> list[tuple[int, int, str]]:
        """The places of any of these words, in the order of the text."""
        return sorted(each for form in forms for each in self._places.get(form, ()))

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int, str]]]:
        """The places of each word, as first and last word."""
        found: dict[str, list[tuple[int, int, str]]] = {}
        for place, form in enumerate(self.forms):
            if form:
                found.setdefault(form, []).append((place, place, form))
        for form, first, last in self.joined:
            found.setdefault(form, []).append((first, last, form))
        return found

    def slips(self, wanted: str, min_match: float) -> list[tuple[int, int, str]]:
        """The places of words that may be another misspelt, in normal form or as they are written."""
        return [
            each
            for each, written in self._by_letter.get(wanted[:1], ())
            if misspelt(each[2], wanted, min_match) or misspelt(written, wanted, min_match)
        ]

    @cached_property
    def _by_letter(self) -> dict[str, list[tuple[tuple[int, int, str], str]]]:
        """Every word and how it is written, under the first letter of either: a slip leaves the first letter."""
        found: dict[str, list[tuple[tuple[int, int, str], str]]] = {}
        for each in self.where(bool):
            written = self._written(each[0], each[1])
            for letter in {each[2][0], written[:1]}:
                found.setdefault(letter, []).append((each, written))
        return found

    def _written(self, first: int, last: int) -> str:
        return "".join(self.raw(place) for place in range(first, last + 1)).lower()

    def together(self, places: Sequence[Sequence[tuple[int, int, str]]]) -> Iterator[list[tuple[int, int, str]]]:
        """The places where all words of a set stand together, one choice for each of the rarest word's places."""
        if not all(places):
            return
        rarest = min(range(len(places)), key=lambda number: len(places[number]))
        for anchor in places[rarest]:
            chosen = [anchor]
            for number, options in enumerate(places):
                if number == rarest:
                    continue
                free = [o for o in options if all(o[1] < c[0] or o[0] > c[1] for c in chosen)]
                if not free:
                    break
                chosen.append(min(free, key=lambda o: (min(abs(o[0] - c[0]) for c in chosen), o[0])))
            else:
                if self._close(sorted(chosen)):
                    yield chosen

    def _close(self, chosen: Sequence[tuple[int, int, str]]) -> bool:
        """Whether nothing of weight stands between these words: little words, sites, at most one or two others."""
        taken = {at for first, last, _ in chosen for at in range(first, last + 1)}
        between = [self.forms[at] for at in range(min(taken), max(taken)) if at not in taken]
        if BREAK in between or len(between) > _MAX_BETWEEN:
            return False
        known = lists()
        words = [form for form in between if form != COMMA]
        heavy = [form for form in words if worth(form) not in {"little", "modifier", "site"}]
        if len(words) < len(between):
            return between.count(COMMA) == 1 and not heavy and len(words) <= 1
        joins = sum(form in known.conjunctions for form in words)
        if joins or any(form in known.auxiliaries for form in words):
            return len(heavy) == 0 and len(words) <= _FEW_BETWEEN and not (joins and set(words) & known.auxiliaries)
        return len(heavy) <= (1 if len(chosen) < 3 else 2)

    def is_name_of_disease(self, place: int, *, plain: bool = False) -> bool:
        """Whether a word that may be ordinary or a person's is a disease's name here; `plain` is for small letters."""
        raw, before = self.raw(place), self.forms[place - 1] if place else BREAK
        if before in lists().titles or self.text.startswith(_PERSON, self.ends[place]):
            return False
        if self._leads_to_disease(place, capital=raw[0].isupper()):
            return True
        if not raw[0].isupper():
            return plain and len(raw) >= _LONG_NAME
        owned = raw.endswith(("'s", "’s", "'", "’"))
        opening = re.search(r"(?:^|[^\w\s,])\s*$", self.text[max(0, self.starts[place] - 5) : self.starts[place]])
        return owned or (not opening and len(raw) >= _NAME and not self._follows_name(place))

    def _follows_name(self, place: int) -> bool:
        """Whether the word before is capitalised too: John Wilson is a person."""
        near = place > 0 and self.text[self.ends[place - 1] : self.starts[place]] == " "
        return near and self.raw(place - 1)[:1].isupper() and not self.raw(place - 1).isupper()

    def _leads_to_disease(self, place: int, *, capital: bool) -> bool:
        """Whether the next word is a kind of disease, or the one after it behind a name of several words."""
        follows = self.forms[place + 1 : place + 3]
        if follows and _of_disease(follows[0]):
            return True
        passed = len(follows) > 1 and worth(follows[0] or "x") in {"site", "qualifier", "special"}
        return capital and passed and bool(follows[0]) and _of_disease(follows[1])

    def denied(self, first: int, last: int) -> bool:
        """Whether what these words say is denied in their clause."""
        known = lists()
        before: list[str] = []
        for at in range(first - 1, max(-1, first - 1 - _LOOKED_BACK), -1):
            if self.forms[at] == BREAK or self.forms[at] in known.turned or self._turns(at):
                break
            before.insert(0, self.forms[at])
        if any(_holds(before, phrase) for phrase in known.denied_before):
            return True
        after = self.forms[last + 1 : last + 1 + _LOOKED_AHEAD]
        while after and after[0] in known.passed:
            after = after[1:]
        return any(tuple(after[: len(phrase)]) == phrase for phrase in known.denied_after)

    def _turns(self, place: int) -> bool:
        """Whether what is denied before ends here: ", with pneumatosis of the wall", "not only had an abscess"."""
        before = self.forms[place - 1] if place else ""
        return (self.forms[place], before) == ("with", COMMA) or (
            before == "not" and self.forms[place] in ("only", "just", "merely")
        )


def _holds(words: Sequence[str], phrase: Sequence[str]) -> bool:
    return any(tuple(words[at : at + len(phrase)]) == tuple(phrase) for at in range(len(words) - len(phrase) + 1))


def _of_disease(form: str) -> bool:
    return form in lists().classes or (bool(form) and is_disease(form))
