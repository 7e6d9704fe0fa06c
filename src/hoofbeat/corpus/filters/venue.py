"""Venue: journals that publish case reports, by the list of OGCaReBench (its Table 16) or one of your own.

Journals go by full titles and by abbreviations of several habits. Two names are the same journal when, without little
words and punctuation, they have as many words and each word of one begins the word of the other; `J` is Journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path

from msgspec import Struct

from hoofbeat.corpus.filter import (
    KEPT,
    Clause,
    CorpusFilter,
    FilterStep,
    FilterVerdict,
    listed_values,
    per_document,
    quoted_value,
)
from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
from hoofbeat.records import Document
from hoofbeat.store.tables import read_tsv
from hoofbeat.text import ascii_letters

FACETS = ("journal", "journal-abbreviation", "journal_abbreviation", "journal-abbrev", "venue")

_LITTLE = {"of", "in", "and", "the", "for", "on", "a", "an", "de", "la", "der", "und", "et"}
_MIN_PREFIX = 2


class Venue(Struct, frozen=True):
    """A journal: how the list calls it, whether it is a medical one (and if not, what), and other names it has."""

    name: str
    medical: bool = True
    note: str = ""
    also: tuple[str, ...] = ()


class Venues:
    """A list of journals that can be asked whether it holds one, however it is written."""

    def __init__(self, venues: Iterable[Venue]) -> None:
        self.venues = tuple(venues)
        self._names = [(_words(name), venue) for venue in self.venues for name in (venue.name, *venue.also)]
        self._known: dict[str, Venue | None] = {}

    def find(self, name: str) -> Venue | None:
        """The journal of this name."""
        if name not in self._known:
            words = _words(name)
            self._known[name] = next((venue for known, venue in self._names if _same(known, words)), None)
        return self._known[name]


@cache
def paper_venues() -> Venues:
    """Table 16 of OGCaReBench as printed, each with a flag for those that are not medical."""
    with resources.as_file(resources.files("hoofbeat.corpus").joinpath("data/venues.tsv")) as path:
        return Venues(_read(path))


class _Venue(CorpusFilter):
    name = "venue"
    summary = "journals on OGCaReBench's list for case reports, or on your own list"
    example = "venue(medical)"

    def build(self, clause: Clause) -> FilterStep:
        """`venue`, `venue(medical)`: the paper's list; `venue(my.tsv)`: your own table; `venue=A,B`: these."""
        if clause.operator:
            clause.no_arguments("venue=BMJ Case Rep,JAAD Case Rep")
            names = [value.text for value in clause.compared(("=",), "venue=BMJ Case Rep")]
            return _filter(f"venue={','.join(map(quoted_value, names))}", Venues(map(Venue, names)), {"venues": names})
        words = [argument.text for argument in clause.arguments]
        if not words:
            return _filter("venue", paper_venues(), {"list": "OGCaReBench, Table 16"})
        if words == ["medical"]:
            medical = Venues(venue for venue in paper_venues().venues if venue.medical)
            return _filter("venue(medical)", medical, {"list": "OGCaReBench, Table 16, medical ones"})
        path = Path(words[0])
        if len(words) > 1 or path.suffix not in {".tsv", ".txt"}:
            clause.fail(
                clause.arguments[0].at, "a list of venues must be a .tsv or .txt file", f"write venue or {self.example}"
            )
        listed = Venues(_read(path))
        plain = _filter(f"venue({path.name})", listed, {"list": path.name, "venues": len(listed.venues)})
        return FilterStep(name="venue", line=plain.line, prepare=plain.prepare, settings=plain.settings, files=(path,))


FILTER = _Venue()


def _filter(line: str, venues: Venues, settings: dict[str, object]) -> FilterStep:
    def judge(document: Document) -> FilterVerdict:
        found = [name for name in facet_values(document.facets, *FACETS) if name]
        if any(venues.find(name) for name in found):
            return KEPT
        return FilterVerdict("venue not on the list" if found else "no venue stated", listed_values(found))

    return per_document("venue", line, judge, settings)


def _read(path: Path) -> list[Venue]:
    rows = list(read_tsv(path))
    if not rows or "venue" not in rows[0]:
        raise InputError(
            "not a list of venues: it has no column named venue",
            where=str(path),
            fix="write venue in the first line and one journal in each line below it",
        )
    return [
        Venue(
            row["venue"].strip(),
            row.get("medical", "yes") != "no",
            row.get("note", ""),
            tuple(filter(None, map(str.strip, row.get("also", "").split(";")))),
        )
        for row in rows
        if row["venue"].strip()
    ]


@cache
def _words(name: str) -> tuple[str, ...]:
    plain = ascii_letters(name.casefold())
    plain = re.sub(r"(?<=\w)['’](?=\w)", "", plain).replace("&", " ")
    return tuple(word for word in re.findall(r"[a-z0-9]+", plain) if word not in _LITTLE)


def _same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return bool(one) and len(one) == len(other) and all(map(_same_word, one, other))


def _same_word(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if short == long:
        return True
    if short == "j":
        return long == "journal"
    return len(short) >= _MIN_PREFIX and long.startswith(short)
