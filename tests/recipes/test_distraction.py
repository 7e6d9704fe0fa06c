"""What a rewriting changed, and whether the core survived it. All patients here are invented."""

from __future__ import annotations

import pytest

from hoofbeat.recipes.cases.distraction import (
    changes,
    check_rewriting,
    demographics,
    giving_away,
    lost_numbers,
    telling_words,
)
from hoofbeat.recipes.guards.text_checks import new_numbers, numbers

BEFORE = (
    "A 54-year-old man presented with two days of severe pain in the left flank. He had no fever. Creatinine was "
    "1.8 mg/dL. Contrast imaging was contraindicated because of an earlier anaphylaxis."
)
AFTER = (
    "A 61-year-old woman of Korean origin came in with two days of severe pain in the left flank. She had no fever. "
    "Creatinine was 1.8 mg/dL. She also has well-controlled hypothyroidism. Contrast imaging was contraindicated "
    "because of an earlier anaphylaxis."
)
CORE = [
    "severe pain in the left flank",
    "no fever",
    "Creatinine was 1.8 mg/dL",
    "Contrast imaging was contraindicated because of an earlier anaphylaxis",
]


def test_the_changes_are_listed_with_their_places_and_what_they_are_about() -> None:
    found = changes(BEFORE, AFTER)
    for change in found:
        assert BEFORE[change.start : change.end] == change.before
        assert AFTER[change.new_start : change.new_end] == change.after
    seen = [(change.kind, change.about, change.before, change.after) for change in found]
    who = ("54-year-old man presented", "61-year-old woman of Korean origin came in")
    assert ("replaced", "demographics", *who) in seen
    assert ("replaced", "demographics", "He", "She") in seen
    assert any(kind == "inserted" and "hypothyroidism" in after for kind, _, _, after in seen)
    assert not any("left" in before or "1.8" in before for _, _, before, _ in seen)


def test_a_diff_rebuilds_the_new_text() -> None:
    rebuilt, place = "", 0
    for change in changes(BEFORE, AFTER):
        rebuilt += BEFORE[place : change.start] + change.after + (" " if change.kind == "inserted" else "")
        place = change.end
    assert " ".join((rebuilt + BEFORE[place:]).split()) == AFTER
    assert changes(BEFORE, BEFORE) == []


def test_numbers_and_deletions_are_told_apart() -> None:
    assert [(c.kind, c.about) for c in changes("Sodium was 128.", "Sodium was 131.")] == [("replaced", "numbers")]
    assert [(c.kind, c.about) for c in changes("A mild cough.", "A cough.")] == [("deleted", "wording")]
    assert [(c.kind, c.about) for c in changes("A cough.", "A mild cough.")] == [("inserted", "addition")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A 54-year-old man", ["54-year-old", "man"]),
        ("a seven-month-old girl", ["seven-month-old", "girl"]),
        ("The patient, aged 71, in her seventies", ["aged 71", "in her seventies", "her"]),
        ("The lesion measured 3 cm.", []),
        ("a white blood cell count of 12, black stools and a white patient", ["white"]),
        ("A black woman with white matter lesions", ["black", "woman"]),
    ],
)
def test_demographics_are_recognised(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in demographics(text)] == expected


def test_numbers_come_in_one_form() -> None:
    assert numbers("24 000/mm3, 24,000, 38,5 °C, 1.50 mg, 82/45, COVID-19, CD34, 3-4 days") == [
        "24000", "24000", "38.5", "1.5", "82", "45", "3", "4",
    ]  # fmt: skip


def test_a_number_that_the_source_does_not_hold_is_found() -> None:
    source = "Two days later a 54-year-old received 24 000 units; pH7.35, range 3.5–4.0."
    assert new_numbers("After 2 days the 54-year-old got 24,000 units at pH 7.35 (3.5 to 4).", source) == []
    assert new_numbers("The 55-year-old got 240 units.", source) == ["55", "240"]


def test_a_fair_distraction_passes() -> None:
    assert check_rewriting(BEFORE, AFTER, min_change=0.05, max_growth=2.0) is None
    assert lost_numbers(CORE, BEFORE, AFTER) == []


def test_other_words_for_the_core_are_no_fault_and_other_numbers_are_noticed() -> None:
    reworded = AFTER.replace("no fever", "a normal temperature").replace("severe pain", "excruciating discomfort")
    assert lost_numbers(CORE, BEFORE, reworded) == []
    assert lost_numbers(CORE, BEFORE, AFTER.replace("1.8 mg/dL", "2.8 mg/dL")) == ["1.8"]
    assert lost_numbers(["a 54-year-old man"], BEFORE, AFTER) == []  # the age may become another


def test_a_distraction_must_change_something_and_keep_its_measure() -> None:
    limits = {"min_change": 0.05, "max_growth": 2.0}
    same = check_rewriting(BEFORE, BEFORE, **limits)
    assert same is not None
    assert "next to nothing" in same.reason
    for text in (AFTER * 3, "A woman."):
        long = check_rewriting(BEFORE, text, **limits)
        assert long is not None
        assert "length" in long.reason
    assert check_rewriting(BEFORE, "", **limits) is not None


def test_telling_words_give_a_step_away() -> None:
    assert telling_words("Treatment with intralesional cidofovir injections") == {
        "intralesional",
        "cidofovir",
        "injection",
    }
    assert telling_words("The patient") == set()
    assert telling_words("the ECMO circuit, TIPS or CT of 2022") == {"ecmo", "circuit", "tip", "ct"}
    text = "The wart grew. An intralesional injection of Cidofovir was tried."
    assert giving_away(text, "intralesional cidofovir", share=0.75) == text[15:]
    assert giving_away("An injection was refused.", "intralesional cidofovir injection", share=0.75) == ""
    assert giving_away(text, "the treatment", share=0.5) == ""
