"""Taking a diagnosis out of a case: what goes, what stays, and the way back into the source. All cases are invented."""

from __future__ import annotations

import pytest

from hoofbeat.corpus.vocabulary import find_words
from hoofbeat.recipes.cases.redaction import (
    RedactedSpan,
    Redaction,
    drop_empty_headings,
    find_made,
    is_old,
    is_provisional,
    is_suspected,
    last_said_made,
    redact,
    remove_mentions,
)
from hoofbeat.records import Document, Section

TEXT = (
    "A man of 40 had a cough for two months and lost weight. He had no fever, and nobody in the house was ill.\n\n"
    "The scan showed large nodes on both sides, consistent with sarcoidosis (Fig. 1). Sarcoidosis was on our minds. "
    "The biopsy showed granulomas without necrosis, which confirmed the diagnosis of sarcoidosis (Fig. 2). "
    "Prednisone was given.\n\nHe was well after a year."
)
DOCUMENT = Document(id="d", title="A case", text=TEXT)


def _mentions(text: str) -> list[tuple[int, int]]:
    return find_words(text, "sarcoidosis")


def _whole() -> Redaction:
    return redact(DOCUMENT, (0, len(TEXT)))


def test_only_the_telling_end_of_a_sentence_goes_and_figures_stay() -> None:
    left = remove_mentions(_whole(), _mentions, "mentions it").text
    assert "sarcoidosis" not in left.lower()
    assert "The scan showed large nodes on both sides (Fig. 1)." in left
    assert "The biopsy showed granulomas without necrosis (Fig. 2)." in left
    assert "on our minds" not in left
    assert left.count("\n\n") == TEXT.count("\n\n")


def test_a_reference_that_names_it_goes_too() -> None:
    text = "The nodes were large (Fig. 1, sarcoidosis). They were firm (Fig. 2)."
    case = remove_mentions(redact(Document(id="d", title="t", text=text), (0, len(text))), _mentions, "x")
    assert case.text == "They were firm (Fig. 2)."


def test_every_character_left_leads_back_to_the_source() -> None:
    case = remove_mentions(_whole(), _mentions, "mentions it")
    text = case.text
    for at, character in enumerate(text):
        place = case.place(at)
        assert TEXT[place] == character or character.isspace()
    assert redact(DOCUMENT, (0, len(TEXT)), case.listed()).text == text
    assert all(TEXT[r["start"] : r["end"]] == r["text"] for r in case.listed())


def test_holes_are_kept_once_and_inside() -> None:
    case = _whole().without(
        RedactedSpan(5, 10, "a"), RedactedSpan(6, 8, "b"), RedactedSpan(len(TEXT) + 5, len(TEXT) + 9, "c")
    )
    assert [hole.why for hole in case.removed] == ["a"]


def test_a_heading_goes_with_what_stood_under_it() -> None:
    text = "Told here.\n\nFINAL DIAGNOSIS\n\nIt was sarcoidosis.\n\nMORE\n\nAnd more."
    sections = tuple(
        Section(heading=name, level=1, start=text.index(name), body=text.index(name) + len(name) + 2, end=end)
        for name, end in (("FINAL DIAGNOSIS", text.index("MORE") - 2), ("MORE", len(text)))
    )
    document = Document(id="d", title="t", text=text, sections=sections)
    case = drop_empty_headings(remove_mentions(redact(document, (0, len(text))), _mentions, "x"))
    assert case.text == "Told here.\n\nMORE\n\nAnd more."


def test_a_working_diagnosis_is_provisional() -> None:
    assert is_provisional("with an initial working diagnosis of malaria")
    assert is_provisional("She was initially diagnosed with asthma")
    assert not is_provisional("confirming the final diagnosis of malaria")


def test_the_first_sentence_that_says_it_was_made_is_found() -> None:
    text = (
        "He had a history of sarcoidosis. Sarcoidosis was suspected. Taking his history of cough into account, he was "
        "diagnosed with sarcoidosis. The biopsy confirmed sarcoidosis."
    )
    case = redact(Document(id="d", title="t", text=text), (0, len(text)))
    place = find_made(case, _mentions)
    assert place is not None
    assert text[slice(*place)].endswith("he was diagnosed with sarcoidosis.")
    hidden = case.without(RedactedSpan(*place, "a figure's caption"))
    later = find_made(hidden, _mentions)
    assert later is not None
    assert text[slice(*later)] == "The biopsy confirmed sarcoidosis."
    assert find_made(case, lambda _sentence: []) is None


def test_where_a_sentence_last_says_that_something_was_made() -> None:
    sentence = "There was no fever and the biopsy revealed sarcoidosis"
    assert last_said_made(sentence, sentence.index("sarcoidosis")) == sentence.index(" sarcoidosis")
    assert last_said_made("The scan did not reveal nor confirm sarcoidosis", 36) is None
    assert last_said_made("There was no sarcoidosis", 13) is None


def test_a_clause_that_would_lose_its_verb_goes_with_its_sentence() -> None:
    text = "He was well. It was then thought that inflammation due to sarcoidosis may have caused it. He left."
    case = redact(Document(id="d", title="t", text=text), (0, len(text)))
    assert remove_mentions(case, _mentions, "x").text == "He was well. He left."


@pytest.mark.parametrize(
    ("quote", "old", "suspected"),
    [
        ("This represents the only known case of a patient with primary meningococcal arthritis.", False, False),
        ("The histology confirmed the clinical suspicion of facial necrotizing fasciitis.", False, False),
        ("She was a known case of sarcoidosis.", True, False),
        ("There was a clinical suspicion of necrotizing fasciitis.", False, True),
        ("A biopsy was taken to confirm the suspicion of sarcoidosis.", False, True),
    ],
)
def test_old_and_suspected_diagnoses_are_told_from_made_ones(quote: str, old: bool, suspected: bool) -> None:
    assert (is_old(quote), is_suspected(quote)) == (old, suspected)
