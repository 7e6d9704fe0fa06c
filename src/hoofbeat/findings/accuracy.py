"""The share of right answers, with the denominator fixed by the plan of the run.

An answer that failed, was refused or could not be judged is *unscored*: it stays in the denominator, is counted by
what went wrong and, where such answers exceed 1%, a range shows the score had they all been wrong or all been right.

Also here: the systems in order of their accuracy, with intervals of their places, and the questions that flip between
two systems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import (
    CLUSTERED,
    FEW,
    LEVEL,
    SAMPLES,
    Difference,
    Interval,
    cluster_of,
    cluster_sums,
    clustered_wilson,
    drawn_again,
    holm,
    mcnemar_exact,
    mean_interval,
    percentiles,
    resampled_sums,
    tango,
)
from hoofbeat.findings.outcomes import (
    HUMAN,
    Outcome,
    Shares,
    SystemKey,
    by_system,
    per_question,
    sensitivity_range,
)
from hoofbeat.findings.systems import randomisation_test


class Accuracy(Struct, frozen=True, kw_only=True):
    """Accuracy of one model under one condition: `correct` of `planned`, over `questions` questions.

    `unscored` counts planned answers without a score by reason. `bootstrap` resamples clusters, or is Wilson's interval
    over clusters where these are few or show no spread; `wilson` is Wilson's with the clusters' design effect.
    `sensitivity` is (all unscored wrong, all unscored right) where more than 1% are unscored.
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
    the other not; they are None where a question has several samples. `p` is from the `test` named: McNemar's exact
    test, or with several samples a question the paired randomisation test of the questions' shares; `p_holm` is
    corrected over the table. Where the questions form fewer `clusters`, `p_cluster` is from the paired randomisation
    test in which whole clusters change their sign, as McNemar's takes questions as independent; None elsewhere.
    `sensitivity` spans what unscored answers could make of the difference, where they exceed 1%.

    The interval of `paired` is the cluster bootstrap's; where fewer than ten questions tell the two apart, or all that
    do speak for one of them, resampling sees too little spread, and it is Tango's score interval: over as many
    questions as there are clusters, as those of a cluster may all say the same.
    """

    a: SystemKey
    b: SystemKey
    accuracy_a: float
    accuracy_b: float
    paired: Difference
    unpaired: int
    unscored: int
    sensitivity: tuple[float, float] | None
    only_a: int | None
    only_b: int | None
    p: float
    test: str
    p_holm: float = 1.0
    clusters: int = 0
    p_cluster: float | None = None
    p_cluster_holm: float | None = None


def accuracies(
    results: Iterable[Outcome],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[Accuracy]:
    """Accuracy of each (model, condition), sorted by name.

    `clusters` maps a question to what it shares with others (its source document); samples of one question always
    belong together.
    """
    table = []
    for (model, condition), rows in sorted(by_system(results).items()):
        planned, correct = len(rows), sum(row.correct is True for row in rows)
        unscored = Counter(row.unscored for row in rows if row.correct is None)
        labels = [cluster_of(row.question, clusters) for row in rows]
        missing = unscored.total()
        counts = cluster_sums(np.array([[row.correct is True, 1.0] for row in rows], np.float64), labels)
        drawn = resampled_sums(counts, samples=samples, seed=seed)
        table.append(
            Accuracy(
                model=model,
                condition=condition,
                planned=planned,
                questions=len({row.question for row in rows}),
                clusters=len(counts),
                correct=correct,
                unscored=dict(sorted(unscored.items())),
                accuracy=correct / planned,
                wilson=clustered_wilson(counts[:, 0], counts[:, 1]),
                bootstrap=mean_interval(counts[:, 0], counts[:, 1], drawn[:, 0] / drawn[:, 1], CLUSTERED),
                sensitivity=sensitivity_range(correct / planned, (correct + missing) / planned, missing / planned),
            )
        )
    return table


def scored_systems(results: Iterable[Outcome]) -> set[SystemKey]:
    """The systems of which at least one answer has a score."""
    return {(row.model, row.condition) for row in results if row.correct is not None}


def comparable_pairs(
    results: Iterable[Outcome],
    within: Literal["model", "condition", "either"] = "either",
    *,
    unscored: bool = False,
) -> list[tuple[SystemKey, SystemKey]]:
    """The pairs of systems worth comparing, sorted: conditions of one model, models under one condition, or both.

    Pairs that share no question are left out, and without `unscored` pairs with a system of which no answer was
    scored: what nobody scored is not worse.
    """
    rows = list(results)
    asked: dict[SystemKey, set[str]] = {}
    for row in rows:
        asked.setdefault((row.model, row.condition), set()).add(row.question)
    worth = asked.keys() if unscored else scored_systems(rows)
    same = {"model": (True, False), "condition": (False, True), "either": (True, True)}[within]
    return [
        (a, b)
        for a, b in combinations(sorted(worth), 2)
        if ((same[0] and a[0] == b[0]) or (same[1] and a[1] == b[1])) and not asked[a].isdisjoint(asked[b])
    ]


def differences(
    results: Iterable[Outcome],
    pairs: Sequence[tuple[SystemKey, SystemKey]] | None = None,
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[SystemDifference]:
    """Differences between systems, paired by question, with Holm's correction over the table.

    Without `pairs`, every two conditions of the same model are compared; `comparable_pairs` names other choices.
    """
    systems = by_system(results)
    if pairs is None:
        pairs = [pair for pair in combinations(sorted(systems), 2) if pair[0][0] == pair[1][0]]
    for system in (system for pair in pairs for system in pair):
        if system not in systems:
            raise UsageError(f"there are no answers by {system[0]} under {system[1]!r}", fix="check the names")
    shares = {system: per_question(systems[system]) for pair in pairs for system in pair}
    resample = _Resampling(shares, clusters, samples, seed)
    table = [_difference(a, b, resample) for a, b in pairs]
    table = [replace(row, p_holm=p) for row, p in zip(table, holm(row.p for row in table), strict=True)]
    if all(row.p_cluster is None for row in table):
        return table
    again = holm(row.p if row.p_cluster is None else row.p_cluster for row in table)
    return [
        replace(row, p_cluster_holm=None if row.p_cluster is None else p) for row, p in zip(table, again, strict=True)
    ]


class _Resampling:
    """The bootstrap of many differences: systems with the same questions are drawn once, all together."""

    def __init__(
        self, shares: Mapping[SystemKey, Shares], clusters: Mapping[str, str] | None, samples: int, seed: int
    ) -> None:
        self.shares, self.clusters, self.samples, self.seed = shares, clusters, samples, seed
        self.groups: dict[tuple[str, ...], dict[SystemKey, int]] = {}
        for system, share in shares.items():
            group = self.groups.setdefault(share.questions, {})
            group[system] = len(group)
        self.drawn: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def labels(self, questions: Sequence[str]) -> list[str]:
        return [cluster_of(question, self.clusters) for question in questions]

    def means(self, lows: Sequence[NDArray[np.float64]], questions: Sequence[str]) -> NDArray[np.float64]:
        columns = np.stack([*lows, np.ones(len(questions))], axis=1)
        sums = resampled_sums(cluster_sums(columns, self.labels(questions)), samples=self.samples, seed=self.seed)
        return sums[:, :-1] / sums[:, -1:]

    def delta(self, a: SystemKey, b: SystemKey, pair: tuple[Shares, Shares]) -> NDArray[np.float64]:
        """Replicates of the mean of `a − b`."""
        questions = self.shares[a].questions
        if questions != self.shares[b].questions:
            return self.means([pair[0].low - pair[1].low], pair[0].questions)[:, 0]
        group = self.groups[questions]
        if questions not in self.drawn:
            self.drawn[questions] = self.means([self.shares[system].low for system in group], questions)
        drawn = self.drawn[questions]
        return drawn[:, group[a]] - drawn[:, group[b]]


def _difference(a: SystemKey, b: SystemKey, resample: _Resampling) -> SystemDifference:
    first, second = resample.shares[a], resample.shares[b]
    unpaired = 0
    if first.questions != second.questions:
        shared, mine, theirs = np.intersect1d(
            np.array(first.questions), np.array(second.questions), assume_unique=True, return_indices=True
        )
        unpaired = len(first.questions) + len(second.questions) - 2 * len(shared)
        if not len(shared):
            raise UsageError(
                f"{a[0]} ({a[1]}) and {b[0]} ({b[1]}) share no question", fix="compare runs of the same benchmark"
            )
        first, second = first.take(mine), second.take(theirs)
    n = len(first.questions)
    delta = first.low - second.low
    unscored, answers = int((first.unscored + second.unscored).sum()), int((first.answers + second.answers).sum())
    single = answers == 2 * n
    labels = resample.labels(first.questions)
    clusters = len(set(labels))
    only_a, only_b = int((delta > 0).sum()), int((delta < 0).sum())
    p_cluster = None
    if single:
        p, test = mcnemar_exact(only_a, only_b), "McNemar, exact"
        if clusters < n:
            p_cluster = randomisation_test(first.low, second.low, clusters=labels, seed=resample.seed).p
    else:
        found = randomisation_test(first.low, second.low, clusters=labels, seed=resample.seed)
        p, test = found.p, f"paired randomisation, {found.patterns:,} sign patterns" + (" (all)" if found.exact else "")
    if clusters < FEW or only_a + only_b < FEW or not only_a or not only_b:
        gain, loss = float(delta.clip(min=0).sum()), float(-delta.clip(max=0).sum())
        interval = tango(gain * clusters / n, loss * clusters / n, clusters)
    else:
        interval = percentiles(resample.delta(a, b, (first, second)), LEVEL, CLUSTERED)
    return SystemDifference(
        a=a,
        b=b,
        accuracy_a=float(first.low.mean()),
        accuracy_b=float(second.low.mean()),
        paired=Difference(n=n, difference=float(delta.mean()), interval=interval),
        unpaired=unpaired,
        unscored=unscored,
        sensitivity=sensitivity_range(
            float((first.low - second.high).mean()), float((first.high - second.low).mean()), unscored / answers
        ),
        only_a=only_a if single else None,
        only_b=only_b if single else None,
        p=p,
        test=test,
        clusters=clusters,
        p_cluster=p_cluster,
    )


_SAME = 1e-12

COVERED = 0.9
"""A system's place counts only those systems that were asked at least this share of the questions it was asked."""

EXPERTS = "human experts"
"""The system that people's answers are pooled to."""


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """One system's place (1 is best; equals share a place, and `tied` counts the others there) and its interval.

    It is placed among `among` systems (itself included): those that were asked at least nine tenths of its questions.
    Each two are compared by the questions that they share; `n` is the smallest number of those. `accuracy` is over
    everything that was planned for this system.
    """

    system: SystemKey
    accuracy: Accuracy
    rank: int
    rank_interval: tuple[int, int]
    n: int
    among: int
    tied: int = 0


def leaderboard(
    results: Iterable[Outcome],
    *,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> list[LeaderboardRow]:
    """Systems, best first, equals by accuracy and name; each two are compared by the questions that they share.

    A system that was asked few questions (a physician beside models) has a place among those that were asked the same,
    and counts in nobody else's place. The place's interval: the same questions (clusters) are drawn again for all
    systems, and ranked anew each time. Systems that come out equal share all the places that they take up together, and
    so do two that fewer than ten questions tell apart, unless Tango's interval of their difference leaves 0 out.
    """
    systems = by_system(results)
    if not systems:
        return []
    shares = {system: per_question(rows) for system, rows in sorted(systems.items())}
    placed = _places(list(shares.values()), clusters, samples, seed)
    scores = accuracies(
        (row for rows in systems.values() for row in rows), clusters=clusters, samples=samples, seed=seed
    )
    table = [
        LeaderboardRow(
            system=system,
            accuracy=score,
            rank=place.rank,
            rank_interval=place.interval,
            n=place.n,
            among=place.among,
            tied=place.tied,
        )
        for system, score, place in zip(shares, scores, placed, strict=True)
    ]
    return sorted(table, key=lambda row: (row.rank, -row.accuracy.accuracy, row.system))


class _Place(Struct, frozen=True, kw_only=True):
    """Where one system is among the systems that were asked its questions."""

    rank: int
    interval: tuple[int, int]
    n: int
    among: int
    tied: int


def _places(shares: Sequence[Shares], clusters: Mapping[str, str] | None, samples: int, seed: int) -> list[_Place]:
    questions = sorted({question for share in shares for question in share.questions})
    values = np.full((len(questions), len(shares)), np.nan)
    for column, share in enumerate(shares):
        values[np.searchsorted(np.array(questions), np.array(share.questions)), column] = share.low
    numbers: dict[str, int] = {}
    groups = np.array([numbers.setdefault(cluster_of(each, clusters), len(numbers)) for each in questions])
    best: NDArray[np.int64] = np.empty((samples, len(shares)), np.int64)
    worst: NDArray[np.int64] = np.empty((samples, len(shares)), np.int64)
    pairs = [_Opponents.of(values, groups, column) for column in range(len(shares))]
    done = 0
    for drawn in drawn_again(len(numbers), samples, seed):
        size = len(drawn)
        flat = (drawn + len(numbers) * np.arange(size)[:, None]).ravel()
        times = np.bincount(flat, minlength=drawn.size).reshape(drawn.shape).astype(np.float64)
        for column, mine in enumerate(pairs):
            ahead = times @ mine.sums  # by how much this system is ahead of each other one, in every resample
            best[done : done + size, column] = 1 + ((ahead < -_SAME) & mine.settled).sum(axis=1)
            worst[done : done + size, column] = 1 + ((ahead <= _SAME) | ~mine.settled).sum(axis=1)
        done += size
    lows = np.quantile(best, 0.5 - LEVEL / 2, axis=0, method="lower")
    highs = np.quantile(worst, 0.5 + LEVEL / 2, axis=0, method="higher")
    return [mine.place(int(low), int(high)) for mine, low, high in zip(pairs, lows, highs, strict=True)]


class _Opponents(Struct, frozen=True, kw_only=True):
    """The systems that one system is placed among: by cluster (row) and system, by how much it is ahead of each.

    `settled` are those that enough questions tell apart from it, or Tango's interval does.
    """

    sums: NDArray[np.float64]
    settled: NDArray[np.bool_]
    n: int

    @classmethod
    def of(cls, values: NDArray[np.float64], groups: NDArray[np.int64], column: int) -> _Opponents:
        """The opponents of the system in one column; `values` are by question (row) and system."""
        asked = ~np.isnan(values)
        shared = asked & asked[:, [column]]
        counts = shared.sum(axis=0)
        chosen = np.flatnonzero(counts >= COVERED * counts[column])
        chosen = chosen[chosen != column]
        ahead = np.where(shared[:, chosen], values[:, [column]] - values[:, chosen], 0.0)
        sums = np.zeros((int(groups.max()) + 1, len(chosen)))
        np.add.at(sums, groups, ahead)
        settled = np.ones(len(chosen), bool)
        for place, other in enumerate(chosen):
            if np.count_nonzero(np.abs(sums[:, place]) > _SAME) < FEW:
                units = len(set(groups[shared[:, other]].tolist()))
                scale = units / int(counts[other])
                gain, loss = (float((sign * ahead[:, place]).clip(min=0).sum()) * scale for sign in (1, -1))
                found = tango(gain, loss, units)
                settled[place] = found.low > 0 or found.high < 0
        return cls(sums=sums, settled=settled, n=int(min(counts[chosen], default=counts[column])))

    def place(self, low: int, high: int) -> _Place:
        """The place by what was seen, with the bounds that resampling gives."""
        totals = self.sums.sum(axis=0)
        rank, tied = 1 + int((totals < -_SAME).sum()), int((np.abs(totals) <= _SAME).sum())
        return _Place(rank=rank, interval=(min(low, rank), max(high, rank)), n=self.n, among=len(totals) + 1, tied=tied)


def pooled_people(
    results: Iterable[Outcome], *, name: str = EXPERTS, only: Collection[tuple[str, str]] | None = None
) -> list[Outcome]:
    """People's answers as those of one system, whose samples of a question are the people who were asked it.

    `only` picks answers by person and question, such as those inside the person's specialty.
    """
    people: dict[str, int] = {}
    return [
        replace(row, model=name, sample=people.setdefault(row.model, len(people)))
        for row in results
        if row.model.startswith(HUMAN) and (only is None or (row.model, row.question) in only)
    ]


CHANGES = (
    "right → wrong", "wrong → right", "right → unscored", "wrong → unscored", "unscored → right",
    "unscored → wrong", "fewer samples right", "more samples right", "samples → unscored", "unscored → samples",
)  # fmt: skip
"""How a question can flip from the first system to the second; the last four where there are several samples."""


def change(before: Sequence[Outcome], after: Sequence[Outcome]) -> str:
    """How a question flipped, as one of `CHANGES`; empty where it did not."""
    if len(before) == len(after) == 1:
        states = _state(before[0]), _state(after[0])
        return "" if states[0] == states[1] else f"{states[0]} → {states[1]}"
    lost = [all(row.correct is None for row in rows) for rows in (before, after)]
    if lost[0] != lost[1]:
        return "samples → unscored" if lost[1] else "unscored → samples"
    shares = [sum(row.correct is True for row in rows) / len(rows) for rows in (before, after)]
    if shares[0] == shares[1]:
        return ""
    return "more samples right" if shares[1] > shares[0] else "fewer samples right"


def flips(first: Mapping[str, Sequence[Outcome]], second: Mapping[str, Sequence[Outcome]]) -> Counter[str]:
    """How often each change happened between two systems, over the questions planned for both."""
    found = Counter(change(rows, second[question]) for question, rows in first.items() if question in second)
    return Counter({name: found[name] for name in CHANGES if found[name]})


def standing(rows: Sequence[Outcome]) -> str:
    """How one system fared on a question, in words."""
    if len(rows) == 1:
        return _state(rows[0]) + (f" ({rows[0].unscored})" if rows[0].unscored else "")
    right, lost = sum(row.correct is True for row in rows), sum(row.correct is None for row in rows)
    return f"{right} of {len(rows)} right" + (f", {lost} unscored" if lost else "")


def _state(row: Outcome) -> str:
    return "unscored" if row.correct is None else "right" if row.correct else "wrong"


def tone_of_change(how: str) -> str:
    """Whether a change is for the better (`right`), for the worse (`wrong`), or can't be told (`unscored`)."""
    if how.endswith("→ right") or how.startswith("more"):
        return "right"
    return "wrong" if how.endswith("→ wrong") or how.startswith("fewer") else "unscored"
