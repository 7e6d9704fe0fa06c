"""Two grades make a verdict; a pool is graded, tabled, and an item without a positive turned away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models import ChatRequest
from hoofbeat.models.requests import Trouble
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.pools.document_pool import POOL_HEADER, GradeThresholds, grade_step, verdict
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.steps import UNLIMITED
from hoofbeat.records import Document, Failure
from hoofbeat.window import ContextWindow
from tests.recipes.support import Script, a_context, user_text


@pytest.mark.parametrize(
    ("relevance", "support", "expected"),
    [
        (8, 8, "positive"),
        (10, 10, "positive"),
        (8, 7, "discarded"),
        (7, 8, "discarded"),
        (7, 7, "discarded"),
        (5, 5, "discarded"),
        (5, 4, "discarded"),
        (4, 5, "discarded"),
        (4, 4, "negative"),
        (0, 4, "negative"),
        (9, 4, "discarded"),
        (10, 0, "discarded"),
    ],
)
def test_verdicts_at_their_boundaries(relevance: int, support: int, expected: str) -> None:
    assert verdict(relevance, support, GradeThresholds()) == expected


def test_limits_are_parameters() -> None:
    assert verdict(6, 6, GradeThresholds(keep=6, reject=5)) == "positive"
    assert verdict(5, 5, GradeThresholds(keep=6, reject=5)) == "negative"
    assert verdict(9, 1, GradeThresholds(contradictory="negative")) == "negative"
    assert verdict(9, 5, GradeThresholds(contradictory="negative")) == "discarded"
    for keep, reject in ((4, 4), (3, 5), (11, 4), (8, -1)):
        with pytest.raises(UsageError, match="limits for grades are wrong"):
            GradeThresholds(keep=keep, reject=reject)


def _item(id: str, *pool: str) -> RecipeItem:
    listed = [{"id": each, "known": each == "k", "votes": 2, "best": 1} for each in pool]
    return RecipeItem(id=id, values={"query": "Which?", "answer": "That.", "reasoning": "So.", "pool": listed})


def _run(tmp_path: Path, items: list[RecipeItem], says: Any) -> tuple[list[Any], list[Any]]:
    step = grade_step(
        "grade", "r2med-grade-evidence", text=lambda id, _context: f"text of {id}", limits=GradeThresholds()
    )
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), says) as context:
        outcomes = list(step.run(items, context))
        return outcomes, list(context.tables["pool"].rows)


def test_every_pooled_document_is_graded_and_tabled(tmp_path: Path) -> None:
    grades = {"k": (8, 9), "m": (7, 9), "n": (4, 3), "bad": (1, 1)}

    def says(name: str, request: ChatRequest) -> object:
        which = next(id for id in grades if f"text of {id}\n" in user_text(request))
        return {"reason": f"about\t{which}", "relevance": grades[which][0], "support": grades[which][1]}

    outcomes, rows = _run(tmp_path, [_item("one", "k", "m", "n"), _item("two", "bad"), _item("three")], says)
    one, two, three = outcomes
    assert [each["verdict"] for each in one["pool"]] == ["positive", "discarded", "negative"]
    assert isinstance(two, ItemRejection)
    assert two.reason == "no document was graded as answering it"
    assert two.details == "the best is bad with relevance 1 and support 1"
    assert isinstance(three, ItemRejection)
    assert three.reason == "no retriever found a document for it"
    assert [dict(zip(POOL_HEADER, row, strict=True))["verdict"] for row in rows] == [
        "positive",
        "discarded",
        "negative",
        "negative",
    ]
    assert rows[0] == ("one", "k", "yes", 2, 1, 8, 9, "positive", "about k")


def test_a_failed_grade_is_no_grade(tmp_path: Path) -> None:
    def says(name: str, request: ChatRequest) -> object:
        if "text of broken" in user_text(request):
            return Trouble(kind="bad-request", message="no", retryable=False)
        if "text of eleven" in user_text(request):
            return {"reason": "too much", "relevance": 11, "support": 9}
        good = "text of good" in user_text(request)
        return {"reason": "x", "relevance": 9 if good else 0, "support": 9 if good else 0}

    outcomes, rows = _run(
        tmp_path, [_item("one", "broken", "good"), _item("two", "broken", "poor"), _item("three", "eleven")], says
    )
    assert [each["verdict"] for each in outcomes[0]["pool"]] == ["failed", "positive"]
    assert "relevance" not in outcomes[0]["pool"][0]
    assert isinstance(outcomes[1], Failure)  # whether a positive was among them can't be told
    assert isinstance(outcomes[2], Failure)
    assert outcomes[2].kind == "schema"
    assert [row[7] for row in rows] == ["failed", "positive", "failed", "negative", "failed"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", "unreadable"),
        ("Relevance is ten out of ten.", "unreadable"),
        ({"reason": "x", "relevance": 9}, "schema"),
        ({"reason": "x", "relevance": "9", "support": 9}, "schema"),
        ({"reason": "x", "relevance": 9, "support": 9, "bonus": 1}, "schema"),
        ({"reason": "x", "relevance": 9.5, "support": 9}, "schema"),
    ],
)
def test_an_unusable_grade_fails_the_item(tmp_path: Path, said: object, kind: str) -> None:
    (outcome,), _ = _run(tmp_path, [_item("one", "k")], lambda name, request: said)
    assert isinstance(outcome, Failure)
    assert outcome.kind == kind


def test_markdown_around_grades_is_read(tmp_path: Path) -> None:
    said = 'Here you are:\n```json\n{"reason": "fits", "relevance": 9, "support": 8}\n```'
    (outcome,), _ = _run(tmp_path, [_item("one", "k")], lambda name, request: said)
    assert isinstance(outcome, RecipeItem)


def test_a_long_question_leaves_room_for_the_document(tmp_path: Path) -> None:
    script = Script(lambda name, request: {"reason": "fits", "relevance": 9, "support": 8})
    step = grade_step(
        "grade", "r2med-grade-evidence", text=lambda id, _context: "document " * 4000, limits=GradeThresholds()
    )
    with a_context(tmp_path, [Document(id="d", title="", text="x")], RecipeSettings(), {"model": script}) as context:
        context.model().window = ContextWindow(tokens=4000, source="configured")
        step.run([_item("one", "k").put(query="question " * 4000)], context)
    ((_, request),) = script.requests
    assert sum(len(message.content) for message in request.messages) < 12_000
    assert user_text(request).count("question ") > 150
    assert user_text(request).count("document ") > 150
    assert "That." in user_text(request)


def test_where_nothing_limits_a_pool_the_estimate_does_not_promise_a_small_one() -> None:
    text = str
    free = grade_step("grade", "r2med-grade-evidence", text=lambda id, _context: text(id), limits=GradeThresholds())
    bound = grade_step(
        "grade", "r2med-grade-evidence", text=lambda id, _context: text(id), limits=GradeThresholds(), maximum=30
    )
    assert (free.calls, bound.calls) == (UNLIMITED, 30)
