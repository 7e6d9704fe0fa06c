from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings import systems as module
from hoofbeat.findings.intervals import bootstrap_mean, holm, paired_difference
from hoofbeat.findings.systems import (
    EXACT,
    Ablation,
    Correlation,
    ablation,
    answers_and_retrieval,
    compare_systems,
    correlation,
    randomisation_test,
    shared_values,
)

Rows = dict[str, dict[str, float]]


def rows(values: Sequence[float], measure: str = "nDCG@10", first: int = 0) -> Rows:
    return {f"q{number}": {measure: value} for number, value in enumerate(values, start=first)}


def scipy_p(a: Sequence[float], b: Sequence[float], resamples: int | float = np.inf, seed: int = 0) -> float:
    found = stats.permutation_test(
        (np.array(a), np.array(b)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0, 0.25, 0.5, 1]), st.sampled_from([0, 0.25, 0.5, 1])), min_size=2, max_size=9)
)
def test_the_exact_test_agrees_with_scipy(pairs: list[tuple[float, float]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    found = randomisation_test(a, b)
    assert found.exact
    assert found.p == pytest.approx(min(1.0, scipy_p(a, b)), abs=1e-12)


def test_the_exact_test_by_hand() -> None:
    assert randomisation_test([1, 1, 1], [0, 0, 0]).p == 2 / 8
    assert randomisation_test([3, 1], [0, 0]).p == 2 / 4
    assert randomisation_test([1, 0], [0, 1]).p == 1
    same = randomisation_test([0.5] * 100, [0.5] * 100)
    assert (same.p, same.patterns, same.exact) == (1, 1, True)


def test_questions_without_a_difference_change_nothing() -> None:
    a, b = [0.9, 0.7, 0.2, 0.4], [0.1, 0.2, 0.1, 0.3]
    assert randomisation_test([*a, *[0.3] * 500], [*b, *[0.3] * 500]) == randomisation_test(a, b)


def test_the_sampled_test_agrees_with_scipy_and_repeats() -> None:
    rng = np.random.default_rng(4)
    b = rng.random(80)
    a = np.clip(b + rng.normal(0.02, 0.12, 80), 0, 1)
    found = randomisation_test(a, b, flips=20_000, seed=1)
    assert not found.exact
    assert found.p == pytest.approx(scipy_p(a.tolist(), b.tolist(), 20_000), abs=0.012)
    assert found == randomisation_test(a, b, flips=20_000, seed=1)
    assert found == randomisation_test(b, a, flips=20_000, seed=1)
    assert found.p != randomisation_test(a, b, flips=20_000, seed=2).p


def test_a_sampled_p_is_never_zero() -> None:
    found = randomisation_test([1.0] * 200, [0.0] * 200, flips=99)
    assert (found.p, found.patterns, found.exact) == (1 / 100, 99, False)


def test_sampling_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(40), rng.random(40)
    whole = randomisation_test(a, b, flips=500)
    monkeypatch.setattr(module, "_CELLS", 60)
    assert randomisation_test(a, b, flips=500) == whole


def test_clusters_change_their_sign_together() -> None:
    a, b = [1.0] * 12, [0.0] * 12
    assert randomisation_test(a, b).p == 2 / 2**12
    assert randomisation_test(a, b, clusters=["x"] * 6 + ["y"] * 6).p == 2 / 4
    balanced = randomisation_test([1, 0], [0, 1], clusters=["x", "x"])
    assert (balanced.p, balanced.patterns) == (1, 1)


def test_under_no_difference_p_is_spread_evenly() -> None:
    rng = np.random.default_rng(7)
    ps = [randomisation_test(rng.random(EXACT), rng.random(EXACT)).p for _ in range(300)]
    assert stats.kstest(ps, "uniform").pvalue > 0.01


def test_a_table_of_systems() -> None:
    rng = np.random.default_rng(3)
    base = rng.random(60)
    systems = {
        "bm25": rows(base.tolist()),
        "dense": rows((base + 0.2).tolist()),
        "same": rows(base.tolist()),
    }
    table = compare_systems(systems, "nDCG@10", seed=5, flips=2000)
    assert (table.measure, table.n, table.clusters, table.seed) == ("nDCG@10", 60, 60, 5)
    assert [(row.system, row.rank, row.rank_interval) for row in table.means] == [
        ("bm25", 2, (2, 3)),
        ("dense", 1, (1, 1)),
        ("same", 2, (2, 3)),
    ]
    assert [row.system for row in table.ranked] == ["dense", "bm25", "same"]
    assert table.means[0].mean == pytest.approx(base.mean())
    assert table.means[0].interval == bootstrap_mean(base, seed=5)
    assert [(row.first, row.second) for row in table.comparisons] == [
        ("bm25", "dense"),
        ("bm25", "same"),
        ("dense", "same"),
    ]
    first, second, _ = table.comparisons
    assert first.paired == paired_difference(base + 0.2, base, seed=5)
    assert (first.better, first.same, first.worse) == (60, 0, 0)
    assert (second.better, second.same, second.worse, second.test.p) == (0, 60, 0, 1)
    assert [row.p_holm for row in table.comparisons] == holm([row.test.p for row in table.comparisons])
    assert first.p_holm == pytest.approx(3 / 2001)


def test_against_a_baseline() -> None:
    systems = {"a": rows([0.1, 0.2]), "b": rows([0.3, 0.1]), "c": rows([0.5, 0.9])}
    table = compare_systems(systems, "nDCG@10", baseline="b")
    assert [(row.first, row.second) for row in table.comparisons] == [("b", "a"), ("b", "c")]
    assert table.comparisons[1].paired.difference == pytest.approx(0.5)
    chosen = compare_systems(systems, "nDCG@10", names=["c"], baseline="b")
    assert [row.system for row in chosen.means] == ["b", "c"]


def test_only_questions_that_all_systems_have_are_counted() -> None:
    systems = {
        "a": rows([0.0, 0.5, 1.0, 1.0]),
        "b": rows([0.5, 1.0, 0.0], first=1),
        "c": {**rows([0.1] * 9), "q2": {"RR": 1.0}},
    }
    table = compare_systems(systems, "nDCG@10")
    assert table.n == 2
    assert {row.system: (row.mean, row.left_out) for row in table.means} == {
        "a": (0.75, 2),
        "b": (0.25, 1),
        "c": (pytest.approx(0.1), 6),
    }
    questions, values = shared_values({"a": systems["a"], "b": systems["b"]}, "nDCG@10")
    assert questions == ["q1", "q2", "q3"]
    assert values["b"].tolist() == [0.5, 1.0, 0.0]


def test_clusters_of_the_table() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(40)
    systems = {"a": rows(values.tolist()), "b": rows(np.repeat([0.0, 1.0], 20).tolist())}
    clusters = {f"q{number}": f"d{number // 10}" for number in range(40)}
    table = compare_systems(systems, "nDCG@10", clusters=clusters)
    plain = compare_systems(systems, "nDCG@10")
    assert (table.clusters, plain.clusters) == (4, 40)
    assert table.comparisons[0].test.patterns == 16
    assert (table.means[1].interval.few, plain.means[1].interval.few) == (4, 0)
    width, narrow = (t.means[1].interval.high - t.means[1].interval.low for t in (table, plain))
    assert width > 2 * narrow


def test_ranks_that_the_questions_do_not_settle_have_wide_intervals() -> None:
    rng = np.random.default_rng(2)
    systems = {name: rows(rng.random(30).tolist()) for name in "abcd"}
    table = compare_systems(systems, "nDCG@10", flips=100)
    assert {row.rank for row in table.means} == {1, 2, 3, 4}
    assert all(row.rank_interval[0] <= row.rank <= row.rank_interval[1] for row in table.means)
    assert max(high - low for low, high in (row.rank_interval for row in table.means)) >= 2


def test_one_system_alone() -> None:
    table = compare_systems({"a": rows([0.5, 1.0])}, "nDCG@10")
    assert (table.comparisons, table.means[0].rank) == ((), 1)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="no systems"):
        compare_systems({}, "RR")
    with pytest.raises(UsageError, match="no question has a value of RR"):
        compare_systems({"a": rows([1.0])}, "RR")
    with pytest.raises(UsageError, match="no question"):
        compare_systems({"a": rows([1.0]), "b": rows([1.0], first=7)}, "nDCG@10")
    with pytest.raises(UsageError, match="no system 'z'"):
        compare_systems({"a": rows([1.0])}, "nDCG@10", baseline="z")
    with pytest.raises(InputError, match="nDCG@10 of a for question 'q1' is not a number"):
        compare_systems({"a": rows([1.0, float("nan")])}, "nDCG@10")


SettingsRows = dict[str, dict[str, float]]


def settings_rows(*values: float) -> SettingsRows:
    return {f"q{number}": {"R@10": value, "RR": value / 2} for number, value in enumerate(values)}


RUNS = [
    ({"chunk": 256, "stride": 64, "model": "bge"}, settings_rows(0.0, 0.5, 0.5)),
    ({"chunk": 512, "stride": 64, "model": "bge"}, settings_rows(0.5, 0.5, 1.0)),
    ({"chunk": 512, "stride": 128, "model": "bge"}, settings_rows(1.0, 1.0, 1.0)),
]


def test_two_settings_make_a_grid() -> None:
    grid = ablation(RUNS, "R@10", down="chunk", across="stride", seed=2)
    assert (grid.rows, grid.columns, grid.n, grid.left_out) == (("256", "512"), ("64", "128"), 3, 0)
    assert grid.fixed == {"model": "bge"}
    assert grid.cell("256", "128") is None
    base, best = grid.cell("256", "64"), grid.cell("512", "128")
    assert base is not None
    assert best is not None
    assert (base.baseline, base.gain, base.relative) == (True, None, None)
    assert base.mean == pytest.approx(1 / 3)
    assert best.gain == paired_difference([1, 1, 1], [0, 0.5, 0.5], seed=2)
    assert best.relative == pytest.approx(2.0)
    assert best.interval == bootstrap_mean([1, 1, 1], seed=2)
    assert msgspec.json.decode(msgspec.json.encode(grid), type=Ablation) == grid


def test_one_setting_makes_a_column() -> None:
    grid = ablation(RUNS[1:], "RR", down="stride", baseline={"stride": "128"})
    assert (grid.rows, grid.columns) == (("64", "128"), ("RR",))
    cell = grid.cell("64", "RR")
    assert cell is not None
    assert cell.gain is not None
    assert cell.gain.difference == pytest.approx(-1 / 6)


def test_only_shared_questions_count() -> None:
    runs = [({"k": 1}, settings_rows(1.0, 0.0)), ({"k": 2}, settings_rows(1.0, 0.5, 0.5, 0.5))]
    grid = ablation(runs, "R@10", down="k")
    assert (grid.n, grid.left_out) == (2, 2)


def test_a_baseline_of_nothing_has_no_relative_gain() -> None:
    grid = ablation([({"k": 1}, settings_rows(0.0)), ({"k": 2}, settings_rows(1.0))], "R@10", down="k")
    assert [cell.relative for cell in grid.cells] == [None, None]


@pytest.mark.parametrize(
    ("runs", "down", "baseline", "message"),
    [
        ([], "k", None, "no runs"),
        (RUNS, "stride", None, "two runs have stride 64: they differ in chunk"),
        ([RUNS[0], RUNS[0]], "stride", None, "all their settings are the same"),
        (RUNS, "depth", None, "no setting 'depth'"),
        (RUNS[1:], "stride", {"stride": 99}, r"0 runs have the baseline's settings \(stride 99\)"),
        (RUNS[1:], "stride", {"model": "bge"}, "2 runs have the baseline's"),
    ],
)
def test_what_makes_no_grid(
    runs: list[tuple[dict[str, object], SettingsRows]],
    down: str,
    baseline: dict[str, object] | None,
    message: str,
) -> None:
    with pytest.raises(UsageError, match=message):
        ablation(runs, "R@10", down=down, baseline=baseline)


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
    assert found.pearson_interval is None  # five points on a line say nothing of how sure that is


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
