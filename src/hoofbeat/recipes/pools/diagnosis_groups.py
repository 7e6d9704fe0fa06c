"""Cases that share a diagnosis: grouping them, choosing the one that asks, and cutting it down to its presentation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from hoofbeat.corpus.vocabularies import Vocabulary
from hoofbeat.corpus.vocabularies.word_forms import tokens
from hoofbeat.recipes.cases.stems import cut_before, sentences, spans_of, with_stem
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import same
from hoofbeat.recipes.pools.pool_sources import PieceCollection
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, check, whole
from hoofbeat.recipes.wordlists import word_data

_VAGUE = ("one contains", "one is a kind")
MAX_TOGETHER = 400
"""How many names may share a word or initials and still be compared with each other."""


class NameGroups(NamedTuple):
    """For every name the number of its group, how many names differ, and which words too many of them share.

    Names that have only such a word in common were not compared: under each stands how many names hold it.
    """

    numbers: list[int]
    names: int
    skipped: dict[str, int]


def groups_of(names: Sequence[str], vocabularies: Sequence[Vocabulary] = ()) -> list[int]:
    """For every name the number of its group: names of one condition share it."""
    return group_names(names, vocabularies).numbers


def group_names(
    names: Sequence[str],
    vocabularies: Sequence[Vocabulary] = (),
    *,
    max_together: int = MAX_TOGETHER,
    kinds: bool = False,
) -> NameGroups:
    """Names of one condition put together.

    Two names are of one condition when their words, their code or their abbreviation are the same. A wider condition
    and a kind of it are two: whoever has a carcinoma need not have a carcinoma of the liver. With `kinds` they are
    one where the kind's name ends as the wider one's: acute appendicitis goes with appendicitis. Equal names are one
    at once, however many there are; `max_together` limits what is compared because of a shared word or initials.
    """
    first_of: dict[tuple[str, ...], int] = {}
    parent = [first_of.setdefault(tuple(tokens(name).forms), place) for place, name in enumerate(names)]

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    def joined(one: int, other: int) -> bool:
        if root(one) == root(other):
            return True
        why = same(names[one], names[other], vocabularies)
        if not why or (why.startswith(_VAGUE) and not (kinds and _ends_alike(names[one], names[other]))):
            return False
        first, second = sorted((root(one), root(other)))
        parent[second] = first
        return True

    shelves: defaultdict[tuple[bool, str], list[int]] = defaultdict(list)
    for place in first_of.values():
        for label in dict.fromkeys(_keys(names[place], vocabularies)):
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
    return NameGroups([root(place) for place in range(len(names))], len(first_of), skipped)


def _ends_alike(one: str, other: str) -> bool:
    """Whether the shorter of two names is the end of the longer one, but for inflection."""
    short, long = sorted((list(filter(None, tokens(name).forms)) for name in (one, other)), key=len)
    return bool(short) and long[-len(short) :] == short


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
    name: str, *, minimum: int, vocabularies: Sequence[str], max_together: int = MAX_TOGETHER, kinds: bool = False
) -> RecipeStep:
    """Put cases of one diagnosis together (`group`, `fellows`); one that has too few fellows is turned away.

    With `kinds`, a condition and its kinds are together, too. Metrics say how many diagnoses there are, and by which
    words too many share they were not compared.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        known = [context.vocabulary(each) for each in vocabularies]
        found = group_names([str(item["diagnosis"]) for item in items], known, max_together=max_together, kinds=kinds)
        numbers = found.numbers
        context.metrics[name] = {
            "names": found.names,
            "diagnoses": len(set(numbers)),
            "not compared, too common": dict(sorted(found.skipped.items())),
        }
        members: defaultdict[int, list[RecipeItem]] = defaultdict(list)
        for number, item in zip(numbers, items, strict=True):
            members[number].append(item)
        return [_grouped(item, members[number], minimum) for number, item in zip(numbers, items, strict=True)]

    return whole(name, judge)


def _grouped(item: RecipeItem, group: Sequence[RecipeItem], minimum: int) -> Outcome:
    if len(group) < minimum:
        return ItemRejection(
            reason="too few cases of its diagnosis",
            details=f"{len(group)} with {item['diagnosis']}, at least {minimum}",
        )
    fellows = [each.documents[0] for each in group if each.id != item.id]
    named = dict.fromkeys(str(each["diagnosis"]) for each in group if each["diagnosis"] != item["diagnosis"])
    synonyms = list(dict.fromkeys([*item.get("synonyms", ()), *named]))
    return item.put(group=group[0].id, fellows=fellows, synonyms=synonyms)


def choose_queries(name: str, shelf: PieceCollection, *, maximum: int) -> RecipeStep:
    """Of each group the cases that ask, drawn by the seed; the others are there to be found.

    A case that asks is taken off the shelf: nobody finds it, not even another of its group.
    """

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            groups[str(item["group"])].append(place)
        asking: set[int] = set()
        for group, places in groups.items():
            asking |= set(_drawn(places, context, group, maximum, items))
        documents = {items[place].documents[0] for place in asking}
        shelf.withdraw(documents, context)
        return [
            item.put(known=[each for each in item["fellows"] if each not in documents])
            if place in asking
            else ItemRejection(reason="a case to be found by another that asks")
            for place, item in enumerate(items)
        ]

    return whole(name, judge)


def _drawn(
    places: Sequence[int], context: RecipeContext, group: str, maximum: int, items: Sequence[RecipeItem]
) -> Iterable[int]:
    """As many as may ask, so that at least one of the group is left to be found."""
    everyone = {items[places[0]].documents[0], *items[places[0]]["fellows"]}
    count = min(len(places), maximum, len(everyone) - 1)
    return context.rng("query", group).sample(list(places), count)


# The presentation


def only_presentation(name: str, *, min_words: int) -> RecipeStep:
    """Cut a case's stem where a diagnosis is concluded or treatment begins; what is left is the `query`."""

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        spans = spans_of(item)
        places = [start for start, end in sentences(document, spans) if _concludes(document.text[start:end])]
        places += [
            span.start
            for span in item.evidence
            if span.document == document.id and any(start <= span.start < end for start, end in spans)
        ]
        kept = cut_before(document, spans, min(places)) if places else spans
        done = with_stem(item, document, kept)
        words = len(str(done["stem"]).split())
        if words < min_words:
            return ItemRejection(reason="too little of the case is told before its diagnosis", details=f"{words} words")
        return done.put(query=_clean(str(done["stem"])), answer=item["diagnosis"])

    return check(name, judge)


@cache
def _rules() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    data = word_data("cases")
    joined = ["|".join(f"(?:{each})" for each in data[part]) for part in ("concludes", "before", "pointers")]
    concludes, before, pointers = (re.compile(each, re.IGNORECASE) for each in joined)
    return concludes, before, pointers


def _concludes(sentence: str) -> bool:
    """Whether a sentence says what the patient has or what was done about it now, and not in the past."""
    concludes, before, _ = _rules()
    return bool(concludes.search(sentence)) and not before.search(sentence)


def _clean(text: str) -> str:
    """A stem without its pointers to figures, tables and references, as one runs on."""
    return re.sub(r"[ \t]{2,}", " ", _rules()[2].sub("", text)).strip()
