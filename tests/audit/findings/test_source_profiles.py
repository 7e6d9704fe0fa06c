from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings

from hoofbeat.audit.findings.relations import coverage
from hoofbeat.audit.findings.source_profiles import (
    coverage_heat,
    outlier_sources,
    pair_rates,
    slim_answers,
    source_rows,
)
from hoofbeat.records import Answer, Comparison, Failure, Question
from tests.audit.findings.support import NAMES, SOURCES, audit, audits, table

DIVERGING = {"Divergent", "Contradictory"}


def told(question: str, source: str, absent: bool | None, failure: Failure | None = None) -> Answer:
    return Answer(question=question, model="m", condition="source", source=source, absent=absent, failure=failure)


@settings(deadline=None, max_examples=50)
@given(audits)
def test_sources_and_their_pairs_are_counted_as_they_stand(questions: dict[str, str]) -> None:
    rows = audit(questions)
    judged = [row for row in rows if not row.failure and row.label != "Absent"]
    found = {row.source: row for row in source_rows(table(rows))}
    rates = pair_rates(table(rows))
    for source in SOURCES:
        mine = [row for row in judged if source in (row.a, row.b)]
        assert found[source].pairs == sum(source in (row.a, row.b) for row in rows)
        assert found[source].judged == len(mine)
        assert found[source].diverging == sum(row.label in DIVERGING for row in mine)
        assert found[source].consistent == sum(row.label == "Consistent" for row in mine)
        assert found[source].r_div == (found[source].diverging / len(mine) if mine else None)
        assert found[source].coverage is None
    for (i, a), (j, b) in combinations(enumerate(rates.sources), 2):
        mine = [row for row in judged if (row.a, row.b) == (a, b)]
        assert rates.judged[i][j] == rates.judged[j][i] == len(mine)
        assert rates.diverging[i][j] == rates.diverging[j][i] == sum(row.label in DIVERGING for row in mine)
        assert rates.contradictory[i][j] == sum(row.label == "Contradictory" for row in mine)
        assert rates.share(i, j) == (rates.diverging[i][j] / len(mine) if mine else None)
        assert rates.judged[i][i] == 0


@settings(deadline=None, max_examples=50)
@given(audits)
def test_the_odd_one_is_measured_against_the_others_on_the_same_questions(questions: dict[str, str]) -> None:
    rows = [row for row in audit(questions) if not row.failure and row.label != "Absent"]
    found = {row.source: row for row in outlier_sources(table(audit(questions)), samples=20)}
    assert set(found) == {source for row in rows for source in (row.a, row.b)}
    for source, told_of in found.items():
        matched = observed = 0
        expected = Fraction(0)
        for question in questions:
            here = [row for row in rows if row.question == question]
            mine = [row for row in here if source in (row.a, row.b)]
            others = [row for row in here if source not in (row.a, row.b)]
            if mine and others:
                matched += len(mine)
                observed += sum(row.label in DIVERGING for row in mine)
                expected += Fraction(len(mine) * sum(row.label in DIVERGING for row in others), len(others))
        assert told_of.matched == matched
        assert told_of.expected == (pytest.approx(float(expected / matched)) if matched else None)
        assert told_of.observed == (pytest.approx(observed / matched) if matched else None)
        assert told_of.ratio == (pytest.approx(float(observed / expected)) if expected else None)
        assert told_of.excess == (pytest.approx(float((observed - expected) / matched)) if matched else None)


def invented(rng: np.random.Generator, odd: float, coverage: float = 1.0, questions: int = 150) -> list[Comparison]:
    """Five sources; s5 answers with `coverage` and differs from the others by a rate `odd`, they by 0.2."""
    rows = []
    for number in range(questions):
        speaks = {f"s{n}": n < 5 or rng.random() < coverage for n in range(1, 6)}
        for a, b in combinations(speaks, 2):
            rate = odd if b == "s5" else 0.2
            label = "-" if not (speaks[a] and speaks[b]) else "d" if rng.random() < rate else "m"
            rows.append(Comparison(question=f"q{number:03}", a=a, b=b, label=NAMES[label]))
    return rows


def test_a_planted_odd_one_comes_first_and_its_ratio_comes_back() -> None:
    found = outlier_sources(table(invented(np.random.default_rng(2), 0.5)))
    assert found[0].source == "s5"
    assert found[0].ratio == pytest.approx(2.5, rel=0.15)
    assert found[0].interval is not None
    assert found[0].interval.low < 2.5 < found[0].interval.high
    assert all(row.excess_interval is not None and row.excess_interval.low < 0 for row in found[1:])


def test_answering_less_does_not_make_a_source_less_odd_nor_more() -> None:
    for odd in (0.2, 0.5):
        seldom = next(
            row for row in outlier_sources(table(invented(np.random.default_rng(5), odd, 0.3))) if row.source == "s5"
        )
        assert seldom.judged < 0.4 * 600
        assert seldom.interval is not None
        assert seldom.interval.low < odd / 0.2 < seldom.interval.high


def test_a_source_that_speaks_only_where_all_differ_is_not_odd() -> None:
    contested = {
        "a": "dddddd",
        "b": "dddddd",
        "c": "ccc---",
        "d": "ccc---",
    }  # s1 with s2, s3, s4; then those among them
    quiet = {"c": "---ccc", "d": "---ccc"}
    rows = audit({**contested, **quiet})  # s1 speaks on a and b only
    s1 = next(row for row in outlier_sources(table(rows)) if row.source == "s1")
    assert (s1.share, s1.expected, s1.ratio, s1.excess) == (1.0, 1.0, 1.0, 0.0)


def test_two_sources_have_no_others() -> None:
    rows = [Comparison(question="q", a="x", b="y", label="Divergent")]
    for row in outlier_sources(table(rows)):
        assert (row.share, row.matched, row.ratio, row.excess, row.interval) == (1.0, 0, None, None, None)
    assert outlier_sources(table(audit({"a": "------"}))) == []


def test_the_interval_resamples_questions_and_comes_again() -> None:
    rows = invented(np.random.default_rng(8), 0.4)
    one, two = outlier_sources(table(rows), samples=2000), outlier_sources(table(rows), samples=2000)
    assert one == two
    rng = np.random.default_rng(1)
    by_question: dict[str, list[tuple[bool, bool]]] = {}
    for row in rows:
        by_question.setdefault(row.question, []).append((row.b == "s5", row.label in DIVERGING))
    counts = np.array(
        [[sum(d for o, d in found if o), sum(d for o, d in found if not o) * 4 / 6] for found in by_question.values()]
    )
    draws = [counts[rng.integers(len(counts), size=len(counts))].sum(axis=0) for _ in range(2000)]
    reference = np.quantile([observed / expected for observed, expected in draws], [0.025, 0.975])
    assert one[0].interval is not None
    assert (one[0].interval.low, one[0].interval.high) == pytest.approx(reference, abs=0.06)


def test_coverage_and_its_heatmap() -> None:
    timeout = Failure(kind="timeout", message="x")
    answers = [
        told("q1", "s1", False), told("q2", "s1", True), told("q3", "s1", None, timeout), told("q1", "s2", False),
        told("q3", "s9", True),
    ]  # fmt: skip
    questions = [
        Question(id="q1", text="", facets={"organ": ["liver", "lung"]}),
        Question(id="q2", text="", facets={"organ": "liver"}),
        Question(id="q3", text=""),
    ]
    rows = {row.source: row for row in source_rows(table(audit({"q1": "d"})), answers)}
    assert list(rows) == ["s1", "s2", "s9"]
    assert (rows["s1"].planned, rows["s1"].answered, rows["s1"].absent, rows["s1"].unscored) == (3, 1, 1, 1)
    assert (rows["s1"].coverage, rows["s1"].judged, rows["s1"].r_div) == (1 / 3, 1, 1.0)
    assert (rows["s9"].pairs, rows["s9"].coverage, rows["s9"].r_div) == (0, 0.0, None)
    heat = coverage_heat(answers, questions, "organ")
    assert heat.sources == ("s1", "s2", "s9")
    assert heat.groups == ("(none)", "liver", "lung")
    assert heat.cells == ((0.0, 0.5, 1.0), (None, 1.0, 1.0), (0.0, None, None))
    assert heat.planned == ((1, 2, 1), (0, 1, 1), (1, 0, 0))
    assert heat.answered == ((0, 1, 1), (0, 1, 1), (0, 0, 0))
    assert coverage(slim_answers(answers)) == coverage(answers)
    assert coverage_heat(slim_answers(answers), questions, "organ") == heat
