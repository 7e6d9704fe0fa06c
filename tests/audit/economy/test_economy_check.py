"""The sampled check: an even sample of the spread labels, the same in any order, and what it says of all pairs."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.audit.economy.economy_check import EconomyCheck, check_agreement, check_sample
from hoofbeat.errors import UsageError
from hoofbeat.records import Comparison, Failure


def pair(number: int, label: str = "Divergent", basis: str = "group") -> Comparison:
    return Comparison(question=f"q{number % 3}", a=f"a{number:03}", b=f"b{number:03}", label=label, basis=basis)


ROWS = [pair(number) for number in range(60)] + [pair(number, basis="judged") for number in range(60, 80)]


@settings(deadline=None)
@given(st.integers(0, 70), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_sample_is_of_spread_labels_and_the_same_in_any_order(n: int, seed: int, shuffler: Random) -> None:
    drawn = check_sample(ROWS, n, seed)
    assert len(drawn) == len({(row.question, row.a, row.b) for row in drawn}) == min(n, 60)
    assert {row.basis for row in drawn} <= {"group"}
    assert drawn == sorted(drawn, key=lambda row: (row.question, row.a, row.b))
    mixed = list(ROWS)
    shuffler.shuffle(mixed)
    assert check_sample(iter(mixed), n, seed) == drawn


def test_shards_together_hold_the_sample_of_the_whole() -> None:
    whole = check_sample(ROWS, 10, 4)
    parts = [row for start in range(0, 80, 20) for row in check_sample(ROWS[start : start + 20], 10, 4)]
    assert check_sample(parts, 10, 4) == whole


def test_every_pair_is_drawn_as_often_as_any_other() -> None:
    counts = Counter(row.a for seed in range(600) for row in check_sample(ROWS, 6, seed))
    assert len(counts) == 60
    assert 30 <= min(counts.values()) <= max(counts.values()) <= 95  # 60 expected, 4.5 standard deviations


def test_a_failed_spread_and_a_negative_sample_are_not_drawn() -> None:
    failed = Comparison(question="q", a="a", b="b", basis="group", failure=Failure(kind="schema", message="no"))
    assert check_sample([failed], 5, 0) == []
    with pytest.raises(UsageError, match="a sample of -1 pairs"):
        check_sample(ROWS, -1, 0)


def test_agreement_counts_what_was_spread_and_what_the_judge_says() -> None:
    rows = [pair(0), pair(1), pair(2, "Consistent"), pair(3), pair(4, basis="judged"), pair(5, "Absent", "absent"),
            pair(6, "Consistent", "same"),
            Comparison(question="q", a="x", b="y", failure=Failure(kind="schema", message="no"))]  # fmt: skip
    broken = Comparison(
        question="q0", a="a003", b="b003", basis="judged", failure=Failure(kind="timeout", message="late")
    )
    real = [pair(0, basis="judged"), pair(2, "Complementary", "judged"), broken]
    check = check_agreement(rows, real, "Absent")
    assert check == EconomyCheck(
        spread=4, exact=2, n=2, agree=1, unscored=1,
        table=(("Consistent", "Complementary", 1), ("Divergent", "Divergent", 1)),
    )  # fmt: skip
    assert check.agreement == 0.5
    assert check.overall(0.5) == pytest.approx(4 / 6)
    assert check.overall(1.0) == 1.0


def test_nothing_spread_agrees_with_full_judging() -> None:
    check = check_agreement([pair(0, basis="judged")], [], "Absent")
    assert (check.n, check.agreement, check.overall(0.0)) == (0, None, 1.0)
    assert check_agreement([], [], "Absent").overall(0.0) == 1.0
