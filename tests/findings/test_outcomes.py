from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hoofbeat.answering.choice_reader import read_choice
from hoofbeat.errors import InputError
from hoofbeat.findings.accuracy import accuracies
from hoofbeat.findings.intervals import wilson
from hoofbeat.findings.outcomes import choice_outcomes, mode_shares, outcomes, scored_outcomes
from hoofbeat.records import Answer, Failure, Judgment
from tests.findings.support import chosen, options_question

QUESTIONS = [options_question(number) for number in range(6)]


def judged(question: str, label: str, judge: str = "j", **other: object) -> Judgment:
    return Judgment(question=question, model="m", condition="closed", judge=judge, label=label, **other)  # type: ignore[arg-type]


def free(question: str) -> Answer:
    return Answer(question=question, model="m", condition="closed", text="t")


def test_a_choice_is_scored_without_a_judge() -> None:
    answers = [
        chosen("q0", "o0"),
        chosen("q1", "o2"),
        chosen("q2", None, reading="ambiguous: several options are named as the answer"),
        chosen("q3", None, reading="two options are named"),
        chosen("q4", None, reading="none: the model declines to answer"),
        chosen("q5", None, failure="timeout"),
    ]
    found = choice_outcomes(iter(QUESTIONS), iter(answers))
    assert [row.correct for row in found] == [True, False, None, None, None, None]
    (row,) = accuracies(found)
    assert row.unscored == {"answer:timeout": 1, "choice:ambiguous": 2, "choice:none": 1}
    assert (row.planned, row.correct) == (6, 1)
    assert row.sensitivity == pytest.approx((1 / 6, 5 / 6))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The answer is o1. The answer is o2.", "choice:ambiguous"),
        ("The answer is A and B.", "choice:ambiguous"),
        ("I can't help with medical questions.", "choice:none"),
        ("", "choice:none"),
        ("The weather is fine.", "choice:none"),
    ],
)
def test_reasons_follow_the_reader(text: str, reason: str) -> None:
    options = ("aspirin", "bisoprolol", "digoxin")
    reading = read_choice(text.replace("o1", options[1]).replace("o2", options[2]), options)
    assert reading.choice is None
    for words in (reading.words, reading.why):
        answer = replace(chosen("q0", None), reading=words)
        (row,) = choice_outcomes([replace(QUESTIONS[0], options=options, answer="aspirin")], [answer])
        assert row.unscored == reason


def test_free_text_by_judgments_and_choices_by_choice() -> None:
    answers = [chosen("q0", "o0"), chosen("q1", "o1"), free("q0"), free("q1"), free("q2")]
    letters = replace(judged("q0", "mismatch"), condition="closed, letter")
    labels = [
        judged("q0", "equivalent"),
        judged("q1", "", failure=Failure(kind="schema", message="x")),
        letters,
        judged("q0", "mismatch", "human:ada"),
        judged("q0", "grounding", aspect="failure-mode"),
    ]
    found = {(row.question, row.condition): row for row in scored_outcomes(QUESTIONS, answers, labels)}
    assert found["q0", "closed, letter"].correct is True
    assert found["q1", "closed, letter"].correct is False
    assert found["q0", "closed"].correct is True
    assert found["q1", "closed"].unscored == "judgment:schema"
    assert found["q2", "closed"].unscored == "unjudged"
    by_ada = scored_outcomes(QUESTIONS, answers, labels, judge="human:ada")
    assert [row.unscored for row in by_ada[2:]] == ["", "unjudged", "unjudged"]
    assert by_ada[2].correct is False


def test_people_check_the_judge_and_do_not_score_unasked() -> None:
    labels = [judged("q0", "equivalent"), judged("q0", "mismatch", "human:ada")]
    assert [row.correct for row in outcomes([free("q0")], labels)] == [True]
    assert [row.unscored for row in outcomes([free("q0")], labels[1:])] == ["unjudged"]


def test_what_cannot_be_scored_is_said() -> None:
    broken = replace(QUESTIONS[0], answer="A")
    with pytest.raises(InputError, match="'q0' is not one of its 4 options"):
        choice_outcomes([broken], [chosen("q0", "o0")])
    with pytest.raises(InputError, match="chose 'o9'"):
        choice_outcomes(QUESTIONS, [chosen("q0", "o9")])
    with pytest.raises(InputError, match="not in the benchmark"):
        choice_outcomes([], [chosen("q0", "o0")])
    with pytest.raises(InputError, match="twice"):
        choice_outcomes(QUESTIONS, [chosen("q0", "o0"), chosen("q0", "o1")])
    with pytest.raises(InputError, match="no answer"):
        scored_outcomes(QUESTIONS, [free("q1")], [judged("q0", "equivalent")])
    assert choice_outcomes([broken], [free("q0")]) == []


def test_the_option_s_own_text_counts_not_its_letter() -> None:
    question = replace(QUESTIONS[0], options=("A", "B", "o0"), answer="B")
    answer = replace(chosen("q0", "A"), options=("B", "A", "o0"))
    assert [row.correct for row in choice_outcomes([question], [answer])] == [False]


def test_a_failed_answer_to_a_question_without_options_is_unscored() -> None:
    open_question = replace(QUESTIONS[1], options=(), answer="Some words.")
    answers = [chosen("q0", "o0"), chosen("q1", None, failure="input")]
    found = scored_outcomes([QUESTIONS[0], open_question], answers)
    assert [(row.correct, row.unscored) for row in found] == [(True, ""), (None, "answer:input")]
    with pytest.raises(InputError, match="not in the benchmark"):
        choice_outcomes([QUESTIONS[0]], answers)


MODES = ("grounding", "objective", "qualifier", "granularity", "stage", "other")


def explained(number: int, label: str, secondary: str = "", model: str = "m", judge: str = "j") -> Judgment:
    return Judgment(
        question=f"q{number}",
        model=model,
        condition="c",
        judge=judge,
        aspect="failure-mode",
        label=label,
        secondary=secondary,
        failure=None if label else Failure(kind="schema", message="x"),
    )


def test_shares_with_secondary_apart() -> None:
    rows = [explained(0, "grounding", "stage"), explained(1, "grounding"), explained(2, "stage"), explained(3, "")]
    table = {row.label: row for row in mode_shares(iter(rows), "failure-mode", MODES)}
    assert list(table) == list(MODES)
    assert (table["grounding"].count, table["grounding"].n, table["grounding"].share) == (2, 4, 0.5)
    assert table["grounding"].interval == wilson(2, 4)
    assert (table["stage"].count, table["stage"].secondary) == (1, 1)
    assert (table["other"].count, table["other"].share) == (0, 0.0)
    assert {row.unscored for row in table.values()} == {1}
    assert table["stage"].sensitivity == pytest.approx((0.25, 0.5))


def test_systems_apart_and_labels_as_seen() -> None:
    rows = [explained(0, "stage", model="b"), explained(0, "objective", "grounding", model="a")]
    found = [(row.model, row.label, row.count) for row in mode_shares(rows, "failure-mode")]
    assert found == [
        ("a", "grounding", 0),
        ("a", "objective", 1),
        ("a", "stage", 0),
        ("b", "grounding", 0),
        ("b", "objective", 0),
        ("b", "stage", 1),
    ]
    assert mode_shares(rows, "error-type") == []


@settings(deadline=None)
@given(st.lists(st.sampled_from([*MODES, ""]), min_size=1, max_size=40))
def test_shares_and_failures_add_up(labels: list[str]) -> None:
    rows = [explained(number, label) for number, label in enumerate(labels)]
    table = mode_shares(rows, "failure-mode", MODES)
    assert sum(row.count for row in table) + table[0].unscored == len(labels)
    assert table == mode_shares(rows[::-1], "failure-mode", MODES)
    assert all(row.interval.low <= row.share <= row.interval.high for row in table)


def test_what_is_not_a_label() -> None:
    with pytest.raises(InputError, match="unknown label 'mood'"):
        mode_shares([explained(0, "mood")], "failure-mode", MODES)
    with pytest.raises(InputError, match="two judgments"):
        mode_shares([explained(0, "stage"), explained(0, "stage", judge="k")], "failure-mode")
    people = [explained(0, "stage"), explained(0, "other", judge="human:ada")]
    assert [row.label for row in mode_shares(people, "failure-mode")] == ["stage"]
    assert [row.label for row in mode_shares(people, "failure-mode", judge="human:ada")] == ["other"]
    two = [explained(0, "stage"), explained(0, "other", judge="k")]
    assert [row.label for row in mode_shares(two, "failure-mode", judge="k")] == ["other"]
