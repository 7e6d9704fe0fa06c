"""Several answers to one question: how sure a model is of being right, and how far its runs lie apart.

Also the mean of a score, which is what scorers that measure instead of labelling (BERTScore, ROUGE-L, ...) add up to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import (
    CLUSTERED,
    SAMPLES,
    Interval,
    cluster_of,
    cluster_sums,
    mean_interval,
    resampled_sums,
)
from hoofbeat.findings.outcomes import (
    AnswerKey,
    Outcome,
    Shares,
    SystemKey,
    by_system,
    is_by,
    per_question,
    sensitivity_range,
)
from hoofbeat.records import Answer, Judgment

_SHUFFLES = 1 << 22


class WorstAtK(Struct, frozen=True, kw_only=True):
    """worst@k of one system: the chance that k answers drawn from a question's samples are all right.

    `n` questions have at least `k` samples; `skipped` have fewer and are not scored. `value` is the mean over the `n`
    questions, with `interval` from resampling questions (clusters); both are None where there are none. An unscored
    sample counts as not right; `unscored` counts them over the `n` questions by reason, and `sensitivity` is
    (all of them wrong, all of them right) where they exceed 1% of the samples.
    """

    model: str
    condition: str
    k: int
    n: int
    value: float | None
    interval: Interval | None
    unscored: dict[str, int]
    skipped: int
    sensitivity: tuple[float, float] | None = None


class RunsMean(Struct, frozen=True, kw_only=True):
    """The mean over runs of their accuracies: run r is everybody's sample r.

    `std` is the standard deviation over runs with `runs − ddof` in the denominator; None for a single run. `planned`
    and `unscored` count the answers of all runs; an unscored answer counts as not right.
    """

    model: str
    condition: str
    runs: int
    mean: float
    std: float | None
    accuracies: tuple[float, ...]
    planned: int
    unscored: dict[str, int]
    sensitivity: tuple[float, float] | None = None
    ddof: int = 1


class BootstrapSD(Struct, frozen=True, kw_only=True):
    """Mean and standard deviation over `draws` bootstrap samples of `size` of the `n` values, with replacement.

    `std` has `draws − ddof` in the denominator; None for a single draw.
    """

    n: int
    mean: float
    std: float | None
    draws: int
    size: int
    seed: int
    ddof: int = 1


@lru_cache(maxsize=1 << 16)
def chance_all_right(right: int, n: int, k: int) -> float:
    """C(right, k) / C(n, k): the chance that k of n samples, drawn without replacement, are all right.

    Whole numbers are divided, so that nothing overflows or is rounded before the end.
    """
    if not 0 <= right <= n or not 1 <= k <= n:
        raise UsageError(f"can't draw {k} of {n} samples with {right} right ones")
    return math.comb(right, k) / math.comb(n, k)


def worst_at_k(
    results: Iterable[Outcome],
    ks: Iterable[int] = range(1, 17),
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[WorstAtK]:
    """worst@k of each system for each k, systems sorted by name; `clusters` as in `accuracies`."""
    sizes = sorted(set(ks))
    if not sizes or sizes[0] < 1:
        raise UsageError("worst@k needs k of at least 1", fix="give for example 1 to 16")
    table: list[WorstAtK] = []
    for (model, condition), rows in sorted(by_system(results).items()):
        shares = per_question(rows)
        reasons: dict[str, Counter[str]] = {}
        for row in rows:
            if row.correct is None:
                reasons.setdefault(row.question, Counter())[row.unscored] += 1
        values, known = _chances(shares, sizes)
        labels = [cluster_of(question, clusters) for question in shares.questions]
        sums = cluster_sums(np.concatenate([values[0], known], axis=1), labels)
        drawn = resampled_sums(sums, samples=samples, seed=seed)
        for place, k in enumerate(sizes):
            table.append(
                _worst(
                    (model, condition, k),
                    (shares, known[:, place] > 0, values[:, :, place]),
                    (sums[:, [place, len(sizes) + place]], drawn[:, [place, len(sizes) + place]]),
                    reasons,
                )
            )
    return table


def _chances(shares: Shares, ks: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Chances (unscored wrong, unscored right) × questions × k, and which of them exist: 0 where too few samples."""
    answers = shares.answers
    right = np.rint(shares.low * answers).astype(np.int64)
    found = np.zeros((2, len(answers), len(ks)))
    known = np.zeros((len(answers), len(ks)))
    for number, (n, low, missing) in enumerate(zip(answers, right, shares.unscored, strict=True)):
        for place, k in enumerate(ks):
            if k <= n:
                known[number, place] = 1.0
                found[0, number, place] = chance_all_right(int(low), int(n), k)
                found[1, number, place] = chance_all_right(int(low + missing), int(n), k)
    return found, known


def _worst(
    names: tuple[str, str, int],
    found: tuple[Shares, NDArray[np.bool_], NDArray[np.float64]],
    drawn: tuple[NDArray[np.float64], NDArray[np.float64]],
    reasons: Mapping[str, Counter[str]],
) -> WorstAtK:
    shares, scored, chances = found
    sums, replicates = drawn
    n = int(scored.sum())
    unscored: Counter[str] = Counter()
    for place in np.flatnonzero(scored):
        unscored.update(reasons.get(shares.questions[place], {}))
    value, interval, spread = None, None, None
    if n:
        low, high = (math.fsum(row[scored]) / n for row in chances)
        share = int(shares.unscored[scored].sum()) / int(shares.answers[scored].sum())
        value, spread = low, sensitivity_range(low, high, share)
        some = replicates[replicates[:, 1] > 0]
        interval = mean_interval(sums[:, 0], sums[:, 1], some[:, 0] / some[:, 1], CLUSTERED)
    return WorstAtK(
        model=names[0],
        condition=names[1],
        k=names[2],
        n=n,
        value=value,
        interval=interval,
        unscored=dict(sorted(unscored.items())),
        skipped=len(scored) - n,
        sensitivity=spread,
    )


def runs_mean(results: Iterable[Outcome]) -> list[RunsMean]:
    """The mean of runs of each system, sorted by name."""
    table = []
    for (model, condition), rows in sorted(by_system(results).items()):
        right: Counter[int] = Counter()
        missing: Counter[int] = Counter()
        planned = Counter(row.sample for row in rows)
        for row in rows:
            right[row.sample] += row.correct is True
            missing[row.sample] += row.correct is None
        order = sorted(planned)
        found = [right[run] / planned[run] for run in order]
        best = [(right[run] + missing[run]) / planned[run] for run in order]
        mean = math.fsum(found) / len(found)
        table.append(
            RunsMean(
                model=model,
                condition=condition,
                runs=len(found),
                mean=mean,
                std=float(np.std(found, ddof=1)) if len(found) > 1 else None,
                accuracies=tuple(found),
                planned=len(rows),
                unscored=dict(sorted(Counter(row.unscored for row in rows if row.correct is None).items())),
                sensitivity=sensitivity_range(mean, math.fsum(best) / len(best), missing.total() / len(rows)),
            )
        )
    return table


def bootstrap_sd(values: ArrayLike, *, draws: int = 8, size: int = 500, seed: int = 0) -> BootstrapSD:
    """Mean ± standard deviation over bootstrap samples: each is `size` values drawn with replacement."""
    array = np.asarray(values, np.float64)
    if not len(array):
        raise UsageError("there is nothing to resample")
    if draws < 1 or size < 1:
        raise UsageError(f"{draws} samples of {size} can't be drawn", fix="give for example 8 of 500")
    if not np.isfinite(array).all():
        raise InputError("a value to resample is not a number", fix="leave out answers without a score")
    rng = np.random.default_rng(seed)
    means = []
    for _ in range(draws):
        total, left = 0.0, size
        while left:
            some = min(left, _SHUFFLES)
            total += float(array[rng.integers(len(array), size=some)].sum())
            left -= some
        means.append(total / size)
    return BootstrapSD(
        n=len(array),
        mean=math.fsum(means) / draws,
        std=float(np.std(means, ddof=1)) if draws > 1 else None,
        draws=draws,
        size=size,
        seed=seed,
    )


Scores = dict[SystemKey, dict[AnswerKey, float | str]]
"""The score of each answer of each system, or in words why it has none."""


class ScoreMean(Struct, frozen=True, kw_only=True):
    """The mean score of one system over its `n` planned answers.

    An answer without a score stays in the denominator and counts 0, the score of an answer that shares nothing with
    the reference; `unscored` counts such answers by reason, `mean_scored` is the mean of the others alone (None where
    there are none), and `sensitivity` is (all unscored 0, all unscored the maximum) where they exceed 1%.
    `bootstrap_sd` is the mean ± standard deviation over a few bootstrap samples. `judge` names the scorer.
    """

    model: str
    condition: str
    aspect: str
    judge: str
    n: int
    unscored: dict[str, int]
    mean: float
    interval: Interval
    mean_scored: float | None
    bootstrap_sd: BootstrapSD
    sensitivity: tuple[float, float] | None


def score_means(
    judgments: Iterable[Judgment],
    aspect: str,
    *,
    answers: Iterable[Answer] = (),
    judge: str | None = None,
    max_score: float = 1.0,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    draws: int = 8,
    size: int = 500,
) -> list[ScoreMean]:
    """The mean score of one aspect for each system, sorted by name.

    `answers` adds the planned answers that have no such judgment, as unscored. `max_score` is the best score.
    `draws` and `size` are those of `bootstrap_sd`.
    """
    found, judges = scores_by_system(judgments, aspect, answers=answers, judge=judge)
    table = []
    for (model, condition), rows in sorted(found.items()):
        order = sorted(rows)
        values = np.array([_number(rows[key]) for key in order])
        labels = [cluster_of(key[0], clusters) for key in order]
        scored = [value for value in rows.values() if not isinstance(value, str)]
        missing = len(rows) - len(scored)
        columns = cluster_sums(np.stack([values, np.ones(len(values))], axis=1), labels)
        drawn = resampled_sums(columns, samples=samples, seed=seed)
        total = math.fsum(scored)
        table.append(
            ScoreMean(
                model=model,
                condition=condition,
                aspect=aspect,
                judge=judges.get((model, condition), ""),
                n=len(rows),
                unscored=dict(sorted(Counter(value for value in rows.values() if isinstance(value, str)).items())),
                mean=total / len(rows),
                interval=mean_interval(columns[:, 0], columns[:, 1], drawn[:, 0] / drawn[:, 1], CLUSTERED),
                mean_scored=total / len(scored) if scored else None,
                bootstrap_sd=bootstrap_sd(values, draws=draws, size=size, seed=seed),
                sensitivity=sensitivity_range(
                    total / len(rows), (total + missing * max_score) / len(rows), missing / len(rows)
                ),
            )
        )
    return table


def scores_by_system(
    judgments: Iterable[Judgment], aspect: str, *, answers: Iterable[Answer] = (), judge: str | None = None
) -> tuple[Scores, dict[SystemKey, str]]:
    """The scores of one aspect for each system's answers, and the scorer of each system."""
    found: Scores = {}
    judges: dict[SystemKey, str] = {}
    for judgment in judgments:
        if judgment.aspect != aspect or not is_by(judgment, judge):
            continue
        system = (judgment.model, judgment.condition)
        key = (judgment.question, *system, judgment.sample)
        if key in (mine := found.setdefault(system, {})):
            raise InputError(
                f"two scores of {aspect} for the answer by {key[1]} to {key[0]!r} ({key[2]})",
                fix="name one scorer, or remove the repeated score",
            )
        mine[key] = _score(judgment)
        if (first := judges.setdefault(system, judgment.judge)) != judgment.judge:
            raise InputError(
                f"the {aspect} of {system[0]} ({system[1]}) was measured by two scorers, whose values can't be "
                f"averaged: {first} and {judgment.judge}",
                fix="name one of them as the judge",
            )
    for answer in answers:
        system = (answer.model, answer.condition)
        reason = f"answer:{answer.failure.kind}" if answer.failure else "unjudged"
        found.setdefault(system, {}).setdefault((answer.question, *system, answer.sample), reason)
    return found, judges


def _score(judgment: Judgment) -> float | str:
    if judgment.failure:
        return f"judgment:{judgment.failure.kind}"
    if judgment.score is None or not math.isfinite(judgment.score):
        raise InputError(
            f"the {judgment.aspect} of the answer by {judgment.model} to {judgment.question!r} is not a number",
            fix="score it again, or record a failure",
        )
    return float(judgment.score)


def _number(value: float | str) -> float:
    return 0.0 if isinstance(value, str) else value
