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


@pytest.mark.parametrize(
    ("statement", "passage"),
    [
        # a denial in a clause that concedes something
        ("Nurses should watch for falls.", "Although proof for alarms is insufficient, nurses should watch for falls."),
        ("Nurses should watch for falls.", "Despite inadequate trials, nurses should watch for falls at night."),
        (
            "Nurses should watch for falls.",
            "The panel advises that, though alarms do not help, nurses watch for falls.",
        ),
        # a sentence that is broken over lines, and items of a list
        (
            "The society does not recommend routine scans in any woman with less than a 5 to 10 year life expectancy.",
            "The society does not recommend routine scans in women aged 80+\n\nor\n\nany woman with less than a 5 to "
            "10 year life expectancy. (Grade C)",
        ),
        ("Do not give codeine to nursing mothers.", "Do not give codeine to:\n- children\n- nursing mothers"),
        (
            "Codeine is not recommended in nursing mothers.",
            "Codeine is not recommended in\n• children\n• nursing mothers",
        ),
        ("Patients should not smoke cigars.", "Patients should not:\nDrink spirits\nSmoke cigars"),
        ("Rinse the lens.", "Do not:\n- share lenses\n- sleep with lenses\nRinse the lens."),
        # a denial in another item of a list
        (
            "Tell contact lens wearers to rinse the case daily and to dry it in the air.",
            "Tell contact lens wearers to rinse the case daily (with fresh solution), avoid tap water or saliva, use a "
            "new case each month and dry it in the air.",
        ),
        ("Teach patients to trim their nails.", "Teach patients to wash daily, avoid hot water, trim their nails."),
        # headings, questions, and what the passages do not say
        (
            "The passages recommend no drug for preventing ear infections.",
            "Prevention of Ear Infections\n\nRinse daily.",
        ),
        (
            "No drops are advised for prevention of ear infections.",
            "Prevention of Ear Infections\n\nRinse the ear daily.",
        ),
        (
            "Ear drops should not be used in swimmers.",
            "Should ear drops be used in swimmers?\nThe panel advises against it.",
        ),
        ("The guideline does not mention ear drops for swimmers.", "Ear drops are used for swimmers at 3 visits."),
        ("The text gives no dose for children under 6 years.", "The dose for adults is 3 mg."),
        # grades, enumerated conditions and lists of what is absent
        ("Scans are not needed in acute gout (recommendation against).", "Do not scan patients with acute gout."),
        (
            "Surgery is most suitable in those fit for theatre if bleeding is found and without lung disease that "
            "limits walking.",
            "Surgery would be most suitable among adults who (1) are fit for theatre if bleeding is found and (2) do "
            "not have lung disease that would limit walking.",
        ),
        (
            "It applies to men who have no cough and no prior asthma.",
            "Men without cough and without prior asthma",
        ),
        # lines of a table
        ("Against early removal of the tube", "The panel suggests against early removal of the tube."),
        ("After a fracture, scan once a year.", "Patients with a prior fracture have a scan once a year."),
        # a power on a line of its own
        (
            "Offer surgery at a BMI of at least 41 kg/m2.",
            "Offer surgery at a BMI ≥41 kg/m\n\n2\n\nand to those who ask.",
        ),
        # "No" answers the question
        ("No, the advice is for men without gout.", "The advice is for men without gout."),
        # the same denial or direction is in another clause of the sentence
        ("Men never vaccinated are likely to profit.", "Men who have never been vaccinated are likely to profit."),
        (
            "They note that the trials took only patients presenting early after injury.",
            "Because the trials took only patients presenting early after injury, the effect of the drug in patients "
            "presenting later is unknown to the panel that looked at the trials.",
        ),
        # a direction in the name of a use
        (
            "The dose of zinc for risk reduction in gout is 3 mg.",
            "Men with gout at increased risk have zinc, dose 3 mg.",
        ),
        (
            "Zinc is not advised for dose reduction in men with gout, because of the increased risk of stones.",
            "Zinc is not advised for use in men with gout, because of the increased risk of stones in these men.",
        ),
    ],
)
def test_faithful_answers_in_the_words_of_strong_models_raise_no_alarm(statement: str, passage: str) -> None:
    assert objections(statement, [passage]) == []


@pytest.mark.parametrize(
    ("statement", "passage"),
    [
        (
            "Nurses should not watch for falls.",
            "Although proof for alarms is insufficient, nurses should watch for falls.",
        ),
        (
            "Proof for alarms is sufficient.",
            "Although proof for alarms is insufficient, nurses should watch for falls.",
        ),
        ("Give codeine to nursing mothers.", "Do not give codeine to:\n- children\n- nursing mothers"),
        (
            "The society recommends bone scans in women with less than five years to live.",
            "The society does not recommend routine bone scans in women aged 80+\n\nor\n\nwomen with less than five "
            "years to live. (Grade C)",
        ),
        ("Tell patients to use tap water.", "Tell patients to rinse the lens daily, avoid tap water, use a fresh box."),
        (
            "Tell patients not to use a fresh box.",
            "Tell patients to rinse the lens daily, avoid tap water, use a fresh box.",
        ),
        ("The guideline does not recommend ear drops.", "Ear Drops\nThe guideline recommends ear drops for swimmers."),
        (
            "Chest films should be used for cough.",
            "The society advises that chest films, old or new, not be used for cough.",
        ),
        ("Do not rinse the lens.", "Lens Care\n- Rinse the lens\n- Dry the case"),
        ("No, the advice is for men with no gout.", "The advice is for men who have gout."),
    ],
)
def test_reversals_in_such_wording_are_still_caught(statement: str, passage: str) -> None:
    assert [each.kind for each in objections(statement, [passage])] == ["negation"]


def test_a_number_of_the_question_raises_no_alarm() -> None:
    passage, statement = "Scan women aged 50 to 74 years.", "Scan her: at 57 she is between 50 and 74 years."
    assert [each.kind for each in objections(statement, [passage])] == ["threshold"]
    assert objections(statement, [passage], "Should a woman of 57 years have a scan?") == []
    assert objections(statement, [passage], "Should a woman of 58 years have a scan?") != []


def test_what_is_quoted_counts_beside_a_sentence_that_looks_nearer() -> None:
    near, quoted = "Men with gout are at increased risk of stones.", "Zinc lowers the number of stones in gout."
    statement = "Zinc lowers the risk of stones in men with gout."
    assert [each.kind for each in objections(statement, [f"{near} {quoted}"])] == ["direction"]
    assert objections(statement, [f"{near} {quoted}"], quotes=[quoted]) == []
    turned = statement.replace("lowers", "raises")
    assert [each.kind for each in objections(turned, [quoted], quotes=[quoted])] == ["direction"]


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
