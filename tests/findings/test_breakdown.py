from __future__ import annotations

import math

import numpy as np
import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.breakdown import NONE, by_facet, over_sets, values_of
from hoofbeat.findings.intervals import bootstrap_mean
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
    assert (group.interval.low, group.interval.high) == (0, 1)
    assert group.interval.method == "cluster bootstrap"


def test_the_average_over_sets_weighs_sets_not_questions() -> None:
    table = over_sets({"Biology": {"a": 1.0, "b": 1.0, "c": 1.0}, "PMC": {"d": 0.0}})
    assert [(group.value, group.n, group.mean) for group in table.sets] == [("Biology", 3, 1.0), ("PMC", 1, 0.0)]
    assert (table.macro.value, table.macro.n, table.macro.mean) == ("average", 4, 0.5)
    assert (table.macro.interval.low, table.macro.interval.high) == (0.5, 0.5)


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
