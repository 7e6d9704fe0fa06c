"""What a vocabulary holds and what a match says."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

__all__ = ["Match", "Term", "Via"]

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
