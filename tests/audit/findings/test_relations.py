from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

from hoofbeat.audit.findings.pair_arrays import counts_by, each_matrix
from hoofbeat.audit.findings.relations import (
    FIVE_RELATIONS,
    NO_GROUP,
    coverage,
    judge_agreement,
)
from hoofbeat.errors import InputError
from hoofbeat.findings.agreement import agreement
from hoofbeat.records import Answer, Comparison, Failure, Question
from tests.audit.findings.support import prevalence_intensity, relations, table

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
    groups = counts_by(table(AUDIT), questions, "organ")
    assert list(groups) == [NO_GROUP, "heart", "kidney", "liver"]
    assert {name: (found.questions, found.pairs) for name, found in groups.items()} == {
        NO_GROUP: (1, 2),
        "heart": (1, 0),
        "kidney": (1, 3),
        "liver": (2, 6),
    }
    assert groups["liver"].any_div.value == 0.5
    with pytest.raises(InputError, match="'q2'"):
        counts_by(table(AUDIT), questions[:1], "organ")


def test_matrices() -> None:
    first, _, third = each_matrix(table(AUDIT))
    assert first.sources == ("s1", "s2", "s3")
    assert first.labels == (
        ("Consistent", "Consistent", "Divergent"),
        ("Consistent", "Consistent", "Contradictory"),
        ("Divergent", "Contradictory", "Consistent"),
    )
    assert third.labels[0] == ("Consistent", "Consistent", "")
    with pytest.raises(InputError, match="twice"):
        list(each_matrix(table([AUDIT[0], AUDIT[0]])))


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


NAMES = {
    "-": "Absent",
    "c": "Consistent",
    "m": "Complementary",
    "d": "Divergent",
    "x": "Contradictory",
}
PAIRS = [("s1", "s2"), ("s1", "s3"), ("s2", "s3")]
audits = st.dictionaries(st.sampled_from("abcdef"), st.text("-cmdx!", min_size=3, max_size=3), min_size=1)


def audit(questions: dict[str, str]) -> list[Comparison]:
    """Question to the labels of its three pairs; ! failed."""
    return [
        Comparison(question=question, a=a, b=b, failure=Failure(kind="schema", message="x"))
        if mark == "!"
        else Comparison(question=question, a=a, b=b, label=NAMES[mark])
        for question, marks in questions.items()
        for (a, b), mark in zip(PAIRS, marks, strict=True)
    ]


def test_more_coverage_alone_raises_prevalence_and_not_intensity() -> None:
    before = audit({"a": "d--", "b": "c--", "c": "m--", "d": "---"})
    after = audit({"a": "dcd", "b": "cdc", "c": "mcd", "d": "d--"})
    found = prevalence_intensity(before, after)
    assert (found.questions, found.pairs_in_both) == (4, 3)
    assert (found.intensity.before, found.intensity.after, found.intensity.change) == (1 / 3, 1 / 3, 0.0)
    assert (found.prevalence.before, found.prevalence.after, found.prevalence.change) == (0.25, 0.25, 0.0)
    assert (found.any_div.before, found.any_div.after, found.any_div.change) == (0.25, 1.0, 0.75)
    assert found.by_coverage == pytest.approx(0.75)
    assert found.r_abs.change == pytest.approx(2 / 12 - 9 / 12)
    assert found.r_div.after == pytest.approx(5 / 10)


def test_the_same_pairs_judged_harder_raise_intensity() -> None:
    found = prevalence_intensity(
        audit({"a": "ccm", "b": "c--", "c": "dm-"}), audit({"a": "dxm", "b": "c--", "c": "dd-"})
    )
    assert found.pairs_in_both == 6
    assert found.intensity.before == pytest.approx(1 / 6)
    assert found.intensity.after == pytest.approx(4 / 6)
    assert found.prevalence.change == pytest.approx(1 / 3)
    assert found.by_coverage == pytest.approx(0.0)
    assert found.intensity.interval is not None
    assert found.intensity.interval.low <= 0.5 <= found.intensity.interval.high


def test_failed_pairs_are_counted_and_not_answered() -> None:
    found = prevalence_intensity(audit({"a": "d!c"}), audit({"a": "ddc", "z": "ccc"}))
    assert (found.failed, found.pairs_in_both, found.one_audit_only) == ((1, 0), 2, 1)
    assert found.intensity.change == 0.0


def test_nothing_answered_in_both() -> None:
    found = prevalence_intensity(audit({"a": "d--"}), audit({"a": "-d-"}))
    assert (found.intensity.before, found.intensity.change, found.intensity.interval) == (None, None, None)
    assert found.any_div.change == 0.0
    with pytest.raises(InputError, match="share no question"):
        prevalence_intensity(audit({"a": "ddd"}), audit({"b": "ddd"}))
    with pytest.raises(InputError, match="twice"):
        prevalence_intensity(audit({"a": "ddd"}) * 2, audit({"a": "ddd"}))


@settings(deadline=None, max_examples=30)
@given(audits, audits, st.randoms(use_true_random=False))
def test_rates_are_those_of_each_audit_and_turning_round_changes_the_sign(
    one: dict[str, str], two: dict[str, str], random: object
) -> None:
    shared = one.keys() & two.keys()
    before, after = audit(one), audit(two)
    if not shared:
        return
    random.shuffle(before)  # type: ignore[attr-defined]
    found = prevalence_intensity(before, after, samples=20)
    back = prevalence_intensity(after, audit(one), samples=20)
    for side, comparisons in (("before", before), ("after", after)):
        rates = relations([row for row in comparisons if row.question in shared])
        assert getattr(found.r_abs, side) == pytest.approx(rates.r_abs.value)
        assert getattr(found.any_div, side) == pytest.approx(rates.any_div.value)
        assert getattr(found.r_div, side) == (rates.r_div.value and pytest.approx(rates.r_div.value))
    for name in ("r_abs", "r_div", "any_div", "intensity", "prevalence"):
        there, again = getattr(found, name).change, getattr(back, name).change
        assert there is None if again is None else there == pytest.approx(-again)
    assert found.by_coverage == pytest.approx((found.any_div.change or 0) - (found.prevalence.change or 0))


def test_the_interval_resamples_questions() -> None:
    rng = np.random.default_rng(6)
    before = {f"q{n:03}": "".join(rng.choice(list("-cmd"), 3)) for n in range(120)}
    after = {question: "".join(rng.choice(list("-cmd"), 3)) for question in before}
    found = prevalence_intensity(audit(before), audit(after), samples=3000)
    deltas = np.array([("d" in after[q]) - ("d" in before[q]) for q in before], float)
    means = [deltas[rng.integers(120, size=120)].mean() for _ in range(3000)]
    assert found.any_div.interval is not None
    ends = (found.any_div.interval.low, found.any_div.interval.high)
    assert ends == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.02)
    assert found == prevalence_intensity(audit(before), audit(after), samples=3000)
