"""Query expansion without a model: a table of words that patients and clinicians use for the same thing.

A question is matched term by term as the lexical index reads it, so case, endings and stop words make no difference.
The same question always gets the same words, and every word added can be traced to the one that brought it.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import defaultdict
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.analysis import ENGLISH, Analyzer

__all__ = ["ExpansionMatch", "Expansions", "SynonymGroup", "load_expansions"]

_FILE = resources.files("hoofbeat.retrieval.hero") / "expansions.toml"


class SynonymGroup(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words for one thing: each of `terms` brings the others; `narrower` words bring them and are not brought."""

    terms: list[str]
    narrower: list[str] = field(default_factory=list)


class _Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    groups: list[SynonymGroup]


class ExpansionMatch(Struct, frozen=True, kw_only=True):
    """What one match brought: the words found in the question (as the table spells them), and those added for them."""

    matched: str
    terms: tuple[str, ...]


_Stems = tuple[str, ...]


class Expansions:
    """A table of groups, ready to be matched against questions."""

    def __init__(self, groups: list[SynonymGroup], *, analyzer: Analyzer = ENGLISH, fingerprint: str = "") -> None:
        self.analyzer = analyzer
        self.fingerprint = fingerprint
        self.groups = groups
        self._stems: list[list[tuple[str, _Stems]]] = []
        self._spelling: dict[_Stems, str] = {}
        self._by_first: defaultdict[str, dict[_Stems, list[int]]] = defaultdict(dict)
        for number, group in enumerate(groups):
            self._stems.append([(term, tuple(analyzer.terms(term))) for term in group.terms])
            for term in [*group.terms, *group.narrower]:
                stems = tuple(analyzer.terms(term))
                if stems and number not in (numbers := self._by_first[stems[0]].setdefault(stems, [])):
                    numbers.append(number)
                    self._spelling.setdefault(stems, term)

    def added(self, question: str) -> tuple[ExpansionMatch, ...]:
        """What the table adds to a question, in the order of the matches; nothing is added twice.

        At each place the longest match counts; a term all of whose words the question has already is not added.
        """
        stems = self.analyzer.terms(question)
        present = set(stems)
        seen: set[_Stems] = set()
        found: list[ExpansionMatch] = []
        at = 0
        while at < len(stems):
            match = self._match(stems, at)
            for number in self._by_first[match[0]][match] if match else ():
                new: list[str] = []
                for term, key in self._stems[number]:
                    if key not in seen and not present.issuperset(key):
                        seen.add(key)
                        new.append(term)
                if new:
                    found.append(ExpansionMatch(matched=self._spelling[match], terms=tuple(new)))
            at += max(1, len(match))
        return tuple(found)

    def _match(self, stems: list[str], at: int) -> _Stems:
        """The longest entry that begins at this place; empty where none does."""
        candidates = self._by_first.get(stems[at], {})
        fitting = [entry for entry in candidates if tuple(stems[at : at + len(entry)]) == entry]
        return max(fitting, key=len, default=())


@cache
def load_expansions() -> Expansions:
    """The table that ships with the package."""
    data = _FILE.read_bytes()
    try:
        table = msgspec.convert(tomllib.loads(data.decode("utf-8")), _Table)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as err:
        raise UsageError(f"the table of query expansions is wrong: {err}") from err
    return Expansions(table.groups, fingerprint=hashlib.sha256(data).hexdigest()[:12])
