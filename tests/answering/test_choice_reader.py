"""Choices read from outputs: the labelled set, the rules one by one, and outputs made to break the reader."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.answering.choice_reader import ParsedChoice, read_choice
from hoofbeat.answering.choice_statements import Cues, load_wording, without_markup
from tests.answering.measure_reading import labelled_outputs, measure

CHEST = ("Acute pericarditis", "Myocarditis", "Pulmonary embolism", "Aortic dissection")


def test_precision_and_recall_on_the_labelled_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = labelled_outputs()
    assert len(rows) >= 300
    assert len({row.id for row in rows}) == len(rows)
    assert len({(row.id[0], row.output, tuple(row.options)) for row in rows}) == len(rows)
    assert all(row.label is None or row.label in row.options for row in rows)
    measured = measure(rows)
    with capsys.disabled():
        print("\n" + measured.line("all"))
    assert measured.precision >= 0.99, [row.id for row, reading in measured.misread if reading.choice is not None]
    assert measured.recall >= 0.95, [row.id for row, reading in measured.misread if reading.choice is None]


@pytest.mark.parametrize(
    ("output", "how"),
    [
        ("B", "only-letter"),
        ("B. Myocarditis", "letter-and-text"),
        ("myocarditis", "option-text"),
        ("The answer is B.", "closing-statement"),
        (r"\boxed{B}", "boxed"),
        ('{"answer": "B"}', "json"),
        ("<answer>B</answer>", "answer-tag"),
        ("The rest is noise, but see **B** for the idea that fits best of all", "bold"),
        ("B\n\nThe troponin is high.", "line-of-its-own"),
        ("B, since the troponin is high.", "opening"),
        ("A. wrong\nB. correct\nC. wrong", "verdict-in-list"),
        ("This is consistent with myocarditis.", "only-mention"),
    ],
)
def test_it_is_said_how_a_choice_was_read(output: str, how: str) -> None:
    assert read_choice(output, CHEST) == ParsedChoice("Myocarditis", how)
    assert read_choice(output, CHEST).words == how


@pytest.mark.parametrize(
    ("output", "how", "why"),
    [
        ("", "none", "the output is empty"),
        ("<think>B", "none", "the output ends before its reasoning does"),
        ("<think>B</think>", "none", "the output ends before its reasoning does"),
        ("I'm sorry, but I can't help with that.", "none", "the model declines to answer"),
        ("None of the options fits.", "none", "it says that no option fits"),
        ("The answer is F.", "none", "no option has this letter"),
        ("Get an ECG.", "none", "no option is named"),
        ("A or B", "ambiguous", "several options are named as the answer"),
        ("The answer is A. The answer is B.", "ambiguous", "its statements name different options"),
        ("The answer is A. Myocarditis", "ambiguous", "the text beside the letter is another option's"),
        ("Choose: A, B, C or D. Answer: A, B, C, D", "ambiguous", "all options are named together"),
        (
            "I am torn: **A** has the rub on its side while **B** has the troponin",
            "ambiguous",
            "several options are named and none is chosen",
        ),
    ],
)
def test_it_is_said_why_nothing_was_read(output: str, how: str, why: str) -> None:
    assert read_choice(output, CHEST) == ParsedChoice(None, how, why)
    assert read_choice(output, CHEST).words == f"{how}: {why}"


@pytest.mark.parametrize(
    ("output", "letter", "how"),
    [
        ("The answer is B or maybe D.", "", "ambiguous"),
        ("Final answer: B or possibly C", "", "ambiguous"),
        ("The answer might be A or might be B.", "", "ambiguous"),
        ("It could be A or B.", "", "ambiguous"),
        ("Either B or C would be my answer.", "", "ambiguous"),
        ("The answer is A if the ECG is abnormal, otherwise B.", "", "ambiguous"),
        ("The correct option is B, unless the patient is pregnant, in which case C.", "", "ambiguous"),
        ("The answer is D, unless I am missing something.", "D", "closing-statement"),
        ("The answer is A. Wait, D.", "D", "closing-statement"),
        ("Final answer: A. Correction: C.", "C", "closing-statement"),
        ("The answer is B... no, that can't be right.", "", "ambiguous"),
        ("A. On second thought I cannot decide.", "", "ambiguous"),
        ("The answer is C. Antibiotics must not wait for imaging.", "C", "closing-statement"),
        ("Answer B is the distractor; choose D.", "D", "closing-statement"),
        ("Many students answer B. That is wrong.", "", "none"),
        ("A common mistake is to answer B.", "", "none"),
        ("I was told the answer is B. I disagree.", "", "none"),
        ("My colleague says A, but I say C.", "C", "closing-statement"),
        ("The key finding suggests that the answer is B.", "B", "closing-statement"),
        ("I no longer think the answer is C.", "", "none"),
    ],
)
def test_what_is_hedged_conditional_taken_back_or_another_s_is_not_guessed(output: str, letter: str, how: str) -> None:
    found = read_choice(output, CHEST)
    assert (found.choice, found.how) == (CHEST["ABCD".index(letter)] if letter else None, how)


def test_an_entry_is_looked_for_wherever_it_can_match() -> None:
    """What must stand in a text for an entry to be tried never keeps a match away."""
    outputs = [without_markup(row.output) for row in labelled_outputs()]
    for cues in load_wording().before:
        everything = Cues(cues.weight, tuple(((), pattern) for _, pattern in cues.entries))
        joined = re.compile("|".join(f"(?:{pattern.pattern})" for _, pattern in cues.entries), re.IGNORECASE)
        for text in outputs:
            found = [match.span() for match in cues.find(text, text.lower())]
            assert found == [match.span() for match in everything.find(text, "")]
            assert found == [match.span() for match in joined.finditer(text)]


def test_without_options_there_is_nothing_to_read() -> None:
    assert read_choice("B", ()).why == "the question has no options"


def test_equal_options_are_told_apart_by_their_letter_only() -> None:
    options = ("C. Tuberculosis", "Lymphoma", "E. Tuberculosis")
    assert read_choice("The answer is A", options).choice == "C. Tuberculosis"
    assert read_choice("Tuberculosis", options).choice is None


@pytest.mark.parametrize("said", ["Hyperkalemia", "hyperkalaemia", "HYPERKALEMIA.", "Hyperkalmia"])
def test_spelling_and_slips_of_the_pen(said: str) -> None:
    assert read_choice(said, ("Hypokalemia", "Hyperkalemia", "Hyponatremia")).choice == "Hyperkalemia"


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("Hyperthyroidism", ("Hypothyroidism", "Goitre")),
        ("Microcytic", ("Macrocytic", "Normocytic")),
        ("Urethral stone", ("Ureteral stone", "Bladder stone")),
        ("Dysphagia", ("Dysphasia", "Dysarthria")),
        ("Hypercalcemia", ("Hyperkalemia", "Hypokalemia")),
        ("Abduction", ("Adduction", "Rotation")),
        ("15 mg", ("1.5 mg", "150 mg")),
        ("-2", ("2", "4")),
    ],
)
def test_another_medical_word_is_no_slip(said: str, options: tuple[str, ...]) -> None:
    assert read_choice(said, options).choice is None


@given(st.integers(0, 25), st.integers(2, 26))
def test_every_letter_reads_as_its_option_or_as_none(place: int, count: int) -> None:
    options = [f"finding number {word}" for word in range(count)]
    letter = chr(ord("A") + place)
    for output in (letter, f"({letter})", f"**{letter}**", f"The answer is {letter}.", f"Answer: ({letter})"):
        expected = options[place] if place < count else None
        assert read_choice(output, options).choice == expected


@given(st.text(max_size=300))
def test_whatever_is_written_the_choice_is_an_option_or_none(output: str) -> None:
    reading = read_choice(output, CHEST)
    assert reading.choice is None or reading.choice in CHEST
    assert (reading.choice is None) == (reading.how in ("ambiguous", "none"))


WORDS = ["A", "B", "and", "or", "not", "The answer is", "(", ")", "**", ".", "\n", "is", "wrong", "correct", "actually"]


@given(st.lists(st.sampled_from([*WORDS, *CHEST]), max_size=14))
def test_reading_is_the_same_every_time(words: list[str]) -> None:
    output = " ".join(words)
    assert read_choice(output, CHEST) == read_choice(output, CHEST)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "output",
    [
        "A" * 200_000,
        "(" * 100_000,
        "A. " * 50_000,
        r"\boxed{" * 20_000,
        "<answer>" * 20_000,
        '"answer": "' * 20_000,
        "the answer is " * 10_000,
        "Acute pericarditis " * 8_000,
        "**" * 50_000,
        "A and " * 20_000,
        "\n" * 100_000 + "B",
        " " * 100_000 + "B",
        "not " * 30_000 + "A",
    ],
)
def test_hostile_outputs_end_the_reading_soon(output: str) -> None:
    read_choice(output, CHEST)


@pytest.mark.parametrize("said", ["{}", "The answer is {}.", "**{}**", "Final answer: {}"])
def test_the_letter_of_a_genus_is_no_letter_of_an_option(said: str) -> None:
    options = ("C. kingae arthritis", "E. coli bacteremia", "Gout", "M. canis sepsis", "B. cereus sepsis")
    for option in options:
        assert read_choice(said.format(option), options).choice == option
    assert read_choice("C. Gout", options).choice == "Gout"


def test_a_small_letter_alone_is_no_word_and_still_a_choice() -> None:
    assert read_choice("a", CHEST).choice == CHEST[0]
    assert read_choice("(a", CHEST).choice == CHEST[0]
