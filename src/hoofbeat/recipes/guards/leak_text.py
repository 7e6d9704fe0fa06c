"""A stem as the leak guard reads it: words with their places, words that stand close together, and what is denied."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from hoofbeat.corpus.vocabularies.word_forms import BREAK, COMMA, term_form, tokens
from hoofbeat.recipes.guards.leak_words import is_disease, lists, worth

__all__ = ["Reading"]

_JOINT = re.compile(r"[-\u2010\u2011\u00ad\u200b\u200c\u2060]\n?")
_MOST_JOINED = 3
_MOST_BETWEEN = 7
_FEW_BETWEEN = 2
_LOOKED_BACK = 9
_LOOKED_AHEAD = 7
_LONG_NAME = 8
_NAME = 5
_PERSON = (" et al", " is ", " and colleagues", " and co")


class Reading:
    """The words of a text in normal form. Words joined by hyphens are also there as one word, under `joined`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.forms, self.starts, self.ends = tokens(text)

    @cached_property
    def joined(self) -> list[tuple[str, int, int]]:
        """Words that a hyphen or an invisible sign cuts in two: the whole, its first and its last part."""
        found = []
        for first in range(len(self.forms)):
            whole = first
            while (
                whole + 1 < len(self.forms)
                and whole - first < _MOST_JOINED
                and _JOINT.fullmatch(self.text[self.ends[whole] : self.starts[whole + 1]])
            ):
                whole += 1
                raw = "".join(self.text[self.starts[at] : self.ends[at]] for at in range(first, whole + 1))
                found.append((term_form(raw), first, whole))
        return found

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The characters of these words."""
        return self.starts[first], self.ends[last]

    def raw(self, place: int) -> str:
        """A word as it is written."""
        return self.text[self.starts[place] : self.ends[place]]

    def where(self, fits: Callable[[str], bool]) -> list[tuple[int, int, str]]:
        """The places of words that fit, as first and last word, in the order of the text."""
        found = [(place, place, form) for place, form in enumerate(self.forms) if form and fits(form)]
        found += [(first, last, form) for form, first, last in self.joined if fits(form)]
        return sorted(found)

    def slips(self, fits: Callable[[str], bool]) -> list[tuple[int, int, str]]:
        """The places of words that fit, in normal form or as they are written."""
        return [each for each in self.where(bool) if fits(each[2]) or fits(self._written(each[0], each[1]))]

    def _written(self, first: int, last: int) -> str:
        return "".join(self.raw(place) for place in range(first, last + 1)).lower()

    def together(self, places: Sequence[Sequence[tuple[int, int, str]]]) -> Iterator[list[tuple[int, int, str]]]:
        """The places where all words of a set stand together, one choice for each of the rarest word's places."""
        if not all(places):
            return
        rarest = min(range(len(places)), key=lambda number: len(places[number]))
        for anchor in places[rarest]:
            chosen = [anchor]
            for number, options in enumerate(places):
                if number == rarest:
                    continue
                free = [o for o in options if all(o[1] < c[0] or o[0] > c[1] for c in chosen)]
                if not free:
                    break
                chosen.append(min(free, key=lambda o: (min(abs(o[0] - c[0]) for c in chosen), o[0])))
            else:
                if self._close(sorted(chosen)):
                    yield chosen

    def _close(self, chosen: Sequence[tuple[int, int, str]]) -> bool:
        """Whether nothing of weight stands between these words: little words, sites, at most one or two others."""
        taken = {at for first, last, _ in chosen for at in range(first, last + 1)}
        between = [self.forms[at] for at in range(min(taken), max(taken)) if at not in taken]
        if BREAK in between or len(between) > _MOST_BETWEEN:
            return False
        known = lists()
        words = [form for form in between if form != COMMA]
        heavy = [form for form in words if worth(form) not in {"little", "modifier", "site"}]
        if len(words) < len(between):
            return between.count(COMMA) == 1 and not heavy and len(words) <= 1
        joins = sum(form in known.conjunctions for form in words)
        if joins or any(form in known.auxiliaries for form in words):
            return len(heavy) == 0 and len(words) <= _FEW_BETWEEN and not (joins and set(words) & known.auxiliaries)
        return len(heavy) <= (1 if len(chosen) < 3 else 2)

    def is_name_of_disease(self, place: int, *, plain: bool = False) -> bool:
        """Whether a word that may be ordinary or a person's is a disease's name here; `plain` is for small letters."""
        raw, before = self.raw(place), self.forms[place - 1] if place else BREAK
        if before in lists().titles or self.text.startswith(_PERSON, self.ends[place]):
            return False
        if self._leads_to_disease(place, capital=raw[0].isupper()):
            return True
        if not raw[0].isupper():
            return plain and len(raw) >= _LONG_NAME
        owned = raw.endswith(("'s", "’s", "'", "’"))
        opening = re.search(r"(?:^|[^\w\s,])\s*$", self.text[max(0, self.starts[place] - 5) : self.starts[place]])
        return owned or (not opening and len(raw) >= _NAME and not self._follows_name(place))

    def _follows_name(self, place: int) -> bool:
        """Whether the word before is capitalised too: John Wilson is a person."""
        near = place > 0 and self.text[self.ends[place - 1] : self.starts[place]] == " "
        return near and self.raw(place - 1)[:1].isupper() and not self.raw(place - 1).isupper()

    def _leads_to_disease(self, place: int, *, capital: bool) -> bool:
        """Whether the next word is a kind of disease, or the one after it behind a name of several words."""
        follows = self.forms[place + 1 : place + 3]
        if follows and _of_disease(follows[0]):
            return True
        passed = len(follows) > 1 and worth(follows[0] or "x") in {"site", "qualifier", "special"}
        return capital and passed and bool(follows[0]) and _of_disease(follows[1])

    def denied(self, first: int, last: int) -> bool:
        """Whether what these words say is denied in their clause."""
        known = lists()
        before: list[str] = []
        for at in range(first - 1, max(-1, first - 1 - _LOOKED_BACK), -1):
            if self.forms[at] == BREAK or self.forms[at] in known.turned:
                break
            before.insert(0, self.forms[at])
        if any(_holds(before, phrase) for phrase in known.denied_before):
            return True
        after = self.forms[last + 1 : last + 1 + _LOOKED_AHEAD]
        while after and after[0] in known.passed:
            after = after[1:]
        return any(tuple(after[: len(phrase)]) == phrase for phrase in known.denied_after)


def _holds(words: Sequence[str], phrase: Sequence[str]) -> bool:
    return any(tuple(words[at : at + len(phrase)]) == tuple(phrase) for at in range(len(words) - len(phrase) + 1))


def _of_disease(form: str) -> bool:
    return form in lists().classes or (bool(form) and is_disease(form))
