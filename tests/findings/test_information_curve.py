from __future__ import annotations

import numpy as np
import pytest

from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.information_curve import information_curves, retained_scores
from hoofbeat.records import Failure, Judgment
from tests.findings.support import single

CURVE = [
    *single("1100000000", condition="first 20%, letter"),
    *single("1111000?00", condition="first 60%, letter"),
    *single("1111110000", condition="first 100%, letter"),
]


def test_the_curve_and_what_is_retained() -> None:
    (found,) = information_curves(CURVE)
    assert (found.model, found.protocol, found.unit, found.full) == ("m", "letter", "tokens", "first 100%, letter")
    assert found.fractions == (0.2, 0.6, 1.0)
    assert found.accuracies == pytest.approx((0.2, 0.4, 0.6))
    assert found.retained_at_first == pytest.approx(1 / 3)
    assert found.interval is not None
    assert found.interval.low <= 1 / 3 <= found.interval.high
    assert found.points[1].unscored == 1
    assert found.points[1].sensitivity == pytest.approx((0.4, 0.5))
    rows = {row.condition: row for row in accuracies(CURVE)}
    for point in found.points:
        assert point.score == rows[point.condition].accuracy
        assert point.interval == rows[point.condition].bootstrap


def test_the_interval_is_paired_by_question() -> None:
    rng = np.random.default_rng(1)
    hard = rng.random(300)
    full = hard < 0.7
    first = hard < 0.6
    marks = ["".join("01"[int(right)] for right in rights) for rights in (first, full)]
    rows = [*single(marks[0], condition="first 20%"), *single(marks[1], condition="first 100%")]
    (found,) = information_curves(rows, samples=3000)
    drawn = (rng.integers(300, size=300) for _ in range(3000))
    theirs = np.quantile([first[places].sum() / full[places].sum() for places in drawn], [0.025, 0.975])
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(theirs, abs=0.01)
    assert found.interval.high - found.interval.low < 0.12, "unpaired it would be twice as wide"


def test_the_closed_book_is_the_whole_case_too() -> None:
    rows = [*single("10", condition="first 20%"), *single("11", condition="closed"), *single("00", condition="oracle")]
    (found,) = information_curves(rows)
    assert (found.full, found.retained_at_first, found.fractions) == ("closed", 0.5, (0.2,))
    (without,) = information_curves(rows[:2])
    assert (without.full, without.retained_at_first, without.interval) == ("", None, None)


def test_protocols_units_and_models_are_curves_of_their_own() -> None:
    rows = [
        *single("10", condition="first 20%"),
        *single("10", condition="first 20% of sentences"),
        *single("10", condition="first 20%, likelihood/token"),
        *single("10", condition="first 20%", model="n"),
        *single("10", condition="closed"),
        *single("11", condition="bm25 @3"),
    ]
    found = [(row.model, row.protocol, row.unit, row.full) for row in information_curves(rows)]
    assert found == [
        ("m", "", "sentences", "closed"),
        ("m", "", "tokens", "closed"),
        ("m", "likelihood/token", "tokens", ""),
        ("n", "", "tokens", ""),
    ]
    assert information_curves([]) == []


def test_nothing_can_be_retained_of_nothing() -> None:
    (found,) = information_curves([*single("10", condition="first 20%"), *single("00", condition="first 100%")])
    assert (found.retained_at_first, found.interval, found.n) == (None, None, 2)
    (only,) = information_curves(single("10", condition="first 100%"))
    assert (only.retained_at_first, only.full) == (None, "first 100%")


def test_scores_make_curves_too() -> None:
    def score(question: str, condition: str, value: float | None) -> Judgment:
        failure = Failure(kind="input", message="x") if value is None else None
        return Judgment(
            question=question,
            model="m",
            condition=condition,
            judge="encoder",
            aspect="bertscore",
            score=value,
            failure=failure,
        )

    rows = [
        score("a", "first 20%", 0.4),
        score("b", "first 20%", 0.8),
        score("a", "first 100%", 0.9),
        score("b", "first 100%", None),
    ]
    (found,) = retained_scores(rows, "bertscore")
    assert found.accuracies == pytest.approx((0.6, 0.45))
    assert found.points[1].unscored == 1
    assert found.points[1].sensitivity == pytest.approx((0.45, 0.95))
    assert found.retained_at_first == pytest.approx(1.2 / 0.9)
