"""Item analysis against numpy, scipy and a system of planted faults."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hoofbeat.findings.item_analysis import (
    AGREED,
    EVERYBODY,
    NEGATIVE,
    SECOND,
    cronbach_alpha,
    fisher_interval,
    item_statistics,
    score_matrix,
)
from hoofbeat.findings.outcomes import Outcome, choice_outcomes
from hoofbeat.records import Answer, Question
from tests.findings.support import chosen, options_question, single

SYSTEMS = 12


def scores(items: int = 30, seed: int = 1) -> np.ndarray:
    """Systems × questions, right or wrong, by a Rasch model."""
    rng = np.random.default_rng(seed)
    able, hard = np.linspace(-2, 2, SYSTEMS), rng.normal(size=items)
    return (rng.random((SYSTEMS, items)) < 1 / (1 + np.exp(hard - able[:, None]))).astype(int)


def outcomes_of(table: np.ndarray) -> list[Outcome]:
    return [row for number, line in enumerate(table) for row in single("".join(map(str, line)), f"m{number:02}")]


def test_difficulty_and_discrimination_are_those_of_scipy() -> None:
    table = scores()
    found = item_statistics(score_matrix(outcomes_of(table)), {})
    for place, item in enumerate(found):
        rest = np.delete(table, place, axis=1).mean(axis=1)
        assert item.difficulty == pytest.approx(table[:, place].mean())
        if len(set(table[:, place])) == 1:
            assert item.discrimination is None
            continue
        expected = stats.pearsonr(table[:, place], rest)
        assert item.discrimination == pytest.approx(expected.statistic)
        interval = expected.confidence_interval()
        assert item.discrimination_interval is not None
        assert item.discrimination_interval.low == pytest.approx(interval.low, abs=1e-6)
        assert item.discrimination_interval.high == pytest.approx(interval.high, abs=1e-6)


def test_reliability_is_cronbachs_alpha_by_covariances() -> None:
    table = scores()
    covariance = np.cov(table.T)
    k = len(covariance)
    within = (covariance.sum() - np.trace(covariance)) / (k * (k - 1))
    expected = k * within / (np.trace(covariance) / k + (k - 1) * within)
    assert cronbach_alpha(score_matrix(outcomes_of(table))) == pytest.approx(expected)
    assert cronbach_alpha(score_matrix(outcomes_of(table[:4]))) is None


def test_few_systems_give_no_figure_that_pretends() -> None:
    four = item_statistics(score_matrix(outcomes_of(scores()[:4])), {})
    assert all(item.discrimination is None and item.difficulty_interval is None for item in four)
    six = item_statistics(score_matrix(outcomes_of(scores()[::2])), {})
    assert any(item.discrimination is not None for item in six)
    assert all(item.discrimination_interval is None for item in six)
    assert fisher_interval(0.5, 9) is None


def test_unscored_answers_are_missing_and_systems_with_few_answers_left_out() -> None:
    rows = [*single("11?0", "a"), *single("1100", "b"), *single("1???", "c")]
    matrix = score_matrix(rows)
    assert matrix.systems == (("a", "c"), ("b", "c"))
    assert matrix.left_out == (("c", "c"),)
    assert [(item.difficulty, item.systems) for item in item_statistics(matrix, {})] == [(1, 2), (1, 2), (0, 1), (0, 2)]
    assert score_matrix([]).values.shape == (0, 0)


def test_planted_faults_are_found() -> None:
    """Eight systems of rising ability; each question's o0 is the key."""
    names = [f"m{number}" for number in range(8)]
    filler = [options_question(number) for number in range(20)]
    planted = [options_question(number) for number in (100, 101, 102, 103)]

    def choice(question: Question, able: int) -> str:
        number = int(question.id[1:])
        if number < 20:
            return "o0" if able * 3 > number else f"o{1 + number % 2}"
        good = able >= 4
        return {100: "o0", 101: "o2", 102: "o1" if able >= 3 else "o0", 103: "o0" if good else "o3"}[number]

    questions = [*filler, *planted]
    answers: list[Answer] = [
        chosen(question.id, choice(question, able), model=name)
        for able, name in enumerate(names)
        for question in questions
    ]
    matrix = score_matrix(choice_outcomes(questions, answers))
    items = {item.question: item for item in item_statistics(matrix, {q.id: q for q in questions}, answers)}
    assert items["q100"].flags == (EVERYBODY,)
    assert items["q101"].flags == (AGREED,)
    assert items["q101"].suspect == "o2"
    assert items["q102"].flags == (SECOND, NEGATIVE)
    assert items["q102"].suspect == "o1"
    assert items["q103"].flags == ()
    assert items["q103"].unused == 2
    tried = {option.option: option for option in items["q102"].options}
    assert (tried["o0"].answers, tried["o1"].systems, tried["o2"].answers) == (3, 5, 0)
    rest = matrix.rest()[:, list(matrix.questions).index("q102")]
    assert tried["o1"].rest_score == pytest.approx(rest[3:].mean())
    picked = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    assert tried["o1"].correlation == pytest.approx(stats.pearsonr(picked, rest).statistic)
