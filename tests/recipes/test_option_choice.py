"""Wrong options in a model's words: what is taken, what is flagged for reviewers, and what is sent back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.models import ChatRequest
from hoofbeat.recipes.cases.option_choice import Candidate, choose_options
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe_items import Outcome, RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import a_context

CASE = "A 60-year-old man was admitted. He was examined."
LACERATION = "Liver laceration caused by mechanical cardiopulmonary resuscitation"
FASCIITIS = "Odontogenic necrotizing fasciitis of the neck with mediastinitis"
CHOLESTASIS = "Sickle cell intrahepatic cholestasis"


def _put(item: RecipeItem, chosen: list[Candidate], _context: RecipeContext) -> Outcome:
    return item.put(chosen=[each.text for each in chosen])


def _chosen(
    tmp_path: Path,
    answer: str,
    *wordings: str,
    synonyms: tuple[str, ...] = (),
    candidates: tuple[str, ...] = (),
    answer_wording: str = "",
    case: str = CASE,
) -> tuple[Any, list[str]]:
    """The outcome for a model that always gives these wordings, of the candidates first; and what it was asked."""
    asked: list[str] = []
    options = [
        {"candidate": number if number <= len(candidates) else 0, "wording": wording}
        for number, wording in enumerate(wordings, 1)
    ]

    def says(_name: str, request: ChatRequest) -> object:
        asked.append(request.messages[-1].content)
        return {"options": options, "unfit": [], "answer_wording": answer_wording}

    pool = [{"text": text, "origin": "icd10cm"} for text in candidates]
    item = RecipeItem(
        id="i", values={"diagnosis": answer, "synonyms": list(synonyms), "stem": case, "candidates": pool}
    )
    step = choose_options(
        "options", minimum=1, maximum=5, vocabularies=("icd10cm", "rare-diseases"), put=_put, shown=16, max_words=15
    )
    folder = tmp_path / str(len(list(tmp_path.iterdir())))  # one ledger per call: answers are kept by request
    folder.mkdir()
    with a_context(folder, [Document(id="d", title="d", text=CASE)], RecipeSettings(), says) as context:
        (outcome,) = step.run([item], context)
    return outcome, asked


@pytest.mark.parametrize(
    ("answer", "option", "known"),
    [
        (LACERATION, "Splenic rupture caused by cardiopulmonary resuscitation", True),
        (LACERATION, "Retroperitoneal hematoma caused by femoral vessel cannulation", True),
        ("Missed guidewire after central line insertion", "Air embolism after central line insertion", True),
        ("Sinus of Valsalva aneurysm rupture", "Aortic dissection with rupture into the left atrium", True),
        ("Subcapsular renal hematoma following lithotripsy", "Perinephric abscess following lithotripsy", True),
        ("Disseminated Talaromyces marneffei infection", "Disseminated Histoplasma capsulatum infection", True),
        ("Esophageal pneumatosis", "Acute esophageal necrosis", True),
        ("Neutropenic enterocolitis", "Leukemic infiltration of the intestine", False),
        ("Neutropenic enterocolitis", "Fuzzy grey gut of Nowhere", False),
    ],
)
def test_an_option_that_no_vocabulary_knows_is_flagged_and_not_sent_back(
    tmp_path: Path, answer: str, option: str, known: bool
) -> None:
    item, asked = _chosen(tmp_path, answer, option)
    assert (len(asked), item["chosen"]) == (1, [option])
    assert item.get("flags", []) == ([] if known else [f"the option {option!r}: no vocabulary knows it"])


@pytest.mark.parametrize(
    ("answer", "candidate", "wording"),
    [
        ("COVID-19", "Pneumonia due to Streptococcus pneumoniae", "Pneumococcal pneumonia"),
        (LACERATION, "Injury of spleen", "Splenic rupture caused by mechanical cardiopulmonary resuscitation"),
        (LACERATION, "Injury of stomach", "Gastric rupture caused by mechanical cardiopulmonary resuscitation"),
        ("Hepatic infarction", "Toxic liver disease with cholestasis", "Drug-induced intrahepatic cholestasis"),
    ],
)
def test_a_candidate_may_be_reworded_and_made_more_specific(
    tmp_path: Path, answer: str, candidate: str, wording: str
) -> None:
    item, asked = _chosen(tmp_path, answer, wording, candidates=(candidate,))
    assert (len(asked), item["chosen"]) == (1, [wording])
    assert item["flags"] == [f"the option {wording!r} for {candidate!r}: it may be another disease"]
    assert [each["from"] for each in item["reworded"]] == [candidate]


def test_coding_words_are_sent_back_and_replaced_by_the_candidate(tmp_path: Path) -> None:
    item, asked = _chosen(tmp_path, "Gout", "Sarcoidosis, unspecified", candidates=("Sarcoidosis",))
    assert item["chosen"] == ["Sarcoidosis"]
    assert "has coding words" in asked[1]


def test_a_complication_in_common_does_not_make_two_diseases_one(tmp_path: Path) -> None:
    option = "Spontaneous esophageal perforation with mediastinitis"
    names = ("necrotizing fasciitis", "mediastinitis")
    item, asked = _chosen(tmp_path, FASCIITIS, option, synonyms=names)
    assert (len(asked), item["chosen"]) == (1, [option])
    for same in ("Mediastinitis", "Necrotizing fasciitis", "Necrotizing fasciitis of the neck"):
        item, asked = _chosen(tmp_path, FASCIITIS, option, same, synonyms=names)
        assert item["chosen"] == [option]
        assert item["dropped"][0]["why"].startswith("means the same as the right answer")


def test_the_model_decides_after_one_question_where_only_a_wider_name_is_shared(tmp_path: Path) -> None:
    option = "Drug-induced intrahepatic cholestasis"
    item, asked = _chosen(tmp_path, CHOLESTASIS, option, "Budd-Chiari syndrome", synonyms=("intrahepatic cholestasis",))
    assert len(asked) == 2
    assert "shares a wider name with the right answer" in asked[1]
    assert item["chosen"] == [option, "Budd-Chiari syndrome"]
    assert item["flags"] == [f"the option {option!r}: it shares a wider name with the right answer"]
    item, _ = _chosen(tmp_path, CHOLESTASIS, "Intrahepatic cholestasis", "Budd-Chiari syndrome")
    assert item["chosen"] == ["Budd-Chiari syndrome"]


def test_an_overloaded_answer_is_shortened_with_its_options(tmp_path: Path) -> None:
    item, asked = _chosen(tmp_path, LACERATION, "Splenic rupture", answer_wording="Liver laceration")
    assert (len(asked), item["diagnosis"], item["chosen"]) == (1, "Liver laceration", ["Splenic rupture"])
    assert item["answer_reworded"] == {"from": LACERATION, "to": "Liver laceration"}


def test_a_shorter_answer_that_is_refused_is_told_to_reviewers(tmp_path: Path) -> None:
    item, asked = _chosen(tmp_path, LACERATION, "Splenic rupture", answer_wording="Abdominal trauma")
    assert (len(asked), item["diagnosis"]) == (2, LACERATION)
    (flag,) = item["flags"]
    assert flag.startswith("a shorter answer was refused: The answer wording 'Abdominal trauma' can't be used")


def test_an_option_that_the_case_excludes_is_sent_back_once_and_flagged(tmp_path: Path) -> None:
    case = "He vomited after the operation. Histology showed no evidence of anisakiasis. The wall held gas."
    item, asked = _chosen(tmp_path, "Emphysematous gastritis", "Anisakiasis", "Ischemic gastritis", case=case)
    assert len(asked) == 2
    assert "the case itself excludes it, 'Histology showed no evidence of anisakiasis.'" in asked[1]
    assert any("the case excludes it" in flag for flag in item["flags"])
