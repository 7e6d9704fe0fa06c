"""Whether a text is a question, and one that stands alone."""

from __future__ import annotations

import pytest

from hoofbeat.recipes.guards.text_checks import new_numbers
from hoofbeat.recipes.messages.harvest import asks, stands_alone, well_formed


@pytest.mark.parametrize(
    "text",
    ["is it safe", "I want to know more about stenosis", "please tell me what to do", "Any ideas?", "whats diabete"],
)
def test_people_ask_in_many_ways(text: str) -> None:
    assert asks(text)


def test_a_statement_asks_nothing() -> None:
    assert not asks("I had my transplant. All is well.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("so?", "too short"),
        ("why " * 30, "too long"),
        ("Thank you all for the kind words.", "it asks nothing"),
        ("How do I cancel my next appointment?", "administrative"),
        ("Kann ich nach der Operation wieder Auto fahren, und wie lange muss ich warten?", "language"),
        ("Можно ли мне есть суши после пересадки почки?", "language"),
    ],
)  # fmt: skip
def test_what_is_no_usable_question(text: str, reason: str) -> None:
    found = well_formed(text, minimum=3, maximum=25, language="en")
    assert found is not None
    assert reason in found.reason


def test_marks_do_not_count_as_words() -> None:
    found = well_formed("[name] [date] [place] why?", minimum=3, maximum=25, language="en")
    assert found is not None
    assert "too short" in found.reason


@pytest.mark.parametrize(
    "text",
    [
        "Low tac level 3.2, low magnesium 0.6, high potassium 5.9, high creatinine 210, low sodium 128: dose change?",
        "Mi familia says tamales are fine. What foods are unsafe after a liver transplant?",
        "FSGS recurrence post tx, plasmapheresis, rituximab, belatacept, eculizumab, tocilizumab: success rate?",
        "Prograf tremor anyone?",
    ],
)
def test_english_is_not_another_language(text: str) -> None:
    """Telegram style, drug names and a foreign word have few little words, and are English all the same."""
    assert well_formed(text, minimum=3, maximum=100, language="en") is None


@pytest.mark.parametrize(
    "text",
    [
        "Darf ich nach der Transplantation Sushi essen?",
        "Puis-je boire du vin après une greffe de foie ?",
        "es seguro el pomelo con ciclosporina",
        "quando posso tornare al lavoro dopo il trapianto",
    ],
)
def test_another_language_is_told_by_its_little_words(text: str) -> None:
    found = well_formed(text, minimum=3, maximum=100, language="en")
    assert found is not None
    assert found.reason == "in another language"


def test_any_language_will_do_without_one() -> None:
    assert well_formed("Можно ли мне есть суши после пересадки почки?", minimum=3, maximum=25, language="") is None


@pytest.mark.parametrize(
    "text",
    ["You may drive.", "Is it safe?", "And now?", "Why is the medicine mentioned above bad?", "May I go to [place]?"],
)
def test_what_does_not_stand_alone(text: str) -> None:
    assert stands_alone(text) is not None


def test_what_stands_alone() -> None:
    assert stands_alone("Is it safe to eat sushi while I take tacrolimus?") is None


def test_numbers_must_come_from_the_message() -> None:
    assert new_numbers("Is 1,000 mg twice in 2 days ok?", "1000 mg for two days") == []
    assert new_numbers("Is 500 mg ok?", "1000 mg") == ["500"]


@pytest.mark.parametrize(
    ("text", "source", "new"),
    [
        ("A 28-year-old woman.", "A twenty-eight-year-old woman.", []),
        ("It took 28 days.", "It took Twenty eight days.", []),
        ("It took 17 days.", "It took seventeen days.", []),
        ("On day 21.", "On the twenty-first day.", []),
        ("It took 120 and 345 days.", "one hundred and twenty, then three hundred forty-five days", []),
        ("It took 28 days.", "twenty, eight and eight-twenty days", ["28"]),
        ("It took 23 days.", "two or three days, two and three days", ["23"]),
        ("It took 5 or 25 days.", "twenty or five days", ["25"]),
        ("It took 29 days.", "twenty-eight days", ["29"]),
    ],
)
def test_numbers_may_be_words_in_the_source(text: str, source: str, new: list[str]) -> None:
    assert new_numbers(text, source) == new


@pytest.mark.parametrize(
    ("text", "source", "new"),
    [
        ("Hemoglobin was 11.5 g/dl.", "a hemoglobin level of 11. 5 g/dl, a lactate level of 5.92", []),
        ("Hemoglobin was 11.5 g/dl.", "hemoglobin 11 .5 g/dl", []),
        ("Hemoglobin was 11.5 g/dl.", "haemoglobin 11·5 g/dL", []),
        ("Platelets were 380,000/mm3.", "platelet count (380.000/mm3)", []),
        ("Platelets were 380000/mm3.", "platelet count (380.000/mm3)", []),
        ("She got 1,200,000 units.", "1.200.000 units", []),
        ("CD4 cells were 1,137.", "counts were 1, 137, 470, and 620", []),
        ("White cells were 12.94 × 10^9/L.", "white cell count of 12.94 × 109/ L", []),
        ("She lay on her side (90°).", "a semi-pronation position (900) to the left", []),
        ("White cells were 12.94 × 10^9/L.", "white cell count of 12.94 and a dose of 109 mg", ["10", "9"]),
        ("She lay on her side (80°) for 90 minutes.", "a semi-pronation position (900)", ["80", "90"]),
        ("Hemoglobin was 115 g/l.", "a hemoglobin level of 11. 5 g/dl", ["115"]),
        ("Platelets were 38,000/mm3.", "platelet count (380.000/mm3)", ["38000"]),
        ("It was 6.380 mm.", "It was 6. 380 patients came.", ["6.38"]),
    ],
)
def test_numbers_may_be_broken_in_the_source(text: str, source: str, new: list[str]) -> None:
    assert new_numbers(text, source) == new
