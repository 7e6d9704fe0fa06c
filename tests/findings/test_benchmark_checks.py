"""Place and chance tests over questions with different numbers of options."""

from __future__ import annotations

from math import comb

import pytest

from hoofbeat.findings.benchmark_checks import chance_test, place_test


def test_the_chance_of_so_many_hits_is_exact() -> None:
    found = chance_test([True] * 6 + [False] * 4, [4] * 10)
    assert found is not None
    exact = sum(comb(10, k) * 0.25**k * 0.75 ** (10 - k) for k in range(6, 11))
    assert found.p == pytest.approx(exact, abs=1e-6)
    assert (found.observed, found.n, found.expected) == (6, 10, 2.5)


def test_questions_may_have_different_numbers_of_options() -> None:
    found = chance_test([True, True], [2, 5])
    assert found is not None
    assert found.p == pytest.approx(0.1)
    assert chance_test([], []) is None


def test_an_answer_that_is_always_first_is_noticed_and_an_even_spread_is_not() -> None:
    first = place_test([0] * 20, [4] * 20)
    even = place_test([0, 1, 2, 3] * 5, [4] * 20)
    assert first is not None
    assert even is not None
    assert first.p < 0.001
    assert first.counts == (20, 0, 0, 0)
    assert even.p == pytest.approx(1.0)
    assert place_test([], []) is None


def test_places_that_few_questions_have_are_expected_less() -> None:
    found = place_test([0, 1, 4], [2, 2, 5])
    assert found is not None
    assert found.expected == (1.2, 1.2, 0.2, 0.2, 0.2)
    assert place_test([0, 1, 4], [2, 2, 5]) == found
