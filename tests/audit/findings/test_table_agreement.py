from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import cohen_kappa_score

from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.table_agreement import (
    Trial,
    agreement_of_tables,
    flip_rates,
    join,
    joined_agreement,
    trial_figures,
)
from hoofbeat.audit.sample_records import TrialPair, TrialVerdict
from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.intervals import wilson
from hoofbeat.records import Comparison, Failure
from tests.audit.findings.support import NAMES, audit, audits, plain_table, table

ORDER = tuple(NAMES.values())
DIVERGING = {"Divergent", "Contradictory"}


@settings(deadline=None, max_examples=60)
@given(audits, audits)
def test_agreement_is_over_pairs_that_both_label_and_one_judges(one: dict[str, str], two: dict[str, str]) -> None:
    first, second = audit(one), audit(two)
    old, new = ({(row.question, row.a, row.b): row for row in rows} for rows in (first, second))
    shared = sorted(old.keys() & new.keys())
    labelled = [(old[key].label, new[key].label) for key in shared if old[key].label and new[key].label]
    used = [pair for pair in labelled if pair != ("Absent", "Absent")]
    found = agreement_of_tables(table(first), plain_table(second), samples=30)
    agree = sum(a == b for a, b in used)
    assert (found.n, found.agree) == (len(used), agree)
    assert found.interval.low <= wilson(agree, len(used)).low + 1e-9  # the pairs of a question hang together
    assert found.same_side == sum((a in DIVERGING) == (b in DIVERGING) for a, b in used)
    assert found.unlabelled == len(shared) - len(labelled)
    assert found.absent_in_both == len(labelled) - len(used)
    assert found.only_one == len(old.keys() ^ new.keys())
    assert sum(n for _, n in found.by_basis.values()) == len(used)
    assert sum(same for same, _ in found.by_basis.values()) == agree
    assert [sum(row) for row in found.confusion] == [sum(a == label for a, _ in used) for label in ORDER]
    if used and len({label for pair in used for label in pair}) > 1:
        assert found.kappa == pytest.approx(cohen_kappa_score(*zip(*used, strict=True)))
    else:
        assert found.kappa is None


def test_economy_against_full_judging() -> None:
    full = audit({"a": "ccdd--", "b": "cmdx--", "c": "cccc--", "d": "------"})
    grouped = {("a", "s2"), ("b", "s2")}
    economy = [
        msgspec.structs.replace(row, basis="group" if (row.question, row.a) in grouped else row.basis) for row in full
    ]
    economy[3] = msgspec.structs.replace(economy[3], label="Complementary")
    found = agreement_of_tables(table(economy), table(full))
    assert (found.n, found.agree, found.share, found.absent_in_both) == (12, 11, 11 / 12, 12)
    assert found.by_basis == {"group": (1, 2), "judged": (10, 10)}
    assert found.same_side == 11
    assert found.cluster_interval is not None
    assert found.cluster_interval.low <= 11 / 12 <= found.cluster_interval.high
    assert joined_agreement(join(table(economy), table(full))).by_basis == {}


def test_intervals_resample_questions_as_wholes() -> None:
    rng = np.random.default_rng(0)
    first, second = [], []
    for number in range(80):
        right = rng.random() < 0.5  # a question is all right or all wrong
        for other in range(1, 9):
            label = str(rng.choice(["Consistent", "Divergent"]))
            swapped = {"Consistent": "Divergent", "Divergent": "Consistent"}[label]
            row = Comparison(question=f"q{number:02}", a="s0", b=f"s{other}", label=label, basis="judged")
            first.append(row)
            second.append(row if right else msgspec.structs.replace(row, label=swapped))
    found = agreement_of_tables(table(first), table(second))
    assert found.cluster_interval is not None
    narrow = wilson(found.agree, found.n)
    for wide in (found.cluster_interval, found.interval):
        assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    assert found.kappa_interval is not None
    assert found.kappa_interval.low < (found.kappa or 9) < found.kappa_interval.high
    assert found == agreement_of_tables(table(first), table(second))


def test_flips_by_hand() -> None:
    probes = [
        ("Divergent", "Divergent"), ("Divergent", "Contradictory"), ("Divergent", "Complementary"),
        ("Consistent", "Consistent"), ("Consistent", "Complementary"), (None, "Consistent"), ("Divergent", ""),
    ]  # fmt: skip
    found = flip_rates(probes)
    assert (found.n, found.flips, found.rate, found.unscored) == (5, 3, 0.6, 2)
    assert found.interval == wilson(3, 5)
    assert (found.crossing, found.crossing_rate, found.crossing_interval) == (1, 0.2, wilson(1, 5))
    assert [(row.label, row.n, row.flips, row.to) for row in found.by_label] == [
        ("Consistent", 2, 1, {"Complementary": 1}),
        ("Divergent", 3, 2, {"Complementary": 1, "Contradictory": 1}),
    ]
    empty = flip_rates([])
    assert (empty.n, empty.rate, empty.interval.low, empty.interval.high) == (0, None, 0.0, 1.0)
    with pytest.raises(InputError, match="'Odd'"):
        flip_rates([("Odd", "Divergent")])


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
    assert (found.chance, found.commonest, found.commonest_share) == (0.2, "Divergent", 0.5)
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
    assert wilson(found.right, found.n).low > found.commonest_share
    assert found.agreement.accuracy_interval.few == 4
    assert found.by_question.low < found.chance
    assert not found.better
    assert found.span[0] == pytest.approx(found.by_question.low)


def test_a_judge_that_finds_silence_is_scored() -> None:
    found = trial_figures([a_pair(1, "Consistent", "Absent"), a_pair(2, "Divergent", "Divergent")], FIVE_RELATIONS)
    assert (found.right, found.two_way_right, found.agreement.unscored) == (1, 2, 0)
    assert found.labels[0].label == "Absent"


def test_the_verdict_promises_nothing() -> None:
    labels = ("Consistent", "Complementary", "Divergent", "Contradictory")
    found = trial_figures([a_pair(n, label, label) for n in range(10) for label in labels], FIVE_RELATIONS)
    assert found.verdict == (
        "This judge is clearly better than chance: right on 40 of 40 pairs whose relation is known "
        "(95% interval 0.72 to 1.00). Guessing would give 0.20, always answering Consistent 0.25."
    )


def test_figures_can_be_kept_and_read_again() -> None:
    found = trial_figures([a_pair(1, "Consistent", "failed"), a_pair(2, "Divergent", "Divergent")], FIVE_RELATIONS)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(found)), Trial) == found
    with pytest.raises(UsageError, match="needs pairs"):
        trial_figures([], FIVE_RELATIONS)
