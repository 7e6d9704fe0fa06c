"""A validation as a whole: references, people, judge and significance, against scikit-learn and by hand."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.validation_figures import (
    CorrectedRate,
    RatedPair,
    Reference,
    Validation,
    corrected_rates,
    judge_scores,
    population,
    reference,
    stratified_rate,
    validation,
)
from hoofbeat.findings.corrected_scores import ppi_mean

LABELS = FIVE_RELATIONS.order
LEVELS = ("low", "medium", "high")


def rated(judge: str, *labels: str, number: int = 0, levels: tuple[str, ...] = (), **more: str) -> RatedPair:
    return RatedPair(
        item=f"i{number}", question=f"q{number}", a="a", b="b", judge=judge,
        labels={f"p{place}": label for place, label in enumerate(labels) if label},
        significances={f"p{place}": level for place, level in enumerate(levels) if level},
        **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (rated("Divergent", "Divergent", "Divergent", levels=("low", "low")), ("Divergent", "low", "unanimous")),
        (rated("Divergent", "Divergent", "Divergent", levels=("low", "high")), ("Divergent", None, "unanimous")),
        (rated("Divergent", "Divergent", "Consistent", levels=("low",)), (None, None, "split")),
        (rated("Divergent", "Divergent", "Absent", "Divergent", levels=("high", "", "high")),
         ("Divergent", "high", "majority")),
        (rated("Divergent", "Divergent", "Absent", "Consistent"), (None, None, "split")),
        (rated("Divergent", "Divergent", "Divergent", "Absent", "Absent"), (None, None, "split")),
        (rated("Divergent", "Divergent", "", levels=("high",)), ("Divergent", "high", "single")),
        (rated("Divergent"), (None, None, "none")),
        (rated("Divergent", "Consistent", "Absent", adjudicated="Divergent", adjudicated_significance="low"),
         ("Divergent", "low", "adjudicated")),
        (rated("Divergent", "Divergent", "Absent", adjudicated="Divergent", levels=("high",)),
         ("Divergent", "high", "adjudicated")),
    ],
)  # fmt: skip
def test_what_people_say_together(row: RatedPair, expected: tuple[str | None, str | None, str]) -> None:
    label, significance, how = expected
    assert reference(row) == Reference(label=label, significance=significance, how=how)  # type: ignore[arg-type]


def noisy(seed: int = 5, n: int = 300, wrong: float = 0.25) -> list[RatedPair]:
    rng = random.Random(seed)
    rows = []
    for number in range(n):
        truth = rng.choice(LABELS)
        said = [truth if rng.random() > wrong else rng.choice(LABELS) for _ in range(3)]
        levels = [rng.choice(LEVELS) if label in FIVE_RELATIONS.diverging else "" for label in said]
        rows.append(
            rated(
                said[0],
                *said[1:],
                number=number,
                levels=tuple(levels[1:]),
                **({"judge_significance": levels[0]} if levels[0] else {}),
            )
        )
    return rows


def whole(rows: list[RatedPair], **more: int) -> Validation:
    counts = {label: 10 * sum(row.judge == label for row in rows) for label in LABELS}
    return validation(rows, counts, FIVE_RELATIONS, LEVELS, **more)


def test_kappas_are_scikit_learns() -> None:
    rows = noisy()
    found = whole(rows)
    assert found.people is not None
    (people,) = found.people.pairs
    one, two = ([row.labels[name] for row in rows] for name in ("p0", "p1"))
    order = list(LABELS)
    assert people.agreement == pytest.approx(sum(a == b for a, b in zip(one, two, strict=True)) / 300)
    assert people.linear is not None
    assert people.quadratic is not None
    for kappa, weights in ((people.kappa, None), (people.linear, "linear"), (people.quadratic, "quadratic")):
        assert kappa.value == pytest.approx(cohen_kappa_score(one, two, labels=order, weights=weights))
        assert kappa.value is not None
        assert kappa.interval is not None
        assert kappa.interval.low < kappa.value < kappa.interval.high
    agreed = [(row.judge, row.labels["p0"]) for row in rows if row.labels["p0"] == row.labels["p1"]]
    judge, gold = [pair[0] for pair in agreed], [pair[1] for pair in agreed]
    assert found.references == {"split": 300 - len(agreed), "unanimous": len(agreed)}
    assert found.judge.agreement.n == len(agreed)
    assert found.judge.agreement.kappa == pytest.approx(cohen_kappa_score(judge, gold))
    assert found.judge.quadratic.value == pytest.approx(
        cohen_kappa_score(judge, gold, labels=order, weights="quadratic")
    )
    right = sum(a == b for a, b in agreed)
    assert found.judge.sensitivity == pytest.approx((right / 300, (right + 300 - len(agreed)) / 300))
    each = found.by_annotator["p1"]
    assert each.kappa == pytest.approx(cohen_kappa_score([row.judge for row in rows], two))
    assert found.agreed is None


def test_significance_over_pairs_that_both_rate() -> None:
    rows = noisy()
    found = whole(rows).significance
    assert found is not None
    both = [
        (row.judge_significance, row.significances["p0"])
        for row in rows
        if row.judge_significance and "p0" in row.significances
    ]
    assert found.by_annotator["p0"].n == len(both)
    assert found.by_annotator["p0"].kappa == pytest.approx(cohen_kappa_score(*zip(*both, strict=True)))
    settled = [(row.judge_significance, reference(row).significance) for row in rows]
    assert found.agreement.n == sum(bool(a and b) for a, b in settled) > 10
    assert found.annotators is not None
    assert found.annotators.pairs[0].linear is not None
    assert whole([msgspec.structs.replace(row, significances={}) for row in rows]).significance is None


def test_adjudication_counts_before_the_majority() -> None:
    rows = [rated("Divergent", "Divergent", "Divergent", number=0), rated("Divergent", "Absent", "Divergent", number=1),
            rated("Consistent", "Consistent", "Consistent", number=2, adjudicated="Complementary"),
            rated("Divergent", "Absent", "Consistent", number=3, adjudicated="Divergent")]  # fmt: skip
    found = whole(rows)
    assert found.references == {"adjudicated": 2, "split": 1, "unanimous": 1}
    assert found.judge.agreement.n == 3
    assert found.judge.agreement.accuracy == pytest.approx(2 / 3)
    assert found.agreed is not None
    assert (found.agreed.n, found.agreed.accuracy) == (2, 1.0)


def test_three_annotators_have_an_alpha_and_a_majority() -> None:
    rng = random.Random(2)
    rows = [
        rated(
            "Divergent", *(rng.choice(LABELS) if rng.random() < 0.3 else "Divergent" for _ in range(3)), number=number
        )
        for number in range(80)
    ]
    found = whole(rows)
    assert found.people is not None
    assert len(found.people.pairs) == 3
    assert found.people.nominal.value is not None
    assert found.references["majority"] > 0
    assert found.references.keys() <= {"majority", "split", "unanimous"}


def test_one_annotator_and_none() -> None:
    found = whole([rated("Divergent", "Divergent"), rated("Absent", number=1)])
    assert (found.pairs, found.people, found.references) == (1, None, {"single": 1})
    empty = whole([])
    assert (empty.pairs, empty.judge.agreement.n, empty.judge.f1.macro) == (0, 0, None)


def test_by_how_the_label_came_about() -> None:
    rows = [rated("Divergent", "Divergent", number=n, basis="group") for n in range(4)]
    rows += [rated("Divergent", "Consistent", number=n, basis="judged") for n in range(4, 7)]
    found = whole(rows).by_basis
    assert {name: (each.n, each.accuracy) for name, each in found.items()} == {"group": (4, 1.0), "judged": (3, 0.0)}


def test_the_order_of_rows_does_not_matter_and_the_seed_does() -> None:
    rows = noisy(n=80)
    turned = [msgspec.structs.replace(row, labels=dict(reversed(row.labels.items()))) for row in reversed(rows)]
    assert whole(rows, seed=3) == whole(turned, seed=3)
    assert whole(rows, seed=3) != whole(rows, seed=4)


def test_a_failure_is_a_miss_and_no_find() -> None:
    found = judge_scores([("Divergent", "Divergent"), (None, "Divergent")], FIVE_RELATIONS)
    assert (found.agreement.unscored, found.agreement.accuracy) == (1, 0.5)
    (row,) = [row for row in found.f1.labels if row.label == "Divergent"]
    assert (row.precision, row.recall) == (1.0, 0.5)
    assert row.f1 == pytest.approx(2 / 3)
    assert found.borders.errors == 0


def test_figures_come_back_from_json() -> None:
    found = whole(noisy(n=60))
    assert msgspec.json.decode(msgspec.json.encode(found), type=Validation) == found


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
    assert exact is None  # all are labelled: nothing is estimated


def test_what_the_sample_does_not_allow_is_not_estimated() -> None:
    unsampled = [pair for pair in SAMPLE if pair[0] != "Absent"]
    found = population(unsampled, COUNTS, LABELS)
    assert (found.agreement, found.kappa, found.f1) == (None, None, None)
    assert found.why == "annotators labelled none of the pairs that the judge calls Absent"
    rates = by_name(corrected_rates(unsampled, COUNTS, FIVE_RELATIONS))
    assert rates["R_div", "all"].estimate is None
    assert rates["R_div", "all"].why == found.why
    assert rates["R_div", "answered"].estimate == pytest.approx((120 + 81 + 10) / (1000 - 9))
    share, interval = stratified_rate({"a": (10, [(1.0, 1.0)]), "b": (5, [(0.0, 1.0)] * 2)})
    assert share == pytest.approx(10 / 15)
    assert interval is None
    assert stratified_rate({"a": (10, [(0.0, 0.0)] * 3)}) == (None, None)
    assert population([], {}, LABELS).why == "no pair of the audit has a label"


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
    assert rate.why == "annotators labelled none of the pairs that the judge calls Contradictory"
    assert rate.sensitivity == pytest.approx(((120 + 81) / (1000 - 9), (120 + 81 + 10) / (1000 - 9)))
    lost = by_name(corrected_rates(known, COUNTS, FIVE_RELATIONS, without={"Divergent": 1}))["R_div", "answered"]
    assert (lost.without, lost.sensitivity) == (1, None)


def test_no_estimate_without_an_interval() -> None:
    one = [pair for pair in SAMPLE if pair[0] != "Contradictory"] + [("Contradictory", "Contradictory")]
    why = "annotators labelled only one of the pairs that the judge calls Contradictory"
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
