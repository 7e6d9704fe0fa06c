"""Statements held against their passages: faithful ones raise no alarm, reversals of each kind do."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter

import pytest

from hoofbeat.benchmarks.statement_check import FAITHFUL, KINDS, differing_marks, measured_kinds, objections
from tests.benchmarks.reversals import reversals
from tests.helpers import shared_data

PASSAGE = (
    "Start treatment when systolic pressure is ≥160 mmHg. The panel recommends against aspirin in children. Women "
    "younger than 50 years wait six months. Metformin is stopped if eGFR falls below 30 mL/min/1.73 m². Give the dose "
    "before meals; the maximum is 4 g a day."
)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("Treatment starts at a systolic pressure of ≤160 mm Hg.", "comparator"),
        ("Treatment starts at a systolic pressure of 150 mm Hg or more.", "threshold"),
        ("The panel recommends aspirin in children.", "negation"),
        ("Women older than 50 years wait six months.", "comparator"),
        ("Metformin is started if eGFR falls below 30 mL/min/1.73 m2.", "negation"),
        ("Give the dose after meals.", "direction"),
        ("The maximum is 4 mg a day.", "unit"),
        ("Women younger than 50 years wait six weeks.", "unit"),
    ],
)
def test_a_reversal_is_named_by_its_kind(statement: str, kind: str) -> None:
    assert [each.kind for each in objections(statement, [PASSAGE])] == [kind]


@pytest.mark.parametrize(
    "statement",
    [
        "Treatment starts if systolic pressure is at least 160 mm Hg.",
        "Treatment starts if systolic pressure is >= 160 mmHg.",
        "Aspirin should not be given to children.",
        "Children should avoid aspirin.",
        "In women under 50, wait 6 months.",
        "Discontinue metformin when eGFR is under 30 ml/min/1.73m2.",
        "The dose is given prior to meals and must not exceed 4 g daily.",
    ],
)
def test_the_same_in_other_words_is_no_reversal(statement: str) -> None:
    assert objections(statement, [PASSAGE]) == []


@pytest.mark.parametrize(
    ("quote", "there", "kind"),
    [
        ("at least 150 mmHg", "≥ 150 mm Hg", ""),
        ("a BMI over 30 kg/m2", "a BMI over 30 kg/m²", ""),
        ("platelets below 50 x 10^9/L", "platelets below 50 × 10⁹/L", ""),
        ("platelets below 50 × 10⁶/L", "platelets below 50 × 10⁹/L", "threshold"),
        ("less than 5 days", "more than 5 days", "comparator"),
        ("> 5 days", "≥ 5 days", "comparator"),
        ("older adults are seen first", "younger adults are seen first", "direction"),
        ("it is recommended", "it is not recommended", "negation"),
    ],
)
def test_quotes_may_differ_in_writing_only(quote: str, there: str, kind: str) -> None:
    assert differing_marks(quote, there) == kind


def test_an_objection_says_what_the_source_has() -> None:
    (found,) = objections("Give the dose after meals.", [PASSAGE])
    assert "after" in str(found)
    assert "the source has: Give the dose before meals" in str(found)
    assert objections("Wait.", []) == []


def test_the_labelled_pairs_come_out_as_they_are_documented() -> None:
    found = measured_kinds()
    assert set(found) == {FAITHFUL, *KINDS}
    assert found[FAITHFUL][1] >= 400
    assert sum(total for kind, (_, total) in found.items() if kind != FAITHFUL) >= 300
    assert found[FAITHFUL][0] / found[FAITHFUL][1] >= 0.97
    assert sum(right for kind, (right, _) in found.items() if kind != FAITHFUL) >= 324


def test_real_sentences_raise_no_alarm_and_their_reversals_do() -> None:
    """On guidelines beside the project: sentences as they are, and turned round at test time."""
    rng, counts, wrong = random.Random(2), Counter[str](), Counter[str]()
    with gzip.open(shared_data("guidelines.jsonl.gz"), "rt", encoding="utf-8") as stream:
        documents = [json.loads(line) for line in stream]
    for document in rng.sample(documents, 60):
        for section in document["sections"]:
            text = " ".join(section["text"].split())[:6000]
            near = [each for each in re.split(r"(?<=[.])\s+(?=[A-Z])", text) if 50 < len(each) < 300]
            for sentence in rng.sample(near, min(3, len(near))):
                counts[FAITHFUL] += 1
                wrong[FAITHFUL] += bool(objections(sentence, [text]))
                for kind, turned in reversals(sentence):
                    counts[kind] += 1
                    wrong[kind] += not objections(turned, [text])
    caught = sum(counts[kind] - wrong[kind] for kind in KINDS)
    assert counts[FAITHFUL] > 200
    assert wrong[FAITHFUL] <= 0.02 * counts[FAITHFUL]
    assert sum(counts[kind] for kind in KINDS) > 100
    assert caught >= 0.99 * sum(counts[kind] for kind in KINDS), dict(wrong)
