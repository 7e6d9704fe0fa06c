from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.agreement import (
    Scale,
    Weights,
    agreement,
    agreement_with_intervals,
    krippendorff_alpha,
    weighted_kappa,
)
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


SCALES: list[Scale] = ["nominal", "ordinal", "interval"]
X = None
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
    [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
]
"""The example with missing values of Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), part C."""

TWO_OBSERVERS = [list("aabbdcccedda"), list("babbbccceddd")]
"""The same paper's example of nominal data from two observers, part B."""

TWO_BINARY = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
"""The same paper's binary example, part A."""

items_of = st.lists(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=3, max_size=3), min_size=1, max_size=12)


def by_definition(items: list[list[int | None]], scale: Scale) -> float | None:
    """α from the coincidence matrix, cell by cell, as the definition is written."""
    coincidences: Counter[tuple[int, int]] = Counter()
    for item in items:
        kept = [value for value in item if value is not None]
        for a, b in permutations(kept, 2):
            coincidences[a, b] += 1 / (len(kept) - 1)  # type: ignore[assignment]
    values = sorted({a for a, _ in coincidences})
    n_of = {a: sum(coincidences[a, b] for b in values) for a in values}
    n = sum(n_of.values())

    def distance(a: int, b: int) -> float:
        if scale == "nominal":
            return float(a != b)
        if scale == "interval":
            return float((a - b) ** 2)
        between = [g for g in values if min(a, b) <= g <= max(a, b)]
        return float((sum(n_of[g] for g in between) - (n_of[a] + n_of[b]) / 2) ** 2) if a != b else 0.0

    expected = sum(n_of[a] * n_of[b] * distance(a, b) for a in values for b in values)
    seen = sum(coincidences[a, b] * distance(a, b) for a in values for b in values)
    return 1 - (n - 1) * seen / expected if expected else None


@pytest.mark.parametrize(("scale", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_published_example_of_four_observers(scale: Scale, published: float) -> None:
    found = krippendorff_alpha(zip(*FOUR_OBSERVERS, strict=True), scale)
    assert found.value == pytest.approx(published, abs=0.0006)
    assert (found.items, found.values, found.left_out) == (11, 40, 1)
    assert found.value is not None
    assert found.interval is not None
    assert found.interval.low < found.value < found.interval.high


def test_published_examples_of_two_observers() -> None:
    assert krippendorff_alpha(zip(*TWO_OBSERVERS, strict=True)).value == pytest.approx(0.692, abs=0.0006)
    assert krippendorff_alpha(zip(*TWO_BINARY, strict=True)).value == pytest.approx(0.095, abs=0.0006)


@pytest.mark.parametrize("scale", SCALES)
@settings(deadline=None)
@given(items=items_of)
def test_as_the_definition_says(scale: Scale, items: list[list[int | None]]) -> None:
    found = krippendorff_alpha(items, scale, samples=5)
    expected = by_definition(items, scale)
    if expected is None:
        assert (found.value, found.interval) == (None, None)
    else:
        assert found.value is not None
        assert found.value == pytest.approx(expected)
        assert found.value <= 1 + 1e-12


@pytest.mark.parametrize("scale", SCALES)
@settings(deadline=None)
@given(items=items_of, random=st.randoms(use_true_random=False))
def test_annotators_and_items_have_no_order(scale: Scale, items: list[list[int | None]], random: object) -> None:
    found = krippendorff_alpha(items, scale, samples=5).value
    mixed = [list(item) for item in items]
    for item in [mixed, *mixed]:
        random.shuffle(item)  # type: ignore[attr-defined]
    again = krippendorff_alpha(mixed, scale, samples=5).value
    assert again is None if found is None else again == pytest.approx(found, abs=1e-9)


def test_interval_scale_knows_no_unit_and_ordinal_no_distance() -> None:
    items = list(zip(*FOUR_OBSERVERS, strict=True))
    scaled = [[value and 1e6 + value * 0.25 for value in item] for item in items]
    assert krippendorff_alpha(scaled, "interval").value == pytest.approx(krippendorff_alpha(items, "interval").value)
    stretched = [[value and 10.0**value for value in item] for item in items]
    assert krippendorff_alpha(stretched, "ordinal").value == pytest.approx(krippendorff_alpha(items, "ordinal").value)


def test_words_need_an_order() -> None:
    order = ("one", "two", "three", "four", "five")
    named = [[value and order[value - 1] for value in item] for item in zip(*FOUR_OBSERVERS, strict=True)]
    assert krippendorff_alpha(named, "ordinal", order=order).value == pytest.approx(0.815, abs=0.0006)
    assert krippendorff_alpha(named, "nominal").value == pytest.approx(0.743, abs=0.0006)
    with pytest.raises(UsageError, match="order"):
        krippendorff_alpha(named, "ordinal")
    with pytest.raises(InputError, match="'six'"):
        krippendorff_alpha([["six", "one"]], "ordinal", order=order)
    with pytest.raises(InputError, match="not a number"):
        krippendorff_alpha([[1.0, float("nan")]], "interval")
    with pytest.raises(UsageError, match="ratio"):
        krippendorff_alpha([], "ratio")  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", SCALES)
def test_where_alpha_has_no_value(scale: Scale) -> None:
    for items in ([], [[1, None]], [[1, 1], [1, 1]]):
        found = krippendorff_alpha(items, scale)
        assert (found.value, found.interval) == (None, None)
    assert krippendorff_alpha([[1, 1], [2, 2]], scale).value == 1.0


@pytest.mark.parametrize("scale", SCALES)
def test_the_interval_of_alpha_resamples_items(scale: Scale) -> None:
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 4, size=80)
    items = [[int(t) if rng.random() < 0.8 else int(rng.integers(0, 4)) for _ in range(3)] for t in truth]
    found = krippendorff_alpha(items, scale, seed=1)
    assert found == krippendorff_alpha(items, scale, seed=1)
    assert found != krippendorff_alpha(items, scale, seed=2)
    drawn = [[items[place] for place in rng.integers(80, size=80)] for _ in range(600)]
    theirs = np.quantile([by_definition(rows, scale) or 0.0 for rows in drawn], [0.025, 0.975])
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(theirs, abs=0.04)
