from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.systems import Correlation, answers_and_retrieval, correlation

NUMBERS = st.sampled_from([0.0, 0.1, 0.15, 0.2, 0.5, 0.55, 0.9, 1.0])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=12))
def test_coefficients_agree_with_scipy(points: list[tuple[float, float]]) -> None:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    assume(len(set(xs)) > 1 and len(set(ys)) > 1)
    found = correlation(xs, ys, samples=20)
    line = stats.linregress(xs, ys)
    assert found.pearson == pytest.approx(stats.pearsonr(xs, ys).statistic, abs=1e-9)
    assert found.spearman == pytest.approx(stats.spearmanr(xs, ys).statistic, abs=1e-9)
    assert (found.slope, found.intercept) == pytest.approx((line.slope, line.intercept), abs=1e-9)


def test_intervals_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    xs = rng.random(40)
    ys = xs + rng.normal(0, 0.3, 40)
    found = correlation(xs.tolist(), ys.tolist(), samples=4000, seed=2)
    for interval, statistic in (
        (found.pearson_interval, lambda x, y: stats.pearsonr(x, y).statistic),
        (found.spearman_interval, lambda x, y: stats.spearmanr(x, y).statistic),
    ):
        theirs = stats.bootstrap(
            (xs, ys), statistic, paired=True, vectorized=False, n_resamples=2000, method="percentile", rng=rng
        ).confidence_interval
        assert interval is not None
        assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)
    assert found == correlation(xs.tolist(), ys.tolist(), samples=4000, seed=2)


def test_a_perfect_line() -> None:
    found = correlation([1, 2, 3, 4, 5], [3, 5, 7, 9, 11])
    assert (found.pearson, found.spearman, found.slope, found.intercept) == pytest.approx((1, 1, 2, 1))
    assert found.pearson_interval is not None
    assert (found.pearson_interval.low, found.pearson_interval.high) == pytest.approx((1, 1))


def test_where_there_is_no_correlation_to_speak_of() -> None:
    assert correlation([], []) == Correlation(n=0)
    assert correlation([1, 2], [1, 2]) == Correlation(n=2)
    assert correlation([1, 1, 1], [1, 2, 3]) == Correlation(n=3)
    assert correlation([0.1 + 0.2] * 3 + [0.3], [1, 2, 3, 4]) == Correlation(n=4)
    few = correlation([1, 2, 3, 4], [1, 2, 4, 3])
    assert few.pearson is not None
    assert few.pearson_interval is None
    with pytest.raises(UsageError, match="paired"):
        correlation([1], [1, 2])
    with pytest.raises(InputError, match="not a number"):
        correlation([1, 2, math.nan], [1, 2, 3])


def test_answers_against_retrieval() -> None:
    correct: dict[str, dict[str, bool | None]] = {
        "small": {"q1": True, "q2": False, "q3": False, "q4": None, "q9": True},
        "large": {"q1": True, "q2": True},
        "alone": {"q1": True},
    }
    scores = {"small": {"q1": 1.0, "q2": 0.5, "q3": 0.0, "q4": 1.0}, "large": {"q1": 0.5, "q2": 1.0}}
    small, large = answers_and_retrieval(correct, scores, seed=4)
    assert (small.model, small.n, small.unscored) == ("small", 3, 2)
    assert (small.accuracy, small.score) == pytest.approx((1 / 3, 0.5))
    assert (small.when_right, small.when_wrong) == (1.0, 0.25)
    assert small.score_interval == bootstrap_mean([1.0, 0.5, 0.0], seed=4)
    assert (large.when_right, large.when_wrong, large.unscored) == (0.75, None, 0)
    with pytest.raises(UsageError, match="no question of m"):
        answers_and_retrieval({"m": {"q1": True}}, {"m": {"q2": 1.0}})
