"""Review in two stages: who waits for whom, what an expert excludes, what is forgiven."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.review_tasks import ACCEPT, review_tasks, reviewed, two_stage
from hoofbeat.records import Document
from tests.recipes.support import a_context

_CRITERIA = ("query", "reasoning", "support")
_OK = [("query", "ok"), ("reasoning", "ok"), ("support", "ok")]


def _reviewed(tmp_path: Path, labels: list[tuple[str, str]]) -> RecipeItem | ItemRejection:
    file = tmp_path / "labels.csv"
    criteria = [criterion for criterion, _ in labels]
    who = ["annotator" if name not in criteria[:place] else "expert" for place, name in enumerate(criteria)]
    rows = "".join(f"one,{criterion},{value},{name}\n" for (criterion, value), name in zip(labels, who, strict=True))
    file.write_text(f"item,criterion,value,reviewer\n{rows}")
    step = two_stage("review", str(file), criteria=_CRITERIA, forgiven=("reasoning",))
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        (outcome,) = step.run([RecipeItem(id="one", values={"query": "Which?"})], context)
    assert isinstance(outcome, RecipeItem | ItemRejection)
    return outcome


@pytest.mark.parametrize(
    ("labels", "state"),
    [
        ([], "waiting for the annotator"),
        (_OK[:2], "waiting for the annotator"),
        (_OK, "passed"),
        ([*_OK[:2], ("support", "flag")], "waiting for the expert"),
        ([*_OK[:2], ("support", "flag"), ("support", "keep")], "passed"),
        ([*_OK[:2], ("support", "Flag "), ("query", "flag"), ("support", "keep")], "waiting for the expert"),
        ([*_OK, ("reasoning", "flag"), ("reasoning", "exclude")], "passed"),
    ],
)
def test_states(tmp_path: Path, labels: list[tuple[str, str]], state: str) -> None:
    outcome = _reviewed(tmp_path, labels)
    assert isinstance(outcome, RecipeItem)
    assert outcome["review"] == state


def test_an_expert_excludes(tmp_path: Path) -> None:
    outcome = _reviewed(tmp_path, [*_OK[:2], ("support", "flag"), ("support", "exclude"), ("reasoning", "exclude")])
    assert isinstance(outcome, ItemRejection)
    assert outcome.reason == "an expert excluded it in review"
    assert outcome.details == "reasoning, support"


@pytest.mark.parametrize("label", [("query", "maybe"), ("beauty", "ok")])
def test_labels_that_mean_nothing_are_refused(tmp_path: Path, label: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="is unknown here"):
        _reviewed(tmp_path, [label])


def test_tasks_are_for_what_waits() -> None:
    states = {"a": "waiting for the annotator", "b": "waiting for the expert", "c": "passed"}
    items = [RecipeItem(id=id, values={"query": id, "review": state}) for id, state in states.items()]
    tasks = review_tasks(items, kind="three-criteria", criteria=_CRITERIA, shown=lambda item: {"id": item.id})
    assert [(task.item, task.why) for task in tasks] == [("a", states["a"]), ("b", states["b"])]
    assert tasks[0].shown == {"id": "a"}


def test_tasks_ask_for_what_is_missing_and_name_the_documents(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("item,criterion,value\na,query,ok\nb,query,flag\nb,support,ok\nb,reasoning,ok\nzz,query,ok\n")
    step = two_stage("review", str(file), criteria=_CRITERIA)
    items = [RecipeItem(id=id, documents=("d",), values={"query": id}) for id in "abc"]
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        outcomes = [each for each in step.run(items, context) if isinstance(each, RecipeItem)]
        assert context.metrics["review labels"] == {"used": 4, "for items not here": 1}
    tasks = review_tasks(outcomes, kind="three-criteria", criteria=_CRITERIA, shown=lambda item: {})
    assert [task.criteria for task in tasks] == [("reasoning", "support"), ("query",), _CRITERIA]
    assert {task.documents for task in tasks} == {("d",)}


def test_answers_that_labels_accept_are_kept_with_the_item(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    rows = [("rated", "5", "R1"), (ACCEPT, "Watch", "R1"), (ACCEPT, "Watch", "R2")]
    labels = [{"item": "i", "criterion": name, "value": value, "reviewer": who} for name, value, who in rows]
    file.write_text("".join(json.dumps(row) + "\n" for row in labels), encoding="utf-8")
    step = reviewed("review", str(file), lambda _item, _labels: None, criteria=("rated",), others=(ACCEPT,))
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), lambda n, r: {}) as context:
        (item,) = step.run([RecipeItem(id="i")], context)
    assert isinstance(item, RecipeItem)
    assert item["accepted"] == ({"text": "Watch", "by": ("R1", "R2")},)
    assert item["review"] == "passed"
