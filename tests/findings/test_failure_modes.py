from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.outcomes import mode_shares
from hoofbeat.records import Failure, Judgment

MODES = ("grounding", "objective", "qualifier", "granularity", "stage", "other")


def explained(number: int, label: str, secondary: str = "", model: str = "m", judge: str = "j") -> Judgment:
    return Judgment(
        question=f"q{number}",
        model=model,
        condition="c",
        judge=judge,
        aspect="failure-mode",
        label=label,
        secondary=secondary,
        failure=None if label else Failure(kind="schema", message="x"),
    )


def test_shares_with_secondary_apart() -> None:
    rows = [explained(0, "grounding", "stage"), explained(1, "grounding"), explained(2, "stage"), explained(3, "")]
    table = {row.label: row for row in mode_shares(iter(rows), "failure-mode", MODES)}
    assert list(table) == list(MODES)
    assert (table["grounding"].count, table["grounding"].n, table["grounding"].share) == (2, 4, 0.5)
    assert table["grounding"].interval == wilson(2, 4)
    assert (table["stage"].count, table["stage"].secondary) == (1, 1)
    assert (table["other"].count, table["other"].share) == (0, 0.0)
    assert {row.unscored for row in table.values()} == {1}
    assert table["stage"].sensitivity == pytest.approx((0.25, 0.5))


def test_systems_apart_and_labels_as_seen() -> None:
    rows = [explained(0, "stage", model="b"), explained(0, "objective", "grounding", model="a")]
    found = [(row.model, row.label, row.count) for row in mode_shares(rows, "failure-mode")]
    assert found == [
        ("a", "grounding", 0),
        ("a", "objective", 1),
        ("a", "stage", 0),
        ("b", "grounding", 0),
        ("b", "objective", 0),
        ("b", "stage", 1),
    ]
    assert mode_shares(rows, "error-type") == []


@settings(deadline=None)
@given(st.lists(st.sampled_from([*MODES, ""]), min_size=1, max_size=40))
def test_shares_and_failures_add_up(labels: list[str]) -> None:
    rows = [explained(number, label) for number, label in enumerate(labels)]
    table = mode_shares(rows, "failure-mode", MODES)
    assert sum(row.count for row in table) + table[0].unscored == len(labels)
    assert table == mode_shares(rows[::-1], "failure-mode", MODES)
    assert all(row.interval.low <= row.share <= row.interval.high for row in table)


def test_what_is_not_a_label() -> None:
    with pytest.raises(InputError, match="unknown label 'mood'"):
        mode_shares([explained(0, "mood")], "failure-mode", MODES)
    with pytest.raises(InputError, match="two judgments"):
        mode_shares([explained(0, "stage"), explained(0, "stage", judge="k")], "failure-mode")
    people = [explained(0, "stage"), explained(0, "other", judge="human:ada")]
    assert [row.label for row in mode_shares(people, "failure-mode")] == ["stage"]
    assert [row.label for row in mode_shares(people, "failure-mode", judge="human:ada")] == ["other"]
    two = [explained(0, "stage"), explained(0, "other", judge="k")]
    assert [row.label for row in mode_shares(two, "failure-mode", judge="k")] == ["other"]
