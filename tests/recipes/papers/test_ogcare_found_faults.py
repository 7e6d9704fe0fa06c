"""Faults that readers found in items of real reports, on the invented report: who is told, and what comes of it.

A reason against another way was left out of the case; a distraction invented a detail that could be a cause; a fact
that an edit deleted came back by the list of facts to keep; a note refused what the question admits (in the tests of
the final review); rules objected wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from tests.recipes.case_answers import material
from tests.recipes.papers.ogcare_case import ADDED, CONTEXT, DISTRACTED, GOOD, REPORT, altered, build_one, ending, says
from tests.recipes.support import Script, passing_trial

_REASON = "Surgery was ruled out because of portal hypertension, and fibrin glue was washed away twice."
_WITHOUT = CONTEXT.replace(f" {_REASON}", " Fibrin glue was washed away twice.")


def _requests(script: Script, name: str) -> list[ChatRequest]:
    return [request for called, request in script.requests if called == name]


def _item(artefact: Artefact) -> RecipeItem:
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    return item


class _Reviews:
    """What the final review says, call by call, then it signs; and what it was asked."""

    def __init__(self, *replies: Mapping[str, Any]) -> None:
        self.requests: list[ChatRequest] = []
        self._replies = iter(replies)

    def __call__(self, name: str, request: ChatRequest) -> object:
        fine: Any = passing_trial(name, request)
        if name != "item-review":
            return fine
        self.requests.append(request)
        return {**fine, **next(self._replies, {})}


# A reason against another way


def test_what_was_not_possible_is_shown_to_the_verifying_call(tmp_path: Path) -> None:
    script = Script(says())
    build_one(tmp_path, {"model": script}, distraction=False)
    (request,) = _requests(script, "ogcare-verify")
    assert material(request)["what was not possible"] == (
        "- surgery too risky, glue washed away\n- drugs and fasting failed"
    )


def test_a_reason_against_another_way_that_the_case_lacks_comes_back_by_the_final_review(tmp_path: Path) -> None:
    """An expert could have defended the operation that the report rules out."""
    closed = {"way": "an open operation", "reason": "portal hypertension", "sentences": [7], "known": "yes"}
    moment = altered(
        "ogcare-moment",
        closed=[
            {**closed, "told": "no"},
            {**closed, "way": "glue", "told": "yes"},
            {**closed, "way": "a stent", "known": "no", "told": "no"},
        ],
    )
    insert = {
        "do": "insert",
        "sentence": 5,
        "text": "An operation was not possible because of portal hypertension.",
        "sources": [7],
        "why": "the report's reason against an operation",
    }
    problem = {"kind": "fact_lost", "problem": "why no operation"}
    reviews = _Reviews({"verdict": "edit", "edits": [insert], "problems": [problem]})
    script = Script(says({**altered("ogcare-question", context=_WITHOUT), **moment}), trials=reviews)
    artefact = build_one(tmp_path, {"model": script}, distraction=False)
    first, second = (material(request)["remarks"] for request in reviews.requests)
    assert "the report rules out 'an open operation': portal hypertension (report, sentence 7); the case does" in first
    assert "'glue'" not in first
    assert "'a stent'" not in first  # its reason was learned later
    assert "An operation was not possible because of portal hypertension" in second
    (question,) = Benchmark(artefact).questions
    assert question.context.endswith("An operation was not possible because of portal hypertension.")
    assert insert["text"] in _item(artefact)["core"]


@pytest.mark.parametrize(
    ("prompt", "asked", "gone"),
    [
        ("ogcare-course", "gives a reason against, also in the discussion", ""),
        ("ogcare-question", 'every entry of "what was not possible" with its reason', "rule out the alternatives"),
        ("ogcare-verify", "The reasons that the report gives against other ways always count", ""),
        ("ogcare-moment", "each other way to deal with the problem", "You do one thing"),
        ("item-review", "each is in the case, or the question excludes the way", "alternatives by argument"),
    ],
)
def test_no_prompt_takes_out_what_another_asks_for(prompt: str, asked: str, gone: str) -> None:
    """The writer and the final review were told to leave out what rules the alternatives out."""
    words = " ".join((load_prompt(prompt).system or "").split())
    assert asked in words
    assert not gone or gone not in words


# A detail that a distraction adds


_FARM = "She keeps pigeons and drinks raw milk."
_NOT_NEUTRAL = {"words": _FARM, "cause": "yes", "decision": "no", "why": "an exposure that explains a fever"}


def _neutral(*words: str) -> list[dict[str, str]]:
    return [{"words": each, "cause": "no", "decision": "no", "why": "of another organ"} for each in words]


def test_an_added_detail_that_an_expert_could_take_for_a_cause_is_taken_out(tmp_path: Path) -> None:
    said = {
        **altered("ogcare-distract", context=f"{DISTRACTED} {_FARM}", added=[*ADDED, _FARM]),
        **altered("ogcare-verify-distraction", added=[*_neutral(*ADDED), _NOT_NEUTRAL], corrected=DISTRACTED),
    }
    script = Script(says(said))
    artefact = build_one(tmp_path, {"model": script})
    (request,) = _requests(script, "ogcare-verify-distraction")
    assert material(request)["added, says its writer"].splitlines()[-1] == f"- {_FARM}"
    assert Benchmark(artefact).questions[0].context == DISTRACTED
    assert _item(artefact)["distraction_faults"] == [
        f"verification finds that an added detail is not neutral: {_FARM} (an exposure that explains a fever)"
    ]


@pytest.mark.parametrize("left", [False, True])
def test_a_detail_that_is_not_neutral_and_stays_makes_the_distraction_unfit(tmp_path: Path, left: bool) -> None:
    wrong = f"{DISTRACTED} {_FARM}"
    entry = {**_NOT_NEUTRAL, "cause": "no", "decision": "yes"}
    said = {
        **altered("ogcare-distract", context=wrong, added=[*ADDED, _FARM]),
        **altered("ogcare-verify-distraction", added=[*_neutral(*ADDED), entry], corrected=wrong if left else ""),
    }
    script = Script(says(said))
    artefact = build_one(tmp_path, {"model": script})
    told = "still has what you find not neutral: She keeps pigeons" if left else "give no corrected one"
    assert told in _requests(script, "ogcare-verify-distraction")[1].messages[-1].content
    assert ending(artefact) == ("verify distraction", "verification finds that an added detail is not neutral")


def test_each_detail_that_the_writer_names_is_checked(tmp_path: Path) -> None:
    said = altered("ogcare-verify-distraction", added=_neutral(ADDED[0]))
    script = Script(says(said))
    artefact = build_one(tmp_path, {"model": script})
    again = _requests(script, "ogcare-verify-distraction")[1].messages[-1].content
    assert f"`added` does not have: {ADDED[1]}." in again
    assert _item(artefact)["flags"] == [f"distraction: an added detail is not checked: {ADDED[1]}"]


def test_words_that_exclude_another_answer_must_hold_in_the_distraction(tmp_path: Path) -> None:
    """They need not be in the core: the final review rests on them."""
    against = [
        {"answer": "antibiotics", "defence": "bile is infected at times", "words": "no fever"},
        {"answer": "an operation", "defence": "it closes the tract", "words": "to close the tract"},
    ]
    key = str(GOOD["ogcare-question"]["answer"])
    graded = {
        "grading_note": "Antibiotics do not count.",
        "requirements": [{"requirement": "an occluder", "question_words": "next step to close the tract"}],
        "exclusions": against,
        "answer_check": [{"answer": key, "satisfies": "yes", "lacks": ""}],
    }
    script = Script(says(), trials=_Reviews(graded))
    build_one(tmp_path, {"model": script})
    (request,) = _requests(script, "ogcare-verify-distraction")
    held = material(request)["facts that must hold"].splitlines()
    assert held[-1] == "- no fever"
    assert len(held) == len(GOOD["ogcare-question"]["core"]) + 1  # the question is not rewritten: its words hold


# A deleted fact


_LATER = "Platelets and bilirubin were normal in the old chart of the left flank drain."


def test_a_fact_that_the_final_review_deletes_need_not_be_kept_though_its_words_are_elsewhere(tmp_path: Path) -> None:
    """It was known only afterwards; the list of facts to keep put it back."""
    core = [*GOOD["ogcare-question"]["core"], "platelets and bilirubin were normal in the old chart of the drain"]
    early = altered("ogcare-question", context=f"{CONTEXT} {_LATER} The old chart is at hand.", core=core)
    text = REPORT.text.replace("within 2 days.", f"within 2 days. {_LATER} The old chart is at hand.")
    delete = {"do": "delete", "sentence": 6, "text": "", "sources": [], "why": "not yet known"}
    problem = {"kind": "leak", "problem": "told too early"}
    reviews = _Reviews({"verdict": "edit", "edits": [delete], "problems": [problem]})
    script = Script(says(early), trials=reviews)
    build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text))
    kept = material(_requests(script, "ogcare-distract")[-1])["keep"]
    held = material(_requests(script, "ogcare-verify-distraction")[-1])["facts that must hold"]
    assert kept == held
    assert kept.splitlines() == [f"- {fact}" for fact in GOOD["ogcare-question"]["core"]]


def test_what_verification_takes_out_or_puts_in_changes_the_list_of_facts_to_keep(tmp_path: Path) -> None:
    early = f"{_WITHOUT} The output stopped within 2 days of closure."
    core = [*GOOD["ogcare-question"]["core"][:2], "the output stopped within 2 days"]
    said = {
        **altered("ogcare-question", context=early, core=core),
        **altered(
            "ogcare-verify",
            missing=[{"sentence": 7, "why": "it speaks against an operation"}],
            telling=[{"words": "The output stopped within 2 days of closure", "why": "what came after"}],
            corrected_context=CONTEXT,
        ),
    }
    artefact = build_one(tmp_path, says(said))
    assert _item(artefact)["core"] == [*core[:2], _REASON]


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("ogcare-distract", "What the case itself does not tell, do not tell, even if the list has it."),
        ("ogcare-verify-distraction", "it is `no` if the rewritten case tells it"),
    ],
)
def test_the_case_counts_more_than_the_list_of_facts_to_keep(prompt: str, words: str) -> None:
    assert words in " ".join((load_prompt(prompt).system or "").split())


# Objections that were wrong


def test_an_edit_that_says_what_was_not_possible_costs_no_call(tmp_path: Path) -> None:
    """The source calls it too dangerous, which has no word of denial: only the next review is told."""
    text = REPORT.text.replace(
        _REASON, "Surgery was too dangerous with portal hypertension. Glue was washed away twice."
    )
    replace = {
        "do": "replace",
        "sentence": 5,
        "text": "Surgery was not possible with portal hypertension.",
        "sources": [7],
        "why": "the way was closed",
    }
    problem = {"kind": "fact_lost", "problem": "why no surgery"}
    moved = {
        **altered("ogcare-significance", step_sentences=[9]),
        **altered("ogcare-course", before=[3, 5, 6, 8], after=[10]),
        **altered("ogcare-question", context=_WITHOUT),
    }
    reviews = _Reviews({"verdict": "edit", "edits": [replace], "problems": [problem]})
    script = Script(says(moved), trials=reviews)
    artefact = build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text), distraction=False)
    first, second = reviews.requests
    assert len(first.messages) == len(second.messages) == 2
    assert "denies what its sources say" in material(second)["remarks"]
    assert Benchmark(artefact).questions[0].context.endswith("Surgery was not possible with portal hypertension.")


def test_what_runs_may_be_named_where_the_step_is_to_stop_it(tmp_path: Path) -> None:
    """All words of the step are in one sentence, which tells what the patient takes: the item was lost for it."""
    text = REPORT.text.replace("He had cirrhosis", "He took tacrolimus and prednisolone. He had cirrhosis").replace(
        "A cardiac septal occluder was deployed across the tract under fluoroscopy.",
        "Tacrolimus and prednisolone were stopped.",
    )
    said = {
        **altered("ogcare-significance", step="stopping tacrolimus and prednisolone", step_sentences=[9]),
        **altered(
            "ogcare-course",
            before=[3, 4, 6, 7],
            after=[10],
            limitations=[{"sentences": [8], "limitation": "surgery was too risky"}],
        ),
        **altered(
            "ogcare-question",
            context=CONTEXT.replace("He had cirrhosis", "He took tacrolimus and prednisolone. He had cirrhosis"),
            answer="Stop tacrolimus and prednisolone.",
        ),
    }
    script = Script(says(said))
    artefact = build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text), distraction=False)
    assert len(Benchmark(artefact).questions) == 1
    assert script.count("ogcare-question") == 1
