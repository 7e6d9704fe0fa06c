"""Rankings found without holding them: how each query fared and where its hits begin; the hits stay on disk.

Ten thousand queries with a hundred hits each are a million lines. They are read once; after that a page reads the hits
of the query it shows and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.records import Failure, Hit, Question
from hoofbeat.retrieval.stage_roles import SearchQuery
from hoofbeat.store import Artefact
from hoofbeat.store.table_listing import Listing, QuestionLine, read_listing
from hoofbeat.store.tables import each_line, lines_at, read_tsv, spans_at
from hoofbeat.text import same_name

OUTCOMES = ("first", "later", "deep", "missed", "unjudged", "failed")
"""How a query fared: a relevant document comes first, among the first ten, below them, or not at all; no document is
known to be relevant; or it could not be searched."""

ORDERS = ("worst", "best", "asked")
"""How queries can be put in order."""

_MAIN = "nDCG@10"
_TOP = 10

Values = NDArray[np.float64]


class QueryFilter(Struct, frozen=True, kw_only=True):
    """Which queries to find, and in which order; what is empty is not asked for."""

    outcome: str = ""
    order: str = ""
    measure: str = ""
    facets: tuple[tuple[str, str], ...] = ()


class QueryOutcome(Struct, frozen=True, kw_only=True):
    """How a query fared: its number (from 1), outcome, hits, relevant documents, those found, and the first's rank."""

    number: int
    id: str
    title: str
    outcome: str
    hits: int
    relevant: int
    found: int
    first: int
    values: tuple[float | None, ...]


class _HitLine(Struct):
    question: str
    document: str
    rank: int


class _Trace(Struct):
    id: str
    failure: Failure | None = None


class _Asked(Struct):
    id: str
    documents: tuple[str, ...] = ()


class _Counts(Struct):
    """What is counted of a query's hits as they are read, and where its lines are."""

    spans: list[tuple[int, int]]
    hits: int = 0
    found: int = 0
    first: int = 0


class RankingIndex:
    """The queries of a ranking. `measures` are those it was measured by, `listing` its questions."""

    def __init__(
        self,
        artefact: Artefact,
        listing: Listing,
        grades: Mapping[str, Mapping[str, int]],
        measures: Mapping[str, Values],
        counts: Sequence[_Counts],
        traces: Mapping[str, _Place],
    ) -> None:
        self.listing = listing
        self.measures = tuple(measures)
        self.total = sum(each.hits for each in counts)
        self._artefact = artefact
        self._grades = grades
        self._values = measures
        self._counts = counts
        self._traces = traces
        codes = [OUTCOMES.index(self._outcome(number)) for number in range(1, len(listing) + 1)]
        self._outcomes = np.array(codes, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self.listing)

    @property
    def main(self) -> str:
        """The measure that queries are put in order by unless another is named; empty where nothing was measured."""
        return _MAIN if _MAIN in self.measures else next(iter(self.measures), "")

    def tally(self) -> dict[str, int]:
        """How many queries fared how."""
        counts = np.bincount(self._outcomes, minlength=len(OUTCOMES)).tolist()
        return {name: count for name, count in zip(OUTCOMES, counts, strict=True) if count}

    def values(self, measure: str) -> Values:
        """Every query's value of a measure; not a number where it has none."""
        return self._values[measure]

    def numbers(self, wanted: QueryFilter, below: Values | None = None) -> list[int]:
        """The numbers of the queries that are wanted, in order; `below` puts them in the order of other values."""
        numbers = np.asarray(self.listing.matching(self._facets(wanted)), dtype=np.int64)
        if wanted.outcome:
            code = OUTCOMES.index(wanted.outcome) if wanted.outcome in OUTCOMES else len(OUTCOMES)
            numbers = numbers[self._outcomes[numbers - 1] == code] if len(numbers) else numbers
        measure = wanted.measure if wanted.measure in self.measures else self.main
        values = below if below is not None else self._values[measure] if measure else None
        if values is None or wanted.order == "asked" or not len(numbers):
            return [int(number) for number in numbers]
        keys = values[numbers - 1] * (-1 if wanted.order == "best" else 1)
        return [int(number) for number in numbers[np.argsort(keys, kind="stable")]]  # those without a value come last

    def fared(self, number: int) -> QueryOutcome:
        """How a query fared."""
        counted, name = self._counts[number - 1], self.listing.ids[number - 1]
        values = (float(self._values[measure][number - 1]) for measure in self.measures)
        return QueryOutcome(
            number=number,
            id=name,
            title=self.listing.titles[number - 1],
            outcome=OUTCOMES[self._outcomes[number - 1]],
            hits=counted.hits,
            relevant=len(self.relevant(number)),
            found=counted.found,
            first=counted.first,
            values=tuple(None if np.isnan(value) else value for value in values),
        )

    def grades(self, number: int) -> Mapping[str, int]:
        """The judged documents of a query with their grades."""
        return self._grades.get(self.listing.ids[number - 1], {})

    def relevant(self, number: int) -> dict[str, int]:
        """The relevant documents of a query with their grades, the most relevant first."""
        there = [(name, grade) for name, grade in self.grades(number).items() if grade > 0]
        return dict(sorted(there, key=lambda each: -each[1]))

    def question(self, number: int) -> Question:
        """The question, read from its table."""
        return self.listing.record(number, Question)

    def hits(self, number: int) -> list[Hit]:
        """The hits of a query in the order of their ranks, read from their table."""
        found = spans_at(self._artefact.file("hits.jsonl"), self._counts[number - 1].spans, Hit)
        return sorted(found, key=lambda hit: hit.rank)

    def trace(self, number: int) -> SearchQuery | None:
        """What was searched for instead of the question, where a stage wrote that."""
        place = self._traces.get(self.listing.ids[number - 1])
        return lines_at(self._artefact.file("traces.jsonl"), [place.offset], SearchQuery)[0] if place else None

    def _facets(self, wanted: QueryFilter) -> dict[str, str]:
        """Facets by the names and values they have in the table: a page shows both without hidden characters."""
        chosen = {}
        known = {facet.name: facet.values for facet in self.listing.facets({})} if wanted.facets else {}
        for name, value in wanted.facets:
            mine = next((each for each in known if same_name(each, name)), name)
            chosen[mine] = next((each for each, _ in known.get(mine, ()) if same_name(each, value)), value)
        return chosen

    def _outcome(self, number: int) -> str:
        counted, trace = self._counts[number - 1], self._traces.get(self.listing.ids[number - 1])
        if trace is not None and trace.failed:
            return "failed"
        if not self.relevant(number):
            return "unjudged"
        if not counted.first:
            return "missed"
        return "first" if counted.first == 1 else "later" if counted.first <= _TOP else "deep"


class _Place(Struct, frozen=True):
    """Where a query's trace is, and whether the query failed."""

    offset: int
    failed: bool


def index_ranking(artefact: Artefact, grades: Mapping[str, Mapping[str, int]] | None = None) -> RankingIndex:
    """Read a ranking once. `grades` are the benchmark's; without them, what its questions name is relevant."""
    questions = artefact.file("questions.jsonl")
    listing = read_listing(questions, QuestionLine)
    if grades is None:
        asked = (line for _, line in each_line(questions, _Asked))
        grades = {each.id: dict.fromkeys(each.documents, 1) for each in asked if each.documents}
    counts = _counted(artefact.file("hits.jsonl"), listing, grades)
    traces = {}
    if artefact.has("traces.jsonl"):
        for offset, line in each_line(artefact.file("traces.jsonl"), _Trace):
            traces[line.id] = _Place(offset, line.failure is not None)
    return RankingIndex(artefact, listing, grades, _measures(artefact, listing), counts, traces)


def _counted(path: Path, listing: Listing, grades: Mapping[str, Mapping[str, int]]) -> list[_Counts]:
    counts = [_Counts(spans=[]) for _ in listing.ids]
    for name, hits in _together(path):
        number = listing.number(name)
        if number is None:
            raise InputError(
                f"a hit refers to a missing query: {name!r}", where=str(path), fix="make the ranking again"
            )
        mine, judged = counts[number - 1], grades.get(name, {})
        mine.spans.append((hits[0][0], len(hits)))
        mine.hits += len(hits)
        for _, hit in hits:
            if judged.get(hit.document, 0) > 0:
                mine.found += 1
                mine.first = min(mine.first or hit.rank, hit.rank)
    return counts


def _together(path: Path) -> Iterator[tuple[str, list[tuple[int, _HitLine]]]]:
    """Hits of one query that stand together."""
    held: list[tuple[int, _HitLine]] = []
    for offset, line in each_line(path, _HitLine):
        if held and held[0][1].question != line.question:
            yield held[0][1].question, held
            held = []
        held.append((offset, line))
    if held:
        yield held[0][1].question, held


def _measures(artefact: Artefact, listing: Listing) -> dict[str, Values]:
    """Every query's value of every measure, measures in the order of the manifest."""
    known = {name: np.full(len(listing), np.nan) for name in artefact.manifest.metrics}
    if not artefact.has("queries.tsv"):
        return {}
    path = artefact.file("queries.tsv")
    try:
        for row in read_tsv(path):
            number = listing.number(row["query"])
            if number is not None:
                values = known.setdefault(row["measure"], np.full(len(listing), np.nan))
                values[number - 1] = float(row["value"])
    except ValueError as err:
        raise InputError(f"can't read the measures: {err}", where=str(path), fix="make the ranking again") from err
    return {name: values for name, values in known.items() if not np.isnan(values).all()}
