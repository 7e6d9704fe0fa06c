"""Which group and which topics a question belongs to, by the domain pack.

The group is a value of the pack's group facet that sources of the corpus carry, or `general`. Topics are the pack's,
one or more; sub-topics (`subtopics.toml`) are among those of the topics chosen. `other` is a topic, no rejection.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from hoofbeat.answering.source import asked_of
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.facets import facet_values
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.recipes.identifiers import word_data
from hoofbeat.recipes.items import Item, Outcome
from hoofbeat.recipes.steps import RecipeStep, ask
from hoofbeat.recipes.workshop import Workshop
from hoofbeat.records import Question

__all__ = [
    "GENERAL",
    "OTHER",
    "group_step",
    "groups_of",
    "named_groups",
    "routing",
    "subtopic_step",
    "subtopics_of",
    "topic_step",
]

GENERAL = "general"
OTHER = "other"
Schema = dict[str, object]


def groups_of(corpus: Corpus, pack: Pack) -> list[str]:
    """The groups that sources of the corpus belong to, sorted."""
    found = {value for document in corpus.documents() for value in facet_values(document, pack.group_facet)}
    return sorted(value for value in found if value and value != GENERAL)


@cache
def _second_tier(pack: str) -> Mapping[str, Any]:
    table = word_data("subtopics").get(pack, {})
    assert isinstance(table, dict)
    return table


def subtopics_of(pack: Pack, topics: Sequence[str]) -> list[str]:
    """The sub-topics of these topics, in the pack's order."""
    table = _second_tier(pack.name).get("topics", {})
    return [each for topic in topics for each in table.get(topic, ())]


def named_groups(text: str, groups: Sequence[str], pack: Pack) -> list[str]:
    """The groups that a text names, by their own names or by other words for them."""
    words = _second_tier(pack.name).get("group_words", {})
    found = []
    for group in groups:
        names = "|".join(re.escape(name) for name in (group, *words.get(group, ())))
        if re.search(rf"(?<!\w)(?:{names})s?(?!\w)", text, re.IGNORECASE):
            found.append(group)
    return found


def group_step(name: str, value: str, pack: Pack) -> RecipeStep:
    """Label each question with its group. One that came with the question stands; without groups all are general."""
    groups: list[str] = []

    def known(shop: Workshop) -> list[str]:
        if not groups:
            groups.extend([*groups_of(shop.corpus, pack), GENERAL])
        return groups

    def schema(_item: Item, shop: Workshop) -> Schema:
        return _with("sourceqa-group", "group", {"type": "string", "enum": known(shop)})

    def read(item: Item, said: dict[str, Any], _shop: Workshop) -> Outcome:
        return item.labelled(group=str(said["group"]))

    asked = ask(
        name,
        "sourceqa-group",
        values=lambda item, shop: {
            "reader": pack.reader,
            "facet": pack.group_facet,
            "groups": ", ".join(known(shop)[:-1]),
            "question": item[value],
        },
        read=read,
        schema=schema,
        when=lambda item: not item.get("group_given"),
    )

    def run(items: Sequence[Item], shop: Workshop) -> Sequence[Outcome]:
        real = known(shop)
        if len(real) < 2:
            return [item.labelled(group=GENERAL) for item in items]
        given = [_given(item, real) for item in items]
        return asked.run(given, shop)

    return RecipeStep(name=name, run=run, prompts=asked.prompts, calls=asked.calls)


def _given(item: Item, groups: Sequence[str]) -> Item:
    """An item whose harvest row names one of the groups is labelled by that."""
    group = str(item.get("group", ""))
    return item.put(group_given=True).labelled(group=group) if group in groups else item


def topic_step(name: str, value: str, pack: Pack, most: int) -> RecipeStep:
    """Label each question with one or more of the pack's topics."""
    topics = [*pack.topics, OTHER]

    def read(item: Item, said: dict[str, Any], _shop: Workshop) -> Outcome:
        chosen = [topic for topic in topics if topic in said["topics"]]
        return item.labelled(topics=[topic for topic in chosen if topic != OTHER] or [OTHER])

    return ask(
        name,
        "sourceqa-topics",
        values=lambda item, _shop: {"reader": pack.reader, "topics": topics, "question": item[value]},
        read=read,
        schema=lambda _item, _shop: _with("sourceqa-topics", "topics", _several(topics, 1, most)),
    )


def subtopic_step(name: str, value: str, pack: Pack, most: int) -> RecipeStep:
    """Label each question with sub-topics of its topics; those without any pass by."""

    def mine(item: Item) -> list[str]:
        topics = item.facets.get("topics", [])
        return subtopics_of(pack, [topics] if isinstance(topics, str) else topics)

    def read(item: Item, said: dict[str, Any], _shop: Workshop) -> Outcome:
        chosen = [each for each in mine(item) if each in said["topics"]]
        return item.labelled(subtopics=chosen) if chosen else item

    return ask(
        name,
        "sourceqa-topics",
        values=lambda item, _shop: {"reader": pack.reader, "topics": mine(item), "question": item[value]},
        read=read,
        schema=lambda item, _shop: _with("sourceqa-topics", "topics", _several(mine(item), 0, most)),
        when=lambda item: bool(mine(item)),
    )


def _several(names: Sequence[str], least: int, most: int) -> Schema:
    return {"type": "array", "items": {"type": "string", "enum": list(names)}, "minItems": least, "maxItems": most}


def _with(prompt: str, field: str, rule: Schema) -> Schema:
    """The output contract of a prompt with one field narrowed to what can be chosen here."""
    schema = dict(load_prompt(prompt).schema or {})
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return {**schema, "properties": {**properties, field: rule}}


def routing(questions: Sequence[Question], corpus: Corpus, pack: Pack) -> dict[str, object]:
    """Which sources are asked what: how many sources a question goes to, by group and in all."""
    groups: dict[str, dict[str, int]] = {}
    documents = list(corpus.documents())
    for question in questions:
        line = groups.setdefault(str(question.facets.get("group", GENERAL)), {"questions": 0, "sources": 0, "asked": 0})
        sources = sum(asked_of(question, document, pack) for document in documents)
        line["questions"] += 1
        line["sources"] = sources
        line["asked"] += sources
    return {
        "sources": len(documents),
        "questions": len(questions),
        "asked": sum(line["asked"] for line in groups.values()),
        "groups": dict(sorted(groups.items())),
    }
