"""The committee of models: what several of them know is turned away, and a failed call is never an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.models import ChatRequest
from hoofbeat.models.wire import Trouble
from hoofbeat.recipes.difficulty import difficult
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.steps import Estimated
from hoofbeat.recipes.workshop import Settings
from hoofbeat.records import Document, Failure
from tests.recipes.support import Script, a_workshop, user_text

_CHOICE = Item(id="choice", values={"query": "Which?", "options": ["Gout", "Lupus", "Scurvy"], "answer": "Lupus"})
_OPEN = Item(id="open", values={"query": "What is it?", "answer": "Lupus"})


def _member(letter: str, answer: str) -> Script:
    def says(name: str, request: ChatRequest) -> object:
        if letter == "broken":
            return Trouble(kind="bad-request", message="no", retryable=False)
        return {"choice": letter} if name == "r2med-try" else {"answer": answer}

    return Script(says, f"member {letter} {answer}")


def _judge(name: str, request: ChatRequest) -> object:
    assert name == "equivalence"
    right = 'name="answer to judge">\nlupus' in user_text(request).lower()
    return {"reason": "x", "label": "equivalent" if right else "mismatch"}


def _run(tmp_path: Path, item: Item, members: list[Script], most: int = 1) -> tuple[Outcome, dict[str, object]]:
    scripts = {"model": Script(_judge), **{f"committee-{n}": each for n, each in enumerate(members, start=1)}}
    step = difficult("difficulty", most_correct=most, choose="r2med-try", write="r2med-try-open")
    with a_workshop(tmp_path, [Document(id="d", title="", text="x")], Settings(), scripts) as shop:
        (outcome,) = step.run([item], shop)
        return outcome, shop.metrics


@pytest.mark.parametrize("item", [_CHOICE, _OPEN], ids=["choice", "open"])
@pytest.mark.parametrize(("right", "kept"), [(0, True), (1, True), (2, False), (4, False)])
def test_at_most_one_of_four_may_know_it(tmp_path: Path, item: Item, right: int, kept: bool) -> None:
    members = [_member("B", "Lupus") if n < right else _member("A", "Gout") for n in range(4)]
    outcome, metrics = _run(tmp_path, item, members)
    assert metrics["difficulty"] == {"members": 4, "most_correct": 1}
    if kept:
        assert isinstance(outcome, Item)
        assert sorted(outcome["tried"].values()) == ["right"] * right + ["wrong"] * (4 - right)
    else:
        assert isinstance(outcome, Rejection)
        assert outcome.details == f"{right} of 4, at most 1"


def test_the_limit_is_a_parameter(tmp_path: Path) -> None:
    assert isinstance(_run(tmp_path, _CHOICE, [_member("B", "")], most=0)[0], Rejection)
    assert isinstance(_run(tmp_path, _CHOICE, [_member("B", "")] * 2, most=2)[0], Item)


def test_without_a_committee_it_is_said_that_nothing_was_tried(tmp_path: Path) -> None:
    outcome, metrics = _run(tmp_path, _CHOICE, [])
    assert outcome == _CHOICE
    assert "skipped" in str(metrics["difficulty"])


def test_a_failed_call_is_no_wrong_answer(tmp_path: Path) -> None:
    wrong, right, broken = _member("A", "Gout"), _member("B", "Lupus"), _member("broken", "")
    kept, _ = _run(tmp_path, _CHOICE, [wrong, wrong, broken])  # even if it knew the answer, one of three would
    assert isinstance(kept, Item)
    assert kept["tried"]["committee-3"] == "failed: bad-request"
    assert isinstance(_run(tmp_path, _CHOICE, [right, wrong, broken])[0], Failure)  # that can't be told
    assert isinstance(_run(tmp_path, _CHOICE, [right, right, broken])[0], Rejection)  # too many either way


@pytest.mark.parametrize("letter", ["D", "Z", "", "Lupus", "A and B"])
def test_a_letter_that_is_no_option_fails(tmp_path: Path, letter: str) -> None:
    outcome, _ = _run(tmp_path, _CHOICE, [_member(letter, "")], most=0)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "schema"


def test_an_empty_answer_is_wrong_and_needs_no_judge(tmp_path: Path) -> None:
    outcome, _ = _run(tmp_path, _OPEN, [_member("A", "  ")], most=0)
    assert isinstance(outcome, Item)
    assert outcome["tried"] == {"committee-1": "wrong"}


def test_an_estimate_names_the_step(tmp_path: Path) -> None:
    scripts = {"model": Script(_judge), "committee-1": _member("A", "x")}
    step = difficult("difficulty", most_correct=1, choose="r2med-try", write="r2med-try-open")
    documents = [Document(id="d", title="", text="x")]
    with (
        a_workshop(tmp_path, documents, Settings(), scripts, estimating=True) as shop,
        pytest.raises(Estimated) as found,
    ):
        step.run([_CHOICE], shop)
    assert found.value.step == "difficulty"
