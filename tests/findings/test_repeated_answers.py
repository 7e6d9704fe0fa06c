from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.repeated_answers import bootstrap_sd, chance_all_right, runs_mean, score_means, worst_at_k
from hoofbeat.records import Answer, Failure, Judgment
from tests.findings.support import outcome_row, sampled

marks = st.text("10?", min_size=1, max_size=6)
tables = st.dictionaries(st.sampled_from("abcdefgh"), marks, min_size=1)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_chance_is_the_share_of_draws_that_are_all_right(answers: list[bool], k: int) -> None:
    if k > len(answers):
        return
    draws = list(combinations(answers, k))
    assert chance_all_right(sum(answers), len(answers), k) == pytest.approx(sum(map(all, draws)) / len(draws))


@pytest.mark.parametrize(("right", "n", "k"), [(4999, 5000, 2500), (3000, 5000, 40), (5000, 5000, 5000), (7, 5000, 8)])
def test_chance_is_exact_for_thousands_of_samples(right: int, n: int, k: int) -> None:
    assert chance_all_right(right, n, k) == float(Fraction(comb(right, k), comb(n, k)))
    product = np.prod([(right - i) / (n - i) for i in range(k)])
    assert chance_all_right(right, n, k) == pytest.approx(product, rel=1e-9)


def test_worst_at_k_by_hand() -> None:
    table = worst_at_k(sampled({"a": "1110", "b": "1111", "c": "1000", "d": "11"}), ks=[1, 2, 4, 9])
    first, second, fourth, never = table
    assert (first.n, first.skipped) == (4, 0)
    assert first.value == pytest.approx((3 / 4 + 1 + 1 / 4 + 1) / 4)
    assert second.value == pytest.approx((3 / 6 + 1 + 0 + 1) / 4)
    assert (fourth.n, fourth.skipped) == (3, 1)
    assert fourth.value == pytest.approx(1 / 3)
    assert (never.n, never.skipped, never.value, never.interval) == (0, 4, None, None)
    assert first.interval is not None
    assert first.interval.low < 0.75 < first.interval.high


def test_unscored_samples_are_not_right_and_are_shown() -> None:
    row = worst_at_k(sampled({"a": "11?", "b": "111"}), ks=[2])[0]
    assert row.value == pytest.approx((1 / 3 + 1) / 2)
    assert row.unscored == {"answer:timeout": 1}
    assert row.sensitivity == pytest.approx((2 / 3, 1.0))


@settings(deadline=None)
@given(tables)
def test_worst_at_k_falls_with_k_and_starts_at_the_accuracy(table: dict[str, str]) -> None:
    length = min(map(len, table.values()))
    same = {question: marks[:length] for question, marks in table.items()}
    rows = worst_at_k(sampled(same), ks=range(1, length + 1), samples=50)
    values = [row.value or 0.0 for row in rows]
    assert values == sorted(values, reverse=True)
    (accuracy,) = accuracies(sampled(same), samples=50)
    assert values[0] == pytest.approx(accuracy.accuracy)
    first = rows[0].interval
    assert first is not None
    assert (first.low, first.high) == pytest.approx((accuracy.bootstrap.low, accuracy.bootstrap.high))
    assert all(0 <= value <= 1 for value in values)


@settings(deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_seeds_repeat(table: dict[str, str], random: object) -> None:
    rows = sampled(table)
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    how = {"ks": [1, 2], "samples": 40, "seed": 5}
    assert worst_at_k(rows, **how) == worst_at_k(mixed, **how)  # type: ignore[arg-type]
    assert runs_mean(rows) == runs_mean(mixed)


def test_worst_at_k_resamples_clusters() -> None:
    rows = sampled({f"q{number}": "11" if number % 2 else "00" for number in range(40)})
    alone = worst_at_k(rows, ks=[2])[0].interval
    together = worst_at_k(rows, ks=[2], clusters={f"q{n}": f"d{n % 4}" for n in range(40)})[0].interval
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_worst_at_k_refuses_no_k() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        worst_at_k([], ks=[0])
    with pytest.raises(UsageError, match="can't draw"):
        chance_all_right(3, 2, 1)
    assert worst_at_k([]) == []


def test_mean_of_runs() -> None:
    (row,) = runs_mean(sampled({"a": "110", "b": "101", "c": "1?0", "d": "111"}))
    assert row.accuracies == (1.0, 0.5, 0.5)
    assert row.mean == pytest.approx(np.mean([1.0, 0.5, 0.5]))
    assert row.std == pytest.approx(np.std([1.0, 0.5, 0.5], ddof=1))
    assert (row.runs, row.ddof, row.planned, row.unscored) == (3, 1, 12, {"answer:timeout": 1})
    assert row.sensitivity == pytest.approx((8 / 12, 9 / 12))
    (one,) = runs_mean([outcome_row("a", "1")])
    assert (one.mean, one.std, one.runs) == (1.0, None, 1)


def test_bootstrap_sd_draws_with_replacement() -> None:
    values = np.random.default_rng(0).normal(0.6, 0.2, 3000)
    found = bootstrap_sd(values, draws=400, size=500, seed=1)
    assert found.std == pytest.approx(values.std() / np.sqrt(500), rel=0.12)
    assert found.mean == pytest.approx(values.mean(), abs=0.002)
    whole = bootstrap_sd(values[:500], draws=400, size=500)
    assert (whole.std or 0) > 0.5 * values.std() / np.sqrt(500), "without replacement every draw would be the same"


def test_bootstrap_sd_written_out() -> None:
    values = np.array([1.0, 0.0, 1.0, 1.0])
    rng = np.random.default_rng(3)
    means = [np.mean([values[place] for place in rng.integers(4, size=250)]) for _ in range(4)]
    found = bootstrap_sd(values, draws=4, size=250, seed=3)
    assert (found.mean, found.std) == pytest.approx((np.mean(means), np.std(means, ddof=1)))
    assert (found.draws, found.size, found.seed, found.ddof, found.n) == (4, 250, 3, 1, 4)


def test_bootstrap_sd_at_its_edges() -> None:
    assert bootstrap_sd([0.7]).std == pytest.approx(0.0, abs=1e-12)
    assert bootstrap_sd([0.7], draws=1).std is None
    for values, error in (([], UsageError), ([1.0, float("nan")], InputError)):
        with pytest.raises(error):
            bootstrap_sd(values)
    with pytest.raises(UsageError, match="can't be drawn"):
        bootstrap_sd([1.0], size=0)


values = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=20)


def scores(numbers: list[float | None], aspect: str = "rouge-l", judge: str = "rouge-l") -> list[Judgment]:
    return [
        Judgment(
            question=f"q{place:03}",
            model="m",
            condition="c",
            judge=judge,
            aspect=aspect,
            score=number,
            failure=None if number is not None else Failure(kind="input", message="x"),
        )
        for place, number in enumerate(numbers)
    ]


def test_unscored_stays_in_the_denominator() -> None:
    (row,) = score_means(scores([0.5, 1.0, None, 0.3]), "rouge-l")
    assert (row.n, row.unscored, row.judge) == (4, {"judgment:input": 1}, "rouge-l")
    assert row.mean == pytest.approx(1.8 / 4)
    assert row.mean_scored == pytest.approx(0.6)
    assert row.sensitivity == pytest.approx((0.45, 0.7))
    assert row.bootstrap_sd == bootstrap_sd([0.5, 1.0, 0.0, 0.3])


def test_answers_nobody_scored_count() -> None:
    answers = [
        Answer(question=f"q{place:03}", model="m", condition="c", failure=None if place else broken)
        for place, broken in enumerate([Failure(kind="refusal", message="x"), None, None])
    ]
    (row,) = score_means(scores([0.5])[0:0] + scores([0.1, 0.9])[1:], "rouge-l", answers=answers)
    assert (row.n, row.unscored) == (3, {"answer:refusal": 1, "unjudged": 1})


def test_the_interval_agrees_with_scipy() -> None:
    numbers = np.random.default_rng(1).beta(5, 2, size=200)
    (row,) = score_means(scores(list(numbers)), "rouge-l", samples=10_000)
    theirs = stats.bootstrap((numbers,), np.mean, n_resamples=10_000, method="percentile", rng=2).confidence_interval
    assert (row.interval.low, row.interval.high) == pytest.approx(tuple(theirs), abs=0.003)
    together = {f"q{place:03}": f"d{place // 20}" for place in range(200)}
    (clustered,) = score_means(scores(sorted(numbers)), "rouge-l", clusters=together)
    assert clustered.interval.high - clustered.interval.low > 2 * (row.interval.high - row.interval.low)


@settings(deadline=None)
@given(values, st.randoms(use_true_random=False))
def test_bounds_and_order(numbers: list[float | None], random: object) -> None:
    rows = scores(numbers)
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    (first,), (second,) = score_means(rows, "rouge-l", samples=30), score_means(mixed, "rouge-l", samples=30)
    assert first == second
    assert -1e-12 <= first.interval.low <= first.interval.high <= 1 + 1e-12
    assert first.n == len(numbers)


def test_one_scorer_and_real_numbers() -> None:
    two = scores([0.5]) + scores([0.6], judge="other")
    with pytest.raises(InputError, match="two scores"):
        score_means(two, "rouge-l")
    (row,) = score_means(two, "rouge-l", judge="other")
    assert row.mean == 0.6
    apart = [scores([0.5, 0.5])[0], scores([0.6, 0.6], judge="other")[1]]
    with pytest.raises(InputError, match="two scorers, whose values can't be averaged"):
        score_means(apart, "rouge-l")
    with pytest.raises(InputError, match="not a number"):
        score_means(scores([float("nan")]), "rouge-l")
    assert score_means(two, "bertscore") == []
