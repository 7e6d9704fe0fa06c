"""No figure pretends: clusters count as what they are, and few or equal observations never give a narrow interval."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from hoofbeat.audit.findings.label_scores import f1_scores, label_table
from hoofbeat.findings.accuracy import accuracies, differences
from hoofbeat.findings.agreement import agreement, agreement_with_intervals, krippendorff_alpha, weighted_kappa
from hoofbeat.findings.breakdown import by_facet, group_differences, over_sets
from hoofbeat.findings.information_curve import information_curves
from hoofbeat.findings.intervals import (
    FEW,
    Interval,
    bootstrap_mean,
    change_interval,
    paired_difference,
    share_interval,
    wilson,
)
from hoofbeat.findings.outcomes import Outcome, mode_shares
from hoofbeat.findings.repeated_answers import worst_at_k
from hoofbeat.findings.systems import correlation
from hoofbeat.records import Judgment
from hoofbeat.reports.tables import Column, Table, to_csv, triple, written


def rows(right: dict[str, list[bool]], model: str = "m", condition: str = "closed") -> list[Outcome]:
    """Question to what its samples were."""
    return [
        Outcome(question=question, model=model, condition=condition, sample=sample, correct=correct)
        for question, mine in right.items()
        for sample, correct in enumerate(mine)
    ]


def wide(interval: Interval | None) -> Interval:
    """An interval that is there and is no point."""
    assert interval is not None
    assert interval.high - interval.low > 0.02
    return interval


def width(interval: Interval | None) -> float:
    """How wide an interval is that is there."""
    return wide(interval).high - wide(interval).low


def test_repeated_samples_are_clustered_in_the_rare_table() -> None:
    """The case that was reported: 13 of 120 answers, but only ten questions, and one of them alone is always right."""
    rare = {f"r{n}": [n == 0] * 12 for n in range(10)} | {"r1": [True] + [False] * 11}
    common = {f"c{n}": [n % 2 == 0] * 12 for n in range(20)}
    everything = [*rows(rare), *rows(common)]
    (found,) = group_differences(everything, set(rare), set(common))
    assert found.a.correct == 13
    alone = wilson(13, 120)
    assert found.a.interval.high - found.a.interval.low > 2 * (alone.high - alone.low)
    (accuracy,) = accuracies(rows(rare))
    assert accuracy.wilson.high - accuracy.wilson.low > 2 * (alone.high - alone.low)
    assert found.interval.high - found.interval.low > 0.2


def test_a_share_without_clusters_is_wilsons() -> None:
    found = share_interval([True] * 30 + [False] * 70)
    assert (found.low, found.high) == pytest.approx(proportion_confint(30, 100, method="wilson"))
    assert not found.few


def test_a_share_of_clusters_covers_what_it_should() -> None:
    """Clusters of eight answers that mostly agree: the clustered interval holds the truth, the plain one does not."""
    rng = np.random.default_rng(3)
    held = {"clustered": 0, "plain": 0}
    for _ in range(300):
        chances = rng.beta(0.3 * 0.6, 0.7 * 0.6, size=40)
        hits = (rng.random((40, 8)) < chances[:, None]).ravel()
        clustered = share_interval(hits, np.repeat(np.arange(40), 8).tolist())
        plain = wilson(int(hits.sum()), len(hits))
        held["clustered"] += clustered.low <= 0.3 <= clustered.high
        held["plain"] += plain.low <= 0.3 <= plain.high
    assert held["clustered"] >= 0.92 * 300
    assert held["plain"] < 0.75 * 300


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_a_mean_of_equal_values_has_a_width(value: float, n: int) -> None:
    found = wide(bootstrap_mean([value] * n))
    assert found.low <= value <= found.high
    assert found.few == (n if n < FEW else 0)


def test_few_values_without_bounds_have_no_interval() -> None:
    found = bootstrap_mean([3.0, 5.0, 70.0])
    assert not found.known
    assert written(triple(26.0, found), "number") == "26.000 (n\u00a0=\u00a03)"
    assert bootstrap_mean(list(range(40))).known


def test_differences_of_equal_systems_have_a_width() -> None:
    same = rows({f"q{n}": [True] for n in range(30)}) + rows({f"q{n}": [True] for n in range(30)}, condition="rag")
    (found,) = differences(same)
    assert found.paired.difference == 0
    wide(found.paired.interval)
    assert wide(paired_difference([1.0] * 5, [0.0] * 5).interval).few == 5
    assert wide(paired_difference([0.5] * 20, [0.3] * 20).interval).low > 0
    wide(change_interval(np.zeros(100), 0.0, 25, "cluster bootstrap"))


def test_worst_at_k_of_a_perfect_model_has_a_width() -> None:
    for row in worst_at_k(rows({f"q{n}": [True] * 4 for n in range(12)}), ks=(1, 4)):
        assert wide(row.interval).high == 1


def test_facets_and_sets_of_one_question_say_so() -> None:
    table = by_facet({"a": 1.0, "b": 0.4}, {"a": {"s": "x"}, "b": {"s": "y"}}, "s")
    assert [group.interval.few for group in table.groups] == [1, 1]
    for group in table.groups:
        wide(group.interval)
    sets = over_sets({"one": {f"a{n}": 1.0 for n in range(20)}, "two": {f"b{n}": 1.0 for n in range(20)}})
    wide(sets.macro.interval)


def test_perfect_agreement_has_a_width() -> None:
    pairs = [("x", "x")] * 15 + [("y", "y")] * 15
    found = agreement(pairs, ["x", "y"])
    assert found.kappa == 1
    assert wide(found.kappa_interval).high == 1
    assert wide(weighted_kappa(pairs, ["x", "y"], "quadratic").interval).high == 1
    assert wide(krippendorff_alpha([["x", "x"]] * 15 + [["y", "y"]] * 15).interval).high == 1
    assert wide(krippendorff_alpha([[1.0, 1.0]] * 15 + [[4.0, 4.0]] * 15, "interval").interval).low < 0.95
    scores = f1_scores(label_table(pairs, ["x", "y"]), ["x", "y"])
    for interval in (scores.macro_interval, scores.weighted_interval, *(each.f1_interval for each in scores.labels)):
        assert wide(interval).high == 1


def test_kappa_resamples_questions() -> None:
    """Twelve questions with ten answers each, on all of which judge and person agree or differ together."""
    pairs, questions = [], []
    for number in range(12):
        label = "xy"[number % 2]
        other = label if number % 3 else "yx"[number % 2]
        pairs += [(label, other)] * 10
        questions += [f"q{number}"] * 10
    alone, together = agreement(pairs, ["x", "y"]), agreement(pairs, ["x", "y"], clusters=questions)
    by_question = agreement(pairs[::10], ["x", "y"])
    assert alone.kappa == together.kappa
    for mine, theirs in (
        (alone.kappa_interval, together.kappa_interval),
        (alone.accuracy_interval, together.accuracy_interval),
    ):
        assert width(theirs) > 2 * width(mine)
    assert wide(together.kappa_interval).low == pytest.approx(wide(by_question.kappa_interval).low, abs=0.1)
    items = {f"i{n}": pair for n, pair in enumerate(pairs)}
    ratings = {
        "a": {item: one for item, (one, _) in items.items()},
        "b": {item: two for item, (_, two) in items.items()},
    }
    clustered = agreement_with_intervals(ratings, ["x", "y"], clusters=dict(zip(items, questions, strict=True)))
    plain = agreement_with_intervals(ratings, ["x", "y"])
    for one, two in (
        (plain.nominal.interval, clustered.nominal.interval),
        (plain.pairs[0].kappa.interval, clustered.pairs[0].kappa.interval),
    ):
        assert width(two) > 2 * width(one)


def test_few_agreements_say_so() -> None:
    found = agreement([("x", "x"), ("y", "y"), ("x", "y")], ["x", "y"])
    assert wide(found.kappa_interval).few == 3
    assert found.accuracy_interval.few == 3


def test_error_types_of_repeated_answers_are_clustered() -> None:
    judged = [
        Judgment(question=f"q{n}", model="m", condition="closed", sample=s, judge="j", aspect="e", label="xy"[n % 2])
        for n in range(12)
        for s in range(10)
    ]
    found = mode_shares(judged, "e")[0]
    alone = wilson(60, 120)
    assert found.interval.high - found.interval.low > 2 * (alone.high - alone.low)


def test_few_questions_retain_without_an_interval() -> None:
    results = rows({f"q{n}": [n > 0] for n in range(4)}, condition="first 20%")
    results += rows({f"q{n}": [True] for n in range(4)}, condition="first 100%")
    (curve,) = information_curves(results)
    assert curve.retained_at_first == pytest.approx(0.75)
    assert curve.interval is None
    assert [point.interval.few for point in curve.points] == [4, 4]


def test_a_correlation_of_few_or_perfect_points_has_no_interval() -> None:
    assert correlation([1, 2, 3, 4, 5], [1, 3, 2, 5, 4]).pearson_interval is None
    assert correlation(list(range(20)), list(range(20))).pearson_interval is None


def test_tables_say_how_few() -> None:
    cell = triple(2 / 3, wilson(2, 3))
    assert written(cell, "share") == "66.7% (n\u00a0=\u00a03)"
    table = Table(
        name="t",
        caption="",
        n=3,
        unit="q",
        columns=(Column("share", "share"),),
        rows=((cell,), (triple(0.5, wilson(50, 100)),)),
    )
    header, first, second = to_csv(table).splitlines()
    assert header == "share,share low,share high,share observations if few"
    assert first.endswith(",3")
    assert second.endswith(",")
