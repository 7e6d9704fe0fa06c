from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.corrected_scores import PPI, _majority, corrected_accuracies, labels_needed, ppi_mean
from hoofbeat.findings.intervals import wilson
from tests.findings.support import outcome_row, single

Array = NDArray[np.float64]
Z = 1.959963984540054


def world(rng: np.random.Generator, size: int, *, right: float = 0.6, noise: float = 0.2) -> tuple[Array, Array]:
    """What is true of each item, and what a judge says who is wrong in a share of cases, mostly too kind."""
    human = (rng.random(size) < right).astype(float)
    flipped = rng.random(size) < np.where(human == 1, noise / 2, noise * 1.5)
    return human, np.where(flipped, 1 - human, human)


def measured(human: Array, judge: Array, n: int, *, tuned: bool = True) -> PPI:
    return ppi_mean(judge.tolist(), judge[:n].tolist(), human[:n].tolist(), tuned=tuned)


def test_the_correction_by_hand() -> None:
    judge = [1, 1, 1, 0, 1, 1, 0, 1]
    human = [1, 0, 1, 0]
    found = ppi_mean(judge, judge[:4], human, tuned=False)
    assert (found.n_all, found.n_labelled, found.weight) == (8, 4, 1.0)
    assert found.judge == pytest.approx(6 / 8)
    assert found.classical == pytest.approx(0.5)
    assert found.rectifier == pytest.approx(-1 / 4)
    assert found.estimate == pytest.approx(3 / 4 - 1 / 4)
    variance = np.var([0, -1, 0, 0], ddof=1) / 4 + np.var(judge, ddof=1) / 4
    assert found.interval is not None
    assert found.interval.high == pytest.approx(min(1.0, 0.5 + Z * math.sqrt(variance)))
    assert found.classical_interval == wilson(2, 4)


def test_the_tuned_weight_has_the_smallest_variance() -> None:
    human, judge = world(np.random.default_rng(1), 600)
    found = measured(human, judge, 150)
    assert found.estimate is not None

    def variance(weight: float) -> float:
        left = human[:150] - weight * judge[:150]
        return float(left.var(ddof=1) / 150 + weight**2 * judge.var(ddof=1) / 450)

    best = min(np.linspace(0, 1, 1001), key=variance)
    assert found.weight == pytest.approx(best, abs=0.03)
    assert found.estimate == pytest.approx(
        found.weight * judge[150:].mean() + (human[:150] - found.weight * judge[:150]).mean()
    )
    assert found.interval is not None
    half = (found.interval.high - found.interval.low) / 2
    assert half == pytest.approx(Z * math.sqrt(variance(found.weight)))


@pytest.mark.parametrize("tuned", [True, False])
@pytest.mark.parametrize(("noise", "size", "n"), [(0.1, 600, 100), (0.5, 600, 100), (0.2, 150, 75)])
def test_nineteen_of_twenty_intervals_hold_the_truth(noise: float, size: int, n: int, tuned: bool) -> None:
    rng = np.random.default_rng(7)
    held = biased = 0
    for _ in range(1500):
        human, judge = world(rng, size, noise=noise)
        interval = measured(human, judge, n, tuned=tuned).interval
        assert interval is not None
        held += interval.low <= 0.6 <= interval.high
        biased += abs(judge.mean() - 0.6) < Z * math.sqrt(judge.var() / size)
    assert 0.93 <= held / 1500 <= 0.97
    if noise == 0.5:
        assert biased / 1500 < 0.5, "the judge alone must be wrong for the test to say anything"


def test_real_valued_labels_are_covered_too() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(1500):
        human = rng.gamma(2.0, size=400)
        judge = 0.7 * human + rng.normal(0.5, 0.8, size=400)
        interval = measured(human, judge, 100).interval
        assert interval is not None
        held += interval.low <= 2.0 <= interval.high
    assert 0.93 <= held / 1500 <= 0.97


def test_a_good_judge_narrows_and_a_bad_one_does_no_harm() -> None:
    rng = np.random.default_rng(5)
    human, judge = world(rng, 2000, noise=0.05)

    def width(found: PPI) -> float:
        assert found.interval is not None
        return found.interval.high - found.interval.low

    good = measured(human, judge, 200)
    alone = good.classical_interval
    assert alone is not None
    assert width(good) < 0.7 * (alone.high - alone.low)
    noise = (rng.random(2000) < 0.5).astype(float)
    bad = measured(human, noise, 200)
    assert width(bad) < 1.02 * (alone.high - alone.low)
    assert width(measured(human, noise, 200, tuned=False)) > 1.3 * (alone.high - alone.low)


def test_judge_failures_count_as_a_mistake_of_the_judge() -> None:
    rng = np.random.default_rng(11)
    estimates = []
    for _ in range(400):
        human, judge = world(rng, 300)
        given = [None if rng.random() < 0.3 else value for value in judge.tolist()]
        found = ppi_mean(given, given[:100], human[:100].tolist(), tuned=False)
        assert found.judge_missing == sum(value is None for value in given)
        assert found.estimate is not None
        estimates.append(found.estimate)
    assert np.mean(estimates) == pytest.approx(0.6, abs=0.01)


def test_human_labels_that_are_missing_are_not_labels() -> None:
    judge = [1, 0, 1, 1, 0, 1]
    found = ppi_mean(judge, judge[:4], [1, None, 0, 1])
    assert (found.n_labelled, found.human_missing) == (3, 1)
    assert any("no label" in warning for warning in found.warnings)
    same = ppi_mean(judge, [1, 1, 1], [1, 0, 1])
    assert (found.estimate, found.interval) == (same.estimate, same.interval)


def test_where_there_is_little_to_go_by() -> None:
    nothing = ppi_mean([1, 0, 1], [], [])
    assert (nothing.estimate, nothing.interval, nothing.classical, nothing.rectifier) == (None, None, None, None)
    assert nothing.judge == pytest.approx(2 / 3)
    assert "no human labels" in nothing.warnings[0]
    assert ppi_mean([], [], []).judge is None
    one = ppi_mean([1, 0, 1], [1], [0])
    assert one.interval is None
    assert one.estimate == 0.0, "1/2 - 1, and no share is below 0"
    everything = ppi_mean([1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1])
    assert (everything.weight, everything.estimate) == (0.0, 0.5)


def test_labels_all_alike_do_not_pass_for_certainty() -> None:
    alike = ppi_mean([1, 1, 0, 1] * 10, [1, 1, 0, 1] * 3, [1] * 12)
    assert alike.interval is not None
    assert alike.interval.low < 0.9
    assert alike.interval.high == 1.0
    assert "two opposite labels added" in alike.interval.method
    assert "all human labels are the same" in alike.warnings
    agreeing = ppi_mean([1, 0, 1, 0] * 10, [1, 0, 1, 0], [1, 0, 1, 0], tuned=False)
    assert agreeing.interval is not None
    assert agreeing.interval.high - agreeing.interval.low > 0.5
    assert any("agree on all labelled items" in warning for warning in agreeing.warnings)


def test_what_does_not_belong_together() -> None:
    with pytest.raises(UsageError, match="can't be paired"):
        ppi_mean([1, 0], [1], [])
    with pytest.raises(UsageError, match="2 items are labelled, but there are only 1"):
        ppi_mean([1], [1, 0], [1, 1])
    with pytest.raises(InputError, match="not a number"):
        ppi_mean([float("nan")], [], [])


labels = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.booleans()), min_size=2, max_size=30)


@settings(deadline=None)
@given(labels, st.randoms(use_true_random=False))
def test_order_does_not_matter(items: list[tuple[int, int, bool]], random: object) -> None:
    def found(rows: list[tuple[int, int, bool]]) -> PPI:
        picked = [row for row in rows if row[2]]
        return ppi_mean([row[0] for row in rows], [row[0] for row in picked], [row[1] for row in picked])

    mixed = list(items)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    first, second = found(items), found(mixed)
    assert (first.n_all, first.n_labelled) == (second.n_all, second.n_labelled)
    assert first.estimate == (second.estimate if first.estimate is None else pytest.approx(second.estimate))
    assert 0 <= first.weight <= 1
    if first.interval is not None:
        assert 0 <= first.interval.low <= first.interval.high <= 1


def test_as_many_labels_as_planned_give_the_width() -> None:
    rng = np.random.default_rng(2)
    human, judge = world(rng, 4000)
    pilot = measured(human, judge, 1500)
    for half in (0.02, 0.03, 0.05):
        needed = labels_needed(pilot, half)
        assert needed is not None
        total = 1500 + needed if needed else None
        widths = []
        for _ in range(60):
            people, says = world(rng, 4000)
            interval = measured(people, says, total or 1500).interval
            assert interval is not None
            widths.append((interval.high - interval.low) / 2)
        if total:
            assert np.mean(widths) == pytest.approx(half, rel=0.05)
        else:
            assert np.mean(widths) < half


def planned(n_all: int, n: int, variance: float | None, correlation: float) -> PPI:
    return PPI(
        n_all=n_all,
        n_labelled=n,
        judge=0.5,
        classical=0.5 if n else None,
        classical_interval=None,
        rectifier=None,
        weight=1.0,
        estimate=None,
        interval=None,
        judge_missing=0,
        human_missing=0,
        variance=variance,
        correlation=correlation,
        binary=True,
    )


@settings(deadline=None)
@given(st.integers(1, 3000), st.floats(0.001, 0.25), st.floats(-1, 1), st.floats(0.005, 0.3), st.floats(0.005, 0.3))
def test_planning_is_monotone_and_exact(n_all: int, variance: float, rho: float, first: float, second: float) -> None:
    wide, narrow = max(first, second), min(first, second)
    score = planned(n_all, 2, variance, rho)
    many, few = labels_needed(score, narrow), labels_needed(score, wide)
    assert (math.inf if many is None else many) >= (math.inf if few is None else few)
    rho = max(0.0, rho)

    def half(n: int) -> float:
        return Z * math.sqrt(variance * ((1 - rho**2) / n + rho**2 / n_all))

    if few is None:
        assert half(n_all) > wide * (1 - 1e-6)
    else:
        assert half(few + 2) <= wide * (1 + 1e-6)
        assert few == 0 or half(few + 1) > wide * (1 - 1e-6)


def test_planning_before_anything_is_seen() -> None:
    assert labels_needed(planned(10_000, 0, None, 0.0), 0.03) == math.ceil(0.25 * (Z / 0.03) ** 2)
    alike = ppi_mean([1] * 5000, [1] * 6, [1] * 6)
    needed = labels_needed(alike, 0.03)
    assert needed is not None
    assert needed > 400, "six labels that are all alike are no reason to stop"
    assert labels_needed(planned(100, 0, None, 0.0), 0.03) is None
    assert labels_needed(planned(0, 0, None, 0.0), 0.03) is None
    with pytest.raises(UsageError, match="half-width"):
        labels_needed(alike, 0)
    with pytest.raises(UsageError, match="all human labels are the same"):
        labels_needed(ppi_mean([0.5, 0.7, 0.1], [0.5, 0.7], [0.4, 0.4]), 0.01)


def test_accuracies_are_corrected_system_by_system() -> None:
    judge = [*single("1111011110", condition="a"), *single("1010101010", condition="b")]
    votes = {"q0000": "110", "q0001": "01"}
    two_and_three = [outcome_row(question, mark, condition="b") for question, marks in votes.items() for mark in marks]
    human = [*single("1101", condition="a"), *two_and_three]
    first, second = corrected_accuracies(iter(judge), iter(human), tuned=False)
    assert (first.model, first.condition, first.score.n_labelled, first.score.n_all) == ("m", "a", 4, 10)
    assert first.score.estimate == pytest.approx(4 / 6 + (3 - 4) / 4)
    assert (second.score.n_labelled, second.score.human_missing, second.score.contested) == (1, 0, 1)
    assert any("1 labelled items are left out" in words for words in second.score.warnings)
    assert not any("got no label" in words for words in second.score.warnings)
    with pytest.raises(InputError, match="missing here"):
        corrected_accuracies(judge, single("1", condition="z"))
    assert [_majority(votes) for votes in ([True, False], [True, None], [], [False, False, True])] == [
        None,
        True,
        None,
        False,
    ]


def test_answers_that_failed_need_no_label_and_stay_in_the_plan() -> None:
    rng = np.random.default_rng(21)
    held, estimates = 0, []
    for _ in range(600):
        human, judge = world(rng, 300)
        failed = rng.random(300) < 0.25
        marks = ["?" if broken else str(int(says)) for broken, says in zip(failed, judge, strict=True)]
        labels = [single(str(int(truth)))[0] for truth in human]
        drawn = rng.permutation(np.flatnonzero(~failed))[:80]
        people = [replace(labels[place], question=f"q{place:04}") for place in drawn]
        (found,) = corrected_accuracies(single("".join(marks)), people)
        assert (found.planned, found.unanswered) == (300, int(failed.sum()))
        assert found.score.n_all == 300 - found.unanswered
        assert found.score.estimate is not None
        assert found.score.interval is not None
        assert found.score.judge == pytest.approx(float((judge * ~failed).mean()))
        assert found.sensitivity == pytest.approx((found.score.estimate, found.score.estimate + found.unanswered / 300))
        estimates.append(found.score.estimate)
        held += found.score.interval.low <= 0.45 <= found.score.interval.high
    assert np.mean(estimates) == pytest.approx(0.75 * 0.6, abs=0.006)
    assert 0.92 <= held / 600 <= 0.98


def clustered(rng: np.random.Generator) -> tuple[Array, Array, list[str]]:
    """60 documents of 5 questions each: right and wrong, and the judge's mistakes, go by document."""
    hard = np.repeat(rng.random(60) < 0.6, 5)
    human = (rng.random(300) < np.where(hard, 0.9, 0.15)).astype(float)
    odd = np.repeat(rng.random(60) < 0.25, 5)
    judge = np.where(odd & (rng.random(300) < 0.8), 1 - human, human)
    return human, judge, [f"d{place // 5}" for place in range(300)]


def test_questions_of_one_document_count_together() -> None:
    rng = np.random.default_rng(13)
    held, held_apart, held_alone, truth = 0, 0, 0, 0.6 * 0.9 + 0.4 * 0.15
    for _ in range(800):
        human, judge, names = clustered(rng)
        order = rng.permutation(300)[:150]
        given = (judge.tolist(), judge[order].tolist(), human[order].tolist())
        together = ppi_mean(*given, clusters=(names, [names[place] for place in order]))
        apart = ppi_mean(*given)
        assert together.estimate == apart.estimate
        assert together.interval is not None
        assert apart.interval is not None
        assert together.classical_interval is not None
        held += together.interval.low <= truth <= together.interval.high
        held_alone += together.classical_interval.low <= truth <= together.classical_interval.high
        held_apart += apart.interval.low <= truth <= apart.interval.high
    assert 0.92 <= held / 800 <= 0.97
    assert 0.92 <= held_alone / 800 <= 0.98  # people's labels alone: 0.80 if questions counted as independent
    assert held_apart / 800 < 0.88


def test_ratings_of_one_document_count_together() -> None:
    """Labels that are no shares: five equal ratings of a document are as good as one."""
    rng = np.random.default_rng(5)
    ratings = rng.normal(3.0, 1.0, 60)
    names = [f"d{place}" for place in range(60) for _ in range(5)]
    repeated = ppi_mean([None] * 300, [None] * 300, np.repeat(ratings, 5).tolist(), clusters=(names, names))
    once = ppi_mean([None] * 60, [None] * 60, ratings.tolist())
    assert repeated.classical_interval is not None
    assert once.classical_interval is not None
    assert repeated.classical_interval.low == pytest.approx(once.classical_interval.low, abs=0.01)
    assert repeated.classical_interval.high == pytest.approx(once.classical_interval.high, abs=0.01)


def test_clusters_of_one_change_next_to_nothing_and_plans_know_of_the_others() -> None:
    human, judge, names = clustered(np.random.default_rng(1))
    given = (judge.tolist(), judge[::2].tolist(), human[::2].tolist())
    single_items = ppi_mean(*given, clusters=([str(place) for place in range(300)], [str(p) for p in range(0, 300, 2)]))
    assert single_items.design_effect == pytest.approx(1.0, abs=0.02)
    together = ppi_mean(*given, clusters=(names, names[::2]))
    assert together.design_effect > 1.5
    few, many = labels_needed(ppi_mean(*given), 0.08), labels_needed(together, 0.08)
    assert few is not None
    assert many is None or many > few
    with pytest.raises(UsageError, match="every item needs a cluster"):
        ppi_mean(*given, clusters=(names, names))


def test_labels_needed_know_what_no_label_can_take_away() -> None:
    """Unanswered items leave a chance of their own in the score: labels can't narrow the interval below it."""
    (row,) = corrected_accuracies(single("11010" * 40 + "?" * 200), single("10" * 20))
    floor = 1.959964 * math.sqrt(row.score.fixed_variance)
    share = row.score.n_all / row.planned
    middle = (row.score.estimate or 0) / share
    assert row.score.fixed_variance == pytest.approx(middle**2 * share * (1 - share) / 400)
    assert labels_needed(row.score, 0.99 * floor) is None
    wide = labels_needed(row.score, 3 * floor)
    assert wide is not None
    assert wide > (labels_needed(replace(row.score, fixed_variance=0.0), 3 * floor) or 0)


def test_labels_planned_with_unanswered_items_give_the_width() -> None:
    rng = np.random.default_rng(4)
    truth = "".join(rng.choice(["0", "1"], 3000, p=[0.4, 0.6]))
    judge = "".join(mark if rng.random() < 0.75 else "10"[int(mark)] for mark in truth)
    lost = "?" * 1000
    (first,) = corrected_accuracies(single(judge + lost), single(truth[:100]))
    more = labels_needed(first.score, 0.03)
    assert more is not None
    (then,) = corrected_accuracies(single(judge + lost), single(truth[: 100 + more]))
    assert then.score.interval is not None
    assert (then.score.interval.high - then.score.interval.low) / 2 == pytest.approx(0.03, rel=0.08)
