"""The terms of a question in HERO: words that are added to it, and how much of it the evidence speaks of.

Expansion needs no model: it is a table of words that patients and clinicians use for the same thing. A question is
matched term by term as the lexical index reads it, so case, endings and stop words make no difference. The same
question always gets the same words, and every word added can be traced to the one that brought it.

Coverage is the share of the question's terms that evidence speaks of, rare ones counting more.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.hero.parent_sections import EvidenceUnits
from hoofbeat.retrieval.index.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.index.lexical_search import Postings
from hoofbeat.retrieval.index.topk import Floats, Indices

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


class Concept(NamedTuple):
    """A term of a question, and terms that may stand for it."""

    stem: str
    instead: tuple[tuple[str, ...], ...]


class QuestionCoverage:
    """Which terms of a question its evidence speaks of, and how much each of them counts in a source.

    `bounds` divide the texts of the postings among the sources: source n has those from `bounds[n]` to before
    `bounds[n + 1]`. Rarity is reckoned in each source by itself, so its neighbours in the index change nothing.
    """

    def __init__(self, postings: Postings, bounds: Indices) -> None:
        self._postings = postings
        self._bounds = bounds
        self._analyzer = postings.vocabulary.analyzer

    def concepts(self, question: str, added: Sequence[ExpansionMatch]) -> list[Concept]:
        """The terms of a question; words that were added may stand for the one that brought them."""
        instead: dict[str, list[tuple[str, ...]]] = {}
        for each in added:
            others = [tuple(self._analyzer.terms(term)) for term in each.terms]
            for stem in self._analyzer.terms(each.matched):
                instead.setdefault(stem, []).extend(others)
        stems = dict.fromkeys(self._analyzer.terms(question))
        return [Concept(stem, tuple(instead.get(stem, ()))) for stem in stems]

    def weights(self, concepts: Sequence[Concept], sources: Sequence[int]) -> Floats:
        """For each concept (row) and each of these sources (column) how rare the term is among the source's texts."""
        chosen = np.array(sources, np.int64)
        first, last = self._bounds[chosen], self._bounds[chosen + 1]
        edges = np.concatenate([first, last]).astype(self._postings.texts.dtype)  # or every row would be widened
        frequencies = np.empty((len(concepts), len(chosen)))
        for number, concept in enumerate(concepts):
            before = self._row(concept.stem).searchsorted(edges)
            frequencies[number] = before[len(chosen) :] - before[: len(chosen)]
        weights: Floats = np.log1p((last - first - frequencies + 0.5) / (frequencies + 0.5))
        return weights

    def covered(self, concepts: Sequence[Concept], evidence: EvidenceUnits) -> NDArray[np.bool_]:
        """For each concept (row) and each search (column) whether the units it found speak of it."""
        count = len(evidence.sizes)
        there = np.arange(evidence.table.shape[1]) < evidence.sizes[:, None]
        spans = evidence.table[:, :, 2:][there].astype(self._postings.texts.dtype)  # or every row would be widened
        lo, hi = np.ascontiguousarray(spans.T)
        owner = np.repeat(np.arange(count), evidence.sizes)
        known: dict[str, NDArray[np.bool_]] = {}

        def present(stem: str) -> NDArray[np.bool_]:
            if stem not in known:
                row = self._row(stem)
                known[stem] = np.zeros(count, bool)
                known[stem][owner[row.searchsorted(hi) > row.searchsorted(lo)]] = True
            return known[stem]

        table = np.zeros((len(concepts), count), bool)
        for number, concept in enumerate(concepts):
            table[number] = present(concept.stem)
            for stems in concept.instead:
                table[number] |= np.logical_and.reduce([present(stem) for stem in stems])
        return table

    def _row(self, stem: str) -> NDArray[np.int32]:
        number = self._postings.vocabulary.terms.get(stem)
        if number is None:
            return np.empty(0, np.int32)
        return self._postings.texts[self._postings.starts[number] : self._postings.starts[number + 1]]


def shares(weights: Floats, table: NDArray[np.bool_]) -> Floats:
    """For each column the share of the question's weight that is covered."""
    if not len(weights):
        return np.zeros(table.shape[1])
    # added up one after the other: other ways of summing round by how many columns there are
    covered = np.cumsum(weights * table, axis=0)[-1]
    found: Floats = covered / np.cumsum(weights, axis=0)[-1]
    return found
