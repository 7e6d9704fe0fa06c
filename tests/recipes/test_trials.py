"""Every question is tried before it is kept, and what the trials find is stored, counted and put in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat.models import ChatRequest
from hoofbeat.models.requests import Trouble
from hoofbeat.recipes.benchmark_output import build_benchmark
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.item_lookup import question_trials
from hoofbeat.recipes.recipe import Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.recipes.steps import RecipeStep
from hoofbeat.recipes.trial_findings import AnswerTrial, trial_findings, trial_lines, trials_of
from hoofbeat.recipes.trials import (
    ChoiceTrialSettings,
    TriedQuestion,
    account_for_trials,
    choice_trials,
    open_trial,
    to_grade_again,
)
from hoofbeat.records import Document, Question
from hoofbeat.reports.model import Text, tables_in
from hoofbeat.reports.sections.benchmark_section import build_blocks
from hoofbeat.store.tables import read_jsonl
from hoofbeat.window import ContextWindow
from tests.recipes.case_answers import material
from tests.recipes.support import Script, a_context, passing_trial, user_text

ANSWER = "Mucormycosis"
OPTIONS = (ANSWER, "Zygomycosis", "Aspergillosis", "Sinus carcinoma")


def _show(item: RecipeItem) -> TriedQuestion:
    return TriedQuestion(question="Which?", answer=ANSWER, case=item["case"], options=tuple(item["options"]))


def _item(name: str = "a", options: Sequence[str] = OPTIONS) -> RecipeItem:
    return RecipeItem(id=name, values={"case": f"Case {name}.", "options": list(options)})


def _letter(request: ChatRequest, text: str) -> str:
    """The letter that an option goes by in a request."""
    return next(line[0] for line in user_text(request).splitlines() if line[1:] == f") {text}")


def _finds(**found: Any) -> Any:
    """A model whose trials say this: the option `chosen`, the one `guessed`, and what is `wrong` with `faulty`."""

    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-choice":
            return {**said, "choice": _letter(request, found.get("chosen", ANSWER)), **found.get("answer", {})}
        if name == "trial-options":
            return {
                **said,
                "choice": _letter(request, found.get("guessed", ANSWER)),
                "basis": found.get("basis", "chance"),
            }
        if name == "trial-compare" and f") {found.get('faulty')}\n" in f"{user_text(request)}\n":
            letter = _letter(request, found["faulty"])
            return {
                "options": [
                    {**each, **(found["wrong"] if each["option"] == letter else {})} for each in said["options"]
                ]
            }
        return said

    return {"model": Script(lambda name, request: None, trials=says)}


def _run(
    folder: Path, says: Any, steps: Sequence[RecipeStep] | None = None, items: Sequence[RecipeItem] = ()
) -> tuple[list[Outcome], RecipeContext]:
    with a_context(folder, [], ChoiceTrialSettings(), says) as context:
        outcomes: list[Outcome] = list(items or [_item()])
        for step in steps if steps is not None else choice_trials(context.settings, _show):
            staying = [each for each in outcomes if isinstance(each, RecipeItem)]
            outcomes = list(step.run(staying, context)) if staying else outcomes
        return outcomes, context


def test_a_question_without_fault_passes(tmp_path: Path) -> None:
    (kept,), context = _run(tmp_path, _finds())
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == "none"
    found = trials_of(kept)
    assert found.answer is not None
    assert (found.answer.said, found.answer.match, found.answer.answerable) == (ANSWER, "yes", True)
    assert [each.option for each in found.comparison] == list(OPTIONS[1:])
    assert [step.name for step in kept.lineage] == [
        "try the question",
        "guess from the options",
        "compare the options",
        "trials",
    ]
    assert context.metrics["trials"] == {
        "questions": 1,
        "without doubt": 1,
        "answered": {"of": 1, "right": 1},
        "guessed from the options": {"of": 1, "right": 1, "expected by chance": 0.25},
        "wrong options compared": 3,
        "doubts": {},
    }


def test_what_a_trial_doubts_is_flagged_and_not_rejected(tmp_path: Path) -> None:
    says = _finds(
        chosen="Aspergillosis",
        answer={"answerable": "no", "missing": "the biopsy"},
        basis="style",
        faulty="Sinus carcinoma",
        wrong={"absurd": "yes", "style": "other"},
    )
    (kept,), context = _run(tmp_path, says)
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == [
        "not answerable",
        "answered wrongly",
        "given away by the options",
        "absurd option",
        "options differ in style",
    ]
    assert kept["trials"]["answer"]["missing"] == "the biopsy"
    counted: Any = context.metrics["trials"]
    assert counted["doubts"]["absurd option"] == 1


@pytest.mark.parametrize(("basis", "doubted"), [("style", True), ("content", True), ("knowledge", False)])
def test_a_right_guess_by_the_options_or_the_question_is_a_doubt(tmp_path: Path, basis: str, doubted: bool) -> None:
    """A question that answers itself, or options that share words with the key, give it away."""
    (kept,), _ = _run(tmp_path, _finds(basis=basis))
    assert isinstance(kept, RecipeItem)
    assert (kept.facets["doubts"] == ["given away by the options"]) == doubted


def test_the_same_disease_under_another_name_is_a_second_right_option(tmp_path: Path) -> None:
    says = _finds(faulty="Zygomycosis", wrong={"relation": "same", "reason": "its older name"})
    (gone,), _ = _run(tmp_path, says)
    assert gone == ItemRejection(
        reason="a wrong option is also right", details="Zygomycosis means the same as the answer: its older name"
    )


@pytest.mark.parametrize(("faulty", "kept"), [(("Zygomycosis",), True), (("Zygomycosis", "Actinomycosis"), False)])
def test_a_recipe_may_replace_a_second_right_option_once(tmp_path: Path, faulty: Sequence[str], kept: bool) -> None:
    asked: list[str] = []

    def replace(item: RecipeItem, faults: Any, _context: RecipeContext) -> Outcome:
        return item.put(options=["Actinomycosis" if each in faults else each for each in item["options"]])

    def says(name: str, request: ChatRequest) -> object:
        asked.append(name)
        here = next((each for each in faulty if f") {each}\n" in user_text(request)), None)
        return _finds(faulty=here, wrong={"also_right": "yes"})["model"]._trials(name, request)

    script = Script(lambda name, request: None, trials=says)
    (out,), _ = _run(tmp_path, {"model": script}, choice_trials(ChoiceTrialSettings(), _show, replace))
    assert isinstance(out, RecipeItem) is kept
    if isinstance(out, RecipeItem):
        assert [each["option"] for each in out["replaced"]] == ["Zygomycosis"]
        assert sorted(asked) == sorted(2 * ["trial-choice", "trial-options", "trial-compare"])
        compared = {each.option for each in trials_of(out).comparison}
        assert compared == {"Actinomycosis", "Aspergillosis", "Sinus carcinoma"}


def test_each_trial_can_be_switched_off(tmp_path: Path) -> None:
    off = ChoiceTrialSettings(try_answer=False, try_options=False, compare_options=False)
    assert choice_trials(off, _show) == []
    only = choice_trials(msgspec.structs.replace(off, try_options=True), _show)
    assert [step.name for step in only] == ["guess from the options", "trials"]
    assert sum(step.calls for step in only) == 1


def test_a_trial_that_fails_does_not_fail_the_question(tmp_path: Path) -> None:
    script = Script(
        lambda name, request: None,
        trials=lambda name, request: Trouble(kind="bad-request", message="no", retryable=False),
    )
    (kept,), _ = _run(tmp_path, {"model": script})
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == ["not tried"]


def test_an_option_that_is_left_out_is_asked_for_once(tmp_path: Path) -> None:
    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-compare" and len(request.messages) == 2:
            return {"options": [said["options"][0]] * 3}
        return said

    (kept,), context = _run(tmp_path, {"model": Script(lambda name, request: None, trials=says)})
    assert isinstance(kept, RecipeItem)
    assert len(trials_of(kept).comparison) == 3
    assert context.asked_again["compare the options"] == {"items": 1, "kept": 1}


def test_a_rival_answer_is_a_doubt_although_the_solver_was_right(tmp_path: Path) -> None:
    rival = "bedside abdominal ultrasonography; the case does not say that it was done"

    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        return {**said, "rival": rival} if name == "trial-match" else said

    def show(item: RecipeItem) -> TriedQuestion:
        return msgspec.structs.replace(_show(item), options=())

    steps = [*chain(*open_trial(show)), account_for_trials("trials", show)]
    (kept,), _ = _run(tmp_path, {"model": Script(lambda name, request: None, trials=says)}, steps)
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == ["another answer as good"]
    assert trial_findings(trials_of(kept)) == {"another answer as good": rival}


def test_an_open_question_is_answered_and_the_answer_compared(tmp_path: Path) -> None:
    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-match":
            assert "What the case calls for." in user_text(request)
            return {**said, "match": "no", "supported": "no", "missing": "the cause"}
        return said

    def show(item: RecipeItem) -> TriedQuestion:
        return msgspec.structs.replace(_show(item), options=())

    steps = [*chain(*open_trial(show)), account_for_trials("trials", show)]
    (kept,), context = _run(tmp_path, {"model": Script(lambda name, request: None, trials=says)}, steps)
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == ["not answerable", "answered wrongly"]
    assert context.metrics["trials"] == {
        "questions": 1,
        "without doubt": 0,
        "answered": {"of": 1, "right": 0},
        "doubts": {"not answerable": 1, "answered wrongly": 1},
    }


NOTED: dict[str, Any] = {"options": (), "accepted": ("plug the tract",), "note": "The route is optional."}


def test_a_window_too_small_for_a_referee_is_written_down(tmp_path: Path) -> None:
    item = _item(options=())
    (referee,) = open_trial(_show, referee=True).compare[2:]
    window = ContextWindow(tokens=1000, source="known")
    with a_context(tmp_path, [], ChoiceTrialSettings(), _finds(), window=window) as context:
        (kept,) = referee.run([item], context)
    assert isinstance(kept, RecipeItem)
    assert trials_of(kept).failures == ("the model's window is too small",)
    assert trials_of(kept).doubts == ("not tried",)


def _open_steps() -> list[RecipeStep]:
    def show(item: RecipeItem) -> TriedQuestion:
        return msgspec.structs.replace(_show(item), **NOTED)

    return [*chain(*open_trial(show, guess=True)), account_for_trials("trials", show)]


def _graded(letter: str, counts: str, defensible: str, reason: str) -> dict[str, str]:
    return {"attempt": letter, "counts": counts, "defensible": defensible, "reason": reason}


def _grading(guess: str, *grades: dict[str, str], led: str = "yes") -> Callable[[str, ChatRequest], object]:
    """A solver that expects two answers of colleagues, and how they are graded."""

    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-open":
            return {**said, "others": ["a covered stent", "a plug through the liver"]}
        if name == "trial-question":
            assert "Case a." not in user_text(request)
            return {"reason": "the question describes it", "led": led, "answer": "an occluder"}
        if name == "trial-grading":
            shown = material(request)
            assert shown["accepted as well"] == "- plug the tract"
            assert shown["note for the grader"] == "The route is optional."
            assert shown["guess without the case"] == "an occluder"
            assert shown["answers to grade"].splitlines()[1:] == ["B) a covered stent", "C) a plug through the liver"]
            return {"grades": [_graded("A", "yes", "yes", "the key"), *grades], "guess": guess}
        return said

    return says


@pytest.mark.parametrize(
    ("guess", "grades", "doubts"),
    [
        ("no", [("B", "no", "no", "the leak is too wide"), ("C", "yes", "yes", "a route")], "none"),
        ("partly", [("B", "no", "no", "too wide"), ("C", "yes", "yes", "a route")], "none"),
        ("yes", [("B", "no", "no", "too wide"), ("C", "yes", "yes", "a route")], ["given away by the question"]),
        ("no", [("B", "unclear", "no", "too wide"), ("C", "yes", "yes", "a route")], ["grading left open"]),
        ("no", [("B", "no", "yes", "nothing excludes it"), ("C", "yes", "yes", "")], ["another answer as good"]),
    ],
)
def test_common_answers_are_graded_by_the_note_and_the_question_alone_gives_nothing_away(
    tmp_path: Path, guess: str, grades: list[tuple[str, str, str, str]], doubts: object
) -> None:
    steps = _open_steps()
    says = _grading(guess, *(_graded(*each) for each in grades))
    (kept,), context = _run(tmp_path, {"model": Script(lambda name, request: None, trials=says)}, steps)
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == doubts
    counts: Any = context.metrics["trials"]
    assert counts["guessed from the question"] == {"of": 1, "right": int(guess == "yes")}
    assert counts["other answers graded"] == {"of": 3, "left open": int(doubts == ["grading left open"])}


def test_a_guess_that_no_word_led_to_gives_nothing_away(tmp_path: Path) -> None:
    """Who guesses the commonest treatment is right now and then, whatever the question says."""
    says = _grading("yes", _graded("B", "no", "no", "too wide"), _graded("C", "yes", "yes", "a route"), led="no")
    (kept,), context = _run(tmp_path, {"model": Script(lambda name, request: None, trials=says)}, _open_steps())
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == "none"
    counts: Any = context.metrics["trials"]
    assert counts["guessed from the question"] == {"of": 1, "right": 1}


@pytest.mark.parametrize(("guess", "counts"), [("yes", "no"), ("no", "unclear")])
def test_what_is_still_told_or_left_open_after_an_edit_is_rejected(tmp_path: Path, guess: str, counts: str) -> None:
    steps = _open_steps()
    defensible = "yes" if counts == "unclear" else "no"
    says = _grading(guess, _graded("B", counts, defensible, "too wide"), _graded("C", "yes", "yes", "a route"))
    script = {"model": Script(lambda name, request: None, trials=says)}
    (found,), _ = _run(tmp_path, script, steps, [_item().put(retried=True)])
    assert isinstance(found, ItemRejection)
    assert found.reason == "it fails its trial again after an edit"


def test_an_answer_that_nobody_defends_and_no_note_decides_is_a_doubt_and_rejects_nothing(tmp_path: Path) -> None:
    """Four of nine rejections of one draw were notes that did not say how an absurd answer is graded."""
    says = _grading("no", _graded("B", "unclear", "no", "no route"), _graded("C", "yes", "yes", "a route"))
    script = {"model": Script(lambda name, request: None, trials=says)}
    (kept,), _ = _run(tmp_path, script, _open_steps(), [_item().put(retried=True)])
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == ["grading left open"]


@pytest.mark.parametrize(("match", "doubts"), [("yes", ["given away by the case"]), ("no", ["answered wrongly"])])
def test_words_of_the_case_that_leave_nothing_to_decide_are_a_doubt(tmp_path: Path, match: str, doubts: object) -> None:
    """A solver that is wrong was not told the answer, whatever it says."""

    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-open":
            return {**said, "told": "the tract was left open"}
        return {**said, "match": match} if name == "trial-match" else said

    (kept,), _ = _run(tmp_path, {"model": Script(lambda name, request: None, trials=says)}, _open_steps())
    assert isinstance(kept, RecipeItem)
    assert kept.facets["doubts"] == doubts
    again = trials_of(to_grade_again(kept)).answer  # another note changes nothing about the case
    assert again is not None
    assert again.told == "the tract was left open"


def test_another_note_has_the_same_answers_graded_anew(tmp_path: Path) -> None:
    steps = _open_steps()
    says = _grading("no", _graded("B", "unclear", "no", "too wide"), _graded("C", "yes", "yes", "a route"))
    script = Script(lambda name, request: None, trials=says)
    (kept,), _ = _run(tmp_path, {"model": script}, steps)
    assert isinstance(kept, RecipeItem)
    again = to_grade_again(kept)
    trials = trials_of(again)
    assert trials.answer == AnswerTrial(
        said="What the case calls for.", others=("a covered stent", "a plug through the liver")
    )
    assert trials.grading is None
    assert trials.guess == trials_of(kept).guess


def test_doubtful_questions_come_first_in_the_review(tmp_path: Path) -> None:
    def finish(items: Sequence[RecipeItem], _context: RecipeContext) -> RecipeOutput:
        return RecipeOutput(
            questions=tuple(
                Question(id=item.id, text="Which?", answer=ANSWER, options=OPTIONS, facets=item.facets)
                for item in items
            ),
            review=tuple(ReviewTask(item=item.id, kind="leak", criteria=("clear",), why="drawn") for item in items),
        )

    def says(name: str, request: ChatRequest) -> object:
        said: Any = passing_trial(name, request)
        if name == "trial-choice":
            doubtful = {"answerable": "no", "missing": "the biopsy"} if "Case b." in user_text(request) else {}
            return {**said, "choice": _letter(request, ANSWER), **doubtful}
        return said

    recipe = Recipe(
        name="tried",
        title="Tried",
        about="Tried.",
        settings=ChoiceTrialSettings,
        begin=lambda context: (
            item.put(case=f"Case {item.id}.", options=list(OPTIONS)) for item in from_documents(context)
        ),
        steps=lambda s: choice_trials(s, _show),
        finish=finish,
    )
    documents = [Document(id=name, title=name, text=name) for name in "abc"]
    with a_context(
        tmp_path, documents, ChoiceTrialSettings(), {"model": Script(lambda *_: None, trials=says)}
    ) as context:
        made = build_benchmark(recipe, context, tmp_path / "bench")
    tasks = list(read_jsonl(made.file("review.jsonl"), ReviewTask))
    assert [task.item for task in tasks] == ["b", "a", "c"]
    assert tasks[0].why == "drawn; in the trials: not answerable"
    assert not list(read_jsonl(made.file("rejected.jsonl"), RejectedItem))
    counted: Any = made.manifest.metrics["trials"]
    assert counted["questions"] == 3
    tried = question_trials(made, "b")
    assert tried is not None
    assert trial_lines(tried) == [
        f"a solver answered “{ANSWER}” (right): the findings",
        f"from the options alone it guessed “{tried.guess.said if tried.guess else ''}” (wrong, by chance): "
        "nothing points to it",
        "3 wrong options were compared with the answer and the case",
        "not answerable: the biopsy",
    ]
    assert question_trials(made, "z") is None
    blocks = build_blocks(made, "b")
    told = " ".join(block.text for block in blocks if isinstance(block, Text))
    assert "2 of 3 questions passed every trial without doubt." in told
    assert "right in 3 of 3" in told
    (table,) = [each for each in tables_in(blocks) if each.name == "b-doubts"]
    assert table.rows[0][:2] == ("not answerable", 1)
