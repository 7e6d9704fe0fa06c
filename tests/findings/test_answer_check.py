"""What answers say about a benchmark: baselines against chance and the whole question, and favourite places."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scipy import stats

from hoofbeat.answering import conditions
from hoofbeat.findings.answer_check import BASELINES, check_answers, is_baseline, place_biases
from hoofbeat.findings.intervals import tango
from hoofbeat.findings.outcomes import choice_outcomes
from hoofbeat.records import Answer
from tests.findings.support import chosen, options_question

QUESTIONS = [options_question(number) for number in range(40)]


def shown(number: int) -> tuple[str, ...]:
    """The options of a question in the order shown: the right one (o0) goes round the places."""
    order = ["o1", "o2", "o3"]
    order.insert(number % 4, "o0")
    return tuple(order)


def test_baselines_are_set_against_chance_and_against_the_whole_question() -> None:
    answers: list[Answer] = []
    for number, question in enumerate(QUESTIONS):
        answers.append(chosen(question.id, "o0" if number < 30 else "o1", condition="closed, letter"))
        answers.append(chosen(question.id, "o0" if number % 2 else "o1", condition="options, letter"))
    found, items = check_answers(QUESTIONS, answers, choice_outcomes(QUESTIONS, answers))
    (baseline,) = found.baselines
    assert (baseline.n, baseline.right, baseline.whole) == (40, 20, 0.75)
    assert baseline.chance is not None
    assert baseline.chance.p == pytest.approx(stats.binom.sf(19, 40, 0.25), abs=1e-6)
    assert baseline.interval == tango(15, 5, 40)
    assert found.systems == (("m", "closed, letter"),)
    assert [item.question for item in items] == [question.id for question in QUESTIONS]
    assert items[0].systems == 1, "a baseline is no examinee"
    assert found.unused_options == (40 * 3 - 10, 120)
    assert len(found.warnings) == 2
    assert conditions.BASELINES == BASELINES
    assert (is_baseline("question"), is_baseline("closed, letter")) == (True, False)


def test_a_system_that_errs_towards_one_place_is_noticed() -> None:
    likes = [replace(chosen(f"q{n}", shown(n)[0], model="first"), options=shown(n)) for n in range(40)]
    even = [
        replace(
            chosen(f"q{n}", "o0" if n % 8 < 4 else shown(n)[(n % 4 + 1 + n // 8 % 3) % 4], model="even"),
            options=shown(n),
        )
        for n in range(40)
    ]
    first, fair = place_biases({each.id: each for each in QUESTIONS}, [*likes, *even])
    assert (first.chosen, first.right, first.found) == ((40, 0, 0, 0), (10, 10, 10, 10), (10, 0, 0, 0))
    assert first.wrong is not None
    assert fair.wrong is not None
    assert (first.wrong.n, first.wrong.expected) == (30, (10.0, 6.67, 6.67, 6.67))
    assert first.wrong.p < 0.001
    assert fair.wrong.p > 0.05


def test_two_options_leave_nothing_to_test() -> None:
    question = options_question(0, 2)
    (found,) = place_biases({"q0": question}, [replace(chosen("q0", "o1"), options=question.options)])
    assert (found.wrong, found.chosen) == (None, (0, 1))
