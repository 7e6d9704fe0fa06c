"""How sure a figure is: intervals, paired differences, and tests corrected for their number.

Every resampling takes a seed and gives the same interval again. Where items share an origin (questions made from one
document, samples of one question), whole clusters are resampled.

Resampling sees only the spread that was observed: of three questions, or of forty that all went the same way, it makes
an interval that is far too narrow, or of no width at all. There the interval is a score interval (Wilson's, Tango's),
over as many observations as there are clusters. Fewer than ten observations are also counted in `Interval.few`, and
tables print that number beside the interval.

Intervals and tests take the questions of a benchmark as a sample of the questions that could have been asked. Two
questions written from one document are not two draws: they succeed and fail together, with the document. So the unit
is the document that a question was made from, as the specification says.

`Question.documents` holds one document where a recipe wrote the question from it. In a test collection it holds every
document that was graded relevant, which is something else: topics are drawn one by one, and two of them may share one
of forty documents. Linking questions by a chain of shared documents would join 318 of NFCorpus's 323 topics to a single
cluster, and an interval from the six clusters that remain means nothing. Hence the rule, for rankings and answers
alike: questions with exactly the same documents are a cluster (SciFact's 300 claims are checked against 250 sets of
abstracts); questions that share only some of their documents are not. That is how topics are taken in information
retrieval, where each is one draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from statistics import NormalDist

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from hoofbeat.errors import UsageError
from hoofbeat.records import Question

SAMPLES = 1000
LEVEL = 0.95
"""The confidence level of every table."""

CLUSTERED = "cluster bootstrap"
"""The method of intervals from resampling whole clusters."""

TANGO = "Tango's score"
"""The method of intervals for paired shares that few pairs tell apart."""

FEW = 10
"""With fewer observations than this, resampling sees too little, and tables say how few there are."""

_ONE_SIDED = 5
"""With fewer clusters than this that are not all wrong (or not all right), resampling sees too little of a share."""

_CELLS = 1 << 22
_NAMES = {
    "bootstrap": "bootstrap over questions",
    "wilson": "Wilson's score",
    "wilson, clustered": "Wilson's score, clustered",
}


class Interval(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An interval for a figure: its bounds, its confidence level, and how it was found.

    `few` is the number of independent observations, where they are fewer than ten. The bounds are infinite where so
    few observations of a figure without bounds say nothing.
    """

    low: float
    high: float
    level: float
    method: str
    few: int = 0

    @property
    def by(self) -> str:
        """The method as tables name it."""
        return _NAMES.get(self.method, self.method)

    @property
    def few_note(self) -> str:
        """What a printed interval ends with where observations are few: `, n = 3`."""
        return f", n = {self.few}" if self.few else ""

    @property
    def has_width(self) -> bool:
        """Whether the bounds differ by more than rounding."""
        return self.high - self.low > 1e-9

    @property
    def known(self) -> bool:
        """Whether there are bounds to print."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class Difference(Struct, frozen=True, kw_only=True):
    """The mean of `a − b` over `n` pairs with its bootstrap interval."""

    n: int
    difference: float
    interval: Interval


def wilson(successes: float, n: float, level: float = LEVEL) -> Interval:
    """Wilson's score interval for a share; everything from 0 to 1 where nothing was seen.

    The counts need not be whole: fewer observations than were seen can be given where some of them go together.
    """
    if not 0 <= successes <= n * (1 + 1e-12):
        raise UsageError(f"{successes} of {n} is not a share")
    _check_level(level)
    if n == 0:
        return Interval(low=0.0, high=1.0, level=level, method="wilson")
    successes, n = float(min(successes, n)), float(n)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low=low, high=high, level=level, method="wilson", few=few_of(n))


def exact_upper_bound(successes: int, n: int, level: float = LEVEL) -> float:
    """Clopper and Pearson's upper bound for a share: one-sided and never too low, however few were seen; 1 for none.

    It is the share at which as few successes as these, or fewer, have a probability of 1 - `level`.
    """
    if not 0 <= successes <= n:
        raise UsageError(f"{successes} of {n} is not a share")
    _check_level(level)
    if successes == n:
        return 1.0
    counts = np.arange(successes + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in counts.tolist()])
    low, high = successes / n, 1.0
    for _ in range(60):  # bisection, to the last bit that matters
        share = (low + high) / 2
        if not low < share < high:
            break
        tail = float(np.exp(ways + counts * math.log(share) + (n - counts) * math.log1p(-share)).sum())
        low, high = (share, high) if tail > 1 - level else (low, share)
    return high


def few_of(n: float) -> int:
    """The number of observations where it must be said; 0 where there are enough."""
    return math.ceil(n) if n < FEW else 0


def share_interval(hits: ArrayLike, clusters: Sequence[Hashable] | None = None, level: float = LEVEL) -> Interval:
    """Wilson's interval for the share of hits, whose observations may come in clusters (one label per observation)."""
    return clustered_wilson(*sums_and_sizes(np.asarray(hits, np.float64), clusters), level)


def clustered_wilson(sums: NDArray[np.float64], sizes: NDArray[np.float64], level: float = LEVEL) -> Interval:
    """Wilson's interval for a share from the hits and the size of each cluster.

    The share counts as one of as many observations as would vary as much if they were independent (the number divided
    by the design effect, as Korn and Graubard do for surveys). Where the clusters show no spread or are few, the design
    effect can't be seen, and every cluster counts as one observation.
    """
    inside = sizes > 0
    sums, sizes = sums[inside], sizes[inside]
    n, groups = float(sizes.sum()), len(sizes)
    if groups == n:
        return wilson(float(sums.sum()), n, level)
    share = min(1.0, float(sums.sum()) / n)
    effective = float(groups)
    if groups >= FEW and not _one_sided(sums, sizes):
        spread = float(((sums - share * sizes) ** 2).sum()) * groups / (groups - 1) / n**2
        effective = min(n, share * (1 - share) / spread) if spread > 0 else effective
    found = wilson(share * effective, effective, level)
    return replace(found, method="wilson, clustered", few=few_of(groups))


def _one_sided(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> bool:
    """Whether too few clusters differ from a share of 0, or from a share of 1."""
    return min(int((sums > 0).sum()), int((sums < sizes).sum())) < _ONE_SIDED


def mean_interval(
    sums: NDArray[np.float64],
    sizes: NDArray[np.float64],
    replicates: NDArray[np.float64],
    method: str,
    *,
    bounds: tuple[float, float] | None = None,
    level: float = LEVEL,
) -> Interval:
    """The interval of a mean from the sum and the size of each cluster: the bootstrap's, if the clusters suffice.

    Where they are few, are nearly all at one end, or show no spread, it is Wilson's, with the mean taken as a share of
    the way between the `bounds` of a value: no values between two bounds vary more than a share does. Without `bounds`
    they are 0 and 1, or −1 and 1, where the means of all clusters lie between those.
    """
    inside = sizes > 0
    sums, sizes = sums[inside], sizes[inside]
    means = sums / sizes
    low, high = bounds or next(
        (ends for ends in ((0.0, 1.0), (-1.0, 1.0)) if ends[0] <= means.min() and means.max() <= ends[1] + 1e-9),
        (-math.inf, math.inf),
    )
    few, bounded = few_of(len(sums)), math.isfinite(low) and math.isfinite(high)
    found = percentiles(replicates, level, method) if len(replicates) else None
    enough = not few and not (bounded and _one_sided(sums - low * sizes, (high - low) * sizes))
    if found and enough and found.has_width:
        return found
    if not bounded:
        return Interval(low=-math.inf, high=math.inf, level=level, method="too few values", few=few or len(sums))
    share = min(1.0, max(0.0, (float(sums.sum() / sizes.sum()) - low) / (high - low)))
    score = wilson(share * len(sums), len(sums), level)
    ends = low + (high - low) * score.low, low + (high - low) * score.high
    return replace(score, low=ends[0], high=ends[1], few=few)


def tango(only_a: float, only_b: float, n: float, level: float = LEVEL) -> Interval:
    """Tango's score interval for the difference of two paired shares, from the pairs that only one of them got right.

    Unlike the bootstrap's it has a width even where no pair, or only few, tell the two apart. The counts need not be
    whole: shares of several samples, or fewer pairs than were seen, can be given.
    """
    if min(only_a, only_b) < 0 or only_a + only_b > n * (1 + 1e-12):
        raise UsageError(f"{only_a} and {only_b} can't be counts out of {n} pairs")
    _check_level(level)
    if n == 0:
        return Interval(low=-1.0, high=1.0, level=level, method=TANGO)
    only_a, only_b = min(only_a, n), min(only_b, n)
    z = NormalDist().inv_cdf(0.5 + level / 2)

    def beyond(delta: float) -> float:
        """How far the difference seen lies from `delta`, in standard errors under `delta`."""
        b = (2 * n - only_a + only_b) * delta - only_a - only_b
        c = -only_b * delta * (1 - delta)
        share = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = n * max(0.0, 2 * share + delta * (1 - delta))
        apart = only_a - only_b - n * delta
        return math.copysign(math.inf, apart) if variance <= 0 else apart / math.sqrt(variance)

    middle = (only_a - only_b) / n
    low = -1.0 if middle <= -1 else _root(lambda delta: beyond(delta) - z, -1.0, middle)
    high = 1.0 if middle >= 1 else _root(lambda delta: beyond(delta) + z, middle, 1.0)
    return Interval(low=low, high=high, level=level, method=TANGO, few=few_of(n))


def change_interval(replicates: NDArray[np.float64], change: float, units: int, method: str) -> Interval:
    """The interval of a change of a share: the bootstrap's, or where that shows no spread or has few units, Tango's."""
    found = percentiles(replicates, LEVEL, method) if len(replicates) else None
    if found and found.has_width and units >= FEW:
        return found
    return tango(max(0.0, change) * units, max(0.0, -change) * units, units)


def newcombe(a: tuple[float, float], b: tuple[float, float], level: float = LEVEL) -> Interval:
    """Newcombe's interval for the difference of two shares of different items, each given as (successes, n)."""
    one, two = wilson(*a, level), wilson(*b, level)
    first, second = a[0] / a[1], b[0] / b[1]
    low = first - second - math.hypot(first - one.low, two.high - second)
    high = first - second + math.hypot(one.high - first, second - two.low)
    few = few_of(min(a[1], b[1]))
    return Interval(low=max(-1.0, low), high=min(1.0, high), level=level, method="Newcombe's score", few=few)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes 0, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def bootstrap_mean(
    values: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] | None = None,
    samples: int = SAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of the mean; with `clusters` (one label per value) whole clusters are resampled.

    Where resampling would see too little, it is the score interval of `mean_interval`.
    """
    _check_level(level)
    array = np.asarray(values, np.float64)
    if not len(array):
        raise UsageError("there is nothing to resample")
    sums, sizes = sums_and_sizes(array, clusters)
    blocks = [sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1) for drawn in drawn_again(len(sums), samples, seed)]
    means: NDArray[np.float64] = np.concatenate(blocks)
    method = "bootstrap" if clusters is None else CLUSTERED
    return mean_interval(sums, sizes, means, method, bounds=bounds, level=level)


def paired_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] | None = None,
    samples: int = SAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Difference:
    """The mean of `a − b`, value by value, with the bootstrap interval of the pairs.

    Where fewer than ten pairs (clusters) differ, or all by the same, it is Tango's score interval over as many pairs as
    there are clusters: differences between −1 and 1 vary no more than those of two shares. `bounds` of a difference are
    given where those are not its bounds.
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.shape != second.shape:
        raise UsageError(f"{len(first)} and {len(second)} values can't be paired")
    delta = first - second
    interval = bootstrap_mean(delta, clusters=clusters, bounds=bounds, samples=samples, level=level, seed=seed)
    sums, _ = sums_and_sizes(delta, clusters)
    few = np.count_nonzero(np.abs(sums) > 1e-12) < FEW or interval.method == "wilson"
    if few and bounds is None and np.abs(delta).max() <= 1:
        scale = len(sums) / len(delta)
        gain, loss = float(delta.clip(min=0).sum()), float(-delta.clip(max=0).sum())
        interval = tango(gain * scale, loss * scale, len(sums), level)
    return Difference(n=len(delta), difference=float(delta.mean()), interval=interval)


def cluster_sums(values: NDArray[np.float64], clusters: Sequence[str]) -> NDArray[np.float64]:
    """Rows of `values` (one an item, one column a figure) added up by cluster; clusters come sorted by their label.

    Sorted, so that the same items in another order are resampled to the same interval.
    """
    if len(clusters) != len(values):
        raise UsageError(f"{len(values)} values and {len(clusters)} cluster labels")
    labels, places = np.unique(np.array(clusters, np.str_), return_inverse=True)
    return np.stack([np.bincount(places, weights=column, minlength=len(labels)) for column in values.T], axis=1).astype(
        np.float64
    )


def resampled_sums(columns: NDArray[np.float64], *, samples: int = SAMPLES, seed: int = 0) -> NDArray[np.float64]:
    """Bootstrap sums of each column (`samples` × columns): rows are drawn again with replacement, for all alike.

    Any mean, ratio or difference of columns is resampled by computing it from a row of the result. Memory stays
    bounded however many rows there are.
    """
    n = len(columns)
    if not n:
        raise UsageError("there is nothing to resample")
    blocks = []
    for drawn in drawn_again(n, samples, seed):
        places = (drawn + n * np.arange(len(drawn))[:, None]).ravel()
        blocks.append(np.bincount(places, minlength=drawn.size).reshape(drawn.shape) @ columns)
    sums: NDArray[np.float64] = np.concatenate(blocks)
    return sums


def drawn_again(n: int, samples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """The one way to resample: `samples` rows of `n` places drawn with replacement, in blocks of bounded size."""
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for first in range(0, samples, step):
        yield rng.integers(n, size=(min(step, samples - first), n))


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Exact two-sided p of McNemar's test, from the pairs that only one of the two got right."""
    n, fewer = only_a + only_b, min(only_a, only_b)
    if fewer < 0:
        raise UsageError("counts of pairs can't be negative")
    if only_a == only_b:
        return 1.0
    logs = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(fewer + 1)]
    largest = max(logs)
    tail = math.fsum(math.exp(value - largest) for value in logs)
    return min(1.0, math.exp(largest + math.log(tail) - (n - 1) * math.log(2)))


def holm(p_values: Iterable[float]) -> list[float]:
    """Holm's adjusted p values, in the order given."""
    values = list(p_values)
    adjusted = [0.0] * len(values)
    reached = 0.0
    for place, index in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        reached = max(reached, min(1.0, (len(values) - place) * values[index]))
        adjusted[index] = reached
    return adjusted


def percentiles(replicates: NDArray[np.float64], level: float, method: str) -> Interval:
    """The central interval of bootstrap replicates."""
    _check_level(level)
    low, high = np.quantile(replicates, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(low=float(low), high=float(high), level=level, method=method)


def sums_and_sizes(
    values: NDArray[np.float64], clusters: Sequence[Hashable] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and size of each cluster, in order of first appearance."""
    if clusters is None:
        return values, np.ones(len(values))
    if len(clusters) != len(values):
        raise UsageError(f"{len(values)} values and {len(clusters)} cluster labels")
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(label, len(numbers)) for label in clusters]
    sums = np.bincount(places, weights=values, minlength=len(numbers)).astype(np.float64)
    return sums, np.bincount(places).astype(np.float64)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"{level} is not a confidence level", fix="give a number between 0 and 1, for example 0.95")


def clusters_of(questions: Iterable[Question]) -> dict[str, str]:
    """Question to the name of its cluster: the documents that it was made from, or that answer it.

    A question without documents is in no cluster; it is resampled alone.
    """
    return {each.id: "\t".join(sorted(set(each.documents))) for each in questions if each.documents}


def cluster_of(question: str, clusters: Mapping[str, str] | None) -> str:
    """What a question is resampled with: its cluster, or itself."""
    return clusters.get(question, question) if clusters else question


def cluster_labels(questions: Sequence[str], clusters: Mapping[str, str] | None) -> list[str] | None:
    """The cluster of each question; None where no two share one, so that questions are resampled one by one."""
    labels = [cluster_of(question, clusters) for question in questions]
    return labels if len(set(labels)) < len(labels) else None
