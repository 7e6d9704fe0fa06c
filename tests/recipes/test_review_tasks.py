"""Reviewers' labels: which are refused, when an item has passed, which labels are for items that are not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import InputError
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, read_labels, read_rating, reviewed, says_yes
from hoofbeat.records import Document
from hoofbeat.store.tables import write_csv
from tests.recipes.support import a_context

_CRITERIA = ("clear", "true")
Row = tuple[str, str, str]


def _file(folder: Path, rows: Sequence[Row]) -> str:
    path = folder / "labels.csv"
    path.write_text("item,criterion,value\n" + "".join(f"{','.join(row)}\n" for row in rows))
    return str(path)


def _run(folder: Path, rows: Sequence[Row], **more: Any) -> tuple[list[Outcome], dict[str, object]]:
    path = _file(folder, rows) if rows else ""

    def rule(_item: RecipeItem, labels: Mapping[str, Sequence[ReviewLabel]]) -> ItemRejection | None:
        no = [each for said in labels.values() for each in said if not says_yes(each, path)]
        return ItemRejection(reason=f"no to {no[0].criterion}") if no else None

    step = reviewed("review", path, rule, **more)
    with a_context(folder, [Document(id="d", title="", text="x")], RecipeSettings(), lambda *_: {}) as context:
        return list(step.run([RecipeItem(id="one"), RecipeItem(id="two")], context)), context.metrics


def _state(outcome: Outcome) -> object:
    return outcome["review"] if isinstance(outcome, RecipeItem) else outcome


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([], "waiting"),
        ([("one", "clear", "yes")], "waiting"),
        ([("one", "same", "yes")], "waiting"),
        ([("one", "clear", "yes"), ("one", "true", "Yes ")], "passed"),
        ([("one", "clear", "no")], ItemRejection(reason="no to clear")),
    ],
)
def test_an_item_has_passed_when_every_criterion_has_a_label(tmp_path: Path, rows: list[Row], state: object) -> None:
    outcomes, _ = _run(tmp_path, rows, criteria=_CRITERIA, others=("same",))
    assert list(map(_state, outcomes)) == [state, "waiting"]


def test_without_criteria_any_label_will_do(tmp_path: Path) -> None:
    outcomes, _ = _run(tmp_path, [("one", "whatever", "yes")])
    assert list(map(_state, outcomes)) == ["passed", "waiting"]


def test_an_unknown_criterion_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'clera' of a label for one") as caught:
        _run(tmp_path, [("one", "clera", "yes")], criteria=_CRITERIA, others=("same",))
    assert caught.value.where == str(tmp_path / "labels.csv")
    assert caught.value.fix == "criteria are clear, true, same"


def test_labels_for_items_that_are_not_here_are_counted(tmp_path: Path) -> None:
    rows = [("one", "clear", "yes"), ("one", "true", "yes"), ("tow", "clear", "yes")]
    _, metrics = _run(tmp_path, rows, criteria=_CRITERIA)
    assert metrics["review labels"] == {"used": 2, "for items not here": 1}
    assert "review labels" not in _run(tmp_path, [], criteria=_CRITERIA)[1]


def test_cells_guarded_from_spreadsheets_come_back_as_they_were(tmp_path: Path) -> None:
    rows = [["-1 item", "=clear", "+2", "@dr", "- a dash\nand a line"], ["two", "true", "'quoted'", "", "it's"]]
    write_csv(tmp_path / "labels.csv", ["item", "criterion", "value", "reviewer", "note"], rows)
    assert "\n'-1 item,'=clear,'+2,'@dr" in (tmp_path / "labels.csv").read_text()
    read = read_labels(tmp_path / "labels.csv")
    assert [[each.item, each.criterion, each.value, each.reviewer, each.note] for each in read] == rows


def test_a_csv_row_without_its_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,criterion,value\none,clear\n")
    with pytest.raises(InputError, match="label 1 can't be read"):
        read_labels(tmp_path / "labels.csv")


def _label(value: str) -> ReviewLabel:
    return ReviewLabel(item="one", criterion="clear", value=value)


@pytest.mark.parametrize(("value", "yes"), [("Yes", True), (" 1", True), ("no", False), ("FALSE", False), ("0", False)])
def test_yes_and_no(value: str, yes: bool) -> None:
    assert says_yes(_label(value), "f") is yes


@pytest.mark.parametrize("value", ["", "maybe", "nein", "not at all", "5"])
def test_what_is_neither_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="neither yes nor no") as caught:
        says_yes(_label(value), "labels.csv")
    assert caught.value.where == "labels.csv"


def test_ratings() -> None:
    assert [read_rating(_label(value), "f") for value in ("1", "5", " 3.5 ")] == [1, 5, 3.5]
    for value in ("", "good", "0", "6", "nan", "inf"):
        with pytest.raises(InputError, match="is not a rating"):
            read_rating(_label(value), "f")
