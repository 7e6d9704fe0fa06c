"""Scores by a judge, corrected by people: prediction-powered inference for a mean.

A judge labels everything, people label a random sample. The judge's mean is cheap and biased, the sample's mean right
and wide; the correction adds to the first what people say differently on the sample (the rectifier). The estimate is
right however bad the judge is, and the better the judge, the narrower its interval (Angelopoulos et al. 2023; with the
weight of the judge tuned to the data, 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import Interval, cluster_of, few_of, share_interval
from hoofbeat.findings.outcomes import Outcome, SystemKey, by_system, sensitivity_range

_UNANSWERED = ("answer:", "choice:")
"""How the reason begins why an answer has no content that people could label."""

_FEW = 50
"""Fewer human labels than this, and the normal approximation is not to be leaned on."""


class PPI(Struct, frozen=True, kw_only=True):
    """A mean by judge and people together.

    `judge` is the judge's mean over all `n_all` items; `classical` the mean of the `n_labelled` human labels alone,
    with its interval; `rectifier` the mean of human less judge on those. `estimate` is the corrected mean, in which the
    judge weighs `weight` (1: plain; tuned: between 0 and 1, so that the variance is smallest). `interval` is a normal
    approximation; both keep within 0 and 1 where all labels are right or wrong. `estimate` is None without human
    labels, `interval` also with only one.

    `judge_missing` items the judge failed on: they count 0 for the judge, which the correction makes up for as for any
    other mistake of the judge. `human_missing` are items meant to be labelled that got no label, `contested` those that
    several people labelled without a majority: neither is labelled.
    `variance` is that of the human labels and `correlation` theirs with the judge's, for planning. `design_effect` is
    how many times larger the estimate's variance is because items share clusters; 1 without. Where the shares were made
    shares of a plan, `answered` is the share of the plan that they were of, and `fixed_variance` what chance in that
    adds to the estimate's variance however many items are labelled. `warnings` say in words what makes the interval
    doubtful.
    """

    n_all: int
    n_labelled: int
    judge: float | None
    classical: float | None
    classical_interval: Interval | None
    rectifier: float | None
    weight: float
    estimate: float | None
    interval: Interval | None
    judge_missing: int
    human_missing: int
    variance: float | None
    correlation: float
    binary: bool
    design_effect: float = 1.0
    warnings: tuple[str, ...] = ()
    contested: int = 0
    answered: float = 1.0
    fixed_variance: float = 0.0


class CorrectedAccuracy(Struct, frozen=True, kw_only=True):
    """The accuracy of one system by its judge, corrected by human labels of some of its answers.

    Of the `planned` answers `unanswered` failed or chose no option: nobody can label those, so the correction is made
    over the others (`score.n_all`). Every share of `score` is then one of the plan, in which the unanswered are not
    right; `sensitivity` is the estimate with all of them wrong and all of them right, where they exceed 1%.
    """

    model: str
    condition: str
    planned: int
    unanswered: int
    score: PPI
    sensitivity: tuple[float, float] | None


def ppi_mean(
    judge_all: Sequence[float | bool | None],
    judge_labelled: Sequence[float | bool | None],
    human_labelled: Sequence[float | bool | None],
    *,
    tuned: bool = True,
    level: float = 0.95,
    clusters: tuple[Sequence[str], Sequence[str]] | None = None,
    contested: int = 0,
) -> PPI:
    """The corrected mean. `judge_all` is of every item, the labelled ones among them; None is a failure.

    `judge_labelled` and `human_labelled` belong together, item by item, and must be a random sample of the items.
    `clusters` are what items share with others: a name for each of all items, and one for each of the labelled. Items
    of one cluster then count together in the variance. `contested` of the items without a human label have one from
    several people who contradict each other.
    """
    if clusters and (len(clusters[0]), len(clusters[1])) != (len(judge_all), len(judge_labelled)):
        raise UsageError("every item needs a cluster", fix="give clusters for all items and for the labelled ones")
    if len(judge_labelled) != len(human_labelled):
        raise UsageError(f"{len(judge_labelled)} judge labels and {len(human_labelled)} human labels can't be paired")
    if len(judge_all) < len(judge_labelled):
        raise UsageError(
            f"{len(judge_labelled)} items are labelled, but there are only {len(judge_all)} items",
            fix="give the judge's labels of every item, including the labelled ones",
        )
    everything = _numbers(judge_all)
    places = [place for place, human in enumerate(human_labelled) if human is not None]
    judge, human = (_numbers([values[place] for place in places]) for values in (judge_labelled, human_labelled))
    rest = (len(everything) - len(human), float(everything.sum() - judge.sum()))
    binary = bool(np.isin(human, (0.0, 1.0)).all() and np.isin(everything, (0.0, 1.0)).all())
    weight, correlation = _weight(judge, human, everything, rest[0], tuned)
    of_labelled = [clusters[1][place] for place in places] if clusters else None
    effect = 1.0
    if clusters and of_labelled and len(human) > 1:
        effect = _design_effect((judge, human, everything), weight, (clusters[0], of_labelled))
    how = (weight, binary, level, effect)
    found = _estimate(judge, human, (everything, rest), how) if len(human) else (None, None)
    return PPI(
        n_all=len(everything),
        n_labelled=len(human),
        judge=float(everything.mean()) if len(everything) else None,
        classical=float(human.mean()) if len(human) else None,
        classical_interval=_classical(human, binary, level, of_labelled),
        rectifier=float((human - judge).mean()) if len(human) else None,
        weight=weight,
        estimate=found[0],
        interval=found[1],
        judge_missing=sum(value is None for value in judge_all),
        human_missing=len(human_labelled) - len(human) - contested,
        contested=contested,
        variance=float(human.var(ddof=1)) if len(human) > 1 else None,
        correlation=correlation,
        binary=binary,
        design_effect=effect,
        warnings=_warnings(judge, human, weight, (len(human_labelled) - len(human) - contested, contested)),
    )


def labels_needed(score: PPI, half_width: float, level: float = 0.95) -> int | None:
    """How many more human labels bring the interval of the corrected mean to ± `half_width`; None if not even all do.

    With a well weighted judge the variance after n labels of N items is σ² ((1 − ρ²) / n + ρ² / N), where σ² is the
    variance of the human labels and ρ their correlation with the judge's (a judge who contradicts people is no help).
    Where that can't be seen yet (fewer than two labels, or all the same), labels of right and wrong are taken to be
    almost as mixed as so few labels allow, and the judge to be of no help. What chance in the share of answered items
    adds (`fixed_variance`) no label takes away: where that alone is too wide, not even all do.
    """
    if not half_width > 0:
        raise UsageError(f"{half_width} is not a half-width", fix="give for example 0.03")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    variance, correlation = score.variance, max(0.0, score.correlation)
    if not variance:
        if not score.binary:
            raise UsageError(
                "all human labels are the same, so no number of labels can be planned",
                fix="label a few more items first",
            )
        share = (score.n_labelled * (score.classical or 0.0) / score.answered + 2) / (score.n_labelled + 4)
        variance, correlation = score.answered**2 * share * (1 - share), 0.0
    variance *= score.design_effect
    if not score.n_all:
        return None
    spread = (half_width / z) ** 2 - score.fixed_variance - correlation**2 * variance / score.n_all
    if spread <= 0:
        return None
    needed = math.ceil((1 - correlation**2) * variance / spread - 1e-9)
    return None if needed > score.n_all else max(0, needed - score.n_labelled)


def corrected_accuracies(
    results: Iterable[Outcome],
    human: Iterable[Outcome],
    *,
    clusters: Mapping[str, str] | None = None,
    tuned: bool = True,
    level: float = 0.95,
) -> list[CorrectedAccuracy]:
    """The corrected accuracy of each system that people labelled answers of, sorted by name.

    `results` are the outcomes by the judge, `human` those by people, of the same answers; several people's labels of an
    answer are put together by majority, and a draw is no label. `clusters` as in `accuracies`.
    """
    votes: dict[SystemKey, dict[tuple[str, int], list[bool | None]]] = {}
    for row in human:
        votes.setdefault((row.model, row.condition), {}).setdefault((row.question, row.sample), []).append(row.correct)
    systems = by_system(results)
    table = []
    for system, labelled in sorted(votes.items()):
        rows = {(row.question, row.sample): row for row in systems.get(system, [])}
        strange = next((key for key in labelled if key not in rows), None)
        if strange is not None:
            raise InputError(
                f"people labelled an answer by {system[0]} ({system[1]}) to {strange[0]!r} that is missing here",
                fix="give the answers that were labelled",
            )
        judged = {key: rows[key].correct for key in sorted(rows) if not rows[key].unscored.startswith(_UNANSWERED)}
        order = sorted(labelled.keys() & judged.keys())
        people = [_majority(labelled[key]) for key in order]
        score = ppi_mean(
            list(judged.values()),
            [judged[key] for key in order],
            people,
            tuned=tuned,
            level=level,
            clusters=(
                [cluster_of(key[0], clusters) for key in judged],
                [cluster_of(key[0], clusters) for key in order],
            ),
            contested=sum(label is None and True in labelled[key] for key, label in zip(order, people, strict=True)),
        )
        table.append(_of_plan(system, score, len(rows), len(rows) - len(judged)))
    return table


def _of_plan(system: SystemKey, score: PPI, planned: int, unanswered: int) -> CorrectedAccuracy:
    """Shares of the answers made shares of the plan; how many are unanswered is itself only known from this plan."""
    share = 1 - unanswered / planned

    def scaled(value: float | None) -> float | None:
        return None if value is None else share * value

    def around(middle: float | None, interval: Interval | None) -> Interval | None:
        if interval is None or middle is None:
            return None
        z = NormalDist().inv_cdf(0.5 + interval.level / 2)
        chance = z * middle * math.sqrt(share * (1 - share) / planned)
        low = share * middle - math.hypot(share * (middle - interval.low), chance)
        high = share * middle + math.hypot(share * (interval.high - middle), chance)
        return replace(interval, low=max(0.0, low), high=min(1.0, high))

    estimate = scaled(score.estimate)
    spread = None if estimate is None else (estimate, min(1.0, estimate + unanswered / planned))
    return CorrectedAccuracy(
        model=system[0],
        condition=system[1],
        planned=planned,
        unanswered=unanswered,
        score=replace(
            score,
            judge=scaled(score.judge),
            classical=scaled(score.classical),
            classical_interval=around(score.classical, score.classical_interval),
            rectifier=scaled(score.rectifier),
            estimate=estimate,
            interval=around(score.estimate, score.interval),
            variance=None if score.variance is None else share**2 * score.variance,
            answered=share,
            fixed_variance=(score.estimate or 0.0) ** 2 * share * (1 - share) / planned,
        )
        if unanswered
        else score,
        sensitivity=spread and sensitivity_range(*spread, unanswered / planned),
    )


def _majority(votes: Sequence[bool | None]) -> bool | None:
    right, wrong = votes.count(True), votes.count(False)
    return None if right == wrong else right > wrong


def _numbers(values: Sequence[float | bool | None]) -> NDArray[np.float64]:
    array = np.array([0.0 if value is None else float(value) for value in values], np.float64)
    if not np.isfinite(array).all():
        raise InputError("a label is not a number", fix="give None for a label that failed")
    return array


def _weight(
    judge: NDArray[np.float64], human: NDArray[np.float64], everything: NDArray[np.float64], rest: int, tuned: bool
) -> tuple[float, float]:
    """How much the judge weighs, and how its labels go together with people's."""
    correlation = 0.0
    if len(human) > 1 and judge.std() > 0 and human.std() > 0:
        correlation = float(np.clip(np.corrcoef(judge, human)[0, 1], -1, 1))
    if rest < 1:
        return 0.0, correlation
    if not tuned:
        return 1.0, correlation
    if len(human) < 2 or not judge.std():  # a judge that said the same of all labelled ones can't be tuned by them
        return 1.0, correlation
    spread = float(everything.var(ddof=1))
    if spread <= 0:
        return 0.0, correlation
    best = float(np.cov(judge, human)[0, 1]) / ((1 + len(human) / rest) * spread)
    return min(1.0, max(0.0, best)), correlation


def _estimate(
    judge: NDArray[np.float64],
    human: NDArray[np.float64],
    items: tuple[NDArray[np.float64], tuple[int, float]],
    how: tuple[float, bool, float, float],
) -> tuple[float, Interval | None]:
    everything, (rest, rest_sum) = items
    weight, binary, level, effect = how
    left = human - weight * judge
    estimate = float(left.mean()) + (weight * rest_sum / rest if rest else 0.0)
    bounds = (0.0, 1.0) if binary else (-math.inf, math.inf)
    if len(human) < 2:
        return _within(estimate, bounds), None
    variance, method = float(left.var(ddof=1)), "normal approximation"
    if binary and variance < 1e-12:
        middle = float(left.mean())
        variance = float(np.append(left, [middle - 1, middle + 1]).var(ddof=1))
        method = "normal approximation, two opposite labels added"
    squared = variance / len(human)
    if rest:
        squared += weight**2 * float(everything.var(ddof=1)) / rest
    half = NormalDist().inv_cdf(0.5 + level / 2) * math.sqrt(squared * effect)
    low, high = _within(estimate - half, bounds), _within(estimate + half, bounds)
    return _within(estimate, bounds), Interval(low=low, high=high, level=level, method=method, few=few_of(len(human)))


def _design_effect(
    values: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    weight: float,
    clusters: tuple[Sequence[str], Sequence[str]],
) -> float:
    """The variance of the estimate with items of a cluster taken together, over that with all taken apart; at least 1.

    Every item moves the estimate by its distance from the mean of its part, over the size of that part; what the
    unlabelled items of a cluster do is what all of its items do less what the labelled ones do.
    """
    judge, human, everything = values
    rest = len(everything) - len(human)
    left = human - weight * judge
    numbers: dict[str, int] = {}
    of_all = np.array([numbers.setdefault(name, len(numbers)) for name in clusters[0]], np.int64)
    of_labelled = np.array([numbers.setdefault(name, len(numbers)) for name in clusters[1]], np.int64)
    moved = np.bincount(of_labelled, weights=(left - left.mean()) / len(human), minlength=len(numbers)) * 1.0
    apart = float(left.var(ddof=1)) / len(human)
    if rest:
        middle = float(everything.sum() - judge.sum()) / rest
        unlabelled = np.bincount(of_all, weights=everything - middle, minlength=len(numbers))
        unlabelled -= np.bincount(of_labelled, weights=judge - middle, minlength=len(numbers))
        moved = moved + weight * unlabelled / rest
        apart += weight**2 * float(everything.var(ddof=1)) / rest
    if len(numbers) < 2 or apart <= 0:
        return 1.0
    together = float((moved**2).sum()) * len(numbers) / (len(numbers) - 1)
    return max(1.0, together / apart)


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


def _classical(
    human: NDArray[np.float64], binary: bool, level: float, clusters: Sequence[str] | None
) -> Interval | None:
    """The interval of people's labels alone; labels of one cluster count together."""
    if binary and len(human):
        return share_interval(human, clusters, level)
    if len(human) < 2:
        return None
    half = NormalDist().inv_cdf(0.5 + level / 2) * float(human.std(ddof=1)) / math.sqrt(len(human))
    if half < 1e-12:  # equal numbers without bounds say nothing of how they vary
        return None
    if clusters:
        half *= math.sqrt(_design_effect((human, human, human), 0.0, (clusters, clusters)))
    middle, few = float(human.mean()), few_of(len(set(clusters) if clusters else human))
    return Interval(low=middle - half, high=middle + half, level=level, method="normal approximation", few=few)


def _warnings(
    judge: NDArray[np.float64], human: NDArray[np.float64], weight: float, without: tuple[int, int]
) -> tuple[str, ...]:
    """`without` counts items that got no label, and items that people contradict each other on."""
    found = []
    missing, contested = without
    biased = "if these are the hard items, the score is biased"
    if contested:
        found.append(f"{contested} labelled items are left out because annotators contradict each other: {biased}")
    if not len(human):
        return ("there are no human labels, so the judge's mean is not corrected", *found)
    if len(human) < _FEW:
        found.append(f"only {len(human)} human labels: with fewer than {_FEW} the interval is rough")
    if np.ptp(human) == 0:
        found.append("all human labels are the same")
    elif np.ptp(human - weight * judge) == 0 or np.array_equal(human, judge):
        found.append("judge and annotators agree on all labelled items")
    if missing:
        found.append(f"{missing} items selected for labelling have no label: {biased}")
    return tuple(found)
