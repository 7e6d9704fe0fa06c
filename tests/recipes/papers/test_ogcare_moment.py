"""The check of the moment of the decision: what was running and known, over an invented report."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.models import ChatRequest
from hoofbeat.recipes.benchmark_output import estimate_calls
from hoofbeat.recipes.papers.ogcare import RECIPE, OgcareSettings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.records import Document, Figure
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.window import ContextWindow
from tests.recipes.case_answers import material
from tests.recipes.papers.ogcare_case import CONTEXT, REPORT, altered, build_one, ending, says
from tests.recipes.support import Script, a_context, build, passing_trial

_LEGEND = "Figure 1 shows octreotide being given until the day after the occluder."


def _report() -> Document:
    """The invented report with nutrition that runs, a chart that is read afterwards, and a legend that disagrees."""
    text = REPORT.text.replace("He had cirrhosis", "An elemental formula ran at 40 mL an hour. He had cirrhosis")
    text = text.replace("within 2 days.", "within 2 days. His old chart, read later, spoke of a Billroth operation.")
    start = len(text) + 1
    figure = Figure(id="f", label="Figure 1", caption=_LEGEND, start=start, end=start + len(_LEGEND))
    return msgspec.structs.replace(REPORT, text=f"{text}\n{_LEGEND}", figures=(figure,))


# Shown as: 4 the formula, 7 octreotide, 9 the occluder, 10 the output, 11 the old chart, 16 the legend.
_POINTING = {
    **altered("ogcare-significance", step_sentences=[9]),
    **altered(
        "ogcare-course",
        before=[3, 5, 6, 7],
        after=[10],
        limitations=[{"sentences": [8], "limitation": "surgery too risky, glue washed away"}],
    ),
    **altered("ogcare-question", context=f"{CONTEXT} He once had a Billroth operation."),
}
_FORMULA = {
    "what": "elemental formula at 40 mL an hour",
    "state": "runs",
    "sentences": [4],
    "told": "no",
    "difference": "",
}
_CHART = {"words": "He once had a Billroth operation", "sentences": [11], "why": "the chart was read after the step"}


class _Editor:
    """The review says these replies in turn, and signs after them."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.requests: list[ChatRequest] = []
        self._replies = iter(replies)

    def __call__(self, name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name != "item-review":
            return said
        self.requests.append(request)
        return {**said, **next(self._replies, {})}

    @property
    def remarks(self) -> list[str]:
        return [material(request)["remarks"] for request in self.requests]


def _moment(**found: Any) -> dict[str, Any]:
    return {"running": [], "later": [], "closed": [], "conflicts": [], "measures": [], **found}


def _built(folder: Path, said: object, editor: _Editor | None = None, **settings: Any) -> tuple[Artefact, Script]:
    """The report through the recipe; a list of replies is given call by call."""
    replies = iter(said if isinstance(said, list) else itertools.repeat(said))
    told = says(_POINTING)
    script = Script(
        lambda name, request: next(replies) if name == "ogcare-moment" else told(name, request),
        trials=editor or _Editor(),
    )
    made = OgcareSettings(distraction=False, **settings)
    size = ContextWindow(tokens=32_000, source="known")
    return build(folder, RECIPE, [_report()], made, {"model": script}, window=size), script


def _item(artefact: Artefact) -> RecipeItem:
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    return item


def test_the_call_sees_the_whole_report_the_step_and_the_item(tmp_path: Path) -> None:
    _, script = _built(tmp_path, _moment())
    (request,) = [request for name, request in script.requests if name == "ogcare-moment"]
    shown = material(request)
    report = shown["case report, numbered sentences"]
    assert "\n4. An elemental formula ran" in report
    assert f"16. {_LEGEND}" in report
    assert shown["sentences that tell the step"].startswith("9. A cardiac septal occluder was deployed")
    assert shown["decisive step"] == "percutaneous cardiac septal occluder"
    assert shown["case as the examinee reads it"].endswith("He once had a Billroth operation.")
    assert "Close the tract" in shown["answer key"]


def test_what_is_found_goes_to_the_final_review_as_remarks_and_changes_nothing(tmp_path: Path) -> None:
    editor = _Editor()
    conflict = {"sentence": 7, "other": 16, "what": "octreotide failed, or ran on", "rests": "yes"}
    light = {**conflict, "rests": "no"}
    dose = {**_FORMULA, "what": "octreotide", "told": "otherwise", "difference": "stopped, and the report lets it run"}
    measures = [
        {"measure": "place the occluder", "when": "now", "sentences": [9]},
        {"measure": "fast", "when": "before", "sentences": [7]},
        {"measure": "read the chart", "when": "later", "sentences": [11]},
    ]
    stopped = {**_FORMULA, "what": "octreotide drip", "state": "stopped", "sentences": [7, 8]}
    known = {**_FORMULA, "what": "glue", "told": "yes"}
    said = _moment(
        running=[_FORMULA, dose, stopped, known], later=[_CHART], conflicts=[conflict, light], measures=measures
    )
    artefact, _ = _built(tmp_path, said, editor)
    (remarks,) = editor.remarks
    for told in (
        "elemental formula at 40 mL an hour runs at this moment (report, sentence 4); the case does not tell it",
        "octreotide runs at this moment (report, sentence 4); the case tells it otherwise: stopped, and the report",
        "octreotide drip was stopped at this moment (report, sentences 7, 8)",
        "'He once had a Billroth operation' was not yet known at this moment (report, sentence 11): the chart was read",
        "contradicts itself (report, sentences 7, 16): octreotide failed, or ran on; the key rests on it: if you",
        "octreotide failed, or ran on; the key does not rest on it",
        "the key has 'fast', and it was already running or decided before the step (report, sentence 7)",
        "the key has 'read the chart', and it was decided only after the step (report, sentence 11)",
    ):
        assert told in remarks
    assert "glue runs" not in remarks
    assert "place the occluder" not in remarks
    (question,) = Benchmark(artefact).questions
    assert question.context.endswith("He once had a Billroth operation.")  # the editor signed it
    (formula, *_) = _item(artefact)["moment"]["running"]
    assert formula["quotes"] == ["An elemental formula ran at 40 mL an hour."]


def test_the_editor_mends_what_the_check_found(tmp_path: Path) -> None:
    insert = {
        "do": "insert",
        "sentence": 5,
        "text": "An elemental formula ran at 40 mL an hour.",
        "sources": [4],
        "why": "it runs at the moment of the decision",
    }
    delete = {"do": "delete", "sentence": 6, "text": "", "sources": [], "why": "not yet known"}
    problems = [{"kind": "fact_lost", "problem": "the formula"}, {"kind": "altered", "problem": "the chart"}]
    editor = _Editor({"verdict": "edit", "problems": problems, "edits": [insert, delete]})
    artefact, _ = _built(tmp_path, _moment(running=[_FORMULA], later=[_CHART]), editor)
    (question,) = Benchmark(artefact).questions
    assert question.context.endswith("washed away twice. An elemental formula ran at 40 mL an hour.")
    first, second = editor.remarks
    assert "before any edit: elemental formula" in first
    assert "An elemental formula ran at 40 mL an hour.': it runs at the moment of the decision" in second


def test_a_conflict_that_the_key_rests_on_is_a_rejection_only_if_the_editor_confirms_it(tmp_path: Path) -> None:
    conflict = {"sentence": 7, "other": 16, "what": "octreotide failed, or ran on", "rests": "yes"}
    for name in ("signs", "confirms"):
        (tmp_path / name).mkdir()
    artefact, _ = _built(tmp_path / "signs", _moment(conflicts=[conflict]))
    assert len(Benchmark(artefact).questions) == 1
    problems = [{"kind": "conflict", "problem": "sentences 7 and 16"}]
    editor = _Editor({"verdict": "reject", "reason": "it is not settled", "problems": problems})
    artefact, _ = _built(tmp_path / "confirms", _moment(conflicts=[conflict]), editor)
    assert ending(artefact) == (
        "final review",
        "final review: the report contradicts itself about what the answer rests on",
    )


@pytest.mark.parametrize("settings", [{"moment": False}, {"item_review": False}])
def test_the_check_can_be_switched_off_and_goes_with_the_final_review(tmp_path: Path, settings: dict[str, Any]) -> None:
    artefact, script = _built(tmp_path, _moment(running=[_FORMULA]), **settings)
    assert script.count("ogcare-moment") == 0
    assert "moment" not in _item(artefact).values
    names = [step.name for step in RECIPE.steps(OgcareSettings(**settings))]
    assert "moment" not in names


def test_the_check_lies_between_verification_and_final_review_and_is_in_the_estimate(tmp_path: Path) -> None:
    names = [step.name for step in RECIPE.steps(OgcareSettings())]
    place = names.index("moment")
    assert names[place - 1 : place + 2] == ["verify", "moment", "final review"]
    calls = [sum(step.calls for step in RECIPE.steps(OgcareSettings(moment=on))) for on in (True, False)]
    assert calls[0] == calls[1] + 1
    build_one(tmp_path, says(), moment=False)
    with a_context(tmp_path, [REPORT], OgcareSettings(), says(), estimating=True) as context:
        found = estimate_calls(RECIPE, context)
    assert found is not None
    assert (found.step, found.estimate.calls) == ("moment", 1)


@pytest.mark.parametrize("said", ["no JSON", {"running": []}, _moment(running=[{**_FORMULA, "sentences": []}])])
def test_broken_output_fails_the_item(tmp_path: Path, said: object) -> None:
    artefact, _ = _built(tmp_path, said)
    step, kind = ending(artefact)
    assert step == "moment"
    assert kind in ("unreadable", "schema")


@pytest.mark.parametrize("number", [0, 99, 12])
def test_sentence_numbers_that_are_not_in_the_report_are_asked_again(tmp_path: Path, number: int) -> None:
    """12 talks to a model: it is no sentence to point at, either."""
    wrong = _moment(running=[{**_FORMULA, "sentences": [number]}])
    editor = _Editor()
    artefact, script = _built(tmp_path, [wrong, _moment(running=[_FORMULA])], editor)
    again = [request for name, request in script.requests if name == "ogcare-moment"][1]
    assert "Some numbers can't be used" in again.messages[-1].content
    assert "(report, sentence 4)" in editor.remarks[0]
    assert "flags" not in _item(artefact).values


def test_numbers_that_stay_wrong_are_passed_over_and_flagged(tmp_path: Path) -> None:
    conflict = {"sentence": 7, "other": 99, "what": "octreotide failed, or ran on", "rests": "yes"}
    wrong = _moment(running=[{**_FORMULA, "sentences": [4, 98]}], conflicts=[conflict])
    editor = _Editor()
    artefact, script = _built(tmp_path, wrong, editor)
    assert script.count("ogcare-moment") == 2
    assert "(report, sentence 4)" in editor.remarks[0]
    assert "ran on" not in editor.remarks[0]
    assert [flag.partition(";")[0] for flag in _item(artefact)["flags"]] == [
        "moment: passed over: a sentence for the `running` is not in the source (number 98",
        "moment: passed over: a sentence for the `conflicts` is not in the source (number 99",
    ]


def test_words_that_are_not_in_the_case_are_asked_again(tmp_path: Path) -> None:
    wrong = _moment(later=[{**_CHART, "words": "He has a stoma."}])
    editor = _Editor()
    _, script = _built(tmp_path, [wrong, _moment(later=[_CHART])], editor)
    again = [request for name, request in script.requests if name == "ogcare-moment"][1]
    assert "'He has a stoma.' of `later` are not in the case" in again.messages[-1].content
    assert "stoma" not in editor.remarks[0]


def test_a_window_that_does_not_hold_the_item_leaves_the_check_out(tmp_path: Path) -> None:
    step = next(each for each in RECIPE.steps(OgcareSettings()) if each.name == "moment")
    values = {"step": "occluder", "step_at": [[0, 10]], "context": CONTEXT, "question": "What next?", "answer": "x"}
    item = RecipeItem(id="invented-1", documents=("invented-1",), values=values)
    script = {"model": Script(says())}
    window = ContextWindow(tokens=4096, source="known")
    with a_context(tmp_path, [REPORT], OgcareSettings(), script, window=window) as context:
        (outcome,) = step.run([item], context)
    assert isinstance(outcome, RecipeItem)
    assert "the moment of the decision is not checked" in outcome["flags"][0]
    assert not script["model"].requests
