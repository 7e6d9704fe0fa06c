"""Votes of a committee, the pool, and a committee of real retrievers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.encoder_base import Encoder, EncoderBase, Vectors
from hoofbeat.progress import SILENT, Progress
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.recipes.pools.document_pool import Committee, PoolCandidate, committee_lines, mine_step, pooled, vote
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.records import Document
from tests.helpers import needs_weights
from tests.recipes.support import a_context

_RANKINGS = {
    "query by bm25": ["a", "b", "c", "d"],
    "answer by bm25": ["b", "c", "e"],
    "reasoning by bm25": ["c", "b", "a"],
}


def test_votes_count_rankings_and_ties_go_by_best_place_then_id() -> None:
    found = vote(_RANKINGS, depth=100)
    assert [(each.id, each.votes, each.best) for each in found] == [
        ("b", 3, 1),
        ("c", 3, 1),
        ("a", 2, 1),
        ("e", 1, 3),
        ("d", 1, 4),
    ]
    assert found[2].where == ("query by bm25", "reasoning by bm25")
    assert [each.id for each in vote({"x": ["z", "y"], "w": ["y", "z"]}, depth=9)] == ["y", "z"]


def test_depth_is_counted_without_what_is_left_out() -> None:
    assert {each.id: each.best for each in vote(_RANKINGS, depth=1)} == {"a": 1, "b": 1, "c": 1}
    found = vote(_RANKINGS, depth=1, without={"a", "b", "c"})
    assert {each.id: each.best for each in found} == {"d": 1, "e": 1}
    assert vote({"x": ["a", "a", "a"]}, depth=9) == [PoolCandidate(id="a", votes=1, best=1, where=("x",))]


def test_the_pool_has_what_is_known_and_the_most_voted_of_the_rest() -> None:
    pool = pooled(_RANKINGS, ["d", "nowhere", "d"], depth=100, top=2)
    assert [(each.id, each.votes) for each in pool] == [("d", 1), ("nowhere", 0), ("b", 3), ("c", 3)]
    assert [each.id for each in pooled(_RANKINGS, [], depth=100, top=0)] == []


def test_lines_are_put_together_again_and_checked() -> None:
    assert committee_lines(["bm25", "dense[encoder=potion", "search=exact]", "bm25"]) == (
        "bm25",
        "dense[encoder=potion]",
    )
    with pytest.raises(UsageError, match="no retriever"):
        committee_lines([])
    with pytest.raises(UsageError, match="a model writes queries"):
        committee_lines(["hyde > bm25"])
    with pytest.raises(UsageError):
        mine_step("mine", PieceCollection(), lines=["nonesuch"], depth=3, top=1)


_DOCUMENTS = [
    Document(id="liver", title="", text="Jaundice and itching. The liver was large and hard."),
    Document(id="heart", title="", text="Chest pain on effort. The heart was enlarged."),
    Document(id="kidney", title="", text="Blood in the urine. The kidney was removed."),
    Document(id="both", title="", text="The liver and the heart failed together, with jaundice."),
]


def test_each_view_is_searched_by_each_member() -> None:
    committee = Committee(_DOCUMENTS, ["bm25", "bm25[k1=1.2]"], passages=True)
    views = {"query": ["a large liver", ""], "answer": ["jaundice", "blood in the urine"]}
    first, second = committee.rankings(views, 3)
    assert set(first) == {
        "query by bm25",
        "answer by bm25",
        "query by bm25[k1=1.2]",
        "answer by bm25[k1=1.2]",
    }
    assert first["query by bm25"][0] == "liver"
    assert second["query by bm25"] == []
    assert second["answer by bm25"] == ["kidney"]


def test_lexical_and_dense_members_work_together() -> None:
    needs_weights("potion")
    committee = Committee(_DOCUMENTS, ["bm25", "dense[encoder=potion]"], passages=True)
    (found,) = committee.rankings({"query": ["yellow skin"]}, 4)
    assert found["query by bm25"] == []
    assert len(found["query by dense[encoder=potion]"]) == 4
    assert set(committee.describe()) == {"bm25", "dense[encoder=potion]"}


class _Hearts(EncoderBase):
    """An invented encoder: what speaks of hearts lies close together."""

    name = identity = "hearts"
    dimension = 2

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        return np.array([[1, 0] if "heart" in text.lower() else [0, 1] for text in texts], np.float32)


def test_the_workshops_encoder_serves_a_plain_dense_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOFBEAT_CACHE", str(tmp_path / "cache"))
    item = RecipeItem(id="one", values={"query": "my heart", "answer": "heart", "reasoning": "heart", "known": []})
    with a_context(tmp_path, _DOCUMENTS, RecipeSettings(), lambda name, request: {}, encoder=_Hearts) as context:
        step = mine_step("mine", PieceCollection(chunking="words:160/32"), lines=["dense"], depth=2, top=2)
        (found,) = step.run([item], context)
        assert isinstance(found, RecipeItem)
        assert {each["id"] for each in found["pool"]} == {"heart.p1", "both.p1"}
        assert context.roles_used["encoder"] == "hearts"
        assert "hearts" in str(context.metrics["mine"])


def test_an_encoder_that_a_line_names_is_that_one() -> None:
    asked: list[str] = []

    def load(spec: str) -> Encoder:
        asked.append(spec)
        return _Hearts()

    def never() -> Encoder:
        raise AssertionError("another encoder is named")

    for line in ("dense[encoder=minilm]", "dense[encoder=other]"):
        Committee(_DOCUMENTS, [line], passages=True, encoder=load, usual=never).rankings({"query": ["heart"]}, 2)
    assert set(asked) == {"minilm", "other"}
    with pytest.raises(UsageError, match="with and without its encoder"):
        committee_lines(["dense", "dense[encoder=minilm]"])


def test_the_step_gives_every_item_its_pool(tmp_path: Path) -> None:
    items = [
        RecipeItem(
            id="one", values={"query": "liver", "answer": "jaundice", "reasoning": "heart", "known": ["kidney.p1"]}
        ),
        RecipeItem(id="two", values={"query": "urine", "answer": "kidney", "reasoning": "blood", "known": []}),
    ]
    shelf = PieceCollection(chunking="words:160/32")
    with a_context(tmp_path, _DOCUMENTS, RecipeSettings(), lambda name, request: {}) as context:
        step = mine_step("mine", shelf, lines=["bm25"], depth=2, top=2)
        one, two = step.run(items, context)
        assert isinstance(one, RecipeItem)
        assert isinstance(two, RecipeItem)
        assert one["pool"] == [
            {"id": "kidney.p1", "known": True, "votes": 0, "best": 0},
            {"id": "both.p1", "known": False, "votes": 3, "best": 2},
            {"id": "liver.p1", "known": False, "votes": 2, "best": 1},
        ]
        assert [each["id"] for each in two["pool"]] == ["kidney.p1"]
        assert two["pool"][0]["votes"] == 3
        assert one.lineage[-1].name == "mine"
        described = context.metrics["mine"]
        assert isinstance(described, dict)
        assert described["depth"] == 2


def test_known_ones_beyond_the_limit_are_left_ungraded(tmp_path: Path) -> None:
    known = ["heart.p1", "liver.p1", "both.p1"]
    item = RecipeItem(id="one", values={"query": "liver", "answer": "jaundice", "reasoning": "heart", "known": known})
    with a_context(tmp_path, _DOCUMENTS, RecipeSettings(), lambda name, request: {}) as context:
        step = mine_step("mine", PieceCollection(chunking="words:160/32"), lines=["bm25"], depth=3, top=5, max_known=2)
        (found,) = step.run([item], context)
        assert isinstance(found, RecipeItem)
        assert [each["id"] for each in found["pool"]] == ["both.p1", "liver.p1"]
        assert found["ungraded"] == ["heart.p1"]
