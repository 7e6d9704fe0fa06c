"""The two-level check: who is asked, which revisions are made, what keeps an item out, when a sample passes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import InputError
from hoofbeat.recipes.cases.two_level_review import LEVEL_1, LEVEL_2, draw_sample, findings_step, review_tasks, revise
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.records import Document
from tests.recipes.support import a_context

TEXT = "An invented man was pale. Sodium was 120 mmol/L. He felt well."
DOCUMENTS = [Document(id=f"d{n}", title="Invented", text=TEXT) for n in range(10)]
OPTIONS = [{"text": name, "origin": "stem"} for name in ("Gout", "Mumps", "Measles")]


def _items() -> list[RecipeItem]:
    values: dict[str, Any] = {
        "stem": TEXT[:25],
        "stem_spans": [[0, 25]],
        "diagnosis": "Scurvy",
        "options": [{"text": "Scurvy", "origin": "correct"}, *OPTIONS],
    }
    return [RecipeItem(id=each.id, documents=(each.id,), values=values) for each in DOCUMENTS]


def _reviews(folder: Path, *rows: tuple[str, str, str] | tuple[str, str, str, str]) -> str:
    path = folder / "reviews.jsonl"
    lines = (dict(zip(("item", "criterion", "value", "reviewer"), row, strict=False)) for row in rows)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def _kept(outcomes: list[Outcome]) -> list[RecipeItem]:
    return [each for each in outcomes if isinstance(each, RecipeItem)]


def _drawn(context: RecipeContext, share: float = 0.3) -> list[RecipeItem]:
    return _kept(list(draw_sample("sample", share).run(_items(), context)))


def test_every_item_has_a_first_reader_and_the_sample_a_second(tmp_path: Path) -> None:
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}) as context:
        items = _drawn(context)
        tasks = review_tasks(items, "Which?")
        assert [item["level"] for item in items].count(2) == 3
        assert [task.item for task in tasks if task.criteria == LEVEL_1] == [item.id for item in items]
        assert [task.item for task in tasks if task.criteria == LEVEL_2] == [i.id for i in items if i["level"] == 2]
        assert tasks[0].documents == ("d0",)
        assert TEXT not in tasks[0].shown.values()
        assert _drawn(context) == items
        assert {item["level"] for item in _drawn(context, 0)} == {1}


def _revised(tmp_path: Path, criterion: str, value: str) -> Outcome:
    path = _reviews(tmp_path, ("d0", criterion, value, "r"))
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}) as context:
        outcomes = revise("revise", path, min_options=3, min_match=0.9).run(_items(), context)
    assert list(outcomes[1:]) == _items()[1:]
    return outcomes[0]


def test_revisions_are_carried_out(tmp_path: Path) -> None:
    less = _revised(tmp_path, "drop option", "gout.")
    assert isinstance(less, RecipeItem)
    assert {each["text"] for each in less["options"]} == {"Scurvy", "Mumps", "Measles"}
    more = _revised(tmp_path, "add to stem", "Sodium was 120 mmol/L.")
    assert isinstance(more, RecipeItem)
    assert more["stem"] == "An invented man was pale. Sodium was 120 mmol/L."
    joined = _revised(tmp_path, "add to stem", "man was pale. Sodium was 120 mmol/L.")
    assert isinstance(joined, RecipeItem)
    assert joined["stem"] == TEXT[: TEXT.index(" He felt")]


@pytest.mark.parametrize(
    ("criterion", "value", "reason"),
    [
        ("drop option", "Scurvy", "a revision drops what is not a wrong option"),
        ("drop option", "Ebola", "a revision drops what is not a wrong option"),
        ("add to stem", "Potassium was low.", "a revision adds words that are not in the source"),
        ("add to stem", "", "a revision adds words that are not in the source"),
    ],
)
def test_a_revision_that_cannot_be_is_a_reason(tmp_path: Path, criterion: str, value: str, reason: str) -> None:
    outcome = _revised(tmp_path, criterion, value)
    assert isinstance(outcome, ItemRejection)
    assert outcome.reason == reason


def _checked(tmp_path: Path, action: Any, *rows: Any) -> tuple[list[Outcome], Any, list[Any]]:
    path = _reviews(tmp_path, *rows) if rows else ""
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}) as context:
        items = _drawn(context, 1.0)
        step = findings_step("review", path, action=action, min_passed=0.8)
        outcomes = list(step.run(items, context))
        return outcomes, context.metrics["two-level check"], list(context.tables["revisions"].rows)


def test_without_labels_everything_waits(tmp_path: Path) -> None:
    outcomes, verdict, rows = _checked(tmp_path, "revise")
    assert {item["review"] for item in _kept(outcomes)} == {"waiting"}
    assert (verdict["verdict"], verdict["level 1"], rows) == ("waiting", {"waiting": 10}, [])


@pytest.mark.parametrize(
    ("action", "reason"),
    [("revise", "waits for its revision"), ("reject", "a reviewer's finding: missing information")],
)
def test_an_open_finding_keeps_an_item_out(tmp_path: Path, action: str, reason: str) -> None:
    outcomes, _, rows = _checked(tmp_path, action, ("d3", "missing information", "fail", "s"))
    (rejection,) = [each for each in outcomes if isinstance(each, ItemRejection)]
    assert outcomes.index(rejection) == 3
    assert rejection.reason == reason
    assert rows[0][:4] == ("d3", 1, "missing information", "s")


def test_a_revision_or_a_later_pass_settles_a_finding(tmp_path: Path) -> None:
    outcomes, _, rows = _checked(
        tmp_path,
        "revise",
        ("d1", "options overlap", "fail", "s"),
        ("d1", "drop option", "Gout", "t"),
        ("d2", "clarity", "fail", "p"),
        ("d2", "clarity", "pass", "p"),
        ("d4", "clarity", "fail", "p"),
        ("d4", "clarity", "pass", "q"),
    )
    assert [place for place, each in enumerate(outcomes) if isinstance(each, ItemRejection)] == [4]
    assert [(row[0], row[-1]) for row in rows] == [("d1", "revised"), ("d4", "to be revised")]


def _read_by_all(numbers: Iterable[int], *but: tuple[str, str]) -> list[tuple[str, str, str, str]]:
    """Labels by every criterion for these items: a pass, but where a test says otherwise."""
    said = dict(but)
    return [(f"d{n}", each, said.get(each, "pass"), "p") for n in numbers for each in (*LEVEL_1, *LEVEL_2)]


def test_the_sample_passes_when_enough_of_it_does(tmp_path: Path) -> None:
    good = _read_by_all(range(8))
    bad: list[Any] = [(f"d{n}", "factual accuracy", "wrong dose", "p") for n in (8, 9)]
    _, verdict, _ = _checked(tmp_path, "revise", *good, *bad)
    assert (verdict["share of the sample passed"], verdict["verdict"]) == (0.8, "passed")
    _, verdict, _ = _checked(tmp_path, "revise", *good[6:], ("d0", "clarity", "no", "p"), *bad)
    assert (verdict["share of the sample passed"], verdict["verdict"]) == (0.7, "not passed")
    _, verdict, _ = _checked(tmp_path, "revise", *good)
    assert verdict["verdict"] == "waiting"


def test_an_item_has_passed_when_all_criteria_of_its_level_were_read(tmp_path: Path) -> None:
    first = [("d0", each, "pass", "s") for each in LEVEL_1]
    outcomes, tally, _ = _checked(tmp_path, "revise", *first, *_read_by_all([1]), *_read_by_all([2])[:-1])
    states = [item["review"] for item in _kept(outcomes)]
    assert states[:4] == ["waiting", "passed", "waiting", "waiting"]
    assert tally["level 1"] == {"passed": 3, "waiting": 7}
    assert tally["level 2"] == {"passed": 1, "waiting": 9}


def test_what_is_turned_away_after_it_was_drawn_stays_in_the_sample(tmp_path: Path) -> None:
    fatal = [(f"d{n}", "drop option", "Scurvy", "p") for n in range(6)]
    path = _reviews(tmp_path, *fatal, *_read_by_all(range(6, 9)))
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}) as context:
        left = _kept(list(revise("revise", path, min_options=3, min_match=0.9).run(_drawn(context, 1.0), context)))
        assert len(left) == 4
        findings_step("review", path, action="revise", min_passed=0.8).run(left[:-1], context)  # the call for d9 failed
        tally: Any = context.metrics["two-level check"]
        levels = list(context.tables["review-levels"].rows)
    assert tally["level 2"] == {"findings": 6, "lost": 1, "passed": 3}
    assert (tally["share of the sample passed"], tally["verdict"]) == (3 / 9, "not passed")
    assert levels == [(f"d{n}", 2) for n in range(10)]


def test_a_first_readers_finding_counts_in_the_sample(tmp_path: Path) -> None:
    _, tally, _ = _checked(tmp_path, "revise", *_read_by_all(range(10), ("missing information", "the age")))
    assert tally["level 2"] == {"findings": 10}
    _, tally, _ = _checked(tmp_path, "revise", *_read_by_all(range(10), ("clarity", "what is asked?")))
    assert (tally["level 1"], tally["level 2"]) == ({"passed": 10}, {"findings": 10})


def test_only_what_is_missing_is_asked_again(tmp_path: Path) -> None:
    path = _reviews(tmp_path, *_read_by_all([0]), ("d1", "clarity", "pass", "p"), ("d99", "clarity", "pass", "p"))
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}) as context:
        step = findings_step("review", path, action="revise", min_passed=0.8)
        tasks = review_tasks(_kept(list(step.run(_drawn(context, 1.0), context))), "Which?")
        assert context.metrics["review labels"] == {"used": 7, "for items not here": 1}
    assert not [task for task in tasks if task.item == "d0"]
    assert [task.criteria for task in tasks if task.item == "d1"] == [LEVEL_1, LEVEL_2[1:]]
    assert len(tasks) == 18


@pytest.mark.parametrize(("row", "what"), [(("d0", "clera", "pass"), "'clera'"), (("d0", "clarity", " "), "is empty")])
def test_a_label_that_means_nothing_is_refused(tmp_path: Path, row: tuple[str, str, str], what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        _checked(tmp_path, "revise", row)
    assert caught.value.where == str(tmp_path / "reviews.jsonl")
    assert caught.value.fix


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        revise("revise", str(tmp_path / "nothing.jsonl"), min_options=3, min_match=0.9)
