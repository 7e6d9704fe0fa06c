from __future__ import annotations

import gzip
import json

import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.accuracy import Outcome, accuracies, differences, outcomes
from hoofbeat.records import Answer, Failure, FailureKind, Judgment
from tests.helpers import shared_data


def answer(
    question: str, condition: str = "closed-book", sample: int = 0, failure: FailureKind | None = None
) -> Answer:
    broken = Failure(kind=failure, message="x") if failure else None
    return Answer(question=question, model="m", condition=condition, sample=sample, text="t", failure=broken)


def judgment(
    question: str,
    label: str,
    condition: str = "closed-book",
    sample: int = 0,
    failure: FailureKind | None = None,
    judge: str = "j",
    aspect: str = "equivalence",
) -> Judgment:
    broken = Failure(kind=failure, message="x") if failure else None
    return Judgment(
        question=question,
        model="m",
        condition=condition,
        sample=sample,
        judge=judge,
        aspect=aspect,
        label=label,
        failure=broken,
    )


def results(condition: str, pattern: str) -> list[Outcome]:
    """Outcomes of questions 0, 1, ...: 1 right, 0 wrong, ? unscored."""
    meaning = {"1": True, "0": False, "?": None}
    return [
        Outcome(
            question=f"q{number}",
            model="m",
            condition=condition,
            sample=0,
            correct=meaning[mark],
            unscored="answer:timeout" if mark == "?" else "",
        )
        for number, mark in enumerate(pattern)
    ]


def test_denominator_is_the_plan() -> None:
    answers = [answer("q1"), answer("q2"), answer("q3", failure="refusal"), answer("q4"), answer("q5")]
    judgments = [
        judgment("q1", "equivalent"),
        judgment("q2", "different"),
        judgment("q3", "", failure="input"),
        judgment("q4", "", failure="unreadable"),
        judgment("q1", "other", aspect="failure-mode"),
    ]
    (row,) = accuracies(outcomes(answers, judgments))
    assert (row.planned, row.questions, row.correct) == (5, 5, 1)
    assert row.unscored == {"answer:refusal": 1, "judgment:unreadable": 1, "unjudged": 1}
    assert row.accuracy == pytest.approx(0.2)
    assert row.sensitivity == pytest.approx((0.2, 0.8))
    assert row.wilson.low < 0.2 < row.wilson.high


def test_few_unscored_need_no_range() -> None:
    (at_threshold,) = accuracies(results("c", "1" * 99 + "?"))
    assert at_threshold.sensitivity is None
    assert at_threshold.unscored == {"answer:timeout": 1}
    (above,) = accuracies(results("c", "1" * 98 + "??"))
    assert above.sensitivity == pytest.approx((0.98, 1.0))


def test_positive_label_is_a_choice() -> None:
    marked = outcomes(
        [answer("q1"), answer("q2"), answer("q3")],
        [judgment("q1", "yes"), judgment("q2", "partly"), judgment("q3", "no")],
        positive={"yes", "partly"},
    )
    assert [row.correct for row in marked] == [True, True, False]


def test_one_judge_must_be_named_among_several() -> None:
    two = [judgment("q1", "equivalent", judge="a"), judgment("q1", "different", judge="b")]
    with pytest.raises(InputError, match="two judgments"):
        outcomes([answer("q1")], two)
    assert [row.correct for row in outcomes([answer("q1")], two, judge="b")] == [False]


def test_files_that_do_not_belong_together() -> None:
    with pytest.raises(InputError, match="no answer"):
        outcomes([answer("q1")], [judgment("q2", "equivalent")])
    with pytest.raises(InputError, match="twice"):
        outcomes([answer("q1"), answer("q1")], [])


def test_clusters_and_samples_widen_the_interval() -> None:
    rows = results("c", "10" * 50)
    (plain,) = accuracies(rows)
    (clustered,) = accuracies(rows, clusters={f"q{number}": f"doc{number % 10}" for number in range(100)})
    assert (plain.clusters, clustered.clusters) == (100, 10)
    assert clustered.bootstrap.high - clustered.bootstrap.low > 2 * (plain.bootstrap.high - plain.bootstrap.low)


def test_difference_is_paired_by_question() -> None:
    (row,) = differences([*results("a", "1111110001"), *results("b", "1111000001?")])
    assert (row.paired.n, row.unpaired, row.only_a, row.only_b) == (10, 1, 2, 0)
    assert (row.accuracy_a, row.accuracy_b) == pytest.approx((0.7, 0.5))
    assert row.paired.difference == pytest.approx(0.2)
    assert row.p == pytest.approx(0.5)
    assert row.p_holm == row.p
    assert row.sensitivity is None


def test_unscored_answers_spread_the_difference() -> None:
    (row,) = differences([*results("a", "11?0"), *results("b", "1?00")])
    assert row.unscored == 2
    assert row.paired.difference == pytest.approx(0.25)
    assert row.sensitivity == pytest.approx((0.0, 0.5))


def test_holm_counts_the_whole_table() -> None:
    table = differences([*results("a", "1" * 12), *results("b", "0" * 12), *results("c", "1" * 6 + "0" * 6)])
    assert [(row.a[1], row.b[1]) for row in table] == [("a", "b"), ("a", "c"), ("b", "c")]
    smallest, *rest = sorted(row.p or 0.0 for row in table)
    assert min(row.p_holm or 0.0 for row in table) == pytest.approx(3 * smallest)
    assert max(row.p_holm or 0.0 for row in table) == pytest.approx(2 * rest[0])


def test_several_samples_have_no_mcnemar() -> None:
    judged = [
        judgment("q1", label, condition, sample)
        for condition in ("a", "b")
        for sample, label in enumerate(["equivalent", "no"])
    ]
    marked = outcomes([answer("q1", c, s) for c in ("a", "b") for s in (0, 1)], judged)
    (row,) = differences(marked)
    assert (row.accuracy_a, row.p, row.p_holm, row.only_a) == (0.5, None, None, None)


def test_systems_that_cannot_be_compared() -> None:
    rows = results("a", "11")
    with pytest.raises(UsageError, match="'b'"):
        differences(rows, [(("m", "a"), ("m", "b"))])
    other = [Outcome(question="elsewhere", model="m", condition="b", sample=0, correct=True)]
    with pytest.raises(UsageError, match="no question"):
        differences([*rows, *other])


def test_real_predictions() -> None:
    path = shared_data("mcq_predictions.jsonl.gz")
    with gzip.open(path, "rt") as stream:
        rows = [json.loads(line) for line in stream]
    by_key = {(row["model"], f"{row['dataset']}/{row['id']}"): row for row in rows}
    marked = [
        Outcome(question=key[1], model=key[0], condition="mcq", sample=0, correct=row["predicted"] == row["answer"])
        for key, row in by_key.items()
    ]
    table = accuracies(marked)
    assert sum(row.planned for row in table) == len(by_key)
    for row in table:
        assert row.bootstrap.low == pytest.approx(row.wilson.low, abs=0.02)
        assert row.bootstrap.high == pytest.approx(row.wilson.high, abs=0.02)
