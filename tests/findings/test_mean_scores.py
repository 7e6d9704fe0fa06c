from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hoofbeat.errors import InputError
from hoofbeat.findings.repeated_answers import bootstrap_sd, score_means
from hoofbeat.records import Answer, Failure, Judgment

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
    with pytest.raises(InputError, match="not a number"):
        score_means(scores([float("nan")]), "rouge-l")
    assert score_means(two, "bertscore") == []
