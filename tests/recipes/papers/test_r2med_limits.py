"""R2MED's limits, one step at a time: what fits a window, what is an entity, how many calls, which parameters cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.recipes.build_plan import BuildPlan
from hoofbeat.recipes.papers.r2med import RECIPE, R2medSettings
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.steps import UNLIMITED, RecipeStep
from hoofbeat.records import Document
from hoofbeat.window import ContextWindow
from tests.recipes.papers.r2med_case import Words, by_rule, task_inputs
from tests.recipes.support import Script, a_context


def _step(name: str, **settings: Any) -> RecipeStep:
    chosen: dict[str, Any] = {"task": "clinical-evidence", **settings}
    return next(step for step in RECIPE.steps(R2medSettings(**chosen)) if step.name == name)


def _asked(answer: str, query: str = "A man coughs. What does he have?") -> RecipeItem:
    return RecipeItem(id="q", values={"query": query, "answer": answer})


@pytest.mark.parametrize("step", ["task type", "rules", "difficulty", "reasoning"])
def test_a_question_longer_than_the_window_is_cut(tmp_path: Path, step: str) -> None:
    scripts = {role: Script(by_rule, role) for role in ("model", "second")}
    scripts["committee-1"] = Script(lambda name, request: {"answer": ""}, "committee-1")
    documents = [Document(id="d", title="", text="x")]
    with a_context(tmp_path, documents, R2medSettings(task="clinical-evidence"), scripts) as context:
        for role in scripts:
            context.model(role).window = ContextWindow(tokens=2500, source="configured")
        _step(step).run([_asked("Sarcoidosis", "word " * 5000)], context)
    requests = [request for script in scripts.values() for _, request in script.requests]
    assert requests
    assert all(1000 < sum(len(message.content) for message in each.messages) < 7500 for each in requests)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("13-19 g/dl", False),
        ("> 5 cm", False),
        ("30%", False),
        ("Request that the on-call consultant attends as soon as possible", False),
        ("5-fluorouracil", True),
        ("17-hydroxyprogesterone", True),
        ("CT of the chest", True),
        ("B12", True),
        ("Type 1 diabetes mellitus with diabetic chronic kidney disease, stage 4", False),
    ],
)
def test_numbers_and_sentences_are_no_entity_whatever_a_model_says(tmp_path: Path, answer: str, kept: bool) -> None:
    settings = R2medSettings(task="clinical-evidence", vocabularies=())
    with a_context(tmp_path, [Document(id="d", title="", text="x")], settings, by_rule) as context:
        (outcome,) = _step("answer").run([_asked(answer)], context)
    assert isinstance(outcome, RecipeItem) == kept
    if isinstance(outcome, ItemRejection):
        assert (outcome.reason, outcome.details) == ("the answer is not a single medical entity", answer)


def test_what_cant_be_asked_openly_costs_no_call() -> None:
    steps = [step.name for step in RECIPE.steps(R2medSettings(task="clinical-evidence"))]
    assert steps.index("open question: can be asked") < steps.index("task type") < steps.index("open question")


def test_calls_are_bounded_by_the_settings() -> None:
    assert _step("grade", mined=10, max_known=5).calls == 15
    assert _step("grade", mined=10).calls == 40
    assert _step("grade", mined=10, max_known=0).calls >= UNLIMITED  # all known ones are graded, however many
    assert _step("difficulty", max_members=4).calls == 8


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ({}, False),
        ({"answer_share": 0.5}, True),
        ({"long_answer": 1, "answer_words": 1}, True),
        ({"long_answer": 1}, False),
    ],
)
def test_how_much_of_an_answer_a_conclusion_names(tmp_path: Path, limits: dict[str, Any], kept: bool) -> None:
    said = {"steps": ["The nodes are large.", "That is rare."], "conclusion": "So this is a lymphoma."}
    settings = R2medSettings(task="clinical-evidence", **limits)
    with a_context(tmp_path, [Document(id="d", title="", text="x")], settings, lambda n, r: said) as context:
        (outcome,) = _step("reasoning").run([_asked("Hodgkin lymphoma")], context)
    assert isinstance(outcome, RecipeItem) == kept


@pytest.mark.parametrize(("negated", "kept"), [(True, False), (False, True)])
def test_whether_a_denied_diagnosis_leaks_is_a_parameter(tmp_path: Path, negated: bool, kept: bool) -> None:
    document = Document(id="d", title="", text="A man had a cough. There was no evidence of sarcoidosis at first.")
    item = RecipeItem(
        id="d", documents=("d",), values={"stem": document.text, "diagnosis": "sarcoidosis", "synonyms": []}
    )
    with a_context(tmp_path, [document], R2medSettings(), by_rule) as context:
        (outcome,) = _step("leak check", task="clinical-case", leak_negated=negated).run([item], context)
    assert isinstance(outcome, RecipeItem) == kept


@pytest.mark.parametrize(
    ("task", "step"), [("invented", "diagnosis"), ("qa-reference", "reasoning"), ("clinical-evidence", "task type")]
)
def test_every_task_can_be_estimated_with_a_bound(tmp_path: Path, task: str, step: str) -> None:
    corpus, settings = task_inputs(tmp_path, task)
    with a_context(tmp_path, corpus, settings, by_rule, encoder=Words, estimating=True) as context:
        found = BuildPlan(recipe=RECIPE, context=context, models=()).estimate()
    assert found.estimate.calls > 0
    assert f"the step “{step}”" in found.note
    assert "at most" in found.note
    assert "an unknown number" not in found.note
