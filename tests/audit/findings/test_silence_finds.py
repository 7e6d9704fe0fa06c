"""Finds of reviewers in silences: how many are misses, and what that makes of absence and recall."""

from __future__ import annotations

import pytest

from hoofbeat.audit.findings.silence_finds import silence_finds

SIDES = {("q1", "a", "b"): 1, ("q1", "a", "c"): 2, ("q2", "a", "b"): 2, ("q3", "a", "b"): 0, ("q4", "a", "b"): 1}


def test_finds_correct_absence_and_recall() -> None:
    said = {
        ("q1", "a", "b"): ["yes", "yes"],
        ("q1", "a", "c"): ["one"],
        ("q2", "a", "b"): ["no", "no", "yes"],
        ("q3", "a", "b"): ["yes"],  # nobody is silent there
        ("q4", "a", "b"): [],  # nobody looked
    }
    found = silence_finds(said, SIDES, answered=60, silent=40)
    assert found is not None
    assert (found.found, found.silences) == (2, 5)
    assert found.absence == pytest.approx(0.4)
    assert found.corrected[0] == pytest.approx(0.4 * 3 / 5)
    assert found.corrected[1] < found.corrected[0] < found.corrected[2] <= found.absence
    assert found.recall[0] == pytest.approx(60 / (60 + 0.4 * 40))
    assert found.recall[1] < found.recall[0] < found.recall[2] <= 1


def test_without_a_look_there_is_no_figure() -> None:
    assert silence_finds({}, SIDES, answered=1, silent=1) is None
    assert silence_finds({("q3", "a", "b"): ["no"]}, SIDES, answered=1, silent=1) is None
