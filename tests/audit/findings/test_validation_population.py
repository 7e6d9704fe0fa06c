"""What a stratified sample says of all pairs: by hand, against the prediction-powered mean, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.validation_population import CorrectedRate, corrected_rates, population, stratified_rate
from hoofbeat.findings.corrected_scores import ppi_mean

LABELS = FIVE_RELATIONS.order
COUNTS = {"Absent": 4000, "Consistent": 600, "Complementary": 300, "Divergent": 90, "Contradictory": 10}
SAMPLE: list[tuple[str, str]] = [
    *[("Absent", "Absent")] * 20,
    *[("Consistent", "Consistent")] * 15, *[("Consistent", "Complementary")] * 5,
    *[("Complementary", "Complementary")] * 12, *[("Complementary", "Divergent")] * 8,
    *[("Divergent", "Divergent")] * 15, *[("Divergent", "Contradictory")] * 3, *[("Divergent", "Absent")] * 2,
    *[("Contradictory", "Contradictory")] * 10,
]  # fmt: skip


def by_name(rates: tuple[CorrectedRate, ...]) -> dict[tuple[str, str], CorrectedRate]:
    return {(rate.name, rate.scope): rate for rate in rates}


def test_estimates_by_hand() -> None:
    found = population(SAMPLE, COUNTS, LABELS)
    agreed = (4000 * 20 / 20 + 600 * 15 / 20 + 300 * 12 / 20 + 90 * 15 / 20 + 10) / 5000
    assert found.agreement == pytest.approx(agreed)
    assert {row.label: (row.pairs, row.labelled, row.right, row.weight) for row in found.strata} == {
        "Absent": (4000, 20, 20, 200.0),
        "Consistent": (600, 20, 15, 30.0),
        "Complementary": (300, 20, 12, 15.0),
        "Divergent": (90, 20, 15, 4.5),
        "Contradictory": (10, 10, 10, 1.0),
    }
    rates = by_name(corrected_rates(SAMPLE, COUNTS, FIVE_RELATIONS))
    absent = 4000 + 90 * 2 / 20
    diverging = 300 * 8 / 20 + 90 * 18 / 20 + 10
    assert rates["R_abs", "all"].estimate == pytest.approx(absent / 5000)
    assert rates["R_abs", "all"].judge == 0.8
    assert rates["R_div", "all"].estimate == pytest.approx(diverging / (5000 - absent))
    assert rates["R_div", "all"].judge == pytest.approx(100 / 1000)
    assert rates["R_con", "answered"].estimate == pytest.approx(600 * 15 / 20 / (1000 - 9))
    assert rates["R_div", "answered"].labelled == 70
    assert rates["R_div", "all"].labelled == 90


def test_weighted_figures_are_those_of_the_repeated_sample() -> None:
    """Each pair repeated as often as it stands for is the population: scikit-learn says the same of that."""
    weights = {"Absent": 400, "Consistent": 60, "Complementary": 30, "Divergent": 9, "Contradictory": 2}
    whole = [pair for pair in SAMPLE for _ in range(weights[pair[0]])]
    judge, people = [pair[0] for pair in whole], [pair[1] for pair in whole]
    found = population(SAMPLE, {label: judge.count(label) for label in LABELS}, LABELS)
    assert found.agreement == pytest.approx(np.mean([a == b for a, b in whole]))
    assert found.kappa == pytest.approx(cohen_kappa_score(judge, people))
    assert found.f1 is not None
    assert found.f1.macro == pytest.approx(f1_score(people, judge, average="macro"))
    assert found.f1.weighted == pytest.approx(f1_score(people, judge, average="weighted"))
    assert [row.f1 for row in found.f1.labels] == pytest.approx(
        f1_score(people, judge, average=None, labels=list(LABELS))
    )
    assert found.kappa_interval is not None
    assert found.kappa is not None
    assert found.kappa_interval.low < found.kappa < found.kappa_interval.high


def test_a_stratum_is_a_prediction_powered_mean() -> None:
    """Within a stratum the judge says one thing; the strata's corrected means add up to the estimate."""
    total = 0.0
    for label, size in COUNTS.items():
        says = float(label in FIVE_RELATIONS.diverging)
        human = [float(people in FIVE_RELATIONS.diverging) for judge, people in SAMPLE if judge == label]
        mean = ppi_mean([says] * size, [says] * len(human), human)
        assert mean.estimate is not None
        total += size * mean.estimate
    strata = {
        label: (size, [(float(p in FIVE_RELATIONS.diverging), 1.0) for j, p in SAMPLE if j == label])
        for label, size in COUNTS.items()
    }
    assert stratified_rate(strata)[0] == pytest.approx(total / 5000)


def test_the_variance_by_hand() -> None:
    strata = {"a": (1000, [(1.0, 1.0)] * 30 + [(0.0, 1.0)] * 10), "b": (10, [(1.0, 1.0)] * 5 + [(0.0, 1.0)] * 5)}
    share, interval = stratified_rate(strata)
    assert interval is not None
    assert share == pytest.approx((750 + 5) / 1010)
    variance = (1000 / 1010) ** 2 * (1 - 0.04) * (0.75 * 0.25 * 40 / 39) / 40
    assert interval.high - interval.low == pytest.approx(2 * 1.959964 * math.sqrt(variance), rel=1e-5)


def test_forty_of_forty_is_no_proof() -> None:
    share, interval = stratified_rate({"a": (1_000_000, [(1.0, 1.0)] * 40)})
    assert share == 1.0
    assert interval is not None
    assert 0.9 < interval.low < 0.98
    census, exact = stratified_rate({"a": (40, [(1.0, 1.0)] * 40)})
    assert census == 1.0
    assert exact is not None
    assert (exact.low, exact.high) == (1.0, 1.0)


def test_what_the_sample_does_not_allow_is_not_estimated() -> None:
    unsampled = [pair for pair in SAMPLE if pair[0] != "Absent"]
    found = population(unsampled, COUNTS, LABELS)
    assert (found.agreement, found.kappa, found.f1) == (None, None, None)
    assert found.why == "no pair that the judge calls Absent is labelled"
    rates = by_name(corrected_rates(unsampled, COUNTS, FIVE_RELATIONS))
    assert rates["R_div", "all"].estimate is None
    assert rates["R_div", "all"].why == found.why
    assert rates["R_div", "answered"].estimate == pytest.approx((120 + 81 + 10) / (1000 - 9))
    share, interval = stratified_rate({"a": (10, [(1.0, 1.0)]), "b": (5, [(0.0, 1.0)] * 2)})
    assert share == pytest.approx(10 / 15)
    assert interval is None
    assert stratified_rate({"a": (10, [(0.0, 0.0)] * 3)}) == (None, None)
    assert population([], {}, LABELS).why == "the audit has no pair with a label"


def test_pairs_without_a_reference_give_a_range() -> None:
    split = {"Complementary": 5, "Absent": 20}
    found = by_name(corrected_rates(SAMPLE, COUNTS, FIVE_RELATIONS, without=split))
    plain = by_name(corrected_rates(SAMPLE, COUNTS, FIVE_RELATIONS))
    rate = found["R_div", "answered"]
    assert (rate.estimate, rate.interval) == (plain["R_div", "answered"].estimate, plain["R_div", "answered"].interval)
    assert (rate.labelled, rate.without) == (70, 5)
    assert rate.sensitivity == pytest.approx(
        ((300 * 8 / 25 + 81 + 10) / (1000 - 9), (300 * 13 / 25 + 81 + 10) / (1000 - 9))
    )
    assert rate.estimate is not None
    assert rate.sensitivity is not None
    assert rate.sensitivity[0] < rate.estimate < rate.sensitivity[1]
    assert found["R_div", "all"].without == 25
    assert found["R_abs", "all"].sensitivity == pytest.approx(((2000 + 9) / 5000, (4000 + 60 + 9) / 5000))
    assert all(each.sensitivity is None and not each.without for each in plain.values())


def test_a_label_on_which_people_are_always_split_has_a_range_and_no_estimate() -> None:
    known = [pair for pair in SAMPLE if pair[0] != "Contradictory"]
    rate = by_name(corrected_rates(known, COUNTS, FIVE_RELATIONS, without={"Contradictory": 4}))["R_div", "answered"]
    assert (rate.estimate, rate.interval) == (None, None)
    assert rate.why == "no pair that the judge calls Contradictory is labelled"
    assert rate.sensitivity == pytest.approx(((120 + 81) / (1000 - 9), (120 + 81 + 10) / (1000 - 9)))
    lost = by_name(corrected_rates(known, COUNTS, FIVE_RELATIONS, without={"Divergent": 1}))["R_div", "answered"]
    assert (lost.without, lost.sensitivity) == (1, None)


def test_no_estimate_without_an_interval() -> None:
    one = [pair for pair in SAMPLE if pair[0] != "Contradictory"] + [("Contradictory", "Contradictory")]
    why = "only one of the pairs that the judge calls Contradictory is labelled"
    rates = corrected_rates(one, COUNTS, FIVE_RELATIONS)
    assert {(rate.estimate, rate.interval, rate.why) for rate in rates} == {(None, None, why)}
    whole = population(one, COUNTS, LABELS)
    assert (whole.agreement, whole.kappa, whole.f1, whole.why) == (None, None, None, why)
    counted = by_name(corrected_rates(one, {**COUNTS, "Contradictory": 1}, FIVE_RELATIONS))  # a stratum of one is whole
    assert counted["R_div", "answered"].interval is not None


@pytest.mark.parametrize("absent_right", [1.0, 0.97])
def test_intervals_cover_the_truth(absent_right: float) -> None:
    """Of 300 samples of an audit whose truth is known, about 95% of the intervals hold it."""
    rng = np.random.default_rng(8)
    size = {"Absent": 8000, "Consistent": 1200, "Complementary": 900, "Divergent": 500, "Contradictory": 60}
    chances = {
        "Absent": [absent_right, 0, 1 - absent_right, 0, 0],
        "Consistent": [0, 0.85, 0.15, 0, 0],
        "Complementary": [0, 0.1, 0.7, 0.2, 0],
        "Divergent": [0.02, 0, 0.2, 0.73, 0.05],
        "Contradictory": [0, 0, 0, 0.1, 0.9],
    }
    truth = {label: rng.choice(LABELS, size=n, p=chances[label]) for label, n in size.items()}
    everything = np.concatenate(list(truth.values()))
    diverging = np.isin(everything, FIVE_RELATIONS.diverging)
    answered = np.concatenate([truth[label] for label in LABELS[1:]])
    judge = np.repeat(list(size), list(size.values()))
    exact = {
        "agreement": float((judge == everything).mean()),
        "R_div": float(diverging.sum() / (everything != "Absent").sum()),
        "R_con": float((answered == "Consistent").sum() / (answered != "Absent").sum()),
    }
    held = dict.fromkeys(exact, 0)
    plain = []
    for _ in range(300):
        sample = [(label, str(said)) for label in size for said in rng.choice(truth[label], size=40, replace=False)]
        rates = by_name(corrected_rates(sample, size, FIVE_RELATIONS))
        found = population(sample, size, LABELS, samples=2)
        plain.append(np.mean([a == b for a, b in sample]))
        for name, value, interval in (
            ("agreement", found.agreement, found.agreement_interval),
            ("R_div", rates["R_div", "all"].estimate, rates["R_div", "all"].interval),
            ("R_con", rates["R_con", "answered"].estimate, rates["R_con", "answered"].interval),
        ):
            assert value is not None
            assert interval is not None
            held[name] += interval.low <= exact[name] <= interval.high
    assert all(count / 300 >= 0.9 for count in held.values()), held
    assert abs(np.mean(plain) - exact["agreement"]) > 0.05  # the sample's own agreement is not the population's
