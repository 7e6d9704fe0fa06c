"""Cases that share a diagnosis: grouping them, choosing the one that asks, and cutting it down to its presentation."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources

from hoofbeat.corpus.vocabularies import Vocabulary
from hoofbeat.corpus.vocabularies.words import tokens
from hoofbeat.recipes.collecting import Shelf
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.sameness import same
from hoofbeat.recipes.stems import cut_before, sentences, spans_of, with_stem
from hoofbeat.recipes.steps import RecipeStep, check, whole
from hoofbeat.recipes.workshop import Workshop

__all__ = ["choose_queries", "group_cases", "groups_of", "only_presentation"]

_VAGUE = ("one contains", "one is a kind")
_MOST_TOGETHER = 400


def groups_of(names: Sequence[str], vocabularies: Sequence[Vocabulary] = ()) -> list[int]:
    """For every name the number of its group: names of one condition share it.

    Two names are of one condition when their words, their code or their abbreviation are the same. A wider condition
    and a kind of it are two: whoever has a carcinoma need not have a carcinoma of the liver.
    """
    parent = list(range(len(names)))

    def root(place: int) -> int:
        while parent[place] != place:
            parent[place] = parent[parent[place]]
            place = parent[place]
        return place

    for one, other in _pairs(names, vocabularies):
        if root(one) != root(other):
            why = same(names[one], names[other], vocabularies)
            if why and not why.startswith(_VAGUE):
                first, second = sorted((root(one), root(other)))
                parent[second] = first
    return [root(place) for place in range(len(names))]


def _pairs(names: Sequence[str], vocabularies: Sequence[Vocabulary]) -> Iterator[tuple[int, int]]:
    """Pairs of names that may be one: they share a word, initials or a code; what very many share tells nothing."""
    shelves: defaultdict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(names):
        for key in dict.fromkeys(_keys(name, vocabularies)):
            shelves[key].append(place)
    seen: set[tuple[int, int]] = set()
    for together in shelves.values():
        if len(together) > _MOST_TOGETHER:
            continue
        for number, one in enumerate(together):
            for other in together[number + 1 :]:
                if (one, other) not in seen:
                    seen.add((one, other))
                    yield one, other


def _keys(name: str, vocabularies: Sequence[Vocabulary]) -> Iterator[str]:
    forms = [form for form in tokens(name).forms if len(form) > 1]
    yield " ".join(sorted(forms))
    yield from (f"word {form[:5]}" for form in forms if len(form) > 3)
    words = re.findall(r"[^\W_]+", name)
    yield "initials " + "".join(word[0] for word in words).lower()
    yield from (f"initials {word.lower()}" for word in words if word.isupper() and len(word) > 1)
    for vocabulary in vocabularies:
        yield from (f"{vocabulary.name} {match.code}" for match in vocabulary.lookup(name))


def group_cases(name: str, *, least: int, vocabularies: Sequence[str]) -> RecipeStep:
    """Put cases of one diagnosis together (`group`, `fellows`); one that has too few fellows is turned away."""

    def judge(items: Sequence[Item], shop: Workshop) -> list[Outcome]:
        known = [shop.vocabulary(each) for each in vocabularies]
        numbers = groups_of([str(item["diagnosis"]) for item in items], known)
        members: defaultdict[int, list[Item]] = defaultdict(list)
        for number, item in zip(numbers, items, strict=True):
            members[number].append(item)
        return [_grouped(item, members[number], least) for number, item in zip(numbers, items, strict=True)]

    return whole(name, judge)


def _grouped(item: Item, group: Sequence[Item], least: int) -> Outcome:
    if len(group) < least:
        return Rejection(
            reason="too few cases of its diagnosis", details=f"{len(group)} with {item['diagnosis']}, at least {least}"
        )
    fellows = [each.documents[0] for each in group if each.id != item.id]
    named = dict.fromkeys(str(each["diagnosis"]) for each in group if each["diagnosis"] != item["diagnosis"])
    synonyms = list(dict.fromkeys([*item.get("synonyms", ()), *named]))
    return item.put(group=group[0].id, fellows=fellows, synonyms=synonyms)


def choose_queries(name: str, shelf: Shelf, *, most: int) -> RecipeStep:
    """Of each group the cases that ask, drawn by the seed; the others are there to be found.

    A case that asks is taken off the shelf: nobody finds it, not even another of its group.
    """

    def judge(items: Sequence[Item], shop: Workshop) -> list[Outcome]:
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for place, item in enumerate(items):
            groups[str(item["group"])].append(place)
        asking: set[int] = set()
        for group, places in groups.items():
            asking |= set(_drawn(places, shop, group, most, items))
        documents = {items[place].documents[0] for place in asking}
        shelf.withdraw(documents, shop)
        return [
            item.put(known=[each for each in item["fellows"] if each not in documents])
            if place in asking
            else Rejection(reason="a case to be found by another that asks")
            for place, item in enumerate(items)
        ]

    return whole(name, judge)


def _drawn(places: Sequence[int], shop: Workshop, group: str, most: int, items: Sequence[Item]) -> Iterable[int]:
    """As many as may ask, so that at least one of the group is left to be found."""
    everyone = {items[places[0]].documents[0], *items[places[0]]["fellows"]}
    count = min(len(places), most, len(everyone) - 1)
    return shop.rng("query", group).sample(list(places), count)


# The presentation


def only_presentation(name: str, *, least_words: int) -> RecipeStep:
    """Cut a case's stem where a diagnosis is concluded or treatment begins; what is left is the `query`."""

    def judge(item: Item, shop: Workshop) -> Outcome:
        document = shop.document(item.documents[0])
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
        if words < least_words:
            return Rejection(reason="too little of the case is told before its diagnosis", details=f"{words} words")
        return done.put(query=_clean(str(done["stem"])), answer=item["diagnosis"])

    return check(name, judge)


@cache
def _rules() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    text = (resources.files("hoofbeat.recipes") / "data" / "cases.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
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
