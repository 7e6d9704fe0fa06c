"""What the pairs of an audit add up to: how often sources are silent, agree and disagree, and what changed since.

A pair is absent when either source does not address the question; the rates of disagreement are over the other,
judged pairs. Comparisons that failed have no label: they are counted apart, and where they exceed 1% each rate of pairs
has a range for what they could have been. The share of questions has one where they leave more than 1% of the questions
undecided.

Prevalence and intensity compare two audits of the same questions and sources. A source that is silent can't disagree,
so an audit that finds more answers finds more disagreement without any pair having changed. The split looks at the
pairs answered in both audits: how their rate of disagreement changed is the intensity; how many questions have one such
pair that disagrees is the prevalence at fixed coverage. What is left of the change in prevalence comes from pairs that
were answered in one audit only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
from hoofbeat.findings.agreement import Agreement, agreement
from hoofbeat.findings.intervals import (
    SAMPLES,
    Interval,
    change_interval,
    cluster_labels,
    resampled_sums,
)
from hoofbeat.findings.outcomes import SENSITIVITY_THRESHOLD
from hoofbeat.records import Answer, Comparison, Question

NO_GROUP = "(none)"
"""The group of questions that do not have the facet."""


class NamedLabel(Protocol):
    """A label of a domain pack, as far as the rates need it."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def diverges(self) -> bool:
        """Whether it counts as disagreement."""
        ...


class RelationLabels(Struct, frozen=True, kw_only=True):
    """The labels of a domain in order, and what they mean for the rates."""

    order: tuple[str, ...]
    absent: str
    consistent: str
    diverging: tuple[str, ...]

    @staticmethod
    def of(labels: Sequence[NamedLabel]) -> RelationLabels:
        """From the labels of a domain pack, of which the first is the absent one and the second the consistent one."""
        return RelationLabels(
            order=tuple(label.name for label in labels),
            absent=labels[0].name,
            consistent=labels[1].name,
            diverging=tuple(label.name for label in labels if label.diverges),
        )


FIVE_RELATIONS = RelationLabels(
    order=("Absent", "Consistent", "Complementary", "Divergent", "Contradictory"),
    absent="Absent",
    consistent="Consistent",
    diverging=("Divergent", "Contradictory"),
)
"""The five labels of TransplantQA."""


class Rate(Struct, frozen=True, kw_only=True):
    """A share, `count` of `of`; `value` is None for 0 of 0.

    `sensitivity` is the lowest and highest it could be whatever the failed comparisons had been, where those exceed 1%
    of the pairs or, for a share of questions, leave more than 1% of the questions undecided.
    """

    count: int
    of: int
    value: float | None
    sensitivity: tuple[float, float] | None = None


class Relations(Struct, frozen=True, kw_only=True):
    """The relations of all pairs of some questions.

    `pairs` are all that were planned; `failed` those without a label, by kind of failure; `judged` those with a label
    other than absent. `labels` counts every label, `share_of_pairs` and `share_of_judged` are its two distributions.
    `r_abs` = absent / pairs, `r_div` = diverging / judged, `r_con` = consistent / judged, `any_div` = questions with
    at least one diverging pair / questions.
    """

    questions: int
    pairs: int
    judged: int
    failed: dict[str, int]
    labels: dict[str, int]
    share_of_pairs: dict[str, float]
    share_of_judged: dict[str, float]
    r_abs: Rate
    r_div: Rate
    r_con: Rate
    any_div: Rate


class Coverage(Struct, frozen=True, kw_only=True):
    """How many of the questions put to a source it addresses: `answered` of `planned` is `coverage`.

    `absent` are those it does not address, `unscored` those whose answer failed or whose absence is unknown.
    """

    source: str
    group: str
    planned: int
    answered: int
    absent: int
    unscored: int
    coverage: float


class RelationMatrix(Struct, frozen=True, kw_only=True):
    """The labels between all sources of one question; the diagonal is consistent, a pair without a label is empty."""

    question: str
    sources: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]


def coverage(answers: Iterable[Answer], questions: Sequence[Question] = (), facet: str = "") -> list[Coverage]:
    """Coverage of each source, sorted; with a `facet` of the questions, of each source in each of its groups."""
    groups = {question.id: groups_of(question, facet) for question in questions}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for answer in answers:
        absent = None if answer.failure else answer.absent
        state = "unscored" if absent is None else "absent" if absent else "answered"
        for group in _known(groups, answer.question) if facet else ("",):
            counts.setdefault((answer.source, group), Counter())[state] += 1
    return [
        Coverage(
            source=source,
            group=group,
            planned=count.total(),
            answered=count["answered"],
            absent=count["absent"],
            unscored=count["unscored"],
            coverage=count["answered"] / count.total(),
        )
        for (source, group), count in sorted(counts.items())
    ]


def judge_agreement(
    comparisons: Iterable[Comparison],
    reference: Iterable[Comparison],
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    seed: int = 0,
) -> Agreement:
    """Agreement of comparisons with planted or human labels of the same pairs.

    Every reference pair counts: one that was not compared, or whose comparison failed, is unscored.
    """
    given = {
        (comparison.question, comparison.a, comparison.b): None if comparison.failure else comparison.label
        for comparison in comparisons
    }
    rows = list(reference)
    pairs = [(given.get((known.question, known.a, known.b)), known.label) for known in rows]
    return agreement(pairs, domain.order, clusters=cluster_labels([known.question for known in rows], None), seed=seed)


def relations_of_counts(
    labels: Mapping[str, int],
    failed: Mapping[str, int],
    *,
    questions: int,
    diverging: int,
    possibly: int,
    domain: RelationLabels = FIVE_RELATIONS,
) -> Relations:
    """The rates from counts: pairs by label, failed pairs by kind, and of the questions those with a diverging pair.

    `possibly` counts the questions that have a diverging pair or a failed one.
    """
    seen = {label: labels.get(label, 0) for label in domain.order}
    missing = sum(failed.values())
    pairs, absent = sum(seen.values()) + missing, seen[domain.absent]
    judged = pairs - missing - absent
    unsure = missing > SENSITIVITY_THRESHOLD * pairs
    doubtful = possibly - diverging > SENSITIVITY_THRESHOLD * questions  # few failed pairs may lie in many questions
    could_be = (diverging / questions, possibly / questions) if doubtful else None

    def of_judged(count: int) -> Rate:
        spread = (count / (judged + missing), (count + missing) / (judged + missing)) if unsure else None
        return _rate(count, judged, spread)

    return Relations(
        questions=questions,
        pairs=pairs,
        judged=judged,
        failed={kind: count for kind, count in sorted(failed.items()) if count},
        labels=seen,
        share_of_pairs={label: count / pairs if pairs else 0.0 for label, count in seen.items()},
        share_of_judged={
            label: count / judged if judged else 0.0 for label, count in seen.items() if label != domain.absent
        },
        r_abs=_rate(absent, pairs, (absent / pairs, (absent + missing) / pairs) if unsure else None),
        r_div=of_judged(sum(seen[label] for label in domain.diverging)),
        r_con=of_judged(seen[domain.consistent]),
        any_div=_rate(diverging, questions, could_be),
    )


def _rate(count: int, of: int, sensitivity: tuple[float, float] | None) -> Rate:
    return Rate(count=count, of=of, value=count / of if of else None, sensitivity=sensitivity)


def groups_of(question: Question, facet: str) -> tuple[str, ...]:
    """The groups of a question by one of its facets, each once."""
    return tuple(facet_values(question.facets, facet)) or (NO_GROUP,)


def unknown_question(question: str) -> InputError:
    """The error that a pair is of a question that was not given."""
    return InputError(f"the question {question!r} is not in the benchmark", fix="give the questions of this run")


def _known(groups: dict[str, tuple[str, ...]], question: str) -> tuple[str, ...]:
    if question not in groups:
        raise unknown_question(question)
    return groups[question]


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


def split_of(
    rows: NDArray[np.float64],
    *,
    one_audit_only: int,
    failed: tuple[int, int],
    samples: int = SAMPLES,
    seed: int = 0,
) -> PrevalenceIntensity:
    """The split from one row for each question that both audits asked, in a fixed order.

    Columns are, before and then after: pairs, absent ones, judged ones, diverging ones, whether any diverges; then of
    the pairs judged in both: how many, diverging before, after, whether any before, after; and a one.
    """
    sums, drawn = rows.sum(axis=0), resampled_sums(rows, samples=samples, seed=seed)

    def change(counts: tuple[int, int], of: tuple[int, int]) -> ShareChange:
        units = int((rows[:, of].min(axis=1) > 0).sum())
        return _change(sums, drawn, counts, of, units)

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
        by_coverage_interval=change_interval(
            (drawn[:, _AFTER + _ANY] - drawn[:, _ANY] - drawn[:, _BOTH_ANY + 1] + drawn[:, _BOTH_ANY]) / len(rows),
            (any_div.change or 0.0) - (prevalence.change or 0.0),
            len(rows),
            "paired cluster bootstrap",
        ),
    )


def _change(
    sums: NDArray[np.float64],
    drawn: NDArray[np.float64],
    counts: tuple[int, int],
    of: tuple[int, int],
    units: int,
) -> ShareChange:
    before, after = (
        float(sums[count] / sums[whole]) if sums[whole] else None for count, whole in zip(counts, of, strict=True)
    )
    if before is None or after is None:
        return ShareChange(before=before, after=after, change=None, interval=None)
    some = (drawn[:, of[0]] > 0) & (drawn[:, of[1]] > 0)
    rows = drawn[some]
    replicates = rows[:, counts[1]] / rows[:, of[1]] - rows[:, counts[0]] / rows[:, of[0]]
    interval = change_interval(replicates, after - before, units, "paired cluster bootstrap")
    return ShareChange(before=before, after=after, change=after - before, interval=interval)
