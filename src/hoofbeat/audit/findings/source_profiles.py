"""Source by source: what each one covers, how any two relate, and which one stands apart from the others.

A source that answers more has more pairs, so it can differ more often; one that answers only what is contested differs
more in every pair. The score of the odd one out takes both away: a source's judged pairs are set against those of the
other sources among themselves on the same questions, each question counting as often as the source is judged on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, Coverage, RelationLabels, coverage
from hoofbeat.findings.intervals import (
    CLUSTERED,
    FEW,
    LEVEL,
    SAMPLES,
    Interval,
    change_interval,
    percentiles,
    resampled_sums,
    wilson,
)
from hoofbeat.records import Answer, Question


class SourceRow(Struct, frozen=True, kw_only=True):
    """One source: what it covers of the questions put to it, and how its judged pairs turned out.

    `coverage` is None and its interval everything where no answers were given. `r_div` and `r_con` are of `judged`.
    """

    source: str
    planned: int
    answered: int
    absent: int
    unscored: int
    coverage: float | None
    coverage_interval: Interval
    pairs: int
    judged: int
    diverging: int
    consistent: int
    r_div: float | None
    r_con: float | None


class CoverageHeat(Struct, frozen=True, kw_only=True):
    """Coverage of each source (down) in each group of questions (across); None where it was asked nothing of a group.

    `planned` and `answered` are the counts behind each cell.
    """

    facet: str
    sources: tuple[str, ...]
    groups: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    planned: tuple[tuple[int, ...], ...]
    answered: tuple[tuple[int, ...], ...]


class PairRates(Struct, frozen=True, kw_only=True):
    """Every two sources over all questions: how many pairs were judged, diverge, and have the strongest label.

    All are square and symmetric, with nothing on the diagonal; sources are sorted.
    """

    sources: tuple[str, ...]
    judged: tuple[tuple[int, ...], ...]
    diverging: tuple[tuple[int, ...], ...]
    contradictory: tuple[tuple[int, ...], ...]

    def share(self, a: int, b: int) -> float | None:
        """The share of the judged pairs of two sources (by their places) that diverge."""
        return self.diverging[a][b] / self.judged[a][b] if self.judged[a][b] else None


class OutlierSource(Struct, frozen=True, kw_only=True):
    """How far one source stands apart from the others.

    `share` is `diverging` of all its `judged` pairs. `matched` are those of them on questions on which other sources
    are judged among themselves, too: `observed` is their share of diverging ones, `expected` what that share would be
    if the source differed from the others as often as they do from each other on the same questions. `ratio` is
    observed / expected, `excess` observed − expected; the intervals resample questions. Figures that have no value
    (nothing matched, nothing expected) are None.
    """

    source: str
    questions: int
    judged: int
    diverging: int
    share: float | None
    matched: int
    observed: float | None
    expected: float | None
    ratio: float | None
    interval: Interval | None
    excess: float | None
    excess_interval: Interval | None


def slim_answers(answers: Iterable[Answer]) -> list[Answer]:
    """Only what coverage needs of each answer, so that those of a large audit can be held and counted several times."""
    return [
        Answer(
            question=item.question, model="", condition="", source=item.source, absent=item.absent, failure=item.failure
        )
        for item in answers
    ]


def source_rows(
    table: Frame | AuditPairs, answers: Iterable[Answer] = (), domain: RelationLabels = FIVE_RELATIONS
) -> list[SourceRow]:
    """Every source of the answers or the pairs, sorted."""
    pairs = pairs_of(table, domain)
    covered = {row.source: row for row in coverage(answers)}
    everything = np.ones(len(pairs.question), bool)
    counts = {
        name: pairs.by_source(chosen).sum(axis=0)
        for name, chosen in (
            ("pairs", everything),
            ("judged", pairs.judged),
            ("diverging", pairs.diverging),
            ("consistent", pairs.has([domain.consistent])),
        )
    }
    places = {name: place for place, name in enumerate(pairs.sources)}
    return [
        _row(source, covered.get(source), {name: _at(column, places.get(source)) for name, column in counts.items()})
        for source in sorted({*covered, *places})
    ]


def coverage_heat(answers: Iterable[Answer], questions: Sequence[Question], facet: str) -> CoverageHeat:
    """Coverage of each source in each group of a facet of the questions; sources and groups are sorted."""
    rows = {(row.source, row.group): row for row in coverage(answers, questions, facet)}
    sources, groups = sorted({key[0] for key in rows}), sorted({key[1] for key in rows})

    def cells(value: str) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(getattr(rows.get((s, g)), value, 0) for g in groups) for s in sources)

    return CoverageHeat(
        facet=facet,
        sources=tuple(sources),
        groups=tuple(groups),
        cells=tuple(tuple(rows[s, g].coverage if (s, g) in rows else None for g in groups) for s in sources),
        planned=cells("planned"),
        answered=cells("answered"),
    )


def pair_rates(table: Frame | AuditPairs, domain: RelationLabels = FIVE_RELATIONS) -> PairRates:
    """The source × source table over all questions."""
    pairs = pairs_of(table, domain)
    size = len(pairs.sources)

    def square(chosen: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
        places = pairs.a[chosen].astype(np.int64) * size + pairs.b[chosen]
        half = np.bincount(places, minlength=size * size).reshape(size, size)
        return tuple(tuple(line) for line in (half + half.T).tolist())

    return PairRates(
        sources=pairs.sources,
        judged=square(pairs.judged),
        diverging=square(pairs.diverging),
        contradictory=square(pairs.has(domain.diverging[-1:])),
    )


def outlier_sources(
    table: Frame | AuditPairs,
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[OutlierSource]:
    """Every source that is judged, the one that most surely differs more than the others do first.

    Sources are sorted by the low end of the excess's interval. Each interval is of one source: of a hundred sources
    that are no different, about five leave their 95% interval.
    """
    pairs = pairs_of(table, domain)
    chosen = pairs.judged
    judged, diverging = pairs.by_source(chosen), pairs.by_source(pairs.diverging)
    others = pairs.by_question(chosen)[:, None] - judged
    theirs = pairs.by_question(pairs.diverging)[:, None] - diverging
    matched = np.where(others > 0, judged, 0)
    observed = np.where(others > 0, diverging, 0)
    expected = matched * theirs / np.maximum(others, 1)
    used = np.flatnonzero(judged.sum(axis=1))
    if not len(used):
        return []
    columns = np.concatenate([matched, observed, expected], axis=1)[used].astype(np.float64)
    drawn = resampled_sums(columns, samples=samples, seed=seed).reshape(samples, 3, -1)
    sums = columns.sum(axis=0).reshape(3, -1)
    rows = [
        _odd(
            name,
            (int((judged[:, place] > 0).sum()), int(judged[:, place].sum()), int(diverging[:, place].sum())),
            sums[:, place],
            drawn[:, :, place],
        )
        for place, name in enumerate(pairs.sources)
        if judged[:, place].any()
    ]
    return sorted(rows, key=lambda row: (-(row.excess_interval.low if row.excess_interval else -2.0), row.source))


def _odd(
    source: str,
    counts: tuple[int, int, int],
    sums: NDArray[np.float64],
    drawn: NDArray[np.float64],
) -> OutlierSource:
    matched, observed, expected = (float(value) for value in sums)
    some, hoped = drawn[drawn[:, 0] > 0], drawn[drawn[:, 2] > 0]
    return OutlierSource(
        source=source,
        questions=counts[0],
        judged=counts[1],
        diverging=counts[2],
        share=counts[2] / counts[1] if counts[1] else None,
        matched=int(matched),
        observed=observed / matched if matched else None,
        expected=expected / matched if matched else None,
        ratio=observed / expected if expected else None,
        interval=_ratio_interval(hoped[:, 1] / hoped[:, 2], counts[0]),
        excess=(observed - expected) / matched if matched else None,
        excess_interval=change_interval(
            (some[:, 1] - some[:, 2]) / some[:, 0], (observed - expected) / matched, counts[0], CLUSTERED
        )
        if matched
        else None,
    )


def _ratio_interval(replicates: NDArray[np.float64], questions: int) -> Interval | None:
    """The bootstrap interval of a ratio, which has no bound above: none where questions are few or all alike."""
    if not len(replicates) or questions < FEW:
        return None
    found = percentiles(replicates, LEVEL, CLUSTERED)
    return found if found.has_width else None


def _row(source: str, covered: Coverage | None, counts: dict[str, int]) -> SourceRow:
    planned, answered = (covered.planned, covered.answered) if covered else (0, 0)
    judged = counts["judged"]
    return SourceRow(
        source=source,
        planned=planned,
        answered=answered,
        absent=covered.absent if covered else 0,
        unscored=covered.unscored if covered else 0,
        coverage=answered / planned if planned else None,
        coverage_interval=wilson(answered, planned),
        pairs=counts["pairs"],
        judged=judged,
        diverging=counts["diverging"],
        consistent=counts["consistent"],
        r_div=counts["diverging"] / judged if judged else None,
        r_con=counts["consistent"] / judged if judged else None,
    )


def _at(column: NDArray[np.int64], place: int | None) -> int:
    return 0 if place is None else int(column[place])
