"""The figures of a trial, on pairs made by hand."""

from __future__ import annotations

import msgspec
import pytest

from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.trial_figures import Trial, trial_figures
from hoofbeat.audit.sample_records import TrialPair, TrialVerdict
from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import wilson
from hoofbeat.records import Failure

FAILED = TrialVerdict(failure=Failure(kind="timeout", message="no answer in time"))


def a_pair(number: int, planted: str, said: str, exchanged: str = "", *, question: str = "") -> TrialPair:
    def heard(label: str) -> TrialVerdict:
        return TrialVerdict(label=label) if label != "failed" else FAILED

    return TrialPair(
        question=question or f"q{number}",
        a="a",
        b="b",
        text="Invented?",
        answer_a="Yes.",
        answer_b="No.",
        planted=planted,
        said=heard(said),
        exchanged=heard(exchanged or said),
    )


def test_figures_worked_out_by_hand() -> None:
    pairs = [
        a_pair(1, "Consistent", "Consistent"),
        a_pair(2, "Consistent", "Complementary", "Consistent"),
        a_pair(3, "Complementary", "Complementary", "Divergent"),
        a_pair(4, "Divergent", "Contradictory"),
        a_pair(5, "Divergent", "Divergent", "failed"),
        a_pair(6, "Divergent", "failed", "Divergent"),
    ]
    found = trial_figures(pairs, FIVE_RELATIONS)
    assert (found.n, found.right, found.agreement.unscored) == (6, 3, 1)
    assert (found.agreement.accuracy, found.agreement.accuracy_interval) == (0.5, wilson(3, 6))
    assert (found.exchanged, found.both) == (3, 1)
    assert (found.two_way_right, found.two_way.unscored, found.two_way_share) == (5, 1, 0.5)
    assert (found.chance, found.commonest, found.commonest_share) == (0.25, "Divergent", 0.5)
    assert (found.flips.n, found.flips.flips, found.flips.crossing, found.flips.unscored) == (4, 2, 1, 2)
    scores = {score.label: (score.precision, score.recall) for score in found.labels}
    assert scores == {
        "Consistent": (1.0, 0.5),
        "Complementary": (0.5, 1.0),
        "Divergent": (1.0, 1 / 3),
        "Contradictory": (0.0, None),
    }
    assert found.agreement.confusion == ((1, 1, 0, 0), (0, 1, 0, 0), (0, 0, 1, 1), (0, 0, 0, 0))
    assert not found.better


def test_the_bar_is_the_commonest_label_where_that_is_more_than_chance() -> None:
    mostly = [a_pair(number, "Divergent", "Divergent") for number in range(60)]
    rest = [a_pair(100 + number, "Consistent", "Divergent") for number in range(40)]
    found = trial_figures([*mostly, *rest], FIVE_RELATIONS)
    assert found.agreement.accuracy_interval.low > found.chance
    assert (found.commonest_share, found.better) == (0.6, False)


def test_right_answers_of_few_questions_are_not_taken_for_many() -> None:
    """All pairs of a question share answers: half of four questions right is no proof."""
    pairs = [
        a_pair(number, label, label if number % 4 < 2 else "Complementary", question=f"q{number % 4}")
        for number in range(40)
        for label in ("Consistent", "Divergent", "Contradictory")
    ]
    found = trial_figures(pairs, FIVE_RELATIONS)
    assert found.agreement.accuracy_interval.low > found.commonest_share
    assert found.by_question.low < found.chance
    assert not found.better
    assert found.span[0] == found.by_question.low


def test_the_verdict_is_one_sentence_that_promises_nothing() -> None:
    labels = ("Consistent", "Complementary", "Divergent", "Contradictory")
    found = trial_figures([a_pair(n, label, label) for n in range(10) for label in labels], FIVE_RELATIONS)
    assert found.verdict == (
        "This judge is clearly better than chance: right on 40 of 40 pairs whose relation is known "
        "(0.91 to 1.00 at 95%), where guessing gives 0.25 and always saying Consistent 0.25."
    )


def test_figures_can_be_kept_and_read_again() -> None:
    found = trial_figures([a_pair(1, "Consistent", "failed"), a_pair(2, "Divergent", "Divergent")], FIVE_RELATIONS)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(found)), Trial) == found
    with pytest.raises(UsageError, match="needs pairs"):
        trial_figures([], FIVE_RELATIONS)
