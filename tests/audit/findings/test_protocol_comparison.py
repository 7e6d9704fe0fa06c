"""Structured against label alone: shifts, significance, costs, people and flips, on verdicts chosen in advance."""

from __future__ import annotations

import msgspec
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement, compare_protocols
from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.sample_records import PairJudgedTwice, PairLabel, SampledPair
from hoofbeat.records import Failure
from hoofbeat.store import Cost

LEVELS = ("low", "medium", "high")
COUNTS = {"Consistent": 400, "Complementary": 200, "Divergent": 100, "Contradictory": 10}
COSTS = {"structured": Cost(calls=40, tokens_in=100, tokens_out=90), "label-only": Cost(calls=60, tokens_in=120)}
FAILED = PairLabel(failure=Failure(kind="schema", message="no label"))


def both(number: int, structured: str, label_only: str, *, audit: str = "", reference: str = "") -> PairJudgedTwice:
    rated = structured in FIVE_RELATIONS.diverging and label_only in FIVE_RELATIONS.diverging
    return PairJudgedTwice(
        pair=SampledPair(question=f"q{number:03d}", a="a", b="b", label=audit or structured),
        structured=PairLabel(
            label=structured, topic="How long to wait", significance=LEVELS[number % 2] if rated else None
        ),
        label_only=PairLabel(
            label=label_only,
            topic="to wait how long" if number % 2 else "rain",
            significance="high" if rated else None,
        ),
        reference=reference,
    )


def the_papers_shape() -> list[PairJudgedTwice]:
    """Of 40 divergent pairs the label alone keeps 4 and calls 31 complementary."""
    verdicts = [("Consistent", "Consistent")] * 40 + [("Complementary", "Complementary")] * 38
    verdicts += [("Complementary", "Consistent")] * 2 + [("Divergent", "Divergent")] * 4
    verdicts += [("Divergent", "Complementary")] * 31 + [("Divergent", "Contradictory")] * 5
    verdicts += [("Contradictory", "Contradictory")] * 40
    return [both(number, *pair) for number, pair in enumerate(verdicts)]


def compared(rows: list[PairJudgedTwice], counts: dict[str, int] = COUNTS) -> ProtocolAgreement:
    return compare_protocols(rows, counts, FIVE_RELATIONS, LEVELS, COSTS)


def test_shifts_and_agreement() -> None:
    rows = the_papers_shape()
    found = compared(rows)
    assert [(row.label, row.n, row.kept, row.became) for row in found.shifts] == [
        ("Consistent", 40, 40, {}),
        ("Complementary", 40, 38, {"Consistent": 2}),
        ("Divergent", 40, 4, {"Complementary": 31, "Contradictory": 5}),
        ("Contradictory", 40, 40, {}),
    ]
    assert found.agreement.accuracy == pytest.approx(122 / 160)
    labels = [[row.structured.label for row in rows], [row.label_only.label for row in rows]]
    assert found.agreement.kappa == pytest.approx(cohen_kappa_score(*labels))
    assert found.estimate == pytest.approx((400 + 200 * 38 / 40 + 100 * 4 / 40 + 10) / 710)
    assert found.with_audit.accuracy == 1.0
    assert found.costs == COSTS
    assert (found.people, found.flips) == (None, ())


def test_significance_that_is_all_one_level_has_no_kappa_worth() -> None:
    found = compared(the_papers_shape())
    assert found.levels["label-only"] == {"low": 0, "medium": 0, "high": 49}
    assert found.levels["structured"]["low"] + found.levels["structured"]["medium"] == 49
    assert found.significance.n == 49
    assert found.significance.kappa == 0.0


def test_topics_of_pairs_with_the_same_label() -> None:
    found = compared(
        [both(0, "Divergent", "Divergent"), both(1, "Divergent", "Divergent"), both(3, "Divergent", "Absent")]
    )
    assert (found.topics.n, found.topics.same) == (2, 1)
    assert found.topics.similarity is not None
    assert 0.5 <= found.topics.similarity < 1


def test_what_failed_is_counted_and_left_out() -> None:
    rows = the_papers_shape()
    rows[0] = msgspec.structs.replace(rows[0], label_only=FAILED)
    rows[1] = msgspec.structs.replace(rows[1], structured=FAILED)
    rows[2] = msgspec.structs.replace(
        rows[2], label_only=PairLabel(label="Consistent", details=Failure(kind="schema", message="no"))
    )
    found = compared(rows)
    assert found.unscored == {"structured": 1, "label-only": 1}
    assert (found.pairs, found.agreement.n, found.without_details) == (160, 158, 1)
    assert found.with_audit.unscored == 1


def test_which_way_agrees_better_with_people() -> None:
    rows = [
        msgspec.structs.replace(
            row, reference="Divergent" if row.structured.label == "Divergent" else row.label_only.label
        )
        for row in the_papers_shape()
    ]
    rows[-1] = msgspec.structs.replace(rows[-1], reference="Contradictory", label_only=FAILED)
    found = compared(rows).people
    assert found is not None
    assert (found.n, found.only_structured, found.only_label_only) == (160, 37, 2)
    assert found.p == pytest.approx(binomtest(2, 39).pvalue)
    assert found.difference.difference == pytest.approx(35 / 160)
    assert found.difference.interval.low > 0
    assert found.structured.agreement.accuracy == pytest.approx(158 / 160)
    assert found.label_only.agreement.unscored == 1


def test_flips_by_label_and_over_all_judged_pairs() -> None:
    rows = []
    for number, row in enumerate(the_papers_shape()):
        label = row.structured.label
        other = "Complementary" if label == "Divergent" and number % 4 == 0 else label
        rows.append(
            msgspec.structs.replace(
                row,
                structured_exchanged=PairLabel(label=other),
                label_only_exchanged=FAILED if number else row.label_only,
            )
        )
    structured, alone = compared(rows).flips
    assert (structured.protocol, structured.n, structured.flips) == ("structured", 160, 10)
    assert structured.by_label["Divergent"] == (40, 10)
    assert structured.by_label["Consistent"] == (40, 0)
    assert structured.moves == {"Divergent → Complementary": 10}
    assert structured.rate == pytest.approx(1 / 16)
    assert structured.interval.low < 1 / 16 < structured.interval.high
    assert structured.estimate == pytest.approx(100 * 0.25 / 710)
    assert (alone.n, alone.flips, alone.unscored, alone.estimate) == (1, 0, 159, None)


def test_nothing_to_compare() -> None:
    found = compared([])
    assert (found.pairs, found.agreement.n, found.estimate, found.shifts) == (0, 0, None, ())
    assert msgspec.json.decode(msgspec.json.encode(found), type=ProtocolAgreement) == found
