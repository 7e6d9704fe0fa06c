"""Calibration against scikit-learn; refused and unreadable answers stay apart from wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from hoofbeat.findings.answer_confidence import (
    AGREEMENT,
    LIKELIHOOD,
    STATED,
    abstentions,
    calibration,
    calibrations,
)
from hoofbeat.findings.outcomes import choice_outcomes
from hoofbeat.records import Answer, OptionLikelihood
from tests.findings.support import chosen, options_question, outcome_row


def test_calibration_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(400)
    hits = rng.random(400) < values**1.5
    found = calibration(values.tolist(), hits.tolist())
    truth, said = calibration_curve(hits, values, n_bins=10)
    filled = [each for each in found.bins if each.n]
    assert [each.accuracy for each in filled] == pytest.approx(truth)
    assert [each.confidence for each in filled] == pytest.approx(said)
    sizes = np.histogram(values, bins=np.linspace(0, 1, 11))[0]
    assert found.error == pytest.approx((sizes[sizes > 0] / 400 * np.abs(truth - said)).sum())
    assert found.brier == pytest.approx(brier_score_loss(hits, values))
    assert found.auc == pytest.approx(roc_auc_score(hits, values))
    assert found.surest > found.accuracy


def test_a_confidence_of_one_is_in_the_last_bin_and_one_outcome_has_no_curve() -> None:
    found = calibration([1.0, 0.0], [True, True])
    assert (found.bins[9].n, found.bins[0].n, found.auc) == (1, 1, None)
    assert found.error == 0.5


def test_each_kind_of_confidence_is_apart() -> None:
    questions = [options_question(0, 2), options_question(1, 2)]
    by_likelihood: list[Answer] = [
        replace(
            chosen(f"q{number}", "o0", model="l", condition="closed, likelihood/token"),
            protocol="likelihood/token",
            likelihoods=(
                OptionLikelihood(option="o0", total=-2.0, tokens=2, bytes=2),
                OptionLikelihood(option="o1", total=-2.0, tokens=1, bytes=2),
            ),
        )
        for number in range(2)
    ]
    sampled = [chosen("q0", each, model="s", sample=number) for number, each in enumerate(["o1", "o0", "o1"])]
    said = [replace(chosen("q0", "o0", model="p"), confidence=0.75)]
    answers = [*by_likelihood, *sampled, *said]
    found = {each.kind: each for each in calibrations(answers, choice_outcomes(questions, answers))}
    assert found[LIKELIHOOD].confidence == pytest.approx(math.exp(-1) / (math.exp(-1) + math.exp(-2)))
    assert found[AGREEMENT].confidence == pytest.approx(2 / 3)
    assert found[AGREEMENT].accuracy == 0
    assert (found[STATED].confidence, found[STATED].n) == (0.75, 1)


def test_abstentions_are_not_errors() -> None:
    rows = [
        outcome_row("a", "1"),
        outcome_row("b", "0"),
        outcome_row("c", "?", why="answer:refusal"),
        outcome_row("d", "?", why="choice:ambiguous"),
        outcome_row("e", "?", why="answer:timeout"),
    ]
    (found,) = abstentions(rows)
    assert (found.planned, found.scored, found.refused, found.unreadable, found.failed) == (5, 2, 1, 1, 1)
    assert (found.answered, found.low, found.high) == (0.5, 0.2, 0.8)
    assert found.answered_interval is not None
    (repeated,) = abstentions([*rows, outcome_row("a", "1", sample=1)])
    assert repeated.answered_interval is None
