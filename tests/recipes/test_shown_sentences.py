"""What the examinee sees: which words a rule may refuse, and which ones a model may keep after an objection."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.recipes.cases.shown_sentences import insisted, no_leaks
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import a_context

DIAGNOSIS = "Liver laceration caused by cardiopulmonary resuscitation"


def checked(tmp_path: Path, stem: str, **values: object) -> Outcome:
    document = Document(id="d", title="An invented case", text=stem)
    item = RecipeItem(
        id="d", documents=("d",), values={"diagnosis": DIAGNOSIS, "synonyms": ["CPR"], "stem": stem, **values}
    )
    with a_context(tmp_path, [document], RecipeSettings(), lambda *_: {}) as context:
        [outcome] = no_leaks("leaks").run([item], context)
    return outcome


def test_the_full_name_is_turned_away(tmp_path: Path) -> None:
    outcome = checked(tmp_path, "The scan showed a liver laceration.")
    assert isinstance(outcome, ItemRejection)
    assert "liver laceration" in outcome.details


@pytest.mark.parametrize("stem", ["CPR was given for ten minutes.", "She received CPR, then the abdomen swelled."])
def test_a_word_of_the_cause_is_flagged_and_stays(tmp_path: Path, stem: str) -> None:
    outcome = checked(tmp_path, stem)
    assert isinstance(outcome, RecipeItem)
    assert outcome["stem"] == stem
    assert outcome["allowed"] == ["CPR"]
    assert any("CPR" in flag for flag in outcome["flags"])


def test_a_word_that_was_allowed_is_not_flagged_twice(tmp_path: Path) -> None:
    once = checked(tmp_path, "CPR was given.")
    assert isinstance(once, RecipeItem)
    again = checked(tmp_path, "CPR was given.", allowed=once["allowed"], flags=once["flags"])
    assert isinstance(again, RecipeItem)
    assert again["flags"] == once["flags"]


def test_words_that_a_model_keeps_are_listed_once() -> None:
    item = RecipeItem(id="d", documents=(), values={"allowed": ["CPR"]})
    assert insisted(item, ["CPR", "SCD"])["allowed"] == ["CPR", "SCD"]
