"""Several judges: more than half of those asked decide, nothing else does, and every vote is kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.aspects.failure_mode import FAILURE_MODE
from hoofbeat.judging.aspects.relevance import RELEVANCE
from hoofbeat.judging.criteria import empty_judgment
from hoofbeat.judging.votes import decide, majority_name
from hoofbeat.records import Failure, Judgment, Vote
from tests.judging.folders import said

LATE = Failure(kind="timeout", message="no answer in time", attempts=3)


def votes(*labels: str | None, secondary: str = "") -> list[Vote]:
    return [
        Vote(judge=f"j{n}", label=label, secondary=secondary) if label else Vote(judge=f"j{n}", failure=LATE)
        for n, label in enumerate(labels)
    ]


def base(count: int) -> Judgment:
    return empty_judgment(said("Wait."), "equivalence", majority_name([f"j{n}" for n in range(count)]))


@pytest.mark.parametrize(
    ("labels", "label"),
    [
        (("equivalent", "equivalent", "mismatch"), "equivalent"),
        (("mismatch", "equivalent", "mismatch"), "mismatch"),
        (("equivalent", None, "equivalent"), "equivalent"),
        (("equivalent", "mismatch"), ""),
        (("equivalent", "mismatch", None), ""),
        (("equivalent", "mismatch", "equivalent", None), ""),
    ],
)
def test_more_than_half_of_the_judges(labels: tuple[str | None, ...], label: str) -> None:
    cast = votes(*labels)
    judgment = decide(base(len(cast)), EQUIVALENCE, cast)
    assert judgment.label == label
    assert judgment.votes == tuple(cast)
    assert judgment.judge == f"majority of {len(cast)}"
    voted = f"{sum(each is not None for each in labels)} of {len(labels)} judges voted"
    if label:
        assert judgment.failure is None
        assert voted in judgment.reasoning
    else:
        assert judgment.failure is not None
        assert judgment.failure.kind == "no-majority"
        assert judgment.failure.message.startswith(f"the judges do not agree ({voted}): j0: equivalent, j1: mismatch")


@pytest.mark.parametrize("labels", [("mismatch", None, None), ("mismatch", None), ("mismatch", "mismatch", None, None)])
def test_too_few_votes_are_no_majority(labels: tuple[str | None, ...]) -> None:
    """One vote of three is not called a majority of three, whatever became of the others."""
    cast = votes(*labels)
    judgment = decide(base(len(cast)), EQUIVALENCE, cast)
    assert (judgment.label, judgment.votes) == ("", tuple(cast))
    assert judgment.failure is not None
    assert judgment.failure.kind == "no-majority"
    assert judgment.failure.message.startswith("too few judges voted")
    assert f"{sum(each is not None for each in labels)} of {len(labels)} judges voted" in judgment.failure.message


def test_when_all_fail_nothing_is_scored() -> None:
    judgment = decide(base(2), EQUIVALENCE, votes(None, None))
    assert judgment.label == ""
    assert judgment.failure is not None
    assert (judgment.failure.kind, judgment.failure.attempts) == ("timeout", 6)
    assert "none of the 2 judges" in judgment.failure.message


def test_one_judge_is_no_majority() -> None:
    vote = Vote(judge="j", label="mismatch", reasoning="Another drug.", calls=("k",))
    judgment = decide(empty_judgment(said("Wait."), "equivalence", "j"), EQUIVALENCE, [vote])
    assert (judgment.judge, judgment.label, judgment.reasoning, judgment.calls) == (
        "j",
        "mismatch",
        "Another drug.",
        ("k",),
    )
    assert judgment.votes == ()


def test_a_second_label_needs_a_majority_too() -> None:
    primary = ("stage", "stage", "stage")
    assert decide(base(3), FAILURE_MODE, votes(*primary, secondary="qualifier")).secondary == "qualifier"
    mixed = [*votes("stage", "stage"), Vote(judge="j2", label="stage", secondary="qualifier")]
    assert decide(base(3), FAILURE_MODE, mixed).secondary == ""
    two = [*votes("stage", "stage", secondary="qualifier"), *votes(None, "stage")]
    assert decide(base(4), FAILURE_MODE, two).label == "stage"
    assert decide(base(4), FAILURE_MODE, two).secondary == ""  # two of four are not more than half


@given(st.lists(st.sampled_from([None, *FAILURE_MODE.labels]), min_size=2, max_size=9))
def test_a_label_never_comes_from_a_minority(labels: list[str | None]) -> None:
    judgment = decide(base(len(labels)), FAILURE_MODE, votes(*labels))
    cast = [label for label in labels if label]
    if judgment.label:
        assert 2 * cast.count(judgment.label) > len(labels)
    else:
        assert judgment.failure is not None
        assert not any(2 * cast.count(label) > len(labels) for label in cast)


def test_grades_meet_in_the_middle() -> None:
    graded = [Vote(judge=f"j{n}", label="x", score=score) for n, score in enumerate((9.0, 2.0, 8.0))]
    judgment = decide(base(3), RELEVANCE, graded)
    assert (judgment.score, judgment.label) == (8.0, "relevant")
    assert decide(base(2), RELEVANCE, graded[:2]).score == 5.5
    assert decide(base(2), RELEVANCE, graded[:2]).label == "partly"


def test_grades_of_too_few_judges_are_no_median() -> None:
    late = Vote(judge="late", failure=LATE)
    judgment = decide(base(3), RELEVANCE, [Vote(judge="j", label="x", score=9.0), late, late])
    assert (judgment.score, judgment.label) == (None, "")
    assert judgment.failure is not None
    assert judgment.failure.kind == "no-majority"
    most = decide(base(3), RELEVANCE, [*(Vote(judge="j", label="x", score=score) for score in (9.0, 7.0)), late])
    assert (most.score, most.label) == (8.0, "relevant")
