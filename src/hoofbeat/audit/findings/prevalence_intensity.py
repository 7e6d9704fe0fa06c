"""Two audits of the same questions and sources: did disagreement become more frequent, or stronger, or only visible?

A source that is silent can't disagree, so an audit that finds more answers finds more disagreement without any pair
having changed. The split looks at the pairs answered in both audits: how their rate of disagreement changed is the
intensity; how many questions have one such pair that disagrees is the prevalence at fixed coverage. What is left of the
change in prevalence comes from pairs that were answered in one audit only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels, known_label
from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import SAMPLES, Interval, percentiles, resampled_sums
from hoofbeat.records import Comparison

_PAIRS, _ABSENT, _JUDGED, _DIVERGING, _ANY, _AFTER = range(6)
"""What is counted of a question in one audit; the same of the other audit stands `_AFTER` columns further."""

_BOTH, _BOTH_DIVERGING, _BOTH_ANY, _ONE = 10, 11, 13, 15
"""Of the pairs answered in both audits: how many, diverging before and after, any before and after; and a one."""


class ShareChange(Struct, frozen=True, kw_only=True):
    """A share in the first audit and in the second, and `change` = second − first with its bootstrap interval.

    The interval resamples the questions, the same for both. All are None where a share is of nothing.
    """

    before: float | None
    after: float | None
    change: float | None
    interval: Interval | None


class PrevalenceIntensity(Struct, frozen=True, kw_only=True):
    """What changed from one audit to the next over the `questions` that both asked.

    `r_abs`, `r_div` and `any_div` are the rates of each audit over its own pairs. `intensity` is the change of R_div on
    the `pairs_in_both` pairs that are answered and judged in both; `prevalence` is the change of the share of questions
    with any disagreement, counting those pairs only, so at fixed coverage. `by_coverage` is what remains of the change
    of `any_div`, with its interval. `one_audit_only` counts questions left out; `failed` (before, after) are pairs
    without a label, which count as not answered.
    """

    questions: int
    one_audit_only: int
    pairs_in_both: int
    failed: tuple[int, int]
    r_abs: ShareChange
    r_div: ShareChange
    any_div: ShareChange
    intensity: ShareChange
    prevalence: ShareChange
    by_coverage: float
    by_coverage_interval: Interval | None = None


def prevalence_intensity(
    before: Iterable[Comparison],
    after: Iterable[Comparison],
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> PrevalenceIntensity:
    """Split the change between two audits. Comparisons may come in any order; only answered pairs are kept of them."""
    sources: dict[str, int] = {}
    first, second = _read(before, sources, domain), _read(after, sources, domain)
    asked = sorted(first.keys() & second.keys())
    if not asked:
        raise InputError("the two audits share no question", fix="give two audits of the same questions")
    rows = np.array([_row(first[question], second[question]) for question in asked], np.float64)
    return split_of(
        rows,
        one_audit_only=len(first.keys() ^ second.keys()),
        failed=(sum(first[q].failed for q in asked), sum(second[q].failed for q in asked)),
        samples=samples,
        level=level,
        seed=seed,
    )


def split_of(
    rows: NDArray[np.float64],
    *,
    one_audit_only: int,
    failed: tuple[int, int],
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> PrevalenceIntensity:
    """The split from one row for each question that both audits asked, in a fixed order.

    Columns are, before and then after: pairs, absent ones, judged ones, diverging ones, whether any diverges; then of
    the pairs judged in both: how many, diverging before, after, whether any before, after; and a one.
    """
    sums, drawn = rows.sum(axis=0), resampled_sums(rows, samples=samples, seed=seed)

    def change(counts: tuple[int, int], of: tuple[int, int]) -> ShareChange:
        return _change(sums, drawn, counts, of, level)

    any_div = change((_ANY, _AFTER + _ANY), (_ONE, _ONE))
    prevalence = change((_BOTH_ANY, _BOTH_ANY + 1), (_ONE, _ONE))
    return PrevalenceIntensity(
        questions=len(rows),
        one_audit_only=one_audit_only,
        pairs_in_both=int(sums[_BOTH]),
        failed=failed,
        r_abs=change((_ABSENT, _AFTER + _ABSENT), (_PAIRS, _AFTER + _PAIRS)),
        r_div=change((_DIVERGING, _AFTER + _DIVERGING), (_JUDGED, _AFTER + _JUDGED)),
        any_div=any_div,
        intensity=change((_BOTH_DIVERGING, _BOTH_DIVERGING + 1), (_BOTH, _BOTH)),
        prevalence=prevalence,
        by_coverage=(any_div.change or 0.0) - (prevalence.change or 0.0),
        by_coverage_interval=percentiles(
            (drawn[:, _AFTER + _ANY] - drawn[:, _ANY] - drawn[:, _BOTH_ANY + 1] + drawn[:, _BOTH_ANY]) / len(rows),
            level,
            "paired cluster bootstrap",
        ),
    )


class _Pairs:
    """The pairs of one question in one audit: how many, and of each answered pair whether it diverges."""

    __slots__ = ("absent", "failed", "judged")

    def __init__(self) -> None:
        self.absent = 0
        self.failed = 0
        self.judged: dict[int, bool] = {}


def _read(comparisons: Iterable[Comparison], sources: dict[str, int], domain: RelationLabels) -> dict[str, _Pairs]:
    found: dict[str, _Pairs] = {}
    for comparison in comparisons:
        mine = found.get(comparison.question) or found.setdefault(comparison.question, _Pairs())
        if comparison.failure:
            mine.failed += 1
        elif (label := known_label(comparison, domain)) == domain.absent:
            mine.absent += 1
        else:
            a, b = sorted(sources.setdefault(source, len(sources)) for source in (comparison.a, comparison.b))
            if (pair := a << 32 | b) in mine.judged:
                raise InputError(
                    f"{comparison.a!r} and {comparison.b!r} are compared twice on question {comparison.question!r}",
                    fix="each pair stands once: check that two runs were not joined",
                )
            mine.judged[pair] = label in domain.diverging
    return found


def _row(before: _Pairs, after: _Pairs) -> list[int]:
    """The columns of one question."""
    row: list[int] = []
    for side in (before, after):
        diverging = sum(side.judged.values())
        judged = len(side.judged)
        row += [judged + side.absent + side.failed, side.absent, judged, diverging, diverging > 0]
    both = [(before.judged[pair], diverges) for pair, diverges in after.judged.items() if pair in before.judged]
    first, second = sum(pair[0] for pair in both), sum(pair[1] for pair in both)
    return [*row, len(both), first, second, first > 0, second > 0, 1]


def _change(
    sums: NDArray[np.float64],
    drawn: NDArray[np.float64],
    counts: tuple[int, int],
    of: tuple[int, int],
    level: float,
) -> ShareChange:
    before, after = (
        float(sums[count] / sums[whole]) if sums[whole] else None for count, whole in zip(counts, of, strict=True)
    )
    if before is None or after is None:
        return ShareChange(before=before, after=after, change=None, interval=None)
    some = (drawn[:, of[0]] > 0) & (drawn[:, of[1]] > 0)
    rows = drawn[some]
    replicates = rows[:, counts[1]] / rows[:, of[1]] - rows[:, counts[0]] / rows[:, of[0]]
    interval = percentiles(replicates, level, "paired cluster bootstrap")
    return ShareChange(before=before, after=after, change=after - before, interval=interval)
