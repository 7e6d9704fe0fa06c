from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.agreement import Weights, agreement, agreement_with_intervals, weighted_kappa
from hoofbeat.findings.intervals import wilson

LABELS = ("low", "medium", "high", "extreme")
labels = st.sampled_from(LABELS)
pairings = st.lists(st.tuples(labels, labels), min_size=1, max_size=30)
weightings: list[Weights] = ["none", "linear", "quadratic"]


@pytest.mark.parametrize("weights", weightings)
@settings(deadline=None)
@given(pairs=pairings)
def test_kappa_agrees_with_scikit_learn(weights: Weights, pairs: list[tuple[str, str]]) -> None:
    found = weighted_kappa(pairs, LABELS, weights, samples=30)
    first, second = zip(*pairs, strict=True)
    if len(set(first) | set(second)) == 1:
        assert (found.value, found.interval) == (None, None)
        return
    theirs = cohen_kappa_score(first, second, labels=LABELS, weights=None if weights == "none" else weights)
    assert found.value == pytest.approx(theirs)


@pytest.mark.parametrize("weights", weightings)
@settings(deadline=None)
@given(pairs=pairings, random=st.randoms(use_true_random=False))
def test_kappa_knows_no_order_and_no_first_annotator(
    weights: Weights, pairs: list[tuple[str, str]], random: object
) -> None:
    found = weighted_kappa(pairs, LABELS, weights, samples=30, seed=2)
    mixed = list(pairs)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert weighted_kappa(mixed, LABELS, weights, samples=30, seed=2) == found
    swapped = weighted_kappa([(b, a) for a, b in pairs], LABELS, weights, samples=30).value
    if found.value is None:
        assert swapped is None
        return
    assert swapped == pytest.approx(found.value)
    assert -1 - 1e-9 <= found.value <= 1
    backwards = weighted_kappa(pairs, LABELS[::-1], weights, samples=30).value
    assert backwards == pytest.approx(found.value)


def test_missing_labels_say_nothing() -> None:
    pairs = [("low", "low"), ("high", "low"), ("high", "high"), (None, "low"), ("low", None)]
    found = weighted_kappa(pairs, LABELS, "quadratic")
    assert (found.n, found.missing) == (3, 2)
    assert found.value == weighted_kappa(pairs[:3], LABELS, "quadratic").value


def test_the_interval_resamples_items() -> None:
    rng = np.random.default_rng(4)
    first = rng.choice(3, size=150)
    second = np.where(rng.random(150) < 0.7, first, rng.choice(3, size=150))
    pairs = [(LABELS[a], LABELS[b]) for a, b in zip(first, second, strict=True)]
    interval = weighted_kappa(pairs, LABELS, "linear", samples=4000).interval
    assert interval is not None
    drawn = (rng.integers(150, size=150) for _ in range(2000))
    theirs = [cohen_kappa_score(first[rows], second[rows], weights="linear") for rows in drawn]
    assert (interval.low, interval.high) == pytest.approx(np.quantile(theirs, [0.025, 0.975]), abs=0.012)


def test_where_there_is_nothing_to_agree_on() -> None:
    assert weighted_kappa([], LABELS).value is None
    assert weighted_kappa([("low", "low")], LABELS).value is None
    assert weighted_kappa([("low", "high")], LABELS, "none").value == pytest.approx(0.0)
    empty = agreement([], LABELS)
    assert (empty.n, empty.kappa, empty.accuracy_interval) == (0, None, wilson(0, 0))
    with pytest.raises(InputError, match="unknown label 'other'"):
        weighted_kappa([("low", "other")], LABELS)
    with pytest.raises(UsageError, match="cubic"):
        weighted_kappa([], LABELS, "cubic")  # type: ignore[arg-type]


def test_plain_agreement_has_wilson_s_interval() -> None:
    pairs: list[tuple[str | None, str]] = [("low", "low")] * 7 + [("high", "low")] * 2 + [(None, "low")]
    found = agreement(pairs, LABELS)
    assert (found.accuracy, found.accuracy_interval) == (0.7, wilson(7, 10))


def test_annotators_pair_by_pair_and_together() -> None:
    ratings = {
        "human:ada": {"1": "low", "2": "low", "3": "high", "4": "medium"},
        "human:bob": {"1": "low", "2": "medium", "3": "high"},
        "judge": {"2": "low", "3": "high", "4": "high", "5": "low"},
    }
    found = agreement_with_intervals(ratings, LABELS, ordered=True)
    assert found.items == 5
    assert [(pair.a, pair.b, pair.n, pair.agree) for pair in found.pairs] == [
        ("human:ada", "human:bob", 3, 2),
        ("human:ada", "judge", 3, 2),
        ("human:bob", "judge", 2, 1),
    ]
    first = found.pairs[0]
    assert first.agreement == pytest.approx(2 / 3)
    assert first.agreement_interval == wilson(2, 3)
    assert first.kappa.value == pytest.approx(cohen_kappa_score(["low", "low", "high"], ["low", "medium", "high"]))
    assert first.linear is not None
    assert first.quadratic is not None
    assert found.nominal.items == 4
    assert found.ordinal is not None
    apart = agreement_with_intervals({"a": {"1": "low"}, "b": {"2": "low"}}, LABELS)
    assert (apart.pairs[0].agreement, apart.nominal.value, apart.ordinal) == (None, None, None)
