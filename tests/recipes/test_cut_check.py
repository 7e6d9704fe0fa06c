"""The check of what was cut from a case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.recipes.cases.cut_check import cut_check, marked, names_infection
from hoofbeat.recipes.cases.redaction import RedactedSpan, Redaction, redact
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import Script, a_context

TEXT = "She had fever. Echocardiography showed a mass, a myxoma. It was removed."


def test_cut_words_are_marked_in_their_sentences() -> None:
    document = Document(id="d", title="", text=TEXT)
    named = TEXT.index(", a myxoma")
    holes = (RedactedSpan(named, named + 10, "name"), RedactedSpan(TEXT.index("It was"), len(TEXT), "after"))
    case = redact(document, (0, len(TEXT))).without(*holes)
    assert marked(case) == [
        "She had fever.",
        "Echocardiography showed a mass{-, a myxoma-}.",
        "{-It was removed.-}",
    ]


def test_words_put_back_leave_the_rest_of_their_hole() -> None:
    document = Document(id="d", title="", text=TEXT)
    start = TEXT.index("Echo")
    case = redact(document, (0, len(TEXT))).without(RedactedSpan(start, len(TEXT), "after"))
    back = case.with_back(start, TEXT.index(", a myxoma"))
    assert back.text == "She had fever. Echocardiography showed a mass"
    assert [hole.why for hole in back.removed] == ["after"]


def test_words_that_name_the_answer_are_not_put_back(tmp_path: Path) -> None:
    """The model is told, names a part that does not tell, and the changed case is looked at once more."""
    document = Document(id="d", title="", text=TEXT)
    start = TEXT.index("Echo")
    hole = RedactedSpan(start, len(TEXT), "after")
    clean: dict[str, Any] = {"lost": [], "left": [], "reworded": [], "derivable": "", "reason": "fine", "usable": "yes"}
    wanted = ("Echocardiography showed a mass, a myxoma.", "Echocardiography showed a mass")
    said = iter([*({**clean, "lost": [{"sentence": 2, "words": each, "why": "the mass"}]} for each in wanted), clean])
    script = Script(lambda _name, _request: next(said))

    def shown(item: RecipeItem, context: RecipeContext) -> Redaction:
        return redact(context.document("d"), (0, len(TEXT)), item["removed"])

    def put(item: RecipeItem, case: Redaction) -> RecipeItem:
        return item.put(removed=case.listed(), stem=case.text)

    first = put(
        RecipeItem(id="d", documents=("d",), values={"diagnosis": "cardiac myxoma", "synonyms": []}),
        redact(document, (0, len(TEXT))).without(hole),
    )
    with a_context(tmp_path, [document], RecipeSettings(), {"model": script}) as context:
        item: Any = first
        for step in cut_check("check", shown=shown, put=put, answer="diagnosis"):
            (item,) = step.run([item], context)
    assert item["stem"] == "She had fever. Echocardiography showed a mass"
    assert len(script.requests) == 3
    assert "finds the answer in words to be put back: 'myxoma'" in script.requests[1][1].messages[-1].content


CPR = "He collapsed at home. CPR was commenced by an automatic device. His abdomen was tense. The liver was lacerated."


@pytest.mark.parametrize(
    ("words", "synonym", "stays"),
    [("CPR was commenced by an automatic device.", "CPR", True), ("The liver was lacerated.", "", False)],
)
def test_words_a_model_insists_on_are_put_back_and_flagged(
    tmp_path: Path, words: str, synonym: str, stays: bool
) -> None:
    """The word list takes CPR, the cause, for the answer; the full name alone stays out, and that is flagged."""
    document = Document(id="d", title="", text=CPR)
    start = CPR.index(words)
    value = {
        "lost": [{"sentence": 2, "words": words, "why": "the cause"}],
        "left": [],
        "reworded": [],
        "derivable": "",
        "reason": "r",
        "usable": "yes",
    }
    clean = {**value, "lost": []}
    said = iter([value, value, clean])
    script = Script(lambda _name, _request: next(said))

    def shown(item: RecipeItem, context: RecipeContext) -> Redaction:
        return redact(context.document("d"), (0, len(CPR)), item["removed"])

    def put(item: RecipeItem, case: Redaction) -> RecipeItem:
        return item.put(removed=case.listed(), stem=case.text)

    answer = "Liver laceration caused by mechanical cardiopulmonary resuscitation"
    first = RecipeItem(id="d", documents=("d",), values={"diagnosis": answer, "synonyms": [synonym]})
    cut = redact(document, (0, len(CPR))).without(RedactedSpan(start, start + len(words), "rule"))
    with a_context(tmp_path, [document], RecipeSettings(), {"model": script}) as context:
        item: Any = put(first, cut)
        for step in cut_check("check", shown=shown, put=put, answer="diagnosis"):
            (item,) = step.run([item], context)
    assert (words in item["stem"]) == stays
    (flag,) = item["flags"]
    assert ("says a word list: CPR" in flag) if stays else flag.startswith("the case lacks a change")


def test_changes_of_the_second_look_are_made(tmp_path: Path) -> None:
    document = Document(id="d", title="", text=TEXT)
    start = TEXT.index(" showed")
    clean: dict[str, Any] = {"lost": [], "left": [], "reworded": [], "derivable": "", "reason": "fine", "usable": "yes"}
    wanted = ("Echocardiography", "showed a mass")
    said = iter([{**clean, "lost": [{"sentence": 2, "words": each, "why": "the mass"}]} for each in wanted])

    def shown(item: RecipeItem, context: RecipeContext) -> Redaction:
        return redact(context.document("d"), (0, len(TEXT)), item["removed"])

    def put(item: RecipeItem, case: Redaction) -> RecipeItem:
        return item.put(removed=case.listed(), stem=case.text)

    cut = redact(document, (0, len(TEXT))).without(RedactedSpan(start - 16, len(TEXT), "after"))
    item: Any = put(RecipeItem(id="d", documents=("d",), values={"diagnosis": "cardiac myxoma", "synonyms": []}), cut)
    script = Script(lambda _name, _request: next(said))
    with a_context(tmp_path, [document], RecipeSettings(), {"model": script}) as context:
        for step in cut_check("check", shown=shown, put=put, answer="diagnosis"):
            (item,) = step.run([item], context)
    assert item["stem"] == "She had fever. Echocardiography showed a mass"
    assert [each["what"] for each in item["cut_check"]["changes"]] == ["put back", "put back"]


def test_an_infection_with_an_organism_is_a_disease_that_no_vocabulary_needs_to_know() -> None:
    assert names_infection("Disseminated Talaromyces marneffei infection")
    assert not names_infection("Disseminated infection")
    assert not names_infection("Talaromyces marneffei in culture")
