from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

from hoofbeat.audit.findings.relations import (
    FIVE_RELATIONS,
    NO_GROUP,
    coverage,
    judge_agreement,
    matrices,
    relations,
    relations_by_group,
)
from hoofbeat.errors import InputError
from hoofbeat.findings.agreement import agreement
from hoofbeat.records import Answer, Comparison, Failure, Question

TIMEOUT = Failure(kind="timeout", message="x")


def pair(question: str, a: str, b: str, label: str) -> Comparison:
    """One comparison; the label `!` stands for a failed one."""
    if label == "!":
        return Comparison(question=question, a=a, b=b, failure=TIMEOUT)
    return Comparison(question=question, a=a, b=b, label=label)


AUDIT = [
    pair("q1", "s1", "s2", "Consistent"),
    pair("q1", "s1", "s3", "Divergent"),
    pair("q1", "s2", "s3", "Contradictory"),
    pair("q2", "s1", "s2", "Complementary"),
    pair("q2", "s1", "s3", "Absent"),
    pair("q2", "s2", "s3", "Absent"),
    pair("q3", "s1", "s2", "Consistent"),
    pair("q3", "s1", "s3", "!"),
]


def test_rates() -> None:
    found = relations(AUDIT)
    assert (found.questions, found.pairs, found.judged, found.failed) == (3, 8, 5, {"timeout": 1})
    assert list(found.labels.items()) == [
        ("Absent", 2),
        ("Consistent", 2),
        ("Complementary", 1),
        ("Divergent", 1),
        ("Contradictory", 1),
    ]
    assert (found.r_abs.count, found.r_abs.of) == (2, 8)
    assert (found.r_div.count, found.r_div.of, found.r_div.value) == (2, 5, 0.4)
    assert (found.r_con.count, found.r_con.of, found.r_con.value) == (2, 5, 0.4)
    assert (found.any_div.count, found.any_div.of) == (1, 3)
    assert sum(found.share_of_judged.values()) == pytest.approx(1)
    assert sum(found.share_of_pairs.values()) == pytest.approx(7 / 8)
    assert "Absent" not in found.share_of_judged


def test_failed_comparisons_spread_the_rates() -> None:
    found = relations(AUDIT)
    assert found.r_abs.sensitivity == pytest.approx((2 / 8, 3 / 8))
    assert found.r_div.sensitivity == pytest.approx((2 / 6, 3 / 6))
    assert found.any_div.sensitivity == pytest.approx((1 / 3, 2 / 3))
    assert relations(AUDIT[:-1]).r_div.sensitivity is None


def test_few_failed_pairs_in_many_questions_spread_the_share_of_questions() -> None:
    """0.9% of the pairs failed, in 90 of 100 questions: any of those may have its one disagreement there."""
    rows = [
        pair(f"q{number}", "s", f"t{other}", "!" if number < 90 and not other else "Consistent")
        for number in range(100)
        for other in range(100)
    ]
    found = relations(rows)
    assert (found.pairs, found.failed, found.r_div.sensitivity) == (10_000, {"timeout": 90}, None)
    assert (found.any_div.value, found.any_div.sensitivity) == (0.0, (0.0, 0.9))


def test_many_failed_pairs_in_a_question_that_diverges_anyway_leave_the_share_of_questions() -> None:
    found = relations([pair("q", "a", "b", "Divergent"), pair("q", "a", "c", "!"), pair("r", "a", "b", "Consistent")])
    assert found.r_div.sensitivity is not None
    assert (found.any_div.value, found.any_div.sensitivity) == (0.5, None)


def test_nothing_compared() -> None:
    empty = relations([], questions=["q1"])
    assert (empty.questions, empty.r_div.value, empty.any_div.value) == (1, None, 0.0)
    only_failed = relations([pair("q", "a", "b", "!")])
    assert (only_failed.r_div.value, only_failed.r_div.sensitivity) == (None, (0.0, 1.0))


def test_groups() -> None:
    questions = [
        Question(id="q1", text="", facets={"organ": ["liver", "kidney"]}),
        Question(id="q2", text="", facets={"organ": "liver"}),
        Question(id="q3", text=""),
        Question(id="q4", text="", facets={"organ": "heart"}),
    ]
    groups = relations_by_group(AUDIT, questions, "organ")
    assert list(groups) == [NO_GROUP, "heart", "kidney", "liver"]
    assert {name: (found.questions, found.pairs) for name, found in groups.items()} == {
        NO_GROUP: (1, 2),
        "heart": (1, 0),
        "kidney": (1, 3),
        "liver": (2, 6),
    }
    assert groups["liver"].any_div.value == 0.5
    with pytest.raises(InputError, match="'q2'"):
        relations_by_group(AUDIT, questions[:1], "organ")


def test_unknown_labels_are_not_counted_silently() -> None:
    for count in (relations, matrices):
        with pytest.raises(InputError, match="'divergent'"):
            count([pair("q", "a", "b", "divergent")])


def test_matrices() -> None:
    first, _, third = matrices(AUDIT)
    assert first.sources == ("s1", "s2", "s3")
    assert first.labels == (
        ("Consistent", "Consistent", "Divergent"),
        ("Consistent", "Consistent", "Contradictory"),
        ("Divergent", "Contradictory", "Consistent"),
    )
    assert third.labels[0] == ("Consistent", "Consistent", "")
    with pytest.raises(InputError, match="twice"):
        matrices([AUDIT[0], AUDIT[0]])


def test_coverage() -> None:
    def told(question: str, source: str, absent: bool | None, failure: Failure | None = None) -> Answer:
        return Answer(question=question, model="m", condition="source", source=source, absent=absent, failure=failure)

    answers = [told("q1", "s1", False), told("q2", "s1", True), told("q3", "s1", None, TIMEOUT), told("q1", "s2", None)]
    one, two = coverage(answers)
    assert (one.source, one.planned, one.answered, one.absent, one.unscored) == ("s1", 3, 1, 1, 1)
    assert one.coverage == pytest.approx(1 / 3)
    assert (two.answered, two.unscored) == (0, 1)
    questions = [Question(id=f"q{number}", text="", facets={"organ": "liver"}) for number in (1, 2)]
    grouped = coverage(answers, [*questions, Question(id="q3", text="")], "organ")
    assert [(row.source, row.group, row.planned) for row in grouped] == [
        ("s1", NO_GROUP, 1),
        ("s1", "liver", 2),
        ("s2", "liver", 1),
    ]


def test_agreement_agrees_with_scikit_learn() -> None:
    labels = FIVE_RELATIONS.order
    rng = np.random.default_rng(4)
    truth = rng.choice(labels, 400, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    given = np.where(rng.random(400) < 0.7, truth, rng.choice(labels, 400))
    found = agreement([(str(g), str(t)) for g, t in zip(given, truth, strict=True)], labels)
    assert found.kappa == pytest.approx(cohen_kappa_score(truth, given))
    assert found.accuracy == pytest.approx(accuracy_score(truth, given))
    assert [list(row) for row in found.confusion] == confusion_matrix(truth, given, labels=list(labels)).tolist()
    draws = [rng.integers(400, size=400) for _ in range(1000)]
    reference = np.quantile([cohen_kappa_score(truth[draw], given[draw]) for draw in draws], [0.025, 0.975])
    assert found.kappa_interval is not None
    assert (found.kappa_interval.low, found.kappa_interval.high) == pytest.approx(reference, abs=0.015)


def test_agreement_without_a_kappa() -> None:
    same = agreement([("Absent", "Absent")] * 3, FIVE_RELATIONS.order)
    assert (same.accuracy, same.kappa, same.kappa_interval) == (1.0, None, None)
    assert agreement([], FIVE_RELATIONS.order).n == 0
    with pytest.raises(InputError, match="'Agree'"):
        agreement([("Agree", "Absent")], FIVE_RELATIONS.order)


def test_judge_against_planted_labels_counts_every_planted_pair() -> None:
    planted = [pair("q1", "s1", "s2", "Consistent"), pair("q3", "s1", "s3", "Absent"), pair("q9", "s1", "s2", "Absent")]
    found = judge_agreement(AUDIT, planted)
    assert (found.n, found.unscored) == (3, 2)
    assert found.accuracy == pytest.approx(1 / 3)
