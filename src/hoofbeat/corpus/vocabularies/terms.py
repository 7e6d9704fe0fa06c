"""What a vocabulary holds, what a match says, and the wordings a term goes by in prose.

Catalogues write "Crohn's disease of small intestine, unspecified", "Microcephaly 4, primary, autosomal recessive" or
"Malignant neoplasm of breast"; authors write "Crohn's disease of the small intestine", "autosomal recessive primary
microcephaly" and "breast cancer". Rules here are cautious: a wording that could mean something else is not made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from hoofbeat.corpus.vocabularies.word_forms import COMMA, phrase_key, word_lists

Via = Literal["name", "synonym", "family", "abbreviation", "code"]


class Term(Struct, frozen=True, kw_only=True, array_like=True):
    """One entry: its code, preferred name, other names, and the codes it stands under, nearest first.

    `in_text` is false for entries that are looked up but not searched for in texts: chapters, and codes that only add
    an encounter to another.
    """

    code: str
    name: str
    synonyms: tuple[str, ...] = ()
    abbreviations: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    in_text: bool = True


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A term at these characters. `codes` are all terms of that wording, the best first; `via` says which wording fit.

    `family` means that the wording names a group of numbered subtypes, all of which are in `codes`.
    """

    code: str
    name: str
    start: int
    end: int
    text: str
    via: Via = "name"
    codes: tuple[str, ...] = ()


_BRACKETED = re.compile(r"\s*[\[(][^\[\]()]*[\])]")
_ALSO = re.compile(r"^[^\[\]()]{4,60}\[([^\[\]()]+)\]$")
_CONDITION = re.compile(r" |(?:itis|oma|osis|emia|aemia|pathy|phobia|algia|plasia|trophy|penia|uria|cele|ism)$")
_TAILS = re.compile(
    r"(?:,\s*unspecified(?: \w+){0,2}|, not (?:otherwise specified|elsewhere classified)| NOS| NEC|,? unspecified|"
    r",? (?:of )?unspecified site|, site unspecified|,? without complications?)$",
    re.IGNORECASE,
)
_UNSPECIFIED = re.compile(r"^unspecified (?=\w)", re.IGNORECASE)
_DANGLING = re.compile(r"(?: (?:of|in|with|to|due to|and|or|by|from|at|on|the|for|without|following))+$", re.IGNORECASE)
_NEOPLASM = re.compile(r"^malignant neoplasm of (?:the )?((?:\w+[ -]){0,2}\w+)$", re.IGNORECASE)
_OF = re.compile(r"^([\w'’-]+) of (?:the )?([\w'’-]+)$")
_SUBTYPE = re.compile(r"[,\s]+(?:type |group |complementation group )?(?:\d+[A-Za-z]{0,2}\d?|[IVX]+[A-Da-d]?\d?)$")
_SUBTYPE_INSIDE = re.compile(r"^([A-Za-z][\w' -]{5,}?) (?:type )?\d+[A-Za-z]?(?=, )")
_SHORT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9/+-]{0,7}$")
_MAX_INVERTED = 4


def is_short_form(text: str) -> bool:
    """Whether a wording is an abbreviation (ALS, HSCT-TMA, iTTP), which a text must define before it counts."""
    if " " in text.strip() or not any(c.isalpha() for c in text):
        return False
    capitals = sum(c.isupper() for c in text)
    return len(text) <= 12 and capitals >= 2 and bool(_SHORT.match(text) or text.replace("-", "").isupper())


def wordings(name: str) -> Iterator[str]:
    """The wordings of one name, the name itself first."""
    yield name
    plain = " ".join(_BRACKETED.sub(" ", name).split())
    forms = [plain]
    if (also := _ALSO.match(name)) and _names_condition(also.group(1)):
        forms.append(also.group(1))
    for form in forms:
        for whole in _without_tails(form):
            yield whole
            yield from _reordered(whole)


def _names_condition(inner: str) -> bool:
    """Whether what stands in brackets is another name and not a remark."""
    return bool(_CONDITION.search(inner)) and not is_short_form(inner) and not _DANGLING.search(f" {inner}")


def _without_tails(name: str) -> Iterator[str]:
    yield name
    shorter = name
    while (cut := _DANGLING.sub("", _UNSPECIFIED.sub("", _TAILS.sub("", shorter)))) != shorter:
        shorter = cut
    if shorter and shorter != name:
        yield shorter


def _reordered(name: str) -> Iterator[str]:
    """What stands after commas put in front, sites and what they have exchanged, cancers by their short names."""
    parts = [part.strip() for part in name.split(",")]
    if 1 < len(parts) <= 4 and all(parts) and all(part.count(" ") < 4 for part in parts):
        yield " ".join(reversed(parts))
        yield " ".join(parts)
    if found := _NEOPLASM.match(name):
        yield f"{found.group(1)} cancer"
        yield f"cancer of {found.group(1)}"
        yield f"cancer of the {found.group(1)}"
    elif found := _OF.match(name):
        yield f"{found.group(2)} {found.group(1)}"
        yield f"{found.group(1)} of the {found.group(2)}"
    if " of " in name and " of the " not in name and name.count(" of ") == 1:
        yield name.replace(" of ", " of the ")


def _family(name: str) -> str:
    """The group that a numbered subtype belongs to, or nothing."""
    shorter = _SUBTYPE_INSIDE.sub(r"\1", _SUBTYPE.sub("", name))
    return shorter if shorter != name and len(shorter.split()) > 1 else ""


def _inverted(key: str) -> Iterator[str]:
    """`crohn disease` as `disease , crohn`: the end of a short phrase first, as catalogues and indexes write it."""
    words = key.split(" ")
    if len(words) <= _MAX_INVERTED and COMMA not in words:
        for cut in range(1, len(words)):
            yield " ".join((*words[cut:], COMMA, *words[:cut]))


def term_keys(term: Term) -> dict[str, Via]:
    """Every key the term is found under in texts, each with what it is; names come before synonyms."""
    keys: dict[str, Via] = {}
    labelled: list[tuple[str, Via]] = [(term.name, "name"), *((each, "synonym") for each in term.synonyms)]
    for name, via in labelled:
        for wording in wordings(name):
            if not is_short_form(wording):
                _add(keys, phrase_key(wording), via)
        if family := _family(name):
            for wording in wordings(family):
                _add(keys, phrase_key(wording), "family")
    return keys


def _add(keys: dict[str, Via], key: str, via: Via) -> None:
    lists = word_lists()
    if len(key) < 3 or key in lists.too_general or key.replace(" ", "").isdigit():
        return
    keys.setdefault(key, via)
    for other in _inverted(key):
        keys.setdefault(other, via)
