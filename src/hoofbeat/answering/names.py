"""Names that hold a letter, and words that are not to be mixed up: `data/names.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from msgspec import Struct, convert

__all__ = ["Names", "load_names", "one_of"]


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lists of the file; what each is for stands there."""

    species: tuple[str, ...]
    names_after: tuple[str, ...]
    names_before: tuple[str, ...]
    after_letter_a: tuple[str, ...]
    none_of: tuple[str, ...]
    all_of: tuple[str, ...]
    swaps: tuple[tuple[str, str], ...]


@cache
def load_names() -> Names:
    """The names, read once."""
    raw = (files("hoofbeat.answering") / "data" / "names.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(raw), Names)


def one_of(words: Iterable[str]) -> str:
    """A pattern for any of the words."""
    return "|".join(re.escape(word) for word in words)
