"""The share of right answers, with the denominator fixed by the plan of the run.

An answer that failed, was refused or could not be judged is *unscored*: it stays in the denominator, is counted by
what went wrong and, where such answers exceed 1%, a range shows the score had they all been wrong or all been right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import (
    Difference,
    Interval,
    bootstrap_mean,
    holm,
    mcnemar_exact,
    paired_difference,
    wilson,
)
from hoofbeat.records import Answer, Judgment

__all__ = ["SENSITIVITY_THRESHOLD", "Accuracy", "Outcome", "SystemDifference", "accuracies", "differences", "outcomes"]

SENSITIVITY_THRESHOLD = 0.01
"""The share of unscored answers above which a sensitivity range is given."""

System = tuple[str, str]
"""A model and the condition it answered under."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one planned answer: right, wrong, or (None) unscored, and then why.

    `unscored` names the stage and the failure's kind (`answer:refusal`, `judgment:unreadable`), or says `unjudged`.
    """

    question: str
    model: str
    condition: str
    sample: int
    correct: bool | None
    unscored: str = ""


class Accuracy(Struct, frozen=True, kw_only=True):
    """Accuracy of one model under one condition: `correct` of `planned`, over `questions` questions.

    `unscored` counts planned answers without a score by reason. `wilson` takes answers as independent; `bootstrap`
    resamples clusters. `sensitivity` is (all unscored wrong, all unscored right) where more than 1% are unscored.
    """

    model: str
    condition: str
    planned: int
    questions: int
    clusters: int
    correct: int
    unscored: dict[str, int]
    accuracy: float
    wilson: Interval
    bootstrap: Interval
    sensitivity: tuple[float, float] | None


class SystemDifference(Struct, frozen=True, kw_only=True):
    """Accuracy of system `a` minus that of system `b`, paired by the questions planned for both.

    `unpaired` counts questions planned for one only. `only_a` and `only_b` are the questions that one got right and
    the other not; they and McNemar's `p` (with `p_holm` over the table) are None where a question has several
    samples. `sensitivity` spans what unscored answers could make of the difference, where they exceed 1%.
    """

    a: System
    b: System
    accuracy_a: float
    accuracy_b: float
    paired: Difference
    unpaired: int
    unscored: int
    sensitivity: tuple[float, float] | None
    only_a: int | None
    only_b: int | None
    p: float | None
    p_holm: float | None = None


def outcomes(
    answers: Iterable[Answer],
    judgments: Iterable[Judgment],
    *,
    positive: str | Collection[str] = "equivalent",
    aspect: str = "equivalence",
    judge: str | None = None,
) -> list[Outcome]:
    """What became of each planned answer, by the judgments of one aspect (and of one judge, if named)."""
    right = {positive} if isinstance(positive, str) else set(positive)
    judged: dict[tuple[str, str, str, int], Judgment] = {}
    for judgment in judgments:
        if judgment.aspect == aspect and judge in {None, judgment.judge}:
            key = (judgment.question, judgment.model, judgment.condition, judgment.sample)
            if judged.setdefault(key, judgment) is not judgment:
                raise InputError(
                    f"two judgments of {aspect} for the answer of {key[1]} to {key[0]!r} ({key[2]})",
                    fix="name one judge, or remove the repeated judgment",
                )
    found: dict[tuple[str, str, str, int], Outcome] = {}
    for answer in answers:
        key = (answer.question, answer.model, answer.condition, answer.sample)
        if key in found:
            raise InputError(
                f"the answer of {key[1]} to {key[0]!r} ({key[2]}, sample {key[3]}) stands twice",
                fix="check that two runs were not joined",
            )
        found[key] = _outcome(answer, judged.pop(key, None), right)
    if judged:
        question, model, condition, _ = next(iter(judged))
        raise InputError(
            f"{len(judged)} judgments belong to no answer, the first to {model} on {question!r} ({condition})",
            fix="give the answers that were judged",
        )
    return list(found.values())


def _outcome(answer: Answer, judgment: Judgment | None, right: set[str]) -> Outcome:
    correct: bool | None = None
    reason = ""
    if answer.failure:
        reason = f"answer:{answer.failure.kind}"
    elif judgment is None:
        reason = "unjudged"
    elif judgment.failure:
        reason = f"judgment:{judgment.failure.kind}"
    else:
        correct = judgment.label in right
    return Outcome(
        question=answer.question,
        model=answer.model,
        condition=answer.condition,
        sample=answer.sample,
        correct=correct,
        unscored=reason,
    )


def accuracies(
    results: Iterable[Outcome],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> list[Accuracy]:
    """Accuracy of each (model, condition), sorted by name.

    `clusters` maps a question to what it shares with others (its source document); samples of one question always
    belong together.
    """
    table = []
    for (model, condition), rows in sorted(_by_system(results).items()):
        planned, correct = len(rows), sum(row.correct is True for row in rows)
        unscored = Counter(row.unscored for row in rows if row.correct is None)
        labels = [_cluster(row.question, clusters) for row in rows]
        missing = unscored.total()
        table.append(
            Accuracy(
                model=model,
                condition=condition,
                planned=planned,
                questions=len({row.question for row in rows}),
                clusters=len(set(labels)),
                correct=correct,
                unscored=dict(sorted(unscored.items())),
                accuracy=correct / planned,
                wilson=wilson(correct, planned, level),
                bootstrap=bootstrap_mean(
                    [float(row.correct is True) for row in rows],
                    clusters=labels,
                    samples=samples,
                    level=level,
                    seed=seed,
                ),
                sensitivity=_range(correct / planned, (correct + missing) / planned, missing / planned),
            )
        )
    return table


def differences(
    results: Iterable[Outcome],
    pairs: Sequence[tuple[System, System]] | None = None,
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> list[SystemDifference]:
    """Differences between systems, paired by question, with Holm's correction over the table.

    Without `pairs`, every two conditions of the same model are compared.
    """
    systems = _by_system(results)
    if pairs is None:
        pairs = [pair for pair in combinations(sorted(systems), 2) if pair[0][0] == pair[1][0]]
    table = []
    for a, b in pairs:
        for system in (a, b):
            if system not in systems:
                raise UsageError(f"there are no answers of {system[0]} under {system[1]!r}", fix="check the names")
        table.append(_difference(a, b, systems, clusters, (samples, level, seed)))
    adjusted = iter(holm(row.p for row in table if row.p is not None))
    return [row if row.p is None else replace(row, p_holm=next(adjusted)) for row in table]


def _difference(
    a: System,
    b: System,
    systems: Mapping[System, list[Outcome]],
    clusters: Mapping[str, str] | None,
    resampling: tuple[int, float, int],
) -> SystemDifference:
    by_question = [_by_question(systems[system]) for system in (a, b)]
    shared = [question for question in by_question[0] if question in by_question[1]]
    if not shared:
        raise UsageError(
            f"no question was put to both {a[0]} ({a[1]}) and {b[0]} ({b[1]})", fix="compare runs of one benchmark"
        )
    low_a, low_b = (np.array([_mean(rows[q], unscored=False) for q in shared]) for rows in by_question)
    high_a, high_b = (np.array([_mean(rows[q], unscored=True) for q in shared]) for rows in by_question)
    flat = [row for rows in by_question for q in shared for row in rows[q]]
    unscored = sum(row.correct is None for row in flat)
    samples, level, seed = resampling
    paired = paired_difference(
        low_a,
        low_b,
        clusters=[_cluster(question, clusters) for question in shared],
        samples=samples,
        level=level,
        seed=seed,
    )
    single = len(flat) == 2 * len(shared)
    only_a, only_b = int((low_a > low_b).sum()), int((low_a < low_b).sum())
    return SystemDifference(
        a=a,
        b=b,
        accuracy_a=float(low_a.mean()),
        accuracy_b=float(low_b.mean()),
        paired=paired,
        unpaired=len(by_question[0].keys() ^ by_question[1].keys()),
        unscored=unscored,
        sensitivity=_range(float((low_a - high_b).mean()), float((high_a - low_b).mean()), unscored / len(flat)),
        only_a=only_a if single else None,
        only_b=only_b if single else None,
        p=mcnemar_exact(only_a, only_b) if single else None,
    )


def _by_system(results: Iterable[Outcome]) -> dict[System, list[Outcome]]:
    systems: dict[System, list[Outcome]] = {}
    for row in results:
        systems.setdefault((row.model, row.condition), []).append(row)
    return systems


def _by_question(rows: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    questions: dict[str, list[Outcome]] = {}
    for row in rows:
        questions.setdefault(row.question, []).append(row)
    return questions


def _mean(rows: Sequence[Outcome], *, unscored: bool) -> float:
    return sum(unscored if row.correct is None else row.correct for row in rows) / len(rows)


def _cluster(question: str, clusters: Mapping[str, str] | None) -> str:
    return clusters.get(question, question) if clusters else question


def _range(low: float, high: float, share_unscored: float) -> tuple[float, float] | None:
    return (low, high) if share_unscored > SENSITIVITY_THRESHOLD else None
