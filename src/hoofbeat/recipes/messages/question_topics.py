"""Which group and which topics a question belongs to, by the domain pack.

The group is a value of the pack's group facet that sources of the corpus carry, or `general`. A question about a group
that the corpus does not have is flagged: no source can answer it. Topics are the pack's,
one or more; the pack's sub-topics are among those of the topics chosen. `other` is a topic, no rejection.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hoofbeat.corpus import Corpus
from hoofbeat.facets import facet_values, source_is_asked
from hoofbeat.prompts import Pack, label, load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.recipe_items import AskAgain, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask
from hoofbeat.records import Document, Question

GENERAL = "general"
ANOTHER = "another"
"""What a model chooses for a question about a group that no source belongs to."""
OTHER = "other"
Schema = dict[str, object]


def groups_of(corpus: Corpus, pack: Pack) -> list[str]:
    """The groups that sources of the corpus belong to, sorted."""
    found = {value for document in corpus.documents() for value in facet_values(document.facets, pack.group_facet)}
    return sorted(value for value in found if value and value != GENERAL)


def subtopics_of(pack: Pack, topics: Sequence[str]) -> list[str]:
    """The sub-topics of these topics, in the pack's order."""
    return [each for topic in topics for each in pack.subtopics.get(topic, ())]


def named_groups(text: str, groups: Sequence[str], pack: Pack) -> list[str]:
    """The groups that a text names, by their own names or by other words for them."""
    found = []
    for group in groups:
        names = "|".join(re.escape(name) for name in (group, *pack.group_words.get(group, ())))
        if re.search(rf"(?<!\w)(?:{names})s?(?!\w)", text, re.IGNORECASE):
            found.append(group)
    return found


def same_group(name: str, groups: Iterable[str]) -> str:
    """The group that somebody means by a name, as the groups spell it; whatever its case. Empty where it is none."""
    wanted = name.strip()
    spelled = [group for group in groups if group.casefold() == wanted.casefold()]
    return wanted if wanted in spelled else next(iter(spelled), "")


def group_doubt(text: str, group: str, groups: Sequence[str], pack: Pack) -> str:
    """Why a question's group should be looked at: the question names others than its own."""
    named = named_groups(text, groups, pack)
    return f"names {', '.join(named)}, labelled {group}" if named and group not in named else ""


def absent_groups(groups: Sequence[str], pack: Pack) -> list[str]:
    """Groups of the domain that no source of the corpus belongs to."""
    return [group for group in pack.group_words if not same_group(group, groups)]


def missing_groups(text: str, groups: Sequence[str], pack: Pack) -> list[str]:
    """The absent groups that a text names, where it names none that sources belong to."""
    return [] if named_groups(text, groups, pack) else named_groups(text, absent_groups(groups, pack), pack)


def group_step(name: str, value: str, pack: Pack) -> RecipeStep:
    """Label each question with its group. One that came with the question stands; without groups all are general.

    The groups are what documents say of themselves: the model is shown them as short labels within a fence. A question
    about a group that no source belongs to (`another`) is labelled with that group, and `without_source` says so.
    """
    groups: dict[str, str] = {}

    def known(context: RecipeContext) -> dict[str, str]:
        """The groups by the labels that the model chooses from, `general` and `another` the last."""
        if not groups:
            for group in groups_of(context.corpus, pack):
                groups.setdefault(label(group) or GENERAL, group)
            for word in (GENERAL, ANOTHER):
                groups.pop(word, None)
                groups[word] = word
        return groups

    def schema(_item: RecipeItem, context: RecipeContext) -> Schema:
        return _with("sourceqa-group", "group", {"type": "string", "enum": list(known(context))})

    def read(item: RecipeItem, said: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        group = known(context)[str(said["group"])]
        real = list(known(context).values())[:-2]
        missing = missing_groups(str(item[value]), real, pack)
        if group == ANOTHER:
            return _without_source(item, missing[0] if missing else ANOTHER)
        done = item.labelled(group=group)
        if not missing:
            return done
        return AskAgain(
            reason="it names a group that no source belongs to",
            say=f"The question names {', '.join(missing)}, which is none of the groups. Choose `{ANOTHER}` unless the "
            "answer is the same for all groups.",
            otherwise=done.put(names_absent_group=missing),
        )

    asked = ask(
        name,
        "sourceqa-group",
        values=lambda item, context: {
            "reader": pack.reader,
            "facet": pack.group_facet,
            "groups": "\n".join(list(known(context))[:-2]),
            "question": item[value],
        },
        read=read,
        schema=schema,
        when=lambda item: not item.get("group_given"),
    )

    def run(items: Sequence[RecipeItem], context: RecipeContext) -> Sequence[Outcome]:
        real = list(known(context).values())[:-2]
        if not real:
            return [item.labelled(group=GENERAL) for item in items]
        return asked.run([_given(item, real, pack) for item in items], context)

    return RecipeStep(name=name, run=run, prompts=asked.prompts, calls=asked.calls)


def _without_source(item: RecipeItem, group: str) -> RecipeItem:
    return item.put(without_source=True).labelled(group=group)


def _given(item: RecipeItem, groups: Sequence[str], pack: Pack) -> RecipeItem:
    """An item whose harvest row names one of the groups is labelled by that."""
    named = str(item.get("group", ""))
    if group := same_group(named, (*groups, GENERAL)):
        return item.put(group_given=True).labelled(group=group)
    absent = same_group(named, absent_groups(groups, pack))
    return _without_source(item.put(group_given=True), absent) if absent else item


def topic_step(name: str, value: str, pack: Pack, maximum: int) -> RecipeStep:
    """Label each question with one or more of the pack's topics."""
    topics = [*pack.topics, OTHER]

    def read(item: RecipeItem, said: dict[str, Any], _context: RecipeContext) -> Outcome:
        chosen = [topic for topic in topics if topic in said["topics"]]
        return item.labelled(topics=[topic for topic in chosen if topic != OTHER] or [OTHER])

    return ask(
        name,
        "sourceqa-topics",
        values=lambda item, _context: {"reader": pack.reader, "topics": topics, "question": item[value]},
        read=read,
        schema=lambda _item, _context: _with("sourceqa-topics", "topics", _several(topics, 1, maximum)),
    )


def subtopic_step(name: str, value: str, pack: Pack, maximum: int) -> RecipeStep:
    """Label each question with sub-topics of its topics; those without any pass by."""

    def mine(item: RecipeItem) -> list[str]:
        return subtopics_of(pack, facet_values(item.facets, "topics"))

    def read(item: RecipeItem, said: dict[str, Any], _context: RecipeContext) -> Outcome:
        chosen = [each for each in mine(item) if each in said["topics"]]
        return item.labelled(subtopics=chosen) if chosen else item

    return ask(
        name,
        "sourceqa-topics",
        values=lambda item, _context: {"reader": pack.reader, "topics": mine(item), "question": item[value]},
        read=read,
        schema=lambda item, _context: _with("sourceqa-topics", "topics", _several(mine(item), 0, maximum)),
        when=lambda item: bool(mine(item)),
    )


def _several(names: Sequence[str], minimum: int, maximum: int) -> Schema:
    return {"type": "array", "items": {"type": "string", "enum": list(names)}, "minItems": minimum, "maxItems": maximum}


def _with(prompt: str, field: str, rule: Schema) -> Schema:
    """The output contract of a prompt with one field narrowed to what can be chosen here."""
    schema = dict(load_prompt(prompt).schema or {})
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return {**schema, "properties": {**properties, field: rule}}


def routing(questions: Sequence[Question], corpus: Corpus, pack: Pack) -> dict[str, object]:
    """Which sources are asked what: how many sources a question goes to, by group and in all."""
    kinds = _kinds_of_source(corpus, pack)
    groups: dict[str, dict[str, int]] = {}
    for question in questions:
        name = str(question.facets.get("group", GENERAL))
        if name not in groups:
            sources = sum(count for kind, count in kinds if source_is_asked(question, kind, pack.group_facet))
            groups[name] = {"questions": 0, "sources": sources, "asked": 0}
        groups[name]["questions"] += 1
        groups[name]["asked"] += groups[name]["sources"]
    return {
        "sources": sum(count for _, count in kinds),
        "questions": len(questions),
        "asked": sum(line["asked"] for line in groups.values()),
        "groups": dict(sorted(groups.items())),
    }


def _kinds_of_source(corpus: Corpus, pack: Pack) -> list[tuple[Document, int]]:
    """One bare document for each set of groups that sources belong to, and how many sources do."""
    counts = Counter(tuple(sorted(set(facet_values(each.facets, pack.group_facet)))) for each in corpus.documents())
    return [
        (Document(id="", title="", text="", facets={pack.group_facet: list(groups)} if groups else {}), count)
        for groups, count in counts.items()
    ]
