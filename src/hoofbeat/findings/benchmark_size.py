"""How many questions a benchmark needs: to tell two systems apart, and to rank systems as the whole benchmark does.

**Power.** Two systems answer the same questions, so only questions that one of them gets right and the other does not
tell them apart (McNemar). With discordance ψ (their share) and difference d, a two-sided test at level α has the power
1 − β with n = (z(α/2)·√ψ + z(β)·√(ψ − d²))² / d² questions (Connor, Biometrics 1987). For shares of several samples, ψ
is the mean squared difference. Questions from one document count less than independent ones: n is multiplied by the
design effect of the observed clusters. The number for the observed difference is as uncertain as that difference.

**Short forms.** Questions are put into strata of difficulty, and from each stratum the one with the best
discrimination is taken. A selection that is tested with the systems that it was chosen by looks better than it is. So
the systems are split in halves again and again (seeded): one half chooses, the other half is ranked by the short form
and by the whole benchmark. With fewer than `SPLIT_SYSTEMS` systems the halves would be too small: questions are then
chosen by difficulty alone, and all systems are ranked by the short form and by the questions that it leaves out.
Kendall's τ of the two rankings is compared with that of random subsets of the same size.
Accuracy on a short form is not accuracy on the benchmark: its questions were chosen to differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import Interval, cluster_labels, mcnemar_exact, sums_and_sizes, tango
from hoofbeat.findings.item_analysis import ScoreMatrix, item_rest_correlations
from hoofbeat.findings.outcomes import SystemKey

ALPHA = 0.05
POWER = 0.8
SPLITS = 40
"""How often the systems are split in halves."""

SPLIT_SYSTEMS = 8
"""With at least this many systems, some choose the questions of a short form and the others test it."""

MIN_RANKED = 3
"""Fewer systems than this have no ranking to speak of."""

SHARES = (0.1, 0.2, 0.3, 0.5)
DIFFERENCES = (0.02, 0.05, 0.1)
"""The differences that the power table plans for."""

_SAME = 1e-9


class PairPower(Struct, frozen=True, kw_only=True):
    """Two systems over the `n` questions that both have a score for: what tells them apart, and how many would.

    `discordance` is the share of questions that differ. `needed` is how many questions show the observed `difference`,
    `planned` how many show each of `DIFFERENCES` at this discordance; None where no number does. `smallest` is the
    difference that these `n` questions can show. `p` is McNemar's exact p; None where scores are shares of samples.
    """

    a: SystemKey
    b: SystemKey
    n: int
    difference: float
    interval: Interval
    discordance: float
    design_effect: float
    p: float | None
    needed: int | None
    planned: tuple[int | None, ...]
    smallest: float | None


def questions_needed(
    difference: float, discordance: float, *, alpha: float = ALPHA, power: float = POWER, design_effect: float = 1.0
) -> int | None:
    """How many questions show a paired difference with this power; None where there is none or it can't be as large."""
    d = abs(difference)
    if d < _SAME or d > discordance + _SAME:
        return None
    z_alpha, z_beta = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    root = z_alpha * math.sqrt(discordance) + z_beta * math.sqrt(max(0.0, discordance - d * d))
    return math.ceil(design_effect * root * root / (d * d) - _SAME)


def smallest_difference(n: int, discordance: float, *, design_effect: float = 1.0) -> float | None:
    """The smallest difference that `n` questions show with the usual power; None where not even the largest is."""
    if (most := questions_needed(discordance, discordance, design_effect=design_effect)) is None or most > n:
        return None
    low, high = 0.0, discordance
    for _ in range(50):
        middle = (low + high) / 2
        needed = questions_needed(middle, discordance, design_effect=design_effect)
        low, high = (low, middle) if needed is not None and needed <= n else (middle, high)
    return high


def pair_powers(matrix: ScoreMatrix, clusters: Mapping[str, str] | None = None) -> list[PairPower]:
    """Every pair of systems that share questions, in the order of the matrix."""
    found = []
    for a, b in combinations(range(len(matrix.systems)), 2):
        shared = np.flatnonzero(~np.isnan(matrix.values[a]) & ~np.isnan(matrix.values[b]))
        if len(shared):
            labels = cluster_labels([matrix.questions[place] for place in shared], clusters)
            found.append(_pair(matrix, (a, b), matrix.values[a, shared] - matrix.values[b, shared], labels))
    return found


def _pair(
    matrix: ScoreMatrix, pair: tuple[int, int], delta: NDArray[np.float64], labels: Sequence[str] | None
) -> PairPower:
    n, difference = len(delta), float(delta.mean())
    discordance = float((delta**2).mean())
    effect = design_effect(delta, labels)
    only_a, only_b = float(delta[delta > 0].sum()), float(-delta[delta < 0].sum())
    whole = bool(np.isin(delta, (-1.0, 0.0, 1.0)).all())
    return PairPower(
        a=matrix.systems[pair[0]],
        b=matrix.systems[pair[1]],
        n=n,
        difference=difference,
        # Clustered questions are worth fewer: Tango's interval of as many pairs as they are worth.
        interval=tango(only_a / effect, only_b / effect, n / effect),
        discordance=discordance,
        design_effect=effect,
        p=mcnemar_exact(round(only_a), round(only_b)) if whole and effect == 1 else None,
        needed=questions_needed(difference, discordance, design_effect=effect),
        planned=tuple(questions_needed(each, discordance, design_effect=effect) for each in DIFFERENCES),
        smallest=smallest_difference(n, discordance, design_effect=effect),
    )


def design_effect(delta: NDArray[np.float64], labels: Sequence[str] | None) -> float:
    """By how much clusters widen the variance of a mean, at least 1: residuals added up by cluster, squared."""
    if labels is None:
        return 1.0
    residuals = delta - delta.mean()
    single = float((residuals**2).sum())
    if single < _SAME:
        return 1.0
    sums, _ = sums_and_sizes(residuals, labels)
    return max(1.0, float((sums**2).sum()) / single)


class ShortForm(Struct, frozen=True, kw_only=True):
    """How well short forms of one size rank systems, over all splits; `held_out` says what did not choose them.

    `tau` and `worst` are the mean and the fifth percentile of Kendall's τ-b between the ranking by the short form and
    by the whole benchmark (by the other questions, where those are held out); `random_tau` is the mean for random
    subsets. `shift` is the mean absolute difference of accuracy.
    """

    questions: int
    held_out: str
    tau: float
    worst: float
    random_tau: float
    shift: float


def choose_questions(matrix: ScoreMatrix, size: int, seed: int = 0, *, by_difficulty: bool = False) -> list[int]:
    """The places of `size` questions: as many strata of difficulty, and from each the best discriminating question.

    The seed decides within a stratum where systems are too few for a correlation, or `by_difficulty` alone is asked.
    """
    n = len(matrix.questions)
    if not 1 <= size <= n:
        raise UsageError(f"{size} questions can't be chosen from {n}", fix=f"give a number from 1 to {n}")
    rng = np.random.default_rng(seed)
    chance = rng.random(n)
    known = ~np.isnan(matrix.values)
    sums = np.where(known, matrix.values, 0.0).sum(axis=0)
    difficulty = np.where(known.any(axis=0), sums / np.maximum(known.sum(axis=0), 1), 0.0)
    value = np.zeros(n) if by_difficulty else np.nan_to_num(item_rest_correlations(matrix.values, matrix.rest()))
    order = np.lexsort((chance, difficulty))
    chosen = [max(stratum, key=lambda place: (value[place], chance[place])) for stratum in np.array_split(order, size)]
    return sorted(int(place) for place in chosen)


def form_of(matrix: ScoreMatrix, size: int, seed: int = 0) -> list[int]:
    """The places of the questions of a short form; with few systems they are chosen by difficulty alone."""
    few = len(matrix.systems) < SPLIT_SYSTEMS
    return choose_questions(matrix, size, seed, by_difficulty=few)


def short_forms(
    matrix: ScoreMatrix, sizes: Sequence[int] = (), *, splits: int = SPLITS, seed: int = 0
) -> list[ShortForm]:
    """Short forms of several sizes, tested on what did not choose them; none with fewer than `MIN_RANKED` systems.

    Only questions that every system has a score for take part, so that all are ranked by the same ones.
    """
    complete = complete_matrix(matrix)
    systems, n = complete.values.shape
    if systems < MIN_RANKED or n < 2:
        return []
    most = n - 1 if systems >= SPLIT_SYSTEMS else n // 2
    wanted = sorted({size for size in sizes or [math.ceil(share * n) for share in SHARES] if 1 <= size <= most})
    return [_tested(complete, size, splits, seed) for size in wanted]


def complete_matrix(matrix: ScoreMatrix) -> ScoreMatrix:
    """Only the questions that every system has a score for."""
    places = np.flatnonzero(~np.isnan(matrix.values).any(axis=0))
    return ScoreMatrix(
        systems=matrix.systems,
        questions=tuple(matrix.questions[place] for place in places),
        values=matrix.values[:, places],
        left_out=matrix.left_out,
    )


def _tested(matrix: ScoreMatrix, size: int, splits: int, seed: int) -> ShortForm:
    systems, n = matrix.values.shape
    by_systems = systems >= SPLIT_SYSTEMS
    rng = np.random.default_rng(seed)
    taus: list[float] = []
    randoms: list[float] = []
    shifts: list[float] = []
    for split in range(splits):
        order = rng.permutation(systems)
        train, held = (order[systems // 2 :], order[: systems // 2]) if by_systems else (order, order)
        choosers = ScoreMatrix(
            systems=tuple(matrix.systems[place] for place in train),
            questions=matrix.questions,
            values=matrix.values[train],
        )
        chosen = choose_questions(choosers, size, seed + split, by_difficulty=not by_systems)
        scores = matrix.values[held]
        for places, found in ((chosen, taus), (rng.choice(n, size, replace=False), randoms)):
            others = scores if by_systems else np.delete(scores, places, axis=1)
            short, whole = scores[:, places].mean(axis=1), others.mean(axis=1)
            found.append(kendall_tau(short, whole))
            if found is taus:
                shifts.append(float(np.abs(short - whole).mean()))
    return ShortForm(
        questions=size,
        held_out="systems" if by_systems else "questions",
        tau=float(np.mean(taus)),
        worst=float(np.quantile(taus, 0.05)),
        random_tau=float(np.mean(randoms)),
        shift=float(np.mean(shifts)),
    )


def kendall_tau(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Kendall's τ-b; 0 where one of the rankings is all ties and so says nothing."""
    rows = np.triu_indices(len(a), 1)
    one, other = (_signs(values, rows) for values in (a, b))
    size = math.sqrt(float((one != 0).sum()) * float((other != 0).sum()))
    return float((one * other).sum()) / size if size else 0.0


def _signs(values: NDArray[np.float64], rows: tuple[NDArray[np.int64], NDArray[np.int64]]) -> NDArray[np.int64]:
    apart = values[rows[0]] - values[rows[1]]
    return np.where(np.abs(apart) < _SAME, 0, np.sign(apart)).astype(np.int64)


def enough_to_rank(forms: Sequence[ShortForm], tau: float = 0.9) -> ShortForm | None:
    """The shortest form whose mean τ reaches this value, and so do all longer ones: a single lucky size is no proof."""
    found = None
    for form in sorted(forms, key=lambda each: -each.questions):
        if form.tau < tau:
            break
        found = form
    return found
