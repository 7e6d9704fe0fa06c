"""Power against an exact computation, τ against scipy, and short forms that hold on held-out systems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hoofbeat.errors import UsageError
from hoofbeat.findings.benchmark_size import (
    choose_questions,
    design_effect,
    enough_to_rank,
    form_of,
    kendall_tau,
    pair_powers,
    questions_needed,
    short_forms,
    smallest_difference,
)
from hoofbeat.findings.intervals import mcnemar_exact, tango
from hoofbeat.findings.item_analysis import score_matrix
from tests.findings.support import sampled, single
from tests.findings.test_item_analysis import outcomes_of, scores


def exact_power(n: int, difference: float, discordance: float) -> float:
    """The power of McNemar's mid-p test: over the number of discordant pairs, and how they divide."""
    share = (1 + difference / discordance) / 2
    power = 0.0
    for m in range(n + 1):
        weight = stats.binom.pmf(m, n, discordance)
        if weight < 1e-9:
            continue
        k = np.arange(m + 1)
        tail = stats.binom.cdf(np.minimum(k, m - k), m, 0.5) - 0.5 * stats.binom.pmf(np.minimum(k, m - k), m, 0.5)
        power += weight * stats.binom.pmf(k, m, share)[2 * tail <= 0.05].sum()
    return float(power)


@pytest.mark.parametrize(("difference", "discordance"), [(0.1, 0.3), (0.05, 0.15), (0.12, 0.25)])
def test_so_many_questions_have_the_power_that_is_promised(difference: float, discordance: float) -> None:
    n = questions_needed(difference, discordance)
    assert n is not None
    assert exact_power(n, difference, discordance) == pytest.approx(0.8, abs=0.03)
    assert smallest_difference(n, discordance) == pytest.approx(difference, rel=0.01)


def test_what_no_number_of_questions_shows_has_no_number() -> None:
    assert questions_needed(0.0, 0.3) is None
    assert questions_needed(0.4, 0.3) is None
    assert smallest_difference(5, 0.1) is None
    assert questions_needed(0.1, 0.3, design_effect=2) == pytest.approx(2 * (questions_needed(0.1, 0.3) or 0), abs=1)


def test_a_pair_of_systems_with_and_without_clusters() -> None:
    rows = [*single("11110000" * 5, "a"), *single("11000100" * 5, "b")]
    (pair,) = pair_powers(score_matrix(rows))
    assert (pair.n, pair.difference, pair.discordance) == (40, 5 / 40, 15 / 40)
    assert pair.p == mcnemar_exact(10, 5)
    assert pair.interval == tango(10, 5, 40)
    assert pair.needed == questions_needed(5 / 40, 15 / 40)
    clusters = {f"q{number:04}": f"d{number % 8}" for number in range(40)}
    (clustered,) = pair_powers(score_matrix(rows), clusters)
    assert clustered.design_effect == pytest.approx(5)
    assert (clustered.p, clustered.needed) == (None, questions_needed(5 / 40, 15 / 40, design_effect=5))
    assert clustered.interval.low < pair.interval.low


def test_shares_of_samples_have_no_mcnemar() -> None:
    (pair,) = pair_powers(score_matrix([*sampled({"x": "10", "y": "11"}, "a"), *sampled({"x": "00", "y": "10"}, "b")]))
    assert (pair.p, pair.difference, pair.discordance) == (None, 0.5, 0.25)
    assert design_effect(np.zeros(3), ["a", "a", "b"]) == 1


@pytest.mark.parametrize("seed", range(4))
def test_kendall_is_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 5, 12).astype(float), rng.integers(0, 5, 12).astype(float)
    assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a, b).statistic)
    assert kendall_tau(np.ones(3), b[:3]) == 0


def test_short_forms_hold_on_held_out_systems_and_are_the_same_again() -> None:
    rng = np.random.default_rng(3)
    able, hard = np.linspace(-2, 2, 20), rng.normal(size=100)
    sharp = np.where(np.arange(100) % 3 == 0, 0.0, 2.0)  # every third question says nothing about ability
    table = (rng.random((20, 100)) < 1 / (1 + np.exp(sharp * (hard - able[:, None])))).astype(int)
    matrix = score_matrix(outcomes_of(table))
    forms = short_forms(matrix, splits=12)
    assert [form.questions for form in forms] == [10, 20, 30, 50]
    assert forms == short_forms(matrix, splits=12)
    assert forms[-1].tau > forms[0].tau
    assert forms[1].tau > forms[1].random_tau
    assert all(form.worst <= form.tau <= 1 for form in forms)
    assert {form.held_out for form in forms} == {"systems"}
    found = enough_to_rank(forms, 0.8)
    assert found is not None
    assert found.questions < 100
    assert enough_to_rank(forms, 1.01) is None


def test_a_choice_spreads_over_difficulties() -> None:
    matrix = score_matrix(outcomes_of(scores(60)))
    chosen = choose_questions(matrix, 12, seed=4)
    assert len(set(chosen)) == 12
    assert chosen == choose_questions(matrix, 12, seed=4)
    means = matrix.values.mean(axis=0)
    assert means[chosen].mean() == pytest.approx(means.mean(), abs=0.1)
    with pytest.raises(UsageError):
        choose_questions(matrix, 61)


def test_few_systems_are_ranked_by_the_questions_that_were_left_out() -> None:
    matrix = score_matrix(outcomes_of(scores(60)[::3]))
    forms = short_forms(matrix, splits=10)
    assert [(form.questions, form.held_out) for form in forms] == [(n, "questions") for n in (6, 12, 18, 30)]
    assert forms[-1].tau > 0.5
    assert len(form_of(matrix, 5)) == 5
    assert not short_forms(score_matrix(outcomes_of(scores()[:2])))
