from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from hoofbeat.errors import UsageError
from hoofbeat.findings import intervals
from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.intervals import (
    bootstrap_mean,
    cluster_labels,
    cluster_sums,
    clusters_of,
    exact_upper_bound,
    holm,
    mcnemar_exact,
    newcombe,
    paired_difference,
    resampled_sums,
    tango,
    wilson,
)
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.findings.systems import compare_systems
from hoofbeat.records import Question


@pytest.mark.parametrize("level", [0.9, 0.95])
@pytest.mark.parametrize(("successes", "n"), [(0, 10), (10, 10), (3, 7), (640, 1000), (1, 1)])
def test_wilson_agrees_with_statsmodels(successes: int, n: int, level: float) -> None:
    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    found = wilson(successes, n, level)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (0, 59), (1, 93), (3, 150), (40, 41), (700, 9000)])
@pytest.mark.parametrize("level", [0.9, 0.975])
def test_the_exact_bound_agrees_with_statsmodels(successes: int, n: int, level: float) -> None:
    _, high = proportion_confint(successes, n, alpha=2 * (1 - level), method="beta")
    assert exact_upper_bound(successes, n, level) == pytest.approx(high, abs=1e-9)


def test_the_exact_bound_at_its_ends() -> None:
    assert (exact_upper_bound(3, 3), exact_upper_bound(0, 0)) == (1, 1)
    with pytest.raises(UsageError, match="not a share"):
        exact_upper_bound(4, 3)


def test_wilson_of_nothing() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)
    with pytest.raises(UsageError, match="5 of 3"):
        wilson(5, 3)
    with pytest.raises(UsageError, match="level"):
        wilson(1, 3, level=95)


def test_bootstrap_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=300)
    found = bootstrap_mean(values, samples=20_000, seed=3)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(5))
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.01)
    assert found.low < values.mean() < found.high


def test_bootstrap_repeats_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [0, 1, 1, 0, 1, 1, 1] * 4
    first = bootstrap_mean(values, seed=11)
    assert first == bootstrap_mean(values, seed=11)
    assert first.method == "bootstrap"
    monkeypatch.setattr(intervals, "_CELLS", 1)
    assert first == bootstrap_mean(values, seed=11)


def test_clusters_are_resampled_whole() -> None:
    values = np.repeat([0.0, 1.0] * 10, 10)
    labels = np.repeat(np.arange(20), 10).tolist()
    clustered = bootstrap_mean(values, clusters=labels, samples=5000)
    by_cluster = bootstrap_mean([0.0, 1.0] * 10, samples=5000)
    alone = bootstrap_mean(values, samples=5000)
    assert (clustered.low, clustered.high) == (by_cluster.low, by_cluster.high)
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)
    single = bootstrap_mean([1, 2, 9], clusters=["x", "x", "x"])
    assert (single.low, single.high, single.few) == (-math.inf, math.inf, 1)


def test_clusters_of_unequal_size_weigh_by_size() -> None:
    found = bootstrap_mean([1.0] * 30 + [0.0] * 10, clusters=["a"] * 30 + ["b"] * 10, samples=400)
    assert (found.low, found.high) == pytest.approx(proportion_confint(1.5, 2, method="wilson"))
    values = [1.0, 1.0, 0.0] * 10
    labels = [f"{side}{number}" for number in range(10) for side in "aab"]
    middle = bootstrap_mean(values, clusters=labels, samples=999, level=0.2)
    assert middle.method == "cluster bootstrap"
    assert middle.low < 2 / 3 < middle.high


def test_bootstrap_refuses_what_it_cannot_resample() -> None:
    with pytest.raises(UsageError, match="nothing"):
        bootstrap_mean([])
    with pytest.raises(UsageError, match="labels"):
        bootstrap_mean([1, 2], clusters=["x"])


def test_paired_difference_uses_the_pairs() -> None:
    rng = np.random.default_rng(2)
    hard = rng.normal(size=200)
    a, b = hard + 0.1, hard + rng.normal(scale=0.01, size=200)
    found = paired_difference(a, b)
    assert found.difference == pytest.approx((a - b).mean())
    assert found.interval.low > 0.09
    assert found.interval.high < 0.11
    with pytest.raises(UsageError, match="paired"):
        paired_difference([1, 2], [1])


@pytest.mark.parametrize(
    ("only_a", "only_b"), [(0, 0), (0, 5), (3, 9), (9, 3), (50, 51), (7, 7), (400, 520), (3000, 1)]
)
def test_mcnemar_agrees_with_statsmodels(only_a: int, only_b: int) -> None:
    theirs = mcnemar([[10, only_a], [only_b, 10]], exact=True).pvalue
    assert mcnemar_exact(only_a, only_b) == pytest.approx(min(1.0, theirs), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("p_values", [[], [0.04], [0.01, 0.04, 0.03, 0.005], [0.5, 0.9, 0.5], [0.001] * 4])
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    theirs = multipletests(p_values, method="holm")[1].tolist() if p_values else []
    assert holm(p_values) == pytest.approx(theirs)


def test_sums_by_cluster_are_sorted_by_label() -> None:
    values = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]])
    assert cluster_sums(values, ["b", "a", "b"]).tolist() == [[2.0, 20.0], [5.0, 50.0]]
    with pytest.raises(UsageError, match="labels"):
        cluster_sums(values, ["a"])


@pytest.mark.parametrize("cells", [1, 1 << 22])
def test_columns_are_drawn_alike_whatever_fits_in_memory(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random((40, 1))
    monkeypatch.setattr(intervals, "_CELLS", cells)
    drawn = resampled_sums(np.concatenate([values, 3 * values, np.ones((40, 1))], axis=1), samples=200, seed=6)
    assert drawn.shape == (200, 3)
    assert drawn[:, 1] == pytest.approx(3 * drawn[:, 0])
    assert set(drawn[:, 2]) == {40.0}
    low, high = np.quantile(drawn[:, 0] / 40, [0.025, 0.975])
    plain = bootstrap_mean(values[:, 0], samples=200, seed=6)
    assert (plain.low, plain.high) == pytest.approx((low, high))


def test_nothing_cannot_be_resampled() -> None:
    with pytest.raises(UsageError, match="nothing"):
        resampled_sums(np.empty((0, 2)))


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 400), st.floats(0.5, 0.999))
def test_wilson_keeps_its_bounds_and_mirrors(successes: int, more: int, level: float) -> None:
    n = successes + more
    found, mirrored = wilson(successes, n, level), wilson(more, n, level)
    assert 0 <= found.low <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-12)
    if n:
        assert found.low <= successes / n <= found.high


@settings(deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2000))
def test_mcnemar_is_symmetric_and_a_probability(only_a: int, only_b: int) -> None:
    assert mcnemar_exact(only_a, only_b) == mcnemar_exact(only_b, only_a)
    assert 0 <= mcnemar_exact(only_a, only_b) <= 1


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12), st.randoms(use_true_random=False))
def test_holm_only_raises_and_knows_no_order(p_values: list[float], random: object) -> None:
    adjusted = holm(p_values)
    assert all(before <= after <= 1 for before, after in zip(p_values, adjusted, strict=True))
    order = list(range(len(p_values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert holm(p_values[place] for place in order) == [adjusted[place] for place in order]


def test_tango_s_published_example() -> None:
    """Airway hyper-responsiveness before and after transplantation, 1 and 7 of 21: −0.517 to −0.026."""
    found = tango(1, 7, 21)
    assert (round(found.low, 3), round(found.high, 3)) == (-0.517, -0.026)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 30))
def test_tango_inverts_the_score_test(only_a: int, only_b: int, rest: int) -> None:
    """At each end the score test, with the likelihood maximised numerically under that difference, is at its limit."""
    n = only_a + only_b + rest
    if not n:
        assert (tango(0, 0, 0).low, tango(0, 0, 0).high) == (-1.0, 1.0)
        return
    found = tango(only_a, only_b, n)
    turned = tango(only_b, only_a, n)
    assert [found.low, found.high] == pytest.approx([-turned.high, -turned.low])
    assert found.low <= (only_a - only_b) / n <= found.high
    assert found.low < found.high
    for end in (found.low, found.high):
        if abs(end) < 0.999:
            second = _most_likely(only_a, only_b, n, end)
            variance = (2 * second + end - end**2) / n
            assert abs((only_a - only_b) / n - end) / math.sqrt(variance) == pytest.approx(1.959964, abs=2e-3)


def _most_likely(only_a: int, only_b: int, n: int, delta: float) -> float:
    """The chance that only b is right which makes the counts most likely if the two shares differ by `delta`."""

    def less(share: float) -> float:
        cells = ((only_a, share + delta), (only_b, share), (n - only_a - only_b, 1 - 2 * share - delta))
        return -sum(count * math.log(max(chance, 1e-300)) for count, chance in cells if count)

    low, high = max(0.0, -delta), (1 - delta) / 2
    found = optimize.minimize_scalar(less, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    return float(min((found.x, low, high), key=less))


def test_newcombe_agrees_with_statsmodels() -> None:
    for a, b in (((7, 25), (3, 30)), ((0, 5), (0, 30)), ((5, 5), (0, 9))):
        low, high = confint_proportions_2indep(*a, *b, method="newcomb")
        found = newcombe(a, b)
        assert [found.low, found.high] == pytest.approx([low, high])


def asked(name: str, *documents: str) -> Question:
    return Question(id=name, text="?", documents=documents)


def test_the_same_documents_make_a_cluster() -> None:
    found = clusters_of([asked("q1", "d2", "d1"), asked("q2", "d1", "d2"), asked("q3", "d1"), asked("q4")])
    assert found["q1"] == found["q2"] != found["q3"] == "d1"
    assert "q4" not in found


def test_questions_that_share_nothing_are_resampled_one_by_one() -> None:
    clusters = clusters_of([asked("q1", "d1"), asked("q2", "d2"), asked("q3", "d1")])
    assert cluster_labels(["q1", "q2"], clusters) is None
    assert cluster_labels(["q1", "q2", "q3", "q4"], clusters) == ["d1", "d2", "d1", "q4"]
    assert cluster_labels(["q1", "q1"], None) == ["q1", "q1"]


def test_questions_of_one_source_cover_the_truth_only_as_clusters() -> None:
    """Four questions from each of 60 documents, right or wrong with their document: 95% must mean 95%."""
    questions = [asked(f"q{number}", f"d{number // 4}") for number in range(240)]
    labels = cluster_labels([each.id for each in questions], clusters_of(questions))
    rng = np.random.default_rng(1)
    held = {"clusters": 0, "questions": 0}
    for seed in range(200):
        ease = rng.beta(0.8, 0.8, size=60).repeat(4)
        values = (rng.random(240) < ease).astype(float)
        for name, how in (("clusters", labels), ("questions", None)):
            span = bootstrap_mean(values, clusters=how, samples=300, seed=seed)
            held[name] += span.low <= 0.5 <= span.high
    assert held["clusters"] >= 180
    assert held["questions"] <= 170


def pooled(rng: np.random.Generator) -> list[Question]:
    """Topics like NFCorpus's: each has forty relevant documents of two thousand, so that chains link all of them."""
    return [asked(f"q{n}", *(f"d{d}" for d in rng.choice(2000, size=40, replace=False))) for n in range(300)]


def test_graded_topics_stay_apart_though_a_chain_of_documents_links_them() -> None:
    rng = np.random.default_rng(0)
    questions = pooled(rng)
    clusters = clusters_of(questions)
    values = {each.id: rng.random() for each in questions}
    systems = {"a": {q: {"nDCG@10": v} for q, v in values.items()}, "b": {q: {"nDCG@10": 0.5} for q in values}}
    table = compare_systems(systems, "nDCG@10", clusters=clusters)
    assert table.clusters == table.n == 300
    assert table == compare_systems(systems, "nDCG@10")
    assert 0.05 < table.means[0].interval.high - table.means[0].interval.low < 0.08


def test_rankings_and_answers_are_clustered_alike() -> None:
    questions = [asked("q1", "d1"), asked("q2", "d1"), asked("q3", "d2", "d3"), asked("q4", "d3", "d2"), asked("q5")]
    clusters = clusters_of(questions)
    rows = [Outcome(question=each.id, model="m", condition="c", sample=0, correct=True) for each in questions]
    values = {"a": {each.id: {"RR": 1.0} for each in questions}}
    assert accuracies(rows, clusters=clusters)[0].clusters == 3
    assert compare_systems(values, "RR", clusters=clusters).clusters == 3
