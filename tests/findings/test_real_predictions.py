"""Real predictions of five models: our figures against the same computed separately with numpy, scipy, statsmodels.

Nothing of the package is used on the other side: the file is read anew and every figure written out.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from hoofbeat.findings.accuracy import accuracies, comparable_pairs, differences, leaderboard
from hoofbeat.findings.option_decisions import option_decisions
from hoofbeat.findings.outcomes import Outcome, choice_outcomes
from hoofbeat.findings.repeated_answers import bootstrap_sd
from hoofbeat.records import Answer, Question
from tests.helpers import shared_data

CONDITION = "closed, letter"
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    with gzip.open(shared_data("mcq_predictions.jsonl.gz"), "rt") as stream:
        return [json.loads(line) for line in stream]


@pytest.fixture(scope="module")
def questions(rows: Rows) -> list[Question]:
    return [
        Question(
            id=f"{row['dataset']}/{row['id']}",
            text=row["question"],
            options=tuple(row["options"]),
            answer=row["answer"],
            facets={"dataset": row["dataset"]},
        )
        for row in rows
        if row["options"]
    ]


@pytest.fixture(scope="module")
def answers(rows: Rows) -> list[Answer]:
    return [
        Answer(
            question=f"{row['dataset']}/{row['id']}",
            model=row["model"],
            condition=CONDITION,
            protocol="letter",
            choice=row["predicted"],
        )
        for row in rows
    ]


@pytest.fixture(scope="module")
def found(questions: list[Question], answers: list[Answer]) -> list[Outcome]:
    return choice_outcomes(questions, answers)


@pytest.fixture(scope="module")
def right(rows: Rows) -> dict[str, NDArray[np.bool_]]:
    """Model to right or wrong, question by question in one order: the other side's own reading of the file."""
    ids = sorted({(row["dataset"], row["id"]) for row in rows})
    places = {key: place for place, key in enumerate(ids)}
    table: dict[str, NDArray[np.bool_]] = {}
    for row in rows:
        marks = table.setdefault(row["model"], np.zeros(len(ids), np.bool_))
        marks[places[row["dataset"], row["id"]]] = row["predicted"] == row["answer"]
    return table


def resampled(right: NDArray[np.bool_], seed: int) -> Iterator[float]:
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        yield float(right[rng.integers(len(right), size=len(right))].mean())


def test_accuracies_and_intervals(found: list[Outcome], right: dict[str, NDArray[np.bool_]]) -> None:
    table = accuracies(found)
    assert [row.model for row in table] == sorted(right)
    assert len(table) == 5
    for row in table:
        marks = right[row.model]
        assert (row.planned, row.correct, row.unscored) == (len(marks), int(marks.sum()), {})
        assert row.accuracy == pytest.approx(float(marks.mean()))
        low, high = proportion_confint(int(marks.sum()), len(marks), method="wilson")
        assert (row.wilson.low, row.wilson.high) == pytest.approx((low, high), abs=1e-12)
        theirs = np.quantile(list(resampled(marks, seed=99)), [0.025, 0.975])
        assert (row.bootstrap.low, row.bootstrap.high) == pytest.approx(theirs, abs=0.008)


def test_paired_tests_of_all_ten_pairs(found: list[Outcome], right: dict[str, NDArray[np.bool_]]) -> None:
    table = differences(found, comparable_pairs(found, "condition"))
    assert [(row.a[0], row.b[0]) for row in table] == list(combinations(sorted(right), 2))
    raw = []
    for row in table:
        a, b = right[row.a[0]], right[row.b[0]]
        counts = [[int((a & b).sum()), int((a & ~b).sum())], [int((~a & b).sum()), int((~a & ~b).sum())]]
        assert (row.only_a, row.only_b) == (counts[0][1], counts[1][0])
        raw.append(min(1.0, mcnemar(counts, exact=True).pvalue))
        assert row.p == pytest.approx(raw[-1], rel=1e-9)
        assert row.paired.difference == pytest.approx(float(a.mean() - b.mean()))
        rng = np.random.default_rng(5)
        delta = a.astype(float) - b
        theirs = np.quantile([delta[rng.integers(len(a), size=len(a))].mean() for _ in range(1000)], [0.025, 0.975])
        assert (row.paired.interval.low, row.paired.interval.high) == pytest.approx(theirs, abs=0.008)
    adjusted = multipletests(raw, method="holm")[1]
    assert [row.p_holm for row in table] == pytest.approx(list(adjusted), rel=1e-9)


def test_places(found: list[Outcome], right: dict[str, NDArray[np.bool_]]) -> None:
    board = leaderboard(found, samples=3000)
    best_first = sorted(right, key=lambda model: -right[model].mean())
    assert [place.system[0] for place in board] == best_first
    table = np.stack([right[model] for model in best_first]).astype(float)
    rng = np.random.default_rng(17)
    means = (table[:, rng.integers(table.shape[1], size=table.shape[1])].mean(axis=1) for _ in range(3000))
    ranks = np.array([[1 + (mean > own + 1e-12).sum() for own in mean] for mean in means])
    ends = np.quantile(ranks, [0.025, 0.975], axis=0)
    assert [place.rank_interval for place in board] == [(int(low), int(high)) for low, high in ends.T]


def test_sensitivity_and_specificity(questions: list[Question], answers: list[Answer], rows: Rows) -> None:
    size = {f"{row['dataset']}/{row['id']}": len(row["options"]) for row in rows if row["options"]}
    for found in option_decisions(questions, answers, "dataset"):
        mine = [row for row in rows if row["model"] == found.model]
        right = np.array([row["predicted"] == row["answer"] for row in mine])
        options = np.array([size[f"{row['dataset']}/{row['id']}"] for row in mine])
        tn, fp = int((options - 1).sum() - (~right).sum()), int((~right).sum())
        assert (found.tp, found.fn, found.tn, found.fp) == (int(right.sum()), fp, tn, fp)
        assert found.specificity.value == pytest.approx(tn / (tn + fp))
        low, high = proportion_confint(tn, tn + fp, method="wilson")
        assert found.specificity.interval is not None
        assert (found.specificity.interval.low, found.specificity.interval.high) == pytest.approx((low, high), abs=0.02)
        sets = np.array([row["dataset"] for row in mine])
        macro = np.mean([right[sets == name].mean() for name in np.unique(sets)])
        assert found.macro_sensitivity is not None
        assert found.macro_sensitivity.value == pytest.approx(float(macro))


def test_bootstrap_samples_of_500(found: list[Outcome], right: dict[str, NDArray[np.bool_]]) -> None:
    for model, marks in right.items():
        ours = bootstrap_sd([float(row.correct is True) for row in found if row.model == model], draws=2000)
        assert ours.mean == pytest.approx(float(marks.mean()), abs=0.003)
        assert ours.std == pytest.approx(float(np.sqrt(marks.var() / 500)), rel=0.06)
