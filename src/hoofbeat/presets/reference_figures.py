"""Published figures that must come out: rankings on public sets, sizes of sets, and what follows from other figures.

The figures are data (`data/reference_figures.toml`), each with its source and tolerance. A figure whose data is not on
this machine is skipped and said. A paper's figure that does not follow from its other figures would fail here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.benchmarks.statement_check import measured_kinds
from hoofbeat.corpus.parsers.rows import read_rows
from hoofbeat.findings.breakdown import over_sets
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.progress import SILENT, Progress
from hoofbeat.reports.sections.published_section import papers
from hoofbeat.retrieval import Retriever
from hoofbeat.retrieval.rankings.test_collection import TestCollection, open_collection
from hoofbeat.store.tables import read_tsv

RETRIEVAL = ("ranking", "count")
"""The kinds that test collections give."""

STATEMENTS = ("statement",)
"""The kind that the labelled pairs of the package give: how often the check of statements is right."""

_DEPTH = 1000
Kind = Literal["ranking", "count", "rows", "average", "share", "sum", "wilson low", "wilson high", "statement"]


class ReferenceFigure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure that must come out: within `tolerance` of `expected`, or for a floor at least that.

    `data` is a test collection by name, or a table below the folder of the data; `what` is a retriever line, a system,
    or words. `of` are the published figures that it follows from.
    """

    kind: Kind
    measure: str
    source: str
    expected: float = 0.0
    tolerance: float = 0.0
    data: str = ""
    what: str = ""
    floor: bool = False
    of: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """What it is a figure of."""
        return ": ".join(filter(None, (self.data.rpartition("/")[2], self.what)))


class ReferenceResult(Struct, frozen=True, kw_only=True):
    """A figure and what was observed; None where its data is not there."""

    check: ReferenceFigure
    observed: float | None

    @property
    def verdict(self) -> str:
        """Whether it came out."""
        if self.observed is None:
            return "skipped: no data"
        apart = self.observed - self.check.expected
        return "ok" if (apart >= 0 and self.check.floor) or abs(apart) <= self.check.tolerance else "FAILED"


@cache
def reference_figures() -> tuple[ReferenceFigure, ...]:
    """All figures, as the data file has them."""
    text = (resources.files("hoofbeat.presets") / "data" / "reference_figures.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["figures"], tuple[ReferenceFigure, ...])


def check_figures(
    root: Path, progress: Progress = SILENT, *, sets: Path, kinds: Sequence[str] = ()
) -> list[ReferenceResult]:
    """Observe every published figure, or those of some kinds.

    `root` is the folder that holds `data` and `reference`, `sets` the one that holds the test collections.
    """
    chosen = [each for each in reference_figures() if each.kind in (kinds or set(get_args(Kind)) - set(STATEMENTS))]
    observer = _Observer(root, sets, progress)
    figures = [one for each in chosen for one in (observer.averages(each) if each.kind == "average" else (each,))]
    return [ReferenceResult(check=each, observed=observer.observe(each)) for each in figures]


def _printed_averages(figure: ReferenceFigure) -> Iterator[ReferenceFigure]:
    """The averages that R2MED prints, each with the figures by set that it prints beside it."""
    means, by_set = papers()["r2med"].tables[:2]
    sets = {system: tuple(float(each) / by_set.scale for each in row) for system, _, *row in by_set.rows}
    for system, _, printed, *_ in means.rows:
        yield replace(figure, what=f"R2MED, {system}", of=sets[system], expected=float(printed) / means.scale)


class _Observer:
    """What is read and searched once for several figures."""

    def __init__(self, root: Path, sets: Path, progress: Progress) -> None:
        self._root = root
        self._sets = sets
        self._progress = progress
        self._collections: dict[str, TestCollection] = {}
        self._means: dict[tuple[str, str], dict[str, float]] = {}

    def observe(self, figure: ReferenceFigure) -> float | None:
        """The observed value; None where its data is not there."""
        if figure.data and not self._there(figure):
            return None
        match figure.kind:
            case "ranking":
                return self._ranking(figure)
            case "count":
                return self._count(figure)
            case "rows":
                return float(sum(1 for _ in read_rows(self._root / figure.data)))
            case "average":
                sets = {str(place): {"": value} for place, value in enumerate(figure.of)}
                return over_sets(sets).macro.mean if sets else None
            case "statement":
                right, total = measured_kinds()[figure.what]
                return right / total
            case "sum":
                return sum(figure.of)
            case "share":
                return figure.of[0] / figure.of[1]
            case _:
                interval = wilson(figure.of[0], figure.of[1])
                return interval.low if figure.kind == "wilson low" else interval.high

    def averages(self, figure: ReferenceFigure) -> Iterator[ReferenceFigure]:
        """One figure for each system of a table that has sets and their average as columns."""
        if not figure.data:
            yield from _printed_averages(figure)
        elif not self._there(figure):
            yield figure
        else:
            for row in read_tsv(self._root / figure.data):
                sets = tuple(float(value) for name, value in row.items() if name not in ("system", "avg"))
                yield replace(figure, what=row["system"], of=sets, expected=float(row["avg"]))

    def _there(self, figure: ReferenceFigure) -> bool:
        if figure.kind in RETRIEVAL:
            return (self._sets / figure.data / "corpus.jsonl").is_file()
        return (self._root / figure.data).is_file()

    def _collection(self, data: str) -> TestCollection:
        if data not in self._collections:
            self._collections[data] = open_collection(self._sets / data)
        return self._collections[data]

    def _ranking(self, figure: ReferenceFigure) -> float:
        key = figure.data, figure.what
        if key not in self._means:
            collection = self._collection(figure.data)
            retriever = Retriever(collection.indexes(self._progress), figure.what)
            queries = [(question.id, question.full_text) for question in collection.questions]
            found = retriever.search(queries, _DEPTH)
            measures = [each.measure for each in reference_figures() if (each.data, each.what) == key]
            means = evaluate((hit for hits in found for hit in hits), collection.qrels, measures).means
            self._means[key] = dict(means)
        return self._means[key][figure.measure]

    def _count(self, figure: ReferenceFigure) -> float:
        collection = self._collection(figure.data)
        counts = {
            "documents": len(collection.ids),
            "questions": len(collection.questions),
            "judgments": sum(map(len, collection.qrels.values())),
        }
        return float(counts[figure.measure])
