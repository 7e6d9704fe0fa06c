"""Duplicate questions: which stay, what is listed, and how reviewers bring one back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoofbeat.errors import InputError
from hoofbeat.models import ChatRequest, load_encoder
from hoofbeat.models.encoder import Vectors
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.messages import question_duplicates as questions_dedup
from hoofbeat.recipes.messages.question_duplicates import (
    duplicate_tasks,
    exact_step,
    near_step,
    near_twins,
    plain_question,
    same_step,
)
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel
from hoofbeat.records import Document
from tests.helpers import needs_weights
from tests.recipes.support import a_context, user_text
from tests.retrieval.support import HashedWords

DOCUMENTS = [Document(id="d", title="d", text="d")]


def _items(*texts: str) -> list[RecipeItem]:
    return [RecipeItem(id=f"q{n}", values={"message": text}) for n, text in enumerate(texts)]


def test_the_same_words_count_once(tmp_path: Path) -> None:
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}) as context:
        outcomes = exact_step("exact", "message").run(_items("Can I swim?", "can i  SWIM", "Can I fly?"), context)
    assert [isinstance(each, ItemRejection) for each in outcomes] == [False, True, False]
    assert isinstance(outcomes[1], ItemRejection)
    assert outcomes[1].details == "q0"


def test_nothing_is_dropped_for_something_that_is_dropped_itself() -> None:
    angles = np.radians([0, 25, 50])  # neighbours are alike (cosine 0.906), the first and the last are not (0.643)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    (twin,) = near_twins(vectors, 0.85)
    assert (twin.place, twin.earlier) == (1, 0)
    assert twin.cosine == pytest.approx(0.9063)
    assert [(each.place, each.earlier) for each in near_twins(vectors, 0.85, spared=frozenset({1}))] == [(1, 0), (2, 1)]


def test_the_threshold_itself_is_no_duplicate() -> None:
    vectors = np.array([[1, 0], [0.85, np.sqrt(1 - 0.85**2)]], dtype=np.float32)
    assert near_twins(vectors, 0.85) == []
    assert len(near_twins(vectors, 0.8499)) == 1
    assert near_twins(np.zeros((3, 2), dtype=np.float32), 0.0) == []


def _crowd(count: int) -> Vectors:
    """Vectors near a half circle, many of them close to each other; their products are exact in single precision."""
    angles = np.random.default_rng(3).uniform(0, np.pi, count)
    return (np.round(np.stack([np.cos(angles), np.sin(angles)], axis=1) * 64) / 64).astype(np.float32)


@pytest.mark.parametrize("block", [1, 7, 256])
def test_blocks_find_what_comparing_one_by_one_finds(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    vectors, spared = _crowd(300), frozenset(range(0, 300, 11))
    expected: list[tuple[int, int, float]] = []
    staying: list[int] = []
    for place, vector in enumerate(vectors):
        cosines = [round(float(vectors[each] @ vector), 4) for each in staying]
        best = max(cosines, default=-2.0)
        if best > 0.995:
            expected.append((place, staying[cosines.index(best)], best))
        if best <= 0.995 or place in spared:
            staying.append(place)
    monkeypatch.setattr(questions_dedup, "_BLOCK", block)
    found = [(twin.place, twin.earlier, twin.cosine) for twin in near_twins(vectors, 0.995, spared=spared)]
    assert found == expected
    assert len(found) > 100
    assert near_twins(vectors[:0], 0.9) == []


class _Counting(np.ndarray[Any, np.dtype[np.float32]]):
    """An array that counts the products it is part of."""

    products = 0

    def __matmul__(self, other: Any) -> Any:
        _Counting.products += 1
        return np.asarray(self) @ np.asarray(other)


def test_questions_are_compared_in_blocks_and_not_one_by_one() -> None:
    """One product a question, each with a copy of all before it, took half an hour for fifty thousand."""
    vectors = np.eye(1024, dtype=np.float32).view(_Counting)
    _Counting.products = 0
    assert near_twins(vectors, 0.85) == []
    assert 0 < _Counting.products <= 2 * 1024 / questions_dedup._BLOCK


def test_a_label_that_is_neither_yes_nor_no_is_refused() -> None:
    labels = {"q2": [ReviewLabel(item="q2", criterion="same", value="perhaps")]}
    with pytest.raises(InputError, match="neither yes nor no") as raised:
        near_step("near", "message", 0.85, labels, where="labels.csv")
    assert raised.value.where == "labels.csv"


def test_pairs_are_listed_for_review_and_a_reviewer_brings_one_back(tmp_path: Path) -> None:
    needs_weights("minilm")
    items = _items(
        "Can I drink grapefruit juice with tacrolimus?",
        "When may I drive a car after surgery?",
        "Is it ok to drink grapefruit juice when taking tacrolimus?",
    )
    encoder = load_encoder("minilm")
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}, encoder=lambda: encoder) as context:
        outcomes = near_step("near", "message", 0.85).run(items, context)
        assert [isinstance(each, ItemRejection) for each in outcomes] == [False, False, True]
        (task,) = duplicate_tasks(context)
        assert (task.item, task.kind, task.criteria) == ("q2", "duplicate", ("same",))
        assert task.shown == {"kept": items[0]["message"]}
        (row,) = context.tables["duplicates"].rows
        assert row[1:3] == ("q2", "q0")
        assert float(str(row[3])) > 0.85
    labels = {"q2": [ReviewLabel(item="q2", criterion="same", value="no")]}
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}, encoder=lambda: encoder) as context:
        assert not any(
            isinstance(each, ItemRejection) for each in near_step("near", "message", 0.85, labels).run(items, context)
        )
        assert context.tables["duplicates"].rows[0][4] == "kept by a reviewer"
        assert duplicate_tasks(context) == []
    labels = {"q2": [ReviewLabel(item="q2", criterion="same", value="yes")]}
    with a_context(tmp_path, DOCUMENTS, RecipeSettings(), lambda *_: {}, encoder=lambda: encoder) as context:
        outcomes = near_step("near", "message", 0.85, labels).run(items, context)
        assert isinstance(outcomes[2], ItemRejection)
        assert duplicate_tasks(context) == [], "a pair that a reviewer has looked at is no task any more"


def _pairs(*, set_apart: bool) -> list[tuple[bool, str, str]]:
    """Pairs of questions with whether they ask the same; those set apart were not in sight when words were listed."""
    lines = (Path(__file__).parent / "data" / "question_pairs.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return [(kind.startswith("same"), a, b) for kind, a, b in rows if kind.endswith("apart") == set_apart]


@pytest.mark.parametrize(
    ("encoder", "set_apart", "recall"),
    [
        ("minilm;products=float32", False, 0.9),
        ("minilm;products=float32", True, 0.45),
        ("minilm", False, 0.9),
        ("minilm", True, 0.4),
    ],
)
def test_how_many_duplicates_the_cosine_finds_and_how_many_reach_the_model(
    encoder: str, set_apart: bool, recall: float
) -> None:
    """As written, 9 of 30 and 0 of 15 pairs are over 0.85. In plain words 28 and 7 are, and all over 0.5.

    With 8-bit products cosines differ by 0.005 (standard deviation), which costs one of the 7.
    """
    needs_weights("minilm")
    pairs = _pairs(set_apart=set_apart)
    one, other = (load_encoder(encoder).encode([plain_question(str(pair[n])) for pair in pairs]) for n in (1, 2))
    cosines = (one * other).sum(axis=1).tolist()
    same = [cosine for cosine, (twins, _, _) in zip(cosines, pairs, strict=True) if twins]
    different = [cosine for cosine, (twins, _, _) in zip(cosines, pairs, strict=True) if not twins]
    found, false = sum(each > 0.85 for each in same), sum(each > 0.85 for each in different)
    shown = sum(each >= 0.5 for each in same)
    print(f"over 0.85: {found} of {len(same)} and {false} of {len(different)} falsely; {shown} reach the model")
    assert found >= recall * len(same)
    assert false <= 0.3 * len(different)
    assert shown == len(same)


def test_brands_and_everyday_words_are_compared_as_one() -> None:
    assert plain_question("I forgot my Prograf") == "i missed my tacrolimus"
    assert plain_question("Threw up after CellCept") == "vomit after mycophenolate"
    assert plain_question("a shotgun is no shot") == "a shotgun is no vaccine"


def test_a_model_decides_which_of_the_nearest_ask_the_same(tmp_path: Path) -> None:
    asked = [
        "May I drive after a kidney transplant?",
        "May I drive after a heart transplant?",
        "May I drive after a renal transplant?",
        "After a kidney transplant, may I drive?",
        "What is gout?",
    ]
    items = [RecipeItem(id=f"q{n}", values={"question": text}) for n, text in enumerate(asked)]
    shown: list[str] = []

    def says(_name: str, request: ChatRequest) -> object:
        new, earlier = re.findall(r"<material[^>]*>\n(.*?)\n</material>", user_text(request), re.DOTALL)
        shown.append(earlier)
        listed = re.findall(r"^([A-Z])\. (.*)$", earlier, re.MULTILINE)
        return {"reason": "r", "same": [] if "heart" in new else [a for a, text in listed if "heart" not in text][:1]}

    with a_context(tmp_path, [], RecipeSettings(), says, encoder=HashedWords) as context:
        step = same_step("near", "question", minimum=0.5, sure=0.7)
        outcomes = step.run(items, context)
        rows = context.tables["duplicates"].rows
    assert [isinstance(each, RecipeItem) for each in outcomes] == [True, True, False, False, True]
    assert outcomes[3] == ItemRejection(reason="asks the same as an earlier question", details=outcomes[3].details)  # type: ignore[union-attr]
    assert outcomes[3].details.startswith("q0, ")  # its twin q2 is dropped itself
    assert len(shown) == 3
    assert all(isinstance(each, ItemRejection) or list(each.values) == ["question"] for each in outcomes)  # type: ignore[union-attr]
    decided = {(row[1], row[2]): row[4] for row in rows}
    assert decided["q2", "q0"] == decided["q3", "q0"] == "dropped"
    assert decided["q1", "q0"] == "kept: the model finds them different"
    assert {task.item for task in duplicate_tasks(context)} == {"q2", "q3"}
