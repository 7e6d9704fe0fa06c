"""Systems set against each other, question by question: means, paired differences, and which of them chance explains.

Everything is paired: only questions that every system has a value for are counted, and how many are not is said. The
test is the paired randomisation test: if two systems were the same, each question's difference could as well have the
other sign. All sign patterns are tried where few questions differ, else a seeded sample of them.

An ablation is the same retriever under several settings (chunking, stride, context length, reranking), as a grid, each
against one named baseline: one setting down, one across, a measure in the cells, and beside it the gain over the
baseline, paired by question.

Correlation says how far two figures go together over systems, and right answers with what was retrieved for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import (
    FEW,
    LEVEL,
    SAMPLES,
    Difference,
    Interval,
    bootstrap_mean,
    cluster_labels,
    drawn_again,
    holm,
    paired_difference,
    percentiles,
    sums_and_sizes,
)

Systems = Mapping[str, Mapping[str, Mapping[str, float]]]
"""System to question to measure to value."""

FLIPS = 10_000
"""How many sign patterns are sampled where there are too many to try them all."""

EXACT = 15
"""Up to this number of questions (or clusters) that differ, all sign patterns are tried."""

_CELLS = 1 << 22
_SAME = 1e-12


class Randomisation(Struct, frozen=True, kw_only=True):
    """A paired randomisation test: its two-sided p, and from how many sign patterns; `exact` if those are all."""

    p: float
    patterns: int
    exact: bool


class SystemMean(Struct, frozen=True, kw_only=True):
    """One system: its mean over the shared questions, its place (1 is best), and the interval of that place.

    `left_out` counts questions that it has a value for and another system has not.
    """

    system: str
    mean: float
    interval: Interval
    rank: int
    rank_interval: tuple[int, int]
    left_out: int


class PairedComparison(Struct, frozen=True, kw_only=True):
    """What changes from the system `first` to the system `second`: the mean of `second − first`, and the test.

    `better`, `same` and `worse` count the questions on which the second is so. `p_holm` is corrected for all
    comparisons of the table.
    """

    first: str
    second: str
    paired: Difference
    better: int
    same: int
    worse: int
    test: Randomisation
    p_holm: float = 1.0


class SystemTable(Struct, frozen=True, kw_only=True):
    """Systems by one measure over `n` shared questions in `clusters` clusters, in the order they were given."""

    measure: str
    n: int
    clusters: int
    level: float
    seed: int
    means: tuple[SystemMean, ...]
    comparisons: tuple[PairedComparison, ...]

    @property
    def ranked(self) -> tuple[SystemMean, ...]:
        """The systems, best first."""
        return tuple(sorted(self.means, key=lambda row: row.rank))


def compare_systems(
    systems: Systems,
    measure: str,
    *,
    names: Sequence[str] = (),
    baseline: str = "",
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    flips: int = FLIPS,
    seed: int = 0,
) -> SystemTable:
    """Set systems against each other by one measure: every pair, or each against the baseline if one is named.

    Every difference is the second minus the first; a baseline is the first of all its pairs.
    `names` picks systems and their order. `clusters` maps a question to what it shares with others (its source
    document): clusters are resampled, and change their sign, as a whole.
    """
    chosen = list(dict.fromkeys(names)) or list(systems)
    for name in [*chosen, *([baseline] if baseline else [])]:
        if name not in systems:
            raise UsageError(f"there is no system {name!r}", fix=f"there are: {', '.join(systems) or 'none'}")
    if baseline and baseline not in chosen:
        chosen.insert(0, baseline)
    questions, values = shared_values({name: systems[name] for name in chosen}, measure)
    clustered = cluster_labels(questions, clusters)
    pairs = [(baseline, name) for name in chosen if name != baseline] if baseline else list(combinations(chosen, 2))
    found = [_comparison(*pair, values, (clustered, samples, flips, seed)) for pair in pairs]
    adjusted = holm(row.test.p for row in found)
    return SystemTable(
        measure=measure,
        n=len(questions),
        clusters=len(set(clustered or questions)),
        level=LEVEL,
        seed=seed,
        means=_means(systems, measure, values, (clustered, samples, seed)),
        comparisons=tuple(replace(row, p_holm=p) for row, p in zip(found, adjusted, strict=True)),
    )


def shared_values(systems: Systems, measure: str) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """The questions that every system has a value of the measure for, and the values of each system in that order."""
    if not systems:
        raise UsageError("there are no systems to compare", fix="give at least one")
    first, *others = systems.values()
    questions = [
        question
        for question, row in first.items()
        if measure in row and all(measure in other.get(question, {}) for other in others)
    ]
    if not questions:
        raise UsageError(
            f"no question has a value of {measure} from every system",
            fix="compare rankings of one benchmark, measured by the same measures",
        )
    values = {name: np.array([rows[q][measure] for q in questions], np.float64) for name, rows in systems.items()}
    for name, array in values.items():
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            raise InputError(f"the {measure} of {name} for question {questions[wrong[0]]!r} is not a number")
    return questions, values


def randomisation_test(
    a: ArrayLike, b: ArrayLike, *, clusters: Sequence[str] | None = None, flips: int = FLIPS, seed: int = 0
) -> Randomisation:
    """Two-sided p of the paired randomisation test of the mean of `a − b`.

    A sampled p counts the pattern that was seen as one of the sample, so it is never 0.
    """
    delta = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    delta, _ = sums_and_sizes(delta, clusters)
    delta = delta[np.abs(delta) > _SAME]
    edge = abs(float(delta.sum())) - _SAME * (1 + float(np.abs(delta).sum()))
    if len(delta) <= EXACT:
        patterns = 1 << len(delta)
        signs = (np.arange(patterns)[:, None] >> np.arange(len(delta))) & 1
        extreme = int((np.abs((1 - 2 * signs) @ delta) >= edge).sum())
        return Randomisation(p=extreme / patterns, patterns=patterns, exact=True)
    extreme = sum(int((np.abs(sums) >= edge).sum()) for sums in _random_sums(delta, flips, seed))
    return Randomisation(p=(extreme + 1) / (flips + 1), patterns=flips, exact=False)


def _random_sums(delta: NDArray[np.float64], flips: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Sums of the differences under random signs: eight signs are one random byte, whose sum is looked up."""
    blocks = np.pad(delta, (0, -len(delta) % 8)).reshape(-1, 8)
    sums = blocks @ (1.0 - 2.0 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)).T
    places = np.arange(len(blocks))
    rng = np.random.default_rng(seed)
    step = max(4, _CELLS // len(blocks) // 4 * 4)
    for start in range(0, flips, step):
        drawn = rng.integers(0, 256, size=(min(step, flips - start), len(blocks)), dtype=np.uint8)
        yield sums[places, drawn].sum(axis=1)


def _comparison(
    first: str,
    second: str,
    values: Mapping[str, NDArray[np.float64]],
    how: tuple[Sequence[str] | None, int, int, int],
) -> PairedComparison:
    clusters, samples, flips, seed = how
    before, after = values[first], values[second]
    better, worse = int((after - before > _SAME).sum()), int((before - after > _SAME).sum())
    return PairedComparison(
        first=first,
        second=second,
        paired=paired_difference(after, before, clusters=clusters, samples=samples, seed=seed),
        better=better,
        same=len(before) - better - worse,
        worse=worse,
        test=randomisation_test(after, before, clusters=clusters, flips=flips, seed=seed),
    )


def _means(
    systems: Systems,
    measure: str,
    values: Mapping[str, NDArray[np.float64]],
    how: tuple[Sequence[str] | None, int, int],
) -> tuple[SystemMean, ...]:
    clusters, samples, seed = how
    n = len(next(iter(values.values())))
    places = rank_intervals(np.stack(list(values.values())), clusters, samples, seed)
    means = {name: math.fsum(array) / n for name, array in values.items()}
    return tuple(
        SystemMean(
            system=name,
            mean=means[name],
            interval=bootstrap_mean(array, clusters=clusters, samples=samples, seed=seed),
            rank=1 + sum(other > means[name] + _SAME for other in means.values()),
            rank_interval=place,
            left_out=sum(measure in row for row in systems[name].values()) - n,
        )
        for (name, array), place in zip(values.items(), places, strict=True)
    )


def rank_intervals(
    values: NDArray[np.float64], clusters: Sequence[str] | None, samples: int, seed: int
) -> list[tuple[int, int]]:
    """From which to which place each system comes when the same questions are drawn again for all of them.

    Systems that come out equal share all the places that they take up together: four that never differ have 1 to 4.
    """
    totals = [sums_and_sizes(row, clusters) for row in values]
    sums, sizes = np.stack([sums for sums, _ in totals]), totals[0][1]
    best: NDArray[np.int64] = np.empty((samples, len(values)), np.int64)
    worst: NDArray[np.int64] = np.empty((samples, len(values)), np.int64)
    for sample, places in enumerate(row for block in drawn_again(len(sizes), samples, seed) for row in block):
        drawn = np.bincount(places, minlength=len(sizes))
        means = (sums @ drawn) / float(sizes @ drawn)
        best[sample] = 1 + (means[None, :] > means[:, None] + _SAME).sum(axis=1)
        worst[sample] = (means[None, :] >= means[:, None] - _SAME).sum(axis=1)
    tails = [0.5 - LEVEL / 2, 0.5 + LEVEL / 2]
    low, high = (
        np.quantile(best, tails[0], axis=0, method="lower"),
        np.quantile(worst, tails[1], axis=0, method="higher"),
    )
    return [(int(first), int(last)) for first, last in zip(low, high, strict=True)]


RunSettings = Mapping[str, object]
"""The settings of one row: name to value."""


class AblationCell(Struct, frozen=True, kw_only=True):
    """One combination of settings: its mean, and what it gains over the baseline (None for the baseline itself).

    `relative` is the gain as a share of the baseline's mean; None where that is 0.
    """

    down: str
    across: str
    mean: float
    interval: Interval
    baseline: bool = False
    gain: Difference | None = None
    relative: float | None = None


class Ablation(Struct, frozen=True, kw_only=True):
    """A grid of settings by one measure over the `n` questions that all rows share.

    `rows` and `columns` are the values of the settings `down` and `across` in the order they first came; without a
    second setting there is one column, named after the measure. A combination nobody ran has no cell. `fixed` are the
    settings that all rows share. `left_out` counts questions that some rows have and others have not.
    """

    measure: str
    n: int
    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[AblationCell, ...]
    fixed: dict[str, str]
    left_out: int

    def cell(self, down: str, across: str) -> AblationCell | None:
        """The cell of a row and a column, if that combination was run."""
        return next((cell for cell in self.cells if (cell.down, cell.across) == (down, across)), None)


def ablation(
    runs: Sequence[tuple[RunSettings, Mapping[str, Mapping[str, float]]]],
    measure: str,
    *,
    down: str,
    across: str = "",
    baseline: RunSettings | None = None,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Ablation:
    """Pivot runs (settings, question to measure to value) by one or two settings.

    `baseline` names the run that the others are set against by some of its settings; the first run if it is None.
    """
    named = {_key(settings, down, across, measure): (settings, rows) for settings, rows in runs}
    if len(named) < len(runs) or not runs:
        raise _crowded(runs, down, across, measure)
    base = _baseline(named, baseline)
    questions, values = shared_values({"\t".join(key): rows for key, (_, rows) in named.items()}, measure)
    labels = cluster_labels(questions, clusters)
    against = values["\t".join(base)]
    cells = []
    for key in named:
        mine = values["\t".join(key)]
        gain = paired_difference(mine, against, clusters=labels, samples=samples, seed=seed)
        start = float(against.mean())
        cells.append(
            AblationCell(
                down=key[0],
                across=key[1],
                mean=float(mine.mean()),
                interval=bootstrap_mean(mine, clusters=labels, samples=samples, seed=seed),
                baseline=key == base,
                gain=None if key == base else gain,
                relative=None if key == base or not start else gain.difference / start,
            )
        )
    seen = {question for _, rows in runs for question, row in rows.items() if measure in row}
    return Ablation(
        measure=measure,
        n=len(questions),
        down=down,
        across=across,
        rows=tuple(dict.fromkeys(key[0] for key in named)),
        columns=tuple(dict.fromkeys(key[1] for key in named)),
        cells=tuple(cells),
        fixed=_fixed([settings for settings, _ in runs], {down, across}),
        left_out=len(seen) - len(questions),
    )


def _key(settings: RunSettings, down: str, across: str, measure: str) -> tuple[str, str]:
    for name in filter(None, (down, across)):
        if name not in settings:
            has = ", ".join(map(str, settings)) or "none"
            raise UsageError(f"a run has no setting {name!r}", fix=f"its settings are: {has}")
    return _word(settings[down]), _word(settings[across]) if across else measure


def _word(value: object) -> str:
    """A setting's value as one line of text."""
    return " ".join(str(value).split()) or "(empty)"


def _crowded(runs: Sequence[tuple[RunSettings, object]], down: str, across: str, measure: str) -> UsageError:
    """What is wrong: no runs, or two of them in one cell, and then in which other settings they differ."""
    seen: dict[tuple[str, str], RunSettings] = {}
    for settings, _ in runs:
        key = _key(settings, down, across, measure)
        if key in seen:
            other = seen[key]
            apart = [name for name in {**other, **settings} if other.get(name) != settings.get(name)]
            place = f"{down} {key[0]}" + (f" and {across} {key[1]}" if across else "")
            differ = f"they differ in {', '.join(map(str, apart))}" if apart else "all their settings are the same"
            return UsageError(f"two runs have {place}: {differ}", fix="leave one out, or pivot by another setting")
        seen[key] = settings
    return UsageError("there are no runs to compare", fix="give at least one")


def _baseline(
    named: Mapping[tuple[str, str], tuple[RunSettings, object]], baseline: RunSettings | None
) -> tuple[str, str]:
    fitting = [
        key
        for key, (settings, _) in named.items()
        if all(name in settings and _word(settings[name]) == _word(value) for name, value in (baseline or {}).items())
    ]
    if not fitting or (baseline is not None and len(fitting) > 1):
        told = ", ".join(f"{name} {value}" for name, value in (baseline or {}).items()) or "no settings"
        raise UsageError(
            f"{len(fitting)} runs have the baseline's settings ({told})", fix="name settings that only one run has"
        )
    return fitting[0]


def _fixed(settings: Sequence[RunSettings], pivots: set[str]) -> dict[str, str]:
    names = [name for name in settings[0] if name not in pivots and all(name in each for each in settings)]
    return {name: _word(settings[0][name]) for name in names if len({_word(each[name]) for each in settings}) == 1}


_MIN_COUNT = 3


class Correlation(Struct, frozen=True, kw_only=True):
    """Pearson's and Spearman's coefficient over `n` points with bootstrap intervals, and the least-squares line.

    All are None where they have no value: fewer than three points, or all the same on one axis. Fewer than ten points
    have no interval: most resamples would repeat a few of them.
    """

    n: int
    pearson: float | None = None
    pearson_interval: Interval | None = None
    spearman: float | None = None
    spearman_interval: Interval | None = None
    slope: float | None = None
    intercept: float | None = None


class AnswersAndRetrieval(Struct, frozen=True, kw_only=True):
    """One model: the share of right answers among `n` questions and the mean retrieval score of the same questions.

    `when_right` and `when_wrong` are the mean scores of the questions answered right and wrong (None where there are
    none). `unscored` questions have no verdict or no score and are left out.
    """

    model: str
    n: int
    unscored: int
    accuracy: float
    accuracy_interval: Interval
    score: float
    score_interval: Interval
    when_right: float | None
    when_wrong: float | None


def correlation(xs: Sequence[float], ys: Sequence[float], *, samples: int = SAMPLES, seed: int = 0) -> Correlation:
    """Correlate two figures of the same things; intervals from resampling the things."""
    if len(xs) != len(ys):
        raise UsageError(f"{len(xs)} and {len(ys)} values can't be paired")
    points = np.array([xs, ys], np.float64)
    if not np.isfinite(points).all():
        raise InputError("a value to correlate is not a number", fix="leave out questions without a score")
    n = points.shape[1]
    if n < _MIN_COUNT:
        return Correlation(n=n)
    pearson, spearman = _pearson(points), _pearson(_ranked(points))
    if math.isnan(pearson):
        return Correlation(n=n)
    intervals: list[Interval | None] = [None, None]
    if n >= FEW:
        rng = np.random.default_rng(seed)
        drawn = [points[:, rng.integers(n, size=n)] for _ in range(samples)]
        for place, replicates in enumerate(([_pearson(d) for d in drawn], [_pearson(_ranked(d)) for d in drawn])):
            known = np.array([value for value in replicates if not math.isnan(value)])
            found = percentiles(known, LEVEL, "bootstrap") if len(known) else None
            intervals[place] = found if found and found.has_width else None
    slope = pearson * float(points[1].std() / points[0].std())
    return Correlation(
        n=n,
        pearson=pearson,
        pearson_interval=intervals[0],
        spearman=spearman,
        spearman_interval=intervals[1],
        slope=slope,
        intercept=float(points[1].mean() - slope * points[0].mean()),
    )


def answers_and_retrieval(
    correct: Mapping[str, Mapping[str, bool | None]],
    scores: Mapping[str, Mapping[str, float]],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[AnswersAndRetrieval]:
    """For each model that has both: right or wrong (None: unscored) by question, and the retrieval score by question.

    A model's score is that of the ranking its answers or queries led to, so that models can be set side by side.
    `clusters` maps a question to what it shares with others: clusters are resampled as a whole.
    """
    table = []
    for model, verdicts in correct.items():
        mine = scores.get(model)
        if mine is None:
            continue
        both = {q: (bool(right), mine[q]) for q, right in verdicts.items() if right is not None and q in mine}
        pairs = list(both.values())
        labels = cluster_labels(list(both), clusters)
        if not pairs:
            raise UsageError(
                f"no question of {model} has both a verdict and a retrieval score",
                fix="give answers and rankings of the same benchmark",
            )
        rights = np.array([float(right) for right, _ in pairs])
        values = np.array([value for _, value in pairs], np.float64)
        table.append(
            AnswersAndRetrieval(
                model=model,
                n=len(pairs),
                unscored=len({*verdicts, *mine}) - len(pairs),
                accuracy=float(rights.mean()),
                accuracy_interval=bootstrap_mean(rights, clusters=labels, samples=samples, seed=seed),
                score=float(values.mean()),
                score_interval=bootstrap_mean(values, clusters=labels, samples=samples, seed=seed),
                when_right=float(values[rights == 1].mean()) if rights.any() else None,
                when_wrong=float(values[rights == 0].mean()) if not rights.all() else None,
            )
        )
    return table


def _pearson(points: NDArray[np.float64]) -> float:
    centred = points - points.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred**2).sum(axis=1))
    if (sizes <= 1e-12 * (1 + np.abs(points).max())).any():
        return math.nan
    return float(np.clip((centred[0] / sizes[0]) @ (centred[1] / sizes[1]), -1, 1))


def _ranked(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The place of each value on its axis; equal values share the mean of their places."""
    ranks = np.empty_like(points)
    for axis, values in enumerate(points):
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks[axis] = (ends - (counts - 1) / 2)[inverse]
    return ranks
