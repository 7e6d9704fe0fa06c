from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.breakdown import NONE, by_facet, group_differences, over_sets, values_of
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.records import Facets

VALUES = {"q1": 0.0, "q2": 1.0, "q3": 0.5, "q4": 0.25, "q5": 0.75}
FACETS: dict[str, Facets] = {
    "q1": {"specialty": "kidney", "year": "2020"},
    "q2": {"specialty": ["kidney", "liver", "kidney"]},
    "q3": {"specialty": []},
    "q4": {"specialty": "heart"},
}


def test_a_question_counts_in_each_of_its_groups() -> None:
    table = by_facet(VALUES, FACETS, "specialty", seed=3)
    assert [(group.value, group.n, group.mean) for group in table.groups] == [
        ("kidney", 2, 0.5),
        ("heart", 1, 0.25),
        ("liver", 1, 1.0),
        (NONE, 2, 0.625),
    ]
    assert (table.facet, table.n, table.overall.n, table.overall.mean) == ("specialty", 5, 5, 0.5)
    assert table.groups[0].interval == bootstrap_mean([0.0, 1.0], seed=3)
    assert table == by_facet(VALUES, FACETS, "specialty", seed=3)


def test_a_facet_nobody_has() -> None:
    table = by_facet(VALUES, FACETS, "colour")
    assert [(group.value, group.n) for group in table.groups] == [(NONE, 5)]


def test_groups_resample_clusters() -> None:
    values = {f"q{number}": float(number < 10) for number in range(20)}
    facets: dict[str, Facets] = {question: {"kind": "x"} for question in values}
    clusters = {f"q{number}": f"d{number // 10}" for number in range(20)}
    group = by_facet(values, facets, "kind", clusters=clusters).groups[0]
    assert (group.interval.low, group.interval.high) == pytest.approx(proportion_confint(1, 2, method="wilson"))
    assert group.interval.few == 2


def test_the_average_over_sets_weighs_sets_not_questions() -> None:
    table = over_sets({"Biology": {"a": 1.0, "b": 1.0, "c": 1.0}, "PMC": {"d": 0.0}})
    assert [(group.value, group.n, group.mean) for group in table.sets] == [("Biology", 3, 1.0), ("PMC", 1, 0.0)]
    assert (table.macro.value, table.macro.n, table.macro.mean) == ("average", 4, 0.5)
    low = proportion_confint(3, 3, method="wilson")[0]
    assert table.macro.interval.low == pytest.approx(0.5 - (1 - low) / 2)
    assert table.macro.interval.few == 1


def test_the_interval_of_the_average_is_that_of_independent_sets() -> None:
    rng = np.random.default_rng(0)
    sets = {
        name: {f"{name}{i}": float(v) for i, v in enumerate(rng.random(size))} for name, size in (("a", 40), ("b", 160))
    }
    found = over_sets(sets, samples=8000).macro.interval
    error = math.sqrt(sum(np.var(list(values.values())) / len(values) for values in sets.values())) / 2
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.05)
    assert over_sets(sets) == over_sets(sets)
    assert over_sets(sets, seed=1) != over_sets(sets)


def test_values_of_one_measure() -> None:
    assert values_of({"q": {"RR": 1.0, "P@1": 0.0}, "r": {"P@1": 1.0}}, "RR") == {"q": 1.0}


def test_nothing_to_break_down() -> None:
    with pytest.raises(UsageError, match="no values"):
        by_facet({}, FACETS, "specialty")
    with pytest.raises(UsageError, match="set 'b' has no values"):
        over_sets({"a": {"q": 1.0}, "b": {}})
    with pytest.raises(UsageError, match="no sets"):
        over_sets({})
    with pytest.raises(InputError, match="'q2' is not a number"):
        by_facet({"q1": 1.0, "q2": math.nan}, {}, "specialty")
    with pytest.raises(InputError, match="'q' is not a number"):
        over_sets({"a": {"q": math.inf}})


def rows(name: str, outcomes: Sequence[bool | None]) -> list[Outcome]:
    return [
        Outcome(
            question=f"{name}{number}",
            model="m",
            condition="closed",
            sample=0,
            correct=correct,
            unscored="" if correct is not None else "answer:refusal",
        )
        for number, correct in enumerate(outcomes)
    ]


def names(name: str, count: int) -> set[str]:
    return {f"{name}{number}" for number in range(count)}


def test_the_difference_and_its_counts() -> None:
    found = group_differences(
        [*rows("r", [True] * 3 + [False] * 6 + [None]), *rows("c", [True] * 15 + [False] * 5)],
        names("r", 10),
        names("c", 20),
    )[0]
    assert (found.a.correct, found.a.planned, found.a.unscored) == (3, 10, {"answer:refusal": 1})
    assert found.difference == pytest.approx(0.3 - 0.75)
    assert found.sensitivity == pytest.approx((0.3 - 0.75, 0.4 - 0.75))
    assert found.interval is not None
    assert found.interval.low < found.difference < found.interval.high


def test_the_interval_is_close_to_that_of_two_independent_shares() -> None:
    rng = np.random.default_rng(3)
    first, second = list(rng.random(400) < 0.3), list(rng.random(600) < 0.5)
    found = group_differences(
        [*rows("r", [bool(x) for x in first]), *rows("c", [bool(x) for x in second])],
        names("r", 400),
        names("c", 600),
        samples=4000,
    )[0]
    a, b = np.mean(first), np.mean(second)
    half = 1.96 * np.sqrt(a * (1 - a) / 400 + b * (1 - b) / 600)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(a - b - half, abs=0.01)
    assert found.interval.high == pytest.approx(a - b + half, abs=0.01)


def test_clusters_in_both_groups_are_drawn_together() -> None:
    alike = {f"{name}{number}": f"d{number}" for name in "rc" for number in range(30)}
    outcomes: list[bool | None] = [number % 2 == 0 for number in range(30)]
    nearly: list[bool | None] = [*outcomes[:29], True]
    asked = [*rows("r", outcomes), *rows("c", nearly)]
    together = group_differences(asked, names("r", 30), names("c", 30), clusters=alike)[0]
    apart = group_differences(asked, names("r", 30), names("c", 30))[0]
    assert together.interval.method == apart.interval.method == "cluster bootstrap"
    assert together.interval.high - together.interval.low < 0.3 * (apart.interval.high - apart.interval.low)


def test_no_spread_is_not_certainty() -> None:
    asked = [*rows("r", [False] * 5), *rows("c", [False] * 30)]
    found = group_differences(asked, names("r", 5), names("c", 30))[0]
    low, high = confint_proportions_2indep(0, 5, 0, 30, method="newcomb")
    assert [found.interval.low, found.interval.high] == pytest.approx([low, high])
    assert found.interval.method == "Newcombe's score"


def test_a_system_that_was_not_asked_both_is_left_out() -> None:
    assert group_differences(rows("r", [True]), {"r0"}, {"c0"}) == []


@given(
    st.lists(st.sampled_from([True, False, None]), min_size=1), st.lists(st.booleans(), min_size=1), st.integers(0, 9)
)
def test_bounds_and_the_same_again(first: list[bool | None], second: list[bool], seed: int) -> None:
    results = [*rows("r", first), *rows("c", list(second))]
    groups = names("r", len(first)), names("c", len(second))
    found = group_differences(results, *groups, samples=50, seed=seed)
    assert found == group_differences(results, *groups, samples=50, seed=seed)
    assert -1 <= found[0].difference <= 1
    if found[0].interval:
        assert -1 <= found[0].interval.low <= found[0].interval.high <= 1
