"""Labels of items in a scheme, by rule and by a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.corpus.specialties import label_specialty, load_scheme
from hoofbeat.errors import UsageError
from hoofbeat.models import ChatRequest
from hoofbeat.models.requests import Trouble
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.corpus_steps import label_step
from hoofbeat.recipes.recipe import from_documents
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.steps import StepEstimate
from hoofbeat.records import Document
from tests.corpus.filter_documents import case_reports
from tests.recipes.support import Script, a_context, user_text

EYE = Document(
    id="eye", title="Retinal detachment", text="Ophthalmoscopy of the retina showed macular oedema and uveitis."
)
NOTHING = Document(id="nothing", title="A title", text="Nothing that any rule could read.")


def test_by_rule_every_item_has_a_label_of_the_scheme_or_unknown(tmp_path: Path) -> None:
    reports = case_reports(15)
    names = {*load_scheme("ogcare").names, "unknown"}
    with a_context(tmp_path, reports, RecipeSettings(), _no_call) as context:
        outcomes = label_step("specialty", "ogcare").run(list(from_documents(context)), context)
    labels = [outcome.facets["specialty"] for outcome in outcomes if isinstance(outcome, RecipeItem)]
    assert len(labels) == 15
    assert set(labels) <= names
    assert labels == [label_specialty(report, "ogcare").name for report in reports]
    assert len(set(labels)) > 2


def test_by_rule_says_why_and_nothing_is_rejected(tmp_path: Path) -> None:
    with a_context(tmp_path, [EYE, NOTHING], RecipeSettings(), _no_call) as context:
        eye, nothing = label_step("specialty", "ogcare", facet="field").run(list(from_documents(context)), context)
    assert isinstance(eye, RecipeItem)
    assert isinstance(nothing, RecipeItem)
    assert eye.facets == {"field": "Ophthalmology"}
    assert "retina" in eye["field_why"]
    assert eye.lineage[-1].name == "specialty"
    assert nothing.facets == {"field": "unknown"}


def test_a_text_in_place_of_the_document_is_read(tmp_path: Path) -> None:
    with a_context(tmp_path, [NOTHING], RecipeSettings(), _no_call) as context:
        step = label_step("specialty", "ogcare", text=lambda item, _context: str(item["stem"]))
        (item,) = step.run([RecipeItem(id="x", documents=("nothing",), values={"stem": EYE.text})], context)
        (bare,) = label_step("specialty", "ogcare").run([RecipeItem(id="y")], context)
    assert isinstance(item, RecipeItem)
    assert item.facets["specialty"] == "Ophthalmology"
    assert isinstance(bare, RecipeItem)
    assert bare.facets["specialty"] == "unknown"


def test_by_model_a_failed_call_is_no_label_and_is_counted(tmp_path: Path) -> None:
    def says(_name: str, request: ChatRequest) -> Any:
        if "Retinal" in user_text(request):
            return {"reason": "It is the retina.", "label": "Ophthalmology"}
        return Trouble(kind="bad-request", message="no", retryable=False)

    with a_context(tmp_path, [EYE, NOTHING], RecipeSettings(), says) as context:
        step = label_step("specialty", "ogcare", by="model")
        eye, nothing = step.run(list(from_documents(context)), context)
        assert "specialty" in context.prompts_used
        label_step("field", "ogcare", by="model", facet="field").run(
            [RecipeItem(id="x", documents=("nothing",))], context
        )
        assert context.metrics["label failures"] == {"specialty": {"bad-request": 1}, "field": {"bad-request": 1}}
    assert step.prompts == ("specialty",)
    assert isinstance(eye, RecipeItem)
    assert isinstance(nothing, RecipeItem)
    assert (eye.facets["specialty"], eye["specialty_why"]) == ("Ophthalmology", "It is the retina.")
    assert eye.lineage[-1].call
    assert (nothing.facets["specialty"], nothing["specialty_why"]) == ("failed", "no label: bad-request")


@pytest.mark.parametrize("said", ["no JSON", {"reason": "x", "label": "Astrology"}, {"reason": "x"}])
def test_by_model_a_label_outside_the_scheme_is_none(tmp_path: Path, said: Any) -> None:
    with a_context(tmp_path, [EYE], RecipeSettings(), lambda _name, _request: said) as context:
        (item,) = label_step("specialty", "ogcare", by="model").run(list(from_documents(context)), context)
        assert set(context.metrics) == {"label failures"}
    assert isinstance(item, RecipeItem)
    assert item.facets["specialty"] == "failed"


def test_by_model_unknown_is_a_label_and_no_failure(tmp_path: Path) -> None:
    with a_context(tmp_path, [EYE], RecipeSettings(), lambda *_: {"reason": "unclear", "label": "unknown"}) as context:
        (item,) = label_step("specialty", "ogcare", by="model").run(list(from_documents(context)), context)
        assert not context.metrics
    assert isinstance(item, RecipeItem)
    assert item.facets["specialty"] == "unknown"


def test_by_model_an_estimate_makes_no_call(tmp_path: Path) -> None:
    script = Script(_no_call)
    with (
        a_context(tmp_path, [EYE, NOTHING], RecipeSettings(), {"model": script}, estimating=True) as context,
        pytest.raises(StepEstimate) as found,
    ):
        label_step("specialty", "ogcare", by="model").run(list(from_documents(context)), context)
    assert found.value.estimate.calls == 2
    assert not script.requests


def test_an_unknown_scheme_is_said_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="no scheme"):
        label_step("specialty", "astrology")


def _no_call(name: str, request: ChatRequest) -> object:
    raise AssertionError("a rule asks no model")
