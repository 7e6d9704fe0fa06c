"""The committee of models: what several of them know is turned away, and a failed call is never an answer."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models import ChatRequest
from hoofbeat.models.requests import Trouble
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.pools.exam_questions import difficult
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, StepEstimate
from hoofbeat.records import Document, Failure
from hoofbeat.window import ContextWindow
from tests.recipes.support import Script, a_context, user_text

_CHOICE = RecipeItem(id="choice", values={"query": "Which?", "options": ["Gout", "Lupus", "Scurvy"], "answer": "Lupus"})
_OPEN = RecipeItem(id="open", values={"query": "What is it?", "answer": "Lupus"})


_number = count()


def _member(letter: str, answer: str, name: str = "") -> Script:
    def says(name: str, request: ChatRequest) -> object:
        if letter == "broken":
            return Trouble(kind="bad-request", message="no", retryable=False)
        return {"choice": letter} if name == "r2med-try" else {"answer": answer}

    return Script(says, name or f"member {next(_number)}")


def _judge(name: str, request: ChatRequest) -> object:
    assert name == "equivalence"
    right = 'name="answer to judge">\nlupus' in user_text(request).lower()
    return {"reason": "x", "label": "equivalent" if right else "mismatch"}


def _step(maximum: int = 1, members: int = 8) -> RecipeStep:
    return difficult("difficulty", max_correct=maximum, max_members=members, choose="r2med-try", write="r2med-try-open")


def _run(
    tmp_path: Path, item: RecipeItem, members: list[Script], maximum: int = 1
) -> tuple[Outcome, dict[str, object]]:
    scripts = {"model": Script(_judge), **{f"committee-{n}": each for n, each in enumerate(members, start=1)}}
    step = _step(maximum)
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), scripts) as context:
        (outcome,) = step.run([item], context)
        return outcome, context.metrics


@pytest.mark.parametrize("item", [_CHOICE, _OPEN], ids=["choice", "open"])
@pytest.mark.parametrize(("right", "kept"), [(0, True), (1, True), (2, False), (4, False)])
def test_at_most_one_of_four_may_know_it(tmp_path: Path, item: RecipeItem, right: int, kept: bool) -> None:
    members = [_member("B", "Lupus") if n < right else _member("A", "Gout") for n in range(4)]
    outcome, metrics = _run(tmp_path, item, members)
    assert metrics["difficulty"] == {"members": 4, "max_correct": 1}
    if kept:
        assert isinstance(outcome, RecipeItem)
        assert sorted(outcome["tried"].values()) == ["right"] * right + ["wrong"] * (4 - right)
    else:
        assert isinstance(outcome, ItemRejection)
        assert outcome.details == f"{right} of 4, at most 1"


def test_the_limit_is_a_parameter(tmp_path: Path) -> None:
    assert isinstance(_run(tmp_path, _CHOICE, [_member("B", "")], maximum=0)[0], ItemRejection)
    assert isinstance(_run(tmp_path, _CHOICE, [_member("B", ""), _member("B", "")], maximum=2)[0], RecipeItem)


def test_without_a_committee_it_is_said_that_nothing_was_tried(tmp_path: Path) -> None:
    outcome, metrics = _run(tmp_path, _CHOICE, [])
    assert outcome == _CHOICE
    assert "skipped" in str(metrics["difficulty"])


def test_a_failed_call_is_no_wrong_answer(tmp_path: Path) -> None:
    def members(*kinds: str) -> list[Script]:
        return [_member(kind, "") for kind in kinds]

    right, wrong, broken = "B", "A", "broken"
    kept, _ = _run(tmp_path, _CHOICE, members(wrong, wrong, broken))  # even if it knew the answer, one of three would
    assert isinstance(kept, RecipeItem)
    assert kept["tried"]["committee-3"] == "failed: bad-request"
    assert isinstance(_run(tmp_path, _CHOICE, members(right, wrong, broken))[0], Failure)  # that can't be told
    assert isinstance(_run(tmp_path, _CHOICE, members(right, right, broken))[0], ItemRejection)  # too many either way


@pytest.mark.parametrize("letter", ["D", "Z", "", "Lupus", "A and B"])
def test_a_letter_that_is_no_option_fails(tmp_path: Path, letter: str) -> None:
    outcome, _ = _run(tmp_path, _CHOICE, [_member(letter, "")], maximum=0)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "schema"


def test_an_empty_answer_is_wrong_and_needs_no_judge(tmp_path: Path) -> None:
    outcome, _ = _run(tmp_path, _OPEN, [_member("A", "  ")], maximum=0)
    assert isinstance(outcome, RecipeItem)
    assert outcome["tried"] == {"committee-1": "wrong"}


def test_an_estimate_names_the_step(tmp_path: Path) -> None:
    scripts = {"model": Script(_judge), "committee-1": _member("A", "x")}
    step = _step()
    documents = [Document(id="d", title="", text="x")]
    with (
        a_context(tmp_path, documents, RecipeSettings(), scripts, estimating=True) as context,
        pytest.raises(StepEstimate) as found,
    ):
        step.run([_CHOICE], context)
    assert found.value.step == "difficulty"


def test_a_model_sits_in_the_committee_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="small is in the committee twice, as committee-1 and committee-3"):
        _run(tmp_path, _CHOICE, [_member("B", "", "small"), _member("B", ""), _member("B", "", "small")])


def test_an_estimate_is_no_lower_than_what_is_asked(tmp_path: Path) -> None:
    """Six members write an answer each, and each is judged: that many calls, and a seventh member is refused."""
    step, judge = _step(members=6), Script(_judge)
    members = [_member("A", f"Gout {number}") for number in range(6)]
    scripts = {"model": judge, **{f"committee-{n}": each for n, each in enumerate(members, start=1)}}
    documents = [Document(id="d", title="", text="x")]
    with a_context(tmp_path, documents, RecipeSettings(), scripts) as context:
        step.run([_OPEN], context)
    assert len(judge.requests) + sum(len(each.requests) for each in members) == 12 <= step.calls
    scripts["committee-7"] = _member("A", "Gout")
    with (
        a_context(tmp_path, documents, RecipeSettings(), scripts) as context,
        pytest.raises(UsageError, match="7 models"),
    ):
        step.run([_OPEN], context)


@pytest.mark.parametrize("item", [_CHOICE, _OPEN], ids=["choice", "open"])
def test_a_question_is_cut_to_the_members_window(tmp_path: Path, item: RecipeItem) -> None:
    member, judge = _member("A", "Gout"), Script(_judge)
    with a_context(
        tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), {"model": judge, "committee-1": member}
    ) as context:
        for role in ("model", "committee-1"):
            context.model(role).window = ContextWindow(tokens=2000, source="configured")
        _step().run([item.put(query="word " * 4000)], context)
    for _, request in (*member.requests, *judge.requests):
        assert sum(len(message.content) for message in request.messages) < 6000
    assert "Scurvy" in user_text(member.requests[0][1]) or item is _OPEN
