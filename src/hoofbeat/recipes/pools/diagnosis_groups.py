"""Cases that share a diagnosis: grouping them, and choosing those that ask."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hoofbeat.corpus.terms import content_forms, tokens
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import excludes, same
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, whole

_VAGUE = ("one contains", "one is a kind")
_SYMPTOM = "R"  # the chapter of ICD-10-CM that holds symptoms and findings
MAX_TOGETHER = 400
"""How many names may share a word or initials and still be compared with each other."""


class NameGroups(NamedTuple):
    """For every name the number of its group and the groups it is near, how many names differ, and which words too
    many of them share.

    Names that have only such a word in common were not compared: the count of names that hold it is given.
    """

    numbers: list[int]
    near: list[frozenset[int]]
    names: int
    skipped: dict[str, int]


def groups_of(names: Sequence[str], vocabularies: Sequence[Vocabulary] = ()) -> list[int]:
    """For every name the number of its group: names of one condition share it."""
    return group_names(names, vocabularies).numbers


def group_names(
    names: Sequence[str], vocabularies: Sequence[Vocabulary] = (), *, max_together: int = MAX_TOGETHER
) -> NameGroups:
    """Names of one condition put together, and which groups are near each other.

    Two names are of one condition when their words, their code or their abbreviation are the same. A condition and a
    kind of it are near: acute appendicitis and appendicitis. So are names that hold the same condition of a vocabulary,
    such as necrotizing fasciitis of the neck and of the leg. Equal names are one group at once, however many there are;
    `max_together` limits what is compared because of a shared word or initials.
    """
    first_of: dict[tuple[str, ...], int] = {}
    parent = [first_of.setdefault(tuple(tokens(name).forms), place) for place, name in enumerate(names)]
    firsts = list(parent)
    near: defaultdict[int, set[int]] = defaultdict(set)
    held = {place: _conditions(names[place], vocabularies) for place in first_of.values()}

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    def joined(one: int, other: int) -> bool:
        if root(one) == root(other):
            return True
        why = same(names[one], names[other], vocabularies)
        if why and not why.startswith(_VAGUE):
            first, second = sorted((root(one), root(other)))
            parent[second] = first
            return True
        if why or (held[one] & held[other] and not excludes(names[one], names[other])):
            near[one].add(other)
            near[other].add(one)
        return False

    shelves: defaultdict[tuple[bool, str], list[int]] = defaultdict(list)
    for place in first_of.values():
        for label in dict.fromkeys((*_keys(names[place], vocabularies), *((True, each) for each in held[place]))):
            shelves[label].append(place)
    skipped: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    for (coded, key), together in shelves.items():
        if len(together) <= max_together:
            for pair in _new_pairs(together, seen):
                joined(*pair)
        elif coded:
            _join_one_by_one(together, joined)
        else:
            skipped[key] = len(together)
    numbers = [root(place) for place in range(len(names))]
    beside: defaultdict[int, set[int]] = defaultdict(set)
    for place, others in near.items():
        beside[root(place)] |= {root(other) for other in others}
    everyone = [frozenset(beside[number] - {number}) for number in numbers]
    return NameGroups(numbers, everyone, len(set(firsts)), skipped)


def _conditions(name: str, vocabularies: Sequence[Vocabulary]) -> frozenset[str]:
    """The conditions of vocabularies that are part of a name, without those that say little by themselves.

    A single word says little under a code for the unspecified (sepsis, A41.9) or for a whole category (cystitis, N30).
    """
    found = set()
    for vocabulary in vocabularies:
        for match in vocabulary.find_phrases(name):
            lone = len(content_forms(match.text)) < 2
            little = match.code.endswith(".9") or (":" not in match.code and "." not in match.code)
            if not (lone and little) and not match.code.startswith(_SYMPTOM):
                found.add(f"{vocabulary.name} holds {match.code}")
    return frozenset(found)


def _new_pairs(together: Sequence[int], seen: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for number, one in enumerate(together):
        for other in together[number + 1 :]:
            if (one, other) not in seen:
                seen.add((one, other))
                yield one, other


def _join_one_by_one(together: Sequence[int], joined: Callable[[int, int], bool]) -> None:
    """Join very many names of one code: each is compared with the first of every group among them."""
    heads: list[int] = []
    for place in together:
        if not any(joined(head, place) for head in heads):
            heads.append(place)


def _keys(name: str, vocabularies: Sequence[Vocabulary]) -> Iterator[tuple[bool, str]]:
    """What other wordings of a name may share with it: a code (true), else its words or initials."""
    forms = [form for form in tokens(name).forms if len(form) > 1]
    yield False, " ".join(sorted(forms))
    yield from ((False, f"word {form[:5]}") for form in forms if len(form) > 3)
    words = re.findall(r"[^\W_]+", name)
    yield False, "initials " + "".join(word[0] for word in words).lower()
    yield from ((False, f"initials {word.lower()}") for word in words if word.isupper() and len(word) > 1)
    for vocabulary in vocabularies:
        yield from ((True, f"{vocabulary.name} {match.code}") for match in vocabulary.lookup(name))


def group_cases(
    name: str,
    shelf: PieceCollection,
    *,
    minimum: int,
    vocabularies: Sequence[str],
    max_together: int = MAX_TOGETHER,
    kinds: bool = False,
) -> RecipeStep:
    """Put cases of one diagnosis together (`group`, `fellows`); one with too few is rejected.

    The diagnoses are noted on the shelf: who compares cases later is told them. A case goes by its diagnosis and by the
    other names of it in the report (`synonyms`). With `kinds`, cases of a near diagnosis are fellows as well, behind
    those of the same one; a model decides about them later. Metrics say how many diagnoses there are, and by which
    words too many share they were not compared.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        known = [context.vocabulary(each) for each in vocabularies]
        shelf.note_diagnoses({item.documents[0]: str(item["diagnosis"]) for item in items}, context)
        owners = [(place, str(each)) for place, item in enumerate(items) for each in _names_of(item)]
        found = group_names([each for _, each in owners], known, max_together=max_together)
        groups = _case_groups(len(items), [place for place, _ in owners], found.numbers)
        by_number = dict(zip(found.numbers, (groups[place] for place, _ in owners), strict=True))
        near: defaultdict[int, set[int]] = defaultdict(set)
        for (place, _), beside in zip(owners, found.near, strict=True):
            near[groups[place]] |= {by_number[number] for number in beside} - {groups[place]}
        context.metrics[name] = {
            "names": found.names,
            "diagnoses": len(set(groups)),
            "not compared, too common": dict(sorted(found.skipped.items())),
        }
        members: defaultdict[int, list[RecipeItem]] = defaultdict(list)
        for number, item in zip(groups, items, strict=True):
            members[number].append(item)
        return [
            _grouped(
                item,
                members[number],
                [each for other in sorted(near[number]) for each in members[other]] if kinds else [],
                minimum,
                known,
            )
            for number, item in zip(groups, items, strict=True)
        ]

    return whole(name, judge)


def _names_of(item: RecipeItem) -> list[str]:
    return [str(item["diagnosis"]), *(str(each) for each in item.get("synonyms", ()))]


def _case_groups(count: int, owners: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """For every case the number of its group: cases share one where any of their names do."""
    parent = list(range(count))

    def root(place: int) -> int:
        while parent[place] != place:
            place = parent[place]
        return place

    first: dict[int, int] = {}
    for owner, number in zip(owners, numbers, strict=True):
        one, other = sorted((root(first.setdefault(number, owner)), root(owner)))
        parent[other] = one
    return [root(place) for place in range(count)]


def _grouped(
    item: RecipeItem,
    group: Sequence[RecipeItem],
    near: Sequence[RecipeItem],
    minimum: int,
    vocabularies: Sequence[Vocabulary],
) -> Outcome:
    """The item with its fellows; a fellow's diagnosis is another name of it only where both mean the same."""
    if len(group) + len(near) < minimum:
        return ItemRejection(
            reason="too few cases of its diagnosis",
            details=f"{len(group) + len(near)} with {item['diagnosis']}, at least {minimum}",
        )
    fellows = [each.documents[0] for each in group if each.id != item.id]
    words = set(content_forms(str(item["diagnosis"])))
    likely = sorted(near, key=lambda each: -len(words & set(content_forms(str(each["diagnosis"])))))
    own = str(item["diagnosis"])
    others = dict.fromkeys(str(each["diagnosis"]) for each in group if each["diagnosis"] != own)
    named = [each for each in others if (why := same(own, each, vocabularies)) and not why.startswith(_VAGUE)]
    synonyms = list(dict.fromkeys([*item.get("synonyms", ()), *named]))
    beside = [each.documents[0] for each in likely]
    return item.put(group=group[0].id, fellows=[*fellows, *beside], near=beside, synonyms=synonyms)


def choose_queries(name: str, shelf: PieceCollection, *, maximum: int) -> RecipeStep:
    """Of each group the cases that ask, drawn by the seed; the others are there to be found.

    A case that asks is taken off the shelf: nobody finds it, not even another of its group. At least one fellow of
    every case that asks is left to be found.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        order = sorted(range(len(items)), key=lambda place: str(items[place]["group"]))
        context.rng("query").shuffle(order)
        asking: set[str] = set()
        left: dict[str, set[str]] = {}  # what each case that asks can still find
        drawn: Counter[str] = Counter()
        for place in order:
            item, group = items[place], str(items[place]["group"])
            own, mine = item.documents[0], set(item["fellows"]) - asking
            finders = [each for each in item["fellows"] if own in left.get(each, ())]
            if drawn[group] < maximum and mine and all(len(left[each]) > 1 for each in finders):
                asking.add(own)
                left[own] = mine
                drawn[group] += 1
                for each in finders:
                    left[each].discard(own)
        shelf.withdraw(asking, context)
        return [
            item.put(known=[each for each in item["fellows"] if each not in asking])
            if item.documents[0] in asking
            else ItemRejection(reason="it is a document to find, not a question")
            for item in items
        ]

    return whole(name, judge)
