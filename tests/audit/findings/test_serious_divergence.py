from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from hoofbeat.audit.findings.pair_arrays import pairs_of
from hoofbeat.audit.findings.relations import NO_GROUP
from hoofbeat.audit.findings.serious_divergence import (
    BY_QUESTION,
    BY_SOURCE,
    BY_TOPIC,
    serious_pairs,
    severity_ranking,
    side_by_side,
)
from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.systems import correlation
from hoofbeat.records import Answer, Comparison, Passage, Question
from tests.audit.findings.support import FACETS, QUESTIONS, audit, audits, plain_table, table

WEIGHTS = {"low": 1.0, "medium": 2.5, "high": 7.0}
DIVERGING = ("Divergent", "Contradictory")


def things(row: Comparison, by: str) -> list[str]:
    if by == BY_QUESTION:
        return [row.question]
    if by == BY_SOURCE:
        return [row.a, row.b]
    if by == BY_TOPIC:
        return [row.topic] if row.topic else []
    value = FACETS[row.question]
    return [value] if isinstance(value, str) else list(value) or [NO_GROUP]


@settings(deadline=None, max_examples=60)
@given(audits, st.text("lmh.", min_size=1, max_size=7), st.sampled_from([BY_QUESTION, BY_SOURCE, BY_TOPIC, "organ"]))
def test_the_ranking_is_what_adding_up_gives(questions: dict[str, str], rated: str, by: str) -> None:
    rows = audit(questions, rated)
    counts: Counter[str] = Counter()
    weighted: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for row in rows:
        for name in things(row, by) if not row.failure else []:
            judged[name] += row.label != "Absent"
            if row.label in DIVERGING:
                counts[name] += 1
                weighted[name] += WEIGHTS.get(row.significance or "", 0.5)  # type: ignore[assignment]
    for frame in (table(rows), plain_table(rows).lazy()):
        found = severity_ranking(frame, QUESTIONS, by, weights=WEIGHTS, unrated=0.5, samples=20)
        assert {row.name: row.diverging for row in found.rows} == dict(counts)
        assert {row.name: row.weighted for row in found.rows} == pytest.approx(dict(weighted))
        for place in found.rows:
            assert sum(place.levels.values()) + place.unrated == place.diverging
            assert place.judged == (None if by == BY_TOPIC else judged[place.name])
        if by == BY_TOPIC:
            assert found.rate_spearman is None
    names = [row.name for row in found.rows]
    xs, ys = [counts[name] for name in names], [weighted[name] for name in names]
    assert [row.rank for row in found.rows] == pytest.approx(rankdata([-x for x in xs]).tolist())
    assert [row.weighted_rank for row in found.rows] == pytest.approx(rankdata([-y for y in ys]).tolist())
    assert [row.weighted for row in found.rows] == sorted(ys, reverse=True)
    if len(names) < 3 or len(set(xs)) == 1 or len(set(ys)) == 1:
        assert found.spearman is None
    else:
        assert found.spearman == pytest.approx(spearmanr(xs, ys).statistic)


def test_the_intervals_are_those_of_a_correlation_over_the_same_things() -> None:
    rng = np.random.default_rng(3)
    questions = {f"q{n:02}": "".join(rng.choice(list("-cmdx"), 6, p=[0.2, 0.2, 0.2, 0.3, 0.1])) for n in range(60)}
    rows = audit(questions, "".join(rng.choice(list("lmh"), 97)))
    found = severity_ranking(table(rows), [], BY_QUESTION, weights=WEIGHTS, pairs=pairs_of(table(rows)))
    ordered = sorted(found.rows, key=lambda row: row.name)
    counts = correlation([row.diverging for row in ordered], [row.weighted for row in ordered])
    rates = correlation(
        [row.diverging / (row.judged or 1) for row in ordered], [row.weighted / (row.judged or 1) for row in ordered]
    )
    for value, interval, known in (
        (found.spearman, found.interval, counts),
        (found.rate_spearman, found.rate_interval, rates),
    ):
        assert value == pytest.approx(known.spearman)
        assert interval is not None
        assert known.spearman_interval is not None
        assert (interval.low, interval.high) == pytest.approx(
            (known.spearman_interval.low, known.spearman_interval.high), abs=1e-9
        )


def test_weights_change_the_order() -> None:
    rows = audit({"a": "dddddd", "b": "d-----", "c": "dd----"}, "llllllhll")
    found = severity_ranking(table(rows), [], BY_QUESTION, weights={"low": 1, "medium": 2, "high": 20})
    assert [(row.name, row.diverging, row.weighted, row.rank, row.weighted_rank) for row in found.rows] == [
        ("b", 1, 20.0, 3.0, 1.0),
        ("a", 6, 6.0, 1.0, 2.0),
        ("c", 2, 2.0, 2.0, 3.0),
    ]
    assert found.spearman == pytest.approx(-0.5)
    assert found.interval is None  # of three things there is none


def test_severity_refuses_what_makes_no_sense() -> None:
    rows = table(audit({"a": "dd----"}))
    for weights in ({}, {"low": -1.0}):
        with pytest.raises(UsageError, match="weight"):
            severity_ranking(rows, [], weights=weights)
    with pytest.raises(InputError, match="'a' is not in the benchmark"):
        severity_ranking(rows, QUESTIONS[1:], "organ")
    assert severity_ranking(table(audit({"a": "cm----"})), []).rows == ()


@settings(deadline=None, max_examples=50)
@given(audits, st.text("lmh.", min_size=1, max_size=7), st.integers(0, 3), st.integers(1, 12))
def test_serious_pairs_are_the_first_of_the_sorted_ones(
    questions: dict[str, str], rated: str, per_question: int, top: int
) -> None:
    rows = audit(questions, rated)
    diverging = [row for row in rows if not row.failure and row.label in DIVERGING]

    def weight(row: Comparison) -> tuple[int, int]:
        return (
            -["", "low", "medium", "high"].index(row.significance or ""),
            -DIVERGING.index(row.label),
        )

    expected: list[Comparison] = []
    for row in sorted(diverging, key=lambda row: (*weight(row), row.question, row.a, row.b)):
        if not per_question or sum(kept.question == row.question for kept in expected) < per_question:
            expected.append(row)
    for frame in (table(rows), plain_table(rows).lazy()):
        found = serious_pairs(frame, top=top, per_question=per_question)
        assert [(pair.question, pair.a, pair.b, pair.reasoning) for pair in found] == [
            (row.question, row.a, row.b, row.reasoning) for row in expected[:top]
        ]
        for pair, row in zip(found, expected, strict=False):
            assert (pair.topic, pair.significance, pair.label) == (row.topic or "", row.significance or "", row.label)
            assert pair.alike == sum(
                other.question == row.question and weight(other) == weight(row) for other in diverging
            )


def test_both_answers_and_their_passages_stand_side_by_side() -> None:
    def answer(source: str, cited: tuple[str, ...]) -> Answer:
        shown = tuple(
            Passage(id=f"{source}#{heading}", document=source, text=f"{heading} of {source}", heading=heading)
            for heading in ("Diet", "Bathing")
        )
        text = f"{source} says so"
        return Answer(
            question="a", model="m", condition="source", source=source, text=text, citations=cited, evidence=shown
        )

    pairs = serious_pairs(table(audit({"a": "d-----", "b": "d-----"}, "h")))
    other = Answer(question="zz", model="m", condition="source", source="s1", text="another")
    answers = iter([answer("s1", ("Bathing",)), answer("s2", ("Gone",)), other])
    first, second = side_by_side(pairs, [Question(id="a", text="May I bathe?")], answers)
    assert (first.text, second.text, second.a, second.b) == ("May I bathe?", "", None, None)
    assert first.a is not None
    assert first.b is not None
    assert (first.a.text, first.a.cited, first.a.passage and first.a.passage.text) == (
        "s1 says so",
        True,
        "Bathing of s1",
    )
    assert (first.b.cited, first.b.passage and first.b.passage.text) == (False, "Diet of s2")


def test_the_passage_beside_an_answer_is_the_one_it_cites_with_its_page() -> None:
    shown = tuple(
        Passage(id=f"s1#{page}", document="s1", text=f"{heading}.", heading=heading, page=page)
        for page, heading in enumerate(("Intro", "Diet"), 1)
    )
    cited = ("Diet (page 2)",)
    answer = Answer(question="a", model="m", condition="source", source="s1", citations=cited, evidence=shown)
    first = side_by_side(serious_pairs(table(audit({"a": "d-----"}, "h"))), [], [answer])[0]
    assert first.a is not None
    assert (first.a.cited, first.a.passage) == (True, shown[1])
