"""Duplicate questions: which stay, what is listed, and how reviewers bring one back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoofbeat.errors import InputError
from hoofbeat.models import load_encoder
from hoofbeat.models.encoder import Vectors
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.messages import question_duplicates as questions_dedup
from hoofbeat.recipes.messages.question_duplicates import duplicate_tasks, exact_step, near_step, near_twins
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel
from hoofbeat.records import Document
from tests.helpers import needs_weights
from tests.recipes.support import a_context

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
