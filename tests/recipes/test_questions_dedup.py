"""Duplicate questions: which stay, what is listed, and how reviewers bring one back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hoofbeat.models import load_encoder
from hoofbeat.recipes.items import Item, Rejection
from hoofbeat.recipes.questions_dedup import duplicate_tasks, exact_step, near_step, near_twins
from hoofbeat.recipes.reviewing import ReviewLabel
from hoofbeat.recipes.workshop import Settings
from hoofbeat.records import Document
from tests.helpers import needs_weights
from tests.recipes.support import a_workshop

DOCUMENTS = [Document(id="d", title="d", text="d")]


def _items(*texts: str) -> list[Item]:
    return [Item(id=f"q{n}", values={"message": text}) for n, text in enumerate(texts)]


def test_the_same_words_count_once(tmp_path: Path) -> None:
    with a_workshop(tmp_path, DOCUMENTS, Settings(), lambda *_: {}) as shop:
        outcomes = exact_step("exact", "message").run(_items("Can I swim?", "can i  SWIM", "Can I fly?"), shop)
    assert [isinstance(each, Rejection) for each in outcomes] == [False, True, False]
    assert isinstance(outcomes[1], Rejection)
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


def test_pairs_are_listed_for_review_and_a_reviewer_brings_one_back(tmp_path: Path) -> None:
    needs_weights("minilm")
    items = _items(
        "Can I drink grapefruit juice with tacrolimus?",
        "When may I drive a car after surgery?",
        "Is it ok to drink grapefruit juice when taking tacrolimus?",
    )
    encoder = load_encoder("minilm")
    with a_workshop(tmp_path, DOCUMENTS, Settings(), lambda *_: {}, encoder=lambda: encoder) as shop:
        outcomes = near_step("near", "message", 0.85).run(items, shop)
        assert [isinstance(each, Rejection) for each in outcomes] == [False, False, True]
        (task,) = duplicate_tasks(shop)
        assert (task.item, task.kind, task.criteria) == ("q2", "duplicate", ("same",))
        assert task.shown == {"kept": items[0]["message"]}
        (row,) = shop.tables["duplicates"].rows
        assert row[1:3] == ("q2", "q0")
        assert float(str(row[3])) > 0.85
    labels = {"q2": [ReviewLabel(item="q2", criterion="same", value="no")]}
    with a_workshop(tmp_path, DOCUMENTS, Settings(), lambda *_: {}, encoder=lambda: encoder) as shop:
        assert not any(
            isinstance(each, Rejection) for each in near_step("near", "message", 0.85, labels).run(items, shop)
        )
        assert shop.tables["duplicates"].rows[0][4] == "kept by a reviewer"
        assert duplicate_tasks(shop) == []
