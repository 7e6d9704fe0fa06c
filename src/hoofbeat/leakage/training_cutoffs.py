"""When a question's source was published, set against where a model's training data end.

A question whose source came out after the cutoff can't have been in the training data as that source (an earlier
version, a preprint or an abstract can). One from before may have been. So accuracy before against after is a
comparison of two different sets of questions: a drop is consistent with leakage, and with harder or rarer cases, too.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from msgspec import Struct, convert

from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.intervals import (
    CLUSTERED,
    FEW,
    LEVEL,
    Interval,
    cluster_of,
    newcombe,
    percentiles,
    share_interval,
)
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.records import Document, Question

Position = Literal["before", "after", "same year", "undated"]
POSITIONS: tuple[Position, ...] = ("before", "after", "same year", "undated")

_DATE = re.compile(r"(?<!\d)(1[89]\d\d|20\d\d)(?:[-/](0?[1-9]|1[0-2])(?!\d))?")
_CUTOFF = re.compile(r"(20\d\d|19\d\d)(?:-(0[1-9]|1[0-2])(?:-\d\d)?)?")
_SPAN = 5


class PublicationDate(Struct, frozen=True, order=True):
    """A date of publication: the year and, where it is known, the month (0: it is not)."""

    year: int
    month: int = 0


class Cutoff(Struct, frozen=True, kw_only=True):
    """Where a model's training data end. `kind`: stated by its maker, `released` (no later than that), or `given`."""

    match: str
    until: str
    kind: Literal["stated", "released", "given"]
    source: str

    @property
    def published(self) -> PublicationDate:
        """The cutoff as a date."""
        return _read_cutoff(self.until)


class DateCounts(Struct, frozen=True, kw_only=True):
    """How many questions' sources were published before and after a model's cutoff; `cutoff` None: it is not known."""

    model: str
    cutoff: Cutoff | None
    questions: int
    positions: dict[str, int]


class DateAccuracy(Struct, frozen=True, kw_only=True):
    """Accuracy of one system on questions from before and from after the cutoff, and the difference (before - after).

    The two are different questions, so the difference is not paired; whole sources are resampled within each set.
    """

    model: str
    condition: str
    before_n: int
    before: float
    before_interval: Interval
    after_n: int
    after: float
    after_interval: Interval
    unscored: int
    difference: float
    interval: Interval


class _Listed(Struct, frozen=True):
    cutoffs: list[Cutoff]


@cache
def known_cutoffs() -> tuple[Cutoff, ...]:
    """The cutoffs that Hoofbeat knows, from its data file."""
    text = (resources.files("hoofbeat.leakage") / "data" / "cutoffs.toml").read_text(encoding="utf-8")
    return tuple(convert(tomllib.loads(text), _Listed).cutoffs)


def parse_cutoff(text: str) -> tuple[str, Cutoff]:
    """`MODEL=2024-06` (or a year alone, taken to its end) as the model's name and its cutoff."""
    name, equals, date = text.rpartition("=")
    if not equals or not name.strip() or not _CUTOFF.fullmatch(date.strip()):
        raise UsageError(
            f"{text!r} is not a cutoff", fix="write it as MODEL=2024-06, with the model's name as in --model"
        )
    return name.strip(), Cutoff(match=name.strip(), until=date.strip(), kind="given", source="--cutoff")


def cutoff_of(model: str, identity: str = "", given: Mapping[str, Cutoff] | None = None) -> Cutoff | None:
    """A model's cutoff: the one given for it, else the longest name known that stands in its name or identity.

    What is given for a model holds for it at every setting (`MODEL[temperature=0.6]`), unless one is given for that.
    """
    for name in (model, model.partition("[")[0]):
        if given and name in given:
            return given[name]
    named = f"{model}\n{identity}".lower()
    fitting = [cutoff for cutoff in known_cutoffs() if cutoff.match in named]
    return max(fitting, key=lambda cutoff: len(cutoff.match), default=None)


def publication(question: Question, documents: Mapping[str, Document]) -> PublicationDate | None:
    """When a question's source came out: the earliest of its documents' dates, else what the question says itself."""
    found = [
        date
        for name in question.documents
        if name in documents and (date := _date(facet_values(documents[name].facets, "date", "released", "year")))
    ]
    return min(found, default=None) or _date(facet_values(question.facets, "date", "released", "year"))


def _date(values: Sequence[str]) -> PublicationDate | None:
    dates = [PublicationDate(int(match[1]), int(match[2] or 0)) for value in values if (match := _DATE.search(value))]
    dates.sort(key=lambda date: (date.year, date.month == 0, date.month))
    return dates[0] if dates else None


def position(published: PublicationDate | None, cutoff: Cutoff) -> Position:
    """Where a publication stands to a cutoff; in its year, without a month, that can't be said."""
    until = cutoff.published
    if published is None:
        return "undated"
    if published.year != until.year:
        return "before" if published.year < until.year else "after"
    if not until.month:
        return "before"
    if not published.month:
        return "same year"
    return "before" if published.month <= until.month else "after"


def publication_period(published: PublicationDate | None) -> str:
    """The five years a publication falls into, to group by."""
    if published is None:
        return "undated"
    first = published.year - published.year % _SPAN
    return f"{first}–{first + _SPAN - 1}"


def date_counts(model: str, cutoff: Cutoff | None, dates: Mapping[str, PublicationDate | None]) -> DateCounts:
    """How the questions' dates stand to a model's cutoff."""
    counts: dict[str, int] = {}
    if cutoff:
        tally = Counter(position(date, cutoff) for date in dates.values())
        counts = {name: tally[name] for name in POSITIONS}
    return DateCounts(model=model, cutoff=cutoff, questions=len(dates), positions=counts)


def accuracy_by_date(
    results: Sequence[Outcome],
    dates: Mapping[str, PublicationDate | None],
    cutoffs: Mapping[str, Cutoff],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = 1000,
    seed: int = 0,
) -> list[DateAccuracy]:
    """Accuracy before and after the cutoff, of systems with questions of both kinds; an unscored answer is wrong."""
    systems: dict[tuple[str, str], dict[str, list[Outcome]]] = {}
    for row in results:
        if row.model in cutoffs:
            side = position(dates.get(row.question), cutoffs[row.model])
            systems.setdefault((row.model, row.condition), {}).setdefault(side, []).append(row)
    table = []
    for (model, condition), sides in sorted(systems.items()):
        old, new = sides.get("before", []), sides.get("after", [])
        if not old or not new:
            continue
        right = [sum(row.correct is True for row in rows) for rows in (old, new)]
        shares = right[0] / len(old), right[1] / len(new)
        intervals = [
            share_interval([row.correct is True for row in rows], [cluster_of(row.question, clusters) for row in rows])
            for rows in (old, new)
        ]
        table.append(
            DateAccuracy(
                model=model,
                condition=condition,
                before_n=len(old),
                before=shares[0],
                before_interval=intervals[0],
                after_n=len(new),
                after=shares[1],
                after_interval=intervals[1],
                unscored=sum(row.correct is None for row in (*old, *new)),
                difference=shares[0] - shares[1],
                interval=_unpaired(old, new, clusters or {}, (samples, seed)),
            )
        )
    return table


def _unpaired(
    old: Sequence[Outcome], new: Sequence[Outcome], clusters: Mapping[str, str], how: tuple[int, int]
) -> Interval:
    """Bootstrap interval of the difference of two sets' accuracies; sources are drawn anew within each set.

    Newcombe's, over as many observations as there are sources, where a set has few sources or shows no spread.
    """
    samples, seed = how
    random = np.random.default_rng(seed)
    means, units = [], []
    for rows in (old, new):
        groups: dict[str, list[float]] = {}
        for row in rows:
            groups.setdefault(clusters.get(row.question, row.question), []).append(float(row.correct is True))
        sums = np.array([sum(group) for group in groups.values()])
        sizes = np.array([len(group) for group in groups.values()])
        drawn = random.integers(len(sums), size=(samples, len(sums)))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
        units.append((len(sums) * float(sums.sum() / sizes.sum()), float(len(sums))))
    if min(n for _, n in units) < FEW or any(np.ptp(each) == 0 for each in means):
        return newcombe(units[0], units[1])
    return percentiles(means[0] - means[1], LEVEL, CLUSTERED)


def _read_cutoff(text: str) -> PublicationDate:
    match = _CUTOFF.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is not a cutoff", fix="write a month like 2024-06, or a year")
    return PublicationDate(int(match[1]), int(match[2] or 0))
