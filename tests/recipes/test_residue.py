"""Residue of the printed report: what a rule takes out, what it only notices, and what becomes of it in a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.models import ChatRequest
from hoofbeat.recipes.cases.cut_check import cuts_table
from hoofbeat.recipes.cases.redaction import redact
from hoofbeat.recipes.cases.residue import call_outs, is_table, residue, without_call_outs, without_pointers
from hoofbeat.recipes.cases.shown_sentences import choose_shown, drop_call_outs, with_shown
from hoofbeat.recipes.cases.stems import spans_with_call_outs, stem_text
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep
from hoofbeat.records import Document
from tests.recipes.case_answers import material, show
from tests.recipes.support import Says, a_context

# The wording of published reports; the patients are invented.
TOLD = (
    "A 40-year-old man came with a dry cough (Fig. 1A, arrow) and fever [3, 4]. Tryptase was measured at ARUP "
    "Laboratories and was 38 ng/mL. The course of ferritin is shown in Figure 2. A scan showed a mass of the left "
    "lung.(Fig. 3). He recovered."
)
TABLE = "Test | Admission | Day 3 | Day 14\nFerritin (ng/mL) | 812 | 2400 | 310\nPlatelets | 90 | 41 | 220"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a dry cough (Fig. 1A, arrow) and fever", "a dry cough and fever"),
        ("Calcium was 2.9 mmol/L [3, 4] (see Table 2).", "Calcium was 2.9 mmol/L."),
        ("lung.(Fig. 3). He", "lung. He"),
        ("a mass (Figures 1–3, see Supplementary material online, Video S1).", "a mass."),
        ("mortality is high [12].", "mortality is high."),
        ("resistance was tested (shown in Table 1).", "resistance was tested."),
        ("as reported.[34567] The", "as reported. The"),
        ("a nodule (white arrow), soft", "a nodule, soft"),
        ("cough (Fig. 1)\n\nExamination", "cough\n\nExamination"),
    ],
)
def test_marks_that_tell_nothing_are_taken_out(text: str, plain: str) -> None:
    assert without_call_outs(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        "a mass (Fig. 1, showing necrosis) was seen",
        "ferritin 800 ng/mL [30-400]",
        "platelets 90 [150-400]",
        "blood pressure (lying) was 90 (sitting 70)",
        "OX-19 [1:40]",
        "a fracture (Table edge) of the skull",
        "the lesion (left, upper) grew",
    ],
)
def test_brackets_that_tell_something_stay(text: str) -> None:
    assert call_outs(text) == []


def test_what_points_to_a_figure_that_is_seen_stays() -> None:
    assert without_call_outs("a rash (Fig. 1) and nodes (Fig. 2).", seen={"1"}) == "a rash (Fig. 1) and nodes."


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        ("The course is shown in Figure 2.", "'Figure 2' points to"),
        ("A smear (for educational purposes only) showed blasts.", "'educational purposes' is about rights"),
        ("CT of the chest. Copyright 2006 by the society.", "'Copyright' is about rights"),
        ("Skin testing (Greer Laboratories, Lenoir, NC) was negative.", "'Greer Laboratories' names a company"),
        ("Cultures in BacT/ALERT (bioMérieux, Inc, Durham, NC, USA) grew nothing.", "names a company"),
        (TABLE, "a table with several times (admission, day 3, day 14)"),
    ],
)
def test_other_residue_is_noticed(sentence: str, what: str) -> None:
    (found,) = residue(sentence)
    assert what in found


@pytest.mark.parametrize(
    "sentence",
    [
        "Laboratory tests revealed a ferritin of 812 ng/mL (Table 1).",
        "An autopsy was performed with permission from the family.",
        "The figure of eight pulse had gone by day 3.",
        "Test | Result | Reference\nFerritin | 812 | 30-400",
    ],
)
def test_plain_sentences_have_none(sentence: str) -> None:
    assert residue(sentence) == []


def test_a_table_may_be_pointed_to_where_one_is_shown() -> None:
    assert residue("Values are in Table 1.", seen={"table"}) == []
    assert is_table(TABLE)
    assert without_pointers("As Figure 2 shows (Fig. 1), 38 cells") == "As  shows, 38 cells"


def ran(tmp_path: Path, step: RecipeStep, item: RecipeItem, document: Document, says: Says) -> Outcome:
    with a_context(tmp_path, [document], RecipeSettings(), says) as context:
        (outcome,) = step.run([item], context)
    return outcome


def an_item(text: str) -> tuple[RecipeItem, Document]:
    document = Document(id="d", title="An invented case", text=text)
    item = RecipeItem(id="d", documents=("d",), values={"diagnosis": "Lung abscess", "synonyms": []})
    return with_shown(item, redact(document, (0, len(text)))), document


def test_marks_are_cut_from_the_case_and_listed(tmp_path: Path) -> None:
    item, document = an_item(TOLD)
    case = redact(document, (0, len(TOLD))).reworded(
        TOLD.index("A scan"), TOLD.index(" He"), "A scan showed an opacity of the left lung (Fig. 3).", "reworded"
    )
    outcome = ran(tmp_path, drop_call_outs("call-outs"), with_shown(item, case), document, lambda *_: {})
    assert isinstance(outcome, RecipeItem)
    assert outcome["stem"].startswith("A 40-year-old man came with a dry cough and fever. Tryptase")
    assert "A scan showed an opacity of the left lung. He" in outcome["stem"]
    rows = [row[1:] for row in cuts_table([outcome]).rows]
    assert ("trimmed", " [3, 4]") in [(row[0], row[4]) for row in rows]
    assert all("points to a figure" in str(row[3]) for row in rows if row[0] == "trimmed")
    assert outcome["stem"].count("Fig") == 1  # "Figure 2" is for the model to decide
    assert "(Fig. 1A, arrow)" in stem_text(document, spans_with_call_outs(outcome))


def test_the_model_is_told_of_residue_and_asked_again(tmp_path: Path) -> None:
    asked: list[ChatRequest] = []

    def says(_name: str, request: ChatRequest) -> dict[str, Any]:
        asked.append(request)
        new = {
            "Tryptase": "Tryptase was measured and was 38 ng/mL.",
            "ferritin": "The course of ferritin was followed.",
        }
        return show(request, "A scan", reword=new if len(asked) > 1 else {})

    item, document = an_item(TOLD)
    step = choose_shown("shown", min_words=5, min_match=0.9)
    outcome = ran(tmp_path, step, item, document, says)
    assert isinstance(outcome, RecipeItem)
    assert "2 ('ARUP Laboratories' names a company" in material(asked[0])["notes"]
    assert "residue of the printed report in what is shown: 'ARUP" in asked[1].messages[-1].content
    assert "ARUP" not in outcome["stem"]
    assert "flags" not in outcome.values


def test_residue_that_the_model_insists_on_stays_and_is_flagged(tmp_path: Path) -> None:
    item, document = an_item(TOLD)
    step = choose_shown("shown", min_words=5, min_match=0.9)
    outcome = ran(tmp_path, step, item, document, lambda _, request: show(request, "A scan"))
    assert isinstance(outcome, RecipeItem)
    assert "ARUP Laboratories" in outcome["stem"]
    assert any("residue of the printed report is shown: 'ARUP" in flag for flag in outcome["flags"])


def test_a_table_is_shown_as_far_as_it_was_known(tmp_path: Path) -> None:
    item, document = an_item(f"A man had fever and a rash for two days.\n\n{TABLE}\n\nHe got worse within three days.")
    words = "Test on admission: ferritin (ng/mL) 812, platelets 90."
    step = choose_shown("shown", min_words=5, min_match=0.9)
    outcome = ran(tmp_path, step, item, document, lambda _, request: show(request, reword={"Ferritin": words}))
    assert isinstance(outcome, RecipeItem)
    assert words in outcome["stem"]
    assert "flags" not in outcome.values
    assert [step.note for step in outcome.lineage if "asked again" in step.note] == []
