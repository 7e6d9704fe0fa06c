from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sklearn.metrics import confusion_matrix

from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.option_decisions import option_decisions
from hoofbeat.findings.outcomes import choice_outcomes
from hoofbeat.records import AcceptedAnswer, Answer, Question
from tests.findings.support import chosen, options_question

choices = st.lists(st.tuples(st.integers(2, 8), st.integers(-1, 7)), min_size=1, max_size=20)


def made(picks: list[tuple[int, int]]) -> tuple[list[Question], list[Answer]]:
    """Questions with so many options, and the option picked (-1: none)."""
    questions = [options_question(number, options) for number, (options, _) in enumerate(picks)]
    answers = [
        chosen(f"q{number}", None if pick < 0 else f"o{pick % options}") for number, (options, pick) in enumerate(picks)
    ]
    return questions, answers


def test_by_hand() -> None:
    questions, answers = made([(4, 0), (4, 2), (6, 0), (3, -1)])
    (row,) = option_decisions(questions, answers)
    assert (row.tp, row.fn, row.tn, row.fp, row.unscored) == (2, 2, 3 + 2 + 5 + 2, 1, 1)
    assert row.sensitivity.value == pytest.approx(0.5)
    assert row.specificity.value == pytest.approx(12 / 13)
    assert row.sensitivity.interval == wilson(2, 4)
    assert row.specificity.interval == wilson(4 * 12 / 13, 4)
    assert row.sensitivity.sensitivity_range == pytest.approx((2 / 4, 3 / 4))
    assert row.specificity.sensitivity_range == pytest.approx((11 / 13, 12 / 13))
    assert row.macro_sensitivity is None


@settings(deadline=None)
@given(choices)
def test_as_scikit_learn_counts_option_decisions(picks: list[tuple[int, int]]) -> None:
    questions, answers = made(picks)
    truth = [option == "o0" for question in questions for option in question.options]
    said = [option == a.choice for question, a in zip(questions, answers, strict=True) for option in question.options]
    tn, fp, fn, tp = confusion_matrix(truth, said, labels=[False, True]).ravel()
    (row,) = option_decisions(questions, answers, samples=20)
    assert (row.tn, row.fp, row.fn, row.tp) == (tn, fp, fn, tp)
    (accuracy,) = accuracies(choice_outcomes(questions, answers), samples=20)
    assert row.sensitivity.value == pytest.approx(accuracy.accuracy)
    assert row.sensitivity.interval == accuracy.bootstrap


def test_macro_weighs_specialties_the_same() -> None:
    questions = [
        *(options_question(number, specialty="cardiology") for number in range(8)),
        options_question(8, specialty=["nephrology", "cardiology"]),
        options_question(9),
    ]
    answers = [chosen(f"q{number}", "o0" if number < 4 else "o1") for number in range(10)]
    (row,) = option_decisions(questions, answers, "specialty")
    macro = row.macro_sensitivity
    assert macro is not None
    assert macro.groups == pytest.approx({"cardiology": 4 / 9, "nephrology": 0.0, "(none)": 0.0})
    assert macro.value == pytest.approx(np.mean([4 / 9, 0, 0]))
    assert macro.interval.low <= macro.value <= macro.interval.high
    specific = row.macro_specificity
    assert specific is not None
    assert specific.value == pytest.approx(np.mean([(4 * 3 + 5 * 2) / 27, 2 / 3, 2 / 3]))
    assert row.sensitivity.value == pytest.approx(0.4)


def test_only_systems_that_choose() -> None:
    questions, answers = made([(4, 0), (4, 1)])
    free = Answer(question="q0", model="m", condition="closed", text="o0")
    other = [chosen(f"q{number}", "o0", model="n") for number in range(2)]
    table = option_decisions(questions, iter([free, *other, *answers]))
    assert [(row.model, row.condition, row.answers) for row in table] == [
        ("m", "closed, letter", 2),
        ("n", "closed, letter", 2),
    ]
    assert option_decisions([], []) == []


def test_one_option_has_no_specificity() -> None:
    (row,) = option_decisions(*made([(1, 0)]))
    assert (row.specificity.value, row.specificity.interval, row.specificity.of) == (None, None, 0)
    assert row.sensitivity.value == 1.0


def test_a_question_without_options_decides_nothing() -> None:
    questions, answers = made([(4, 0), (4, 1)])
    bare = Question(id="q9", text="?", answer="words")
    (row,) = option_decisions([*questions, bare], [*answers, chosen("q9", None, failure="input")])
    assert (row.tp, row.fn, row.tn, row.fp) == (1, 1, 5, 1)
    assert (row.answers, row.unscored, row.undecided) == (3, 1, 1)
    assert row.sensitivity.sensitivity_range is None
    (alone,) = option_decisions([bare], [chosen("q9", None, failure="input")])
    assert (alone.sensitivity.value, alone.unscored, alone.undecided) == (None, 1, 1)
    assert option_decisions([bare], [chosen("q9", "words")]) == []  # its key is known, its other options are not


def test_an_accepted_option_is_a_right_one() -> None:
    question = replace(options_question(0), accepted=(AcceptedAnswer(text="o1"),))
    [found] = option_decisions([question], [chosen("q0", "o1")])
    assert (found.tp, found.fn, found.tn, found.fp) == (1, 0, 2, 0)
    assert choice_outcomes([question], [chosen("q0", "o1")])[0].correct is True
    assert choice_outcomes([question], [chosen("q0", "o2")])[0].correct is False
