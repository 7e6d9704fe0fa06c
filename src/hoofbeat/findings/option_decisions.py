"""Sensitivity and specificity over option decisions: every option of a question is either selected or not.

The right option selected is a true positive, not selected a false negative; a wrong option selected is a false
positive, not selected a true negative. An unscored answer selects nothing: its right option is a false negative, its
wrong options are true negatives. As that flatters specificity, a range says what it would be had each such answer
selected a wrong option. A question without options leaves nothing to decide: an answer that failed for that reason is
counted and is in neither rate; one that chose by a letter of options that are not known is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.facets import facet_values
from hoofbeat.findings.intervals import (
    CLUSTERED,
    FEW,
    LEVEL,
    SAMPLES,
    Interval,
    cluster_of,
    cluster_sums,
    mean_interval,
    percentiles,
    resampled_sums,
    wilson,
)
from hoofbeat.findings.outcomes import SystemKey, asked_question, planned_question, sensitivity_range
from hoofbeat.records import Answer, Question

_NONE = "(none)"
_TP, _FN, _TN, _FP = range(4)
_COUNTS = 8


class OptionRate(Struct, frozen=True, kw_only=True):
    """`count` of `of` option decisions; `value` and `interval` are None for 0 of 0.

    Decisions of one question are not independent: `interval` resamples clusters. `sensitivity_range` is
    (all unscored answers wrong, all right) where they exceed 1%.
    """

    count: int
    of: int
    value: float | None
    interval: Interval | None
    sensitivity_range: tuple[float, float] | None = None


class MacroRate(Struct, frozen=True, kw_only=True):
    """The mean over groups of their rates, all weighing the same, with its bootstrap interval; `groups` holds each."""

    value: float
    interval: Interval
    groups: dict[str, float]


class OptionDecisions(Struct, frozen=True, kw_only=True):
    """The option decisions of one system over `answers` planned answers that choose an option.

    `macro_sensitivity` and `macro_specificity` weigh every value of the facet the same; a question with several values
    counts in each, one without is in `(none)`. They are None where no facet was named. `undecided` answers are to
    questions without (known) options, so that there was nothing to decide.
    """

    model: str
    condition: str
    answers: int
    questions: int
    tp: int
    fn: int
    tn: int
    fp: int
    sensitivity: OptionRate
    specificity: OptionRate
    unscored: int
    facet: str = ""
    macro_sensitivity: MacroRate | None = None
    macro_specificity: MacroRate | None = None
    undecided: int = 0


def option_decisions(
    questions: Iterable[Question],
    answers: Iterable[Answer],
    facet: str | None = None,
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[OptionDecisions]:
    """Option decisions of each system, sorted by name; answers in free text are passed over."""
    asked = {question.id: question for question in questions}
    counts: dict[SystemKey, dict[str, NDArray[np.int64]]] = {}
    for answer in answers:
        if answer.protocol and not _options_unknown(answer, asked):
            system = counts.setdefault((answer.model, answer.condition), {})
            row = system.setdefault(answer.question, np.zeros(_COUNTS, np.int64))
            row += _decisions(answer, asked)
    table = []
    for (model, condition), rows in sorted(counts.items()):
        names = sorted(rows)
        matrix = np.stack([rows[name] for name in names]).astype(np.float64)
        labels = [cluster_of(name, clusters) for name in names]
        sums = cluster_sums(matrix, labels)
        drawn = resampled_sums(sums, samples=samples, seed=seed)
        found = _micro(sums, drawn)
        tp, fn, tn, fp, _, undecided, unscored, planned = (int(count) for count in matrix.sum(axis=0))
        macro: tuple[MacroRate | None, MacroRate | None] = (None, None)
        if facet:
            members = _members([asked[name] for name in names], facet)
            grouped = np.concatenate([matrix[:, :4] * inside[:, None] for inside in members.values()], axis=1)
            again = resampled_sums(cluster_sums(grouped, labels), samples=samples, seed=seed)
            macro = (
                _macro(list(members), grouped.sum(axis=0), again, (_TP, _FN), len(sums)),
                _macro(list(members), grouped.sum(axis=0), again, (_TN, _FP), len(sums)),
            )
        table.append(
            OptionDecisions(
                model=model,
                condition=condition,
                answers=planned,
                questions=len(names),
                tp=tp,
                fn=fn,
                tn=tn,
                fp=fp,
                sensitivity=found[0],
                specificity=found[1],
                unscored=unscored,
                undecided=undecided,
                facet=facet or "",
                macro_sensitivity=macro[0],
                macro_specificity=macro[1],
            )
        )
    return table


def _options_unknown(answer: Answer, questions: Mapping[str, Question]) -> bool:
    """Whether an answer chose by a letter whose options nobody knows: how many were not selected can't be said."""
    return not answer.failure and not asked_question(answer, questions).options


def _decisions(answer: Answer, questions: Mapping[str, Question]) -> NDArray[np.int64]:
    """TP, FN, TN, FP, answers that selected nothing, answers with nothing to select, unscored answers, and all."""
    question = planned_question(answer, questions) if answer.failure else asked_question(answer, questions)
    right = set(question.right_answers) & set(question.options)
    wrong, nothing = len(set(question.options) - right), bool(answer.failure or answer.choice is None)
    if question.answer not in question.options:
        return np.array([0, 0, 0, 0, 0, 1, nothing, 1])
    if nothing:
        return np.array([0, 1, wrong, 0, 1, 0, 1, 1])
    if answer.choice in right:
        return np.array([1, 0, wrong, 0, 0, 0, 0, 1])
    return np.array([0, 1, wrong - 1, 1, 0, 0, 0, 1])


def _micro(sums: NDArray[np.float64], drawn: NDArray[np.float64]) -> tuple[OptionRate, OptionRate]:
    tp, fn, tn, fp, missing, _, _, answers = (int(count) for count in sums.sum(axis=0))
    share = missing / answers

    def rate(count: int, other: int, places: tuple[int, int], ends: tuple[int, int]) -> OptionRate:
        of = count + other
        mine, whole = sums[:, places[0]], sums[:, places[0]] + sums[:, places[1]]
        wholes = drawn[:, places[0]] + drawn[:, places[1]]
        some = wholes > 0
        spread = sensitivity_range(ends[0] / of, ends[1] / of, share) if of else None
        return OptionRate(
            count=count,
            of=of,
            value=count / of if of else None,
            interval=mean_interval(mine, whole, drawn[some, places[0]] / wholes[some], CLUSTERED) if of else None,
            sensitivity_range=spread,
        )

    return rate(tp, fn, (_TP, _FN), (tp, tp + missing)), rate(tn, fp, (_TN, _FP), (tn - missing, tn))


def _members(questions: list[Question], facet: str) -> dict[str, NDArray[np.float64]]:
    members: dict[str, NDArray[np.float64]] = {}
    for number, question in enumerate(questions):
        for value in facet_values(question.facets, facet) or [_NONE]:
            members.setdefault(value or _NONE, np.zeros(len(questions)))[number] = 1.0
    return dict(sorted(members.items(), key=lambda pair: (pair[0] == _NONE, pair[0])))


def _macro(
    names: list[str],
    sums: NDArray[np.float64],
    drawn: NDArray[np.float64],
    places: tuple[int, int],
    units: int,
) -> MacroRate | None:
    """The mean of the groups' rates; a group that a resample has no question of is left out of that resample."""
    mine, whole = sums[places[0] :: 4], sums[places[0] :: 4] + sums[places[1] :: 4]
    groups = {name: float(a / b) for name, a, b in zip(names, mine, whole, strict=True) if b}
    if not groups:
        return None
    hits, wholes = drawn[:, places[0] :: 4], drawn[:, places[0] :: 4] + drawn[:, places[1] :: 4]
    there = wholes > 0
    rates = np.where(there, hits / np.where(there, wholes, 1.0), 0.0)
    some = there.any(axis=1)
    means = rates[some].sum(axis=1) / there[some].sum(axis=1)
    value = math.fsum(groups.values()) / len(groups)
    found = percentiles(means, LEVEL, CLUSTERED)
    if units < FEW or not found.has_width:
        found = wilson(value * units, units)
    return MacroRate(value=value, interval=found, groups=groups)
