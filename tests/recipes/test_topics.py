"""Groups and topics: what a model may choose from, and where questions go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_pack
from hoofbeat.recipes.items import Item
from hoofbeat.recipes.topics import (
    group_step,
    groups_of,
    named_groups,
    routing,
    subtopic_step,
    subtopics_of,
    topic_step,
)
from hoofbeat.recipes.workshop import Settings
from hoofbeat.records import Document, Failure, Question
from tests.recipes.support import Script, a_corpus, a_workshop

PACK = load_pack("transplant")


def _sources(**counts: int) -> list[Document]:
    return [
        Document(id=f"{organ}-{n}", title=organ, text="x", facets={"organ": organ})
        for organ, count in counts.items()
        for n in range(count)
    ]


def _item(text: str = "Can I drive after a kidney transplant?", **values: Any) -> Item:
    return Item(id="q1", values={"question": text, **values})


def test_the_transplant_pack_has_13_topics_and_43_subtopics() -> None:
    assert len(PACK.topics) == 13
    every = subtopics_of(PACK, PACK.topics)
    assert len(every) == len(set(every)) == 43
    assert all(subtopics_of(PACK, [topic]) for topic in PACK.topics)


def test_groups_are_those_of_the_sources(tmp_path: Path) -> None:
    assert groups_of(a_corpus(tmp_path, _sources(liver=1, kidney=2)), PACK) == ["kidney", "liver"]
    assert named_groups("Renal diet and the liver", ["kidney", "liver", "lung"], PACK) == ["kidney", "liver"]
    assert named_groups("Is delivery safe?", ["liver"], PACK) == []


def test_a_group_is_chosen_among_those_of_the_corpus(tmp_path: Path) -> None:
    script = Script(lambda *_: {"reason": "It names it.", "group": "kidney"})
    with a_workshop(tmp_path, _sources(liver=1, kidney=2), Settings(), {"model": script}) as shop:
        step = group_step("group", "question", PACK)
        first, given = step.run([_item(), _item(group="liver")], shop)
    assert isinstance(first, Item)
    assert first.facets["group"] == "kidney"
    assert isinstance(given, Item)
    assert given.facets["group"] == "liver"
    ((_, request),) = script.requests
    assert request.schema is not None
    assert request.schema["properties"]["group"]["enum"] == ["kidney", "liver", "general"]  # type: ignore[index]


def test_a_group_that_is_none_fails_the_item(tmp_path: Path) -> None:
    with a_workshop(
        tmp_path, _sources(liver=1, kidney=1), Settings(), lambda *_: {"reason": "", "group": "brain"}
    ) as shop:
        (outcome,) = group_step("group", "question", PACK).run([_item()], shop)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "schema"


def test_without_groups_every_question_is_general(tmp_path: Path) -> None:
    script = Script(lambda *_: {})
    with a_workshop(tmp_path, [Document(id="d", title="d", text="d")], Settings(), {"model": script}) as shop:
        (outcome,) = group_step("group", "question", PACK).run([_item()], shop)
    assert isinstance(outcome, Item)
    assert outcome.facets["group"] == "general"
    assert not script.requests


@pytest.mark.parametrize(
    ("said", "topics"),
    [
        (["infection", "medication"], ["medication", "infection"]),
        (["diet", "diet"], ["diet"]),
        (["other", "pain"], ["pain"]),
        (["other"], ["other"]),
    ],
)
def test_topics_are_several_each_once_in_the_packs_order(tmp_path: Path, said: list[str], topics: list[str]) -> None:
    with a_workshop(tmp_path, _sources(liver=1), Settings(), lambda *_: {"reason": "r", "topics": said}) as shop:
        (outcome,) = topic_step("topics", "question", PACK, 3).run([_item()], shop)
    assert isinstance(outcome, Item)
    assert outcome.facets["topics"] == topics


@pytest.mark.parametrize("said", [[], ["sport"], ["diet", "pain", "infection", "activity"], "diet"])
def test_no_topic_too_many_or_unknown_ones_fail(tmp_path: Path, said: object) -> None:
    with a_workshop(tmp_path, _sources(liver=1), Settings(), lambda *_: {"reason": "r", "topics": said}) as shop:
        (outcome,) = topic_step("topics", "question", PACK, 3).run([_item()], shop)
    assert isinstance(outcome, Failure)


def test_subtopics_are_those_of_the_topics(tmp_path: Path) -> None:
    def says(_name: str, request: ChatRequest) -> object:
        assert request.schema is not None
        offered = request.schema["properties"]["topics"]["items"]["enum"]  # type: ignore[index]
        assert offered == subtopics_of(PACK, ["diet"])
        return {"reason": "r", "topics": ["fluids"]}

    with a_workshop(tmp_path, _sources(liver=1), Settings(), says) as shop:
        step = subtopic_step("sub-topics", "question", PACK, 3)
        diet, other = step.run([_item().labelled(topics=["diet"]), _item().labelled(topics=["other"])], shop)
    assert isinstance(diet, Item)
    assert diet.facets["subtopics"] == ["fluids"]
    assert isinstance(other, Item)
    assert "subtopics" not in other.facets


def test_routing_counts_what_the_paper_counts(tmp_path: Path) -> None:
    """311 general questions go to all 102 handbooks, the others to those of their organ."""
    corpus = a_corpus(tmp_path, _sources(heart=26, lung=26, kidney=22, liver=17, pancreas=11))
    counts = {"general": 311, "kidney": 10, "pancreas": 2}
    questions = [
        Question(id=f"{group}-{n}", text="?", facets={"group": group})
        for group, count in counts.items()
        for n in range(count)
    ]
    found = routing(questions, corpus, PACK)
    assert (found["sources"], found["questions"]) == (102, 323)
    assert found["asked"] == 311 * 102 + 10 * 22 + 2 * 11
    groups = found["groups"]
    assert isinstance(groups, dict)
    assert groups["pancreas"] == {"questions": 2, "sources": 11, "asked": 22}
