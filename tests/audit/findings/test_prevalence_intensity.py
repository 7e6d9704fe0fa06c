from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.audit.findings.prevalence_intensity import prevalence_intensity
from hoofbeat.audit.findings.relations import relations
from hoofbeat.errors import InputError
from hoofbeat.records import Comparison, Failure

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
    with pytest.raises(InputError, match="unknown label"):
        prevalence_intensity([Comparison(question="a", a="x", b="y", label="Odd")], audit({"a": "ddd"}))


@settings(deadline=None)
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
        rates = relations(row for row in comparisons if row.question in shared)
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
