"""A message as words, with what can be said of each: what rules about names and places look at.

A capital letter says little in what patients write, so a word counts as a possible name only where it is capitalised
and neither an ordinary word nor part of what a disease, a sign or a test is called (Parkinson, St John's wort).
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from hoofbeat.recipes.messages.identifiers import words_of

__all__ = ["PARTICLES", "Word", "Words", "given_names", "listed", "phrase_pattern", "risky_families"]

PARTICLES = frozenset(
    {"van", "von", "de", "der", "den", "da", "di", "del", "della", "la", "le", "el", "bin", "al", "dos", "ter", "st"}
)

_TOKEN = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*['’]?")
_SHOUTING = 0.6
_ALWAYS_EPONYM = frozenset({"syndrome", "palsy", "sarcoma", "lymphoma", "ataxia", "chorea"})


class Word(Struct, frozen=True):
    """A word of a text: where it stands, as written, in lower case, and whether its capital letter says anything."""

    start: int
    end: int
    text: str
    low: str
    capital: bool


@cache
def listed(file: str, name: str) -> frozenset[str]:
    """A list of a data file, to look words up in."""
    return frozenset(words_of(file, name))


@cache
def given_names() -> frozenset[str]:
    """Given names that are nothing else."""
    return listed("names", "given") - listed("names", "doubtful") - listed("names", "ordinary")


@cache
def risky_families() -> frozenset[str]:
    """Family names that are ordinary words, too."""
    return listed("names", "doubtful_family") | listed("names", "ordinary")


@cache
def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """A phrase in any case and spacing."""
    return re.compile(r"(?<!\w)" + re.escape(phrase).replace("'", "['’]").replace(r"\ ", r"\s+"), re.IGNORECASE)


class Words:
    """One text as words."""

    def __init__(self, text: str) -> None:
        self.text = text
        letters = [c for c in text if c.isalpha()]
        self.shouting = len(letters) > 20 and sum(map(str.isupper, letters)) > _SHOUTING * len(letters)
        self.words = [self._word(match) for match in _TOKEN.finditer(text)]
        self._innocent = [
            match.span() for phrase in words_of("names", "phrases") for match in phrase_pattern(phrase).finditer(text)
        ]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, place: int) -> Word:
        return self.words[place]

    def _word(self, match: re.Match[str]) -> Word:
        text = match.group()
        low = text.lower().replace("’", "'")
        short = text.isupper() and 1 < len(text) < 7 and low not in given_names()  # more likely an abbreviation
        return Word(match.start(), match.end(), text, low, text[0].isupper() and not self.shouting and not short)

    def bare(self, place: int) -> str:
        """A word without the ending of a possessive."""
        low = self.words[place].low
        return low[:-2] if low.endswith("'s") else low.rstrip("'.")

    def lows(self, start: int, end: int) -> list[str]:
        """Words in lower case."""
        return [word.low for word in self.words[max(0, start) : end]]

    def followed(self, place: int, pattern: str) -> bool:
        """Whether the text right behind a word fits a pattern."""
        return re.compile(pattern).match(self.text, self.words[place].end) is not None

    def opens(self, place: int) -> bool:
        """Whether a sentence or line begins with a word."""
        start = self.words[place].start
        return re.search(r"[.!?\n]\s*\Z", self.text[max(0, start - 9) : start]) is not None or start < 2

    def beside(self, place: int, between: str) -> bool:
        """Whether there is a next word, and nothing but `between` before it."""
        if place < 0 or place + 1 >= len(self.words):
            return False
        return re.fullmatch(between, self.text[self.words[place].end : self.words[place + 1].start]) is not None

    def innocent(self, start: int) -> bool:
        """Whether this place lies in a phrase that holds a name and means nobody."""
        return any(a <= start < b for a, b in self._innocent)

    def known(self, place: int) -> bool:
        """Whether a word is a common given name and nothing else."""
        bare = self.bare(place)
        parts = bare.split("-")
        return bare in given_names() or (len(parts) == 2 and all(part in listed("names", "given") for part in parts))

    def ordinary(self, place: int) -> bool:
        """Whether a word is no name, capitalised or not."""
        return bool({self.bare(place), self.words[place].low} & listed("names", "ordinary"))

    def family(self, place: int) -> bool:
        """Whether a word is a common family name and nothing else."""
        return self.bare(place) in listed("names", "family") - risky_families()

    def eponym(self, place: int) -> bool:
        """Whether a word stands for a disease, sign or measure, by itself or with the words after it."""
        word = self.words[place]
        if self.innocent(word.start) or {self.bare(place), word.low} & listed("names", "eponyms"):
            return True
        for step in range(1, 5):
            if not self.beside(place + step - 1, r"[\s,/()-]*"):
                return False
            following = self.words[place + step]
            if (low := following.low.rstrip(".")) in listed("names", "heads"):
                return low in _ALWAYS_EPONYM or not (word.low.endswith("'s") and self.known(place))
            if not (following.capital or following.low in PARTICLES or step < 2) or self.ordinary(place + step):
                return False
        return False

    def person(self, place: int) -> bool:
        """Whether a capitalised word may be a name where something says that a name stands here."""
        return self.words[place].capital and not self.ordinary(place) and not self.eponym(place)

    def closed(self, place: int) -> bool:
        """Whether a sentence or clause ends after a word."""
        return self.followed(place, r"\s*(?:[,.;!?)\n-]|and\b|from\b|\Z)")
