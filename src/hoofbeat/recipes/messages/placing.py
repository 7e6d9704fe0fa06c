"""Places and institutions in a message.

Regions and cities that are nothing else go wherever they stand; others where somebody is said to live, to come from or
to be treated there. Countries go only then: they say little of a person, and a traveller's question needs them. Places
that are part of the name of a thing stay (Milan criteria, Brussels sprouts). The words are data (`places.toml`).
"""

from __future__ import annotations

import re
from functools import cache

from hoofbeat.recipes.messages.identifiers import Found, words_of
from hoofbeat.recipes.messages.wordwise import PARTICLES, Words, listed

__all__ = ["find_institutions", "find_places"]

_DIRECTIONS = (
    r"(?:(?:rural|downtown|upstate|north|south|east|west|northern|southern|eastern|western|central|suburban|greater|"
    r"small\s+town|city\s+of|town\s+of|village\s+of|area\s+of)\s+)*"
)
_WAY = r"(?:here\s+|up\s+|down\s+|out\s+|over\s+|back\s+|just\s+|all\s+the\s+way\s+)?"
_LIVES = (  # after these words any capitalised word is a place
    r"\b(?:live|lives|lived|living|reside|resides|residing|based|born|raised|grew\s+up|moved|moving|relocat\w+|commute|"
    rf"flew|drove|drive|driving)\s+{_WAY}(?:in|near|outside|outside\s+of|around|from|to)\s+(?:the\s+)?{_DIRECTIONS}"
    rf"|\b(?:hello|hi|greetings|hey|writing|regards|love|cheers|posting|visit\w*|back|home)(?:\s+\w+)?\s+from\s+(?:the\s+)?{_DIRECTIONS}"
    rf"|\b(?:i['’]?m|i\s+am|we['’]?re|we\s+are)\s+(?:all\s+|originally\s+)?(?:in|from|near)\s+(?:the\s+)?{_DIRECTIONS}"
    rf"|\b(?:i|we|he|she|they)\s+(?:was|were|went)\s+(?:in|to)\s+(?:the\s+)?{_DIRECTIONS}"
    r"|\b(?:family|parents|husband|wife|mother|father|he|she|they|people)\s+(?:is|are|was|were|come|comes|came)\s+"
    r"(?:originally\s+)?from\s+(?:the\s+)?"
    r"|\bi['’]?m\s+an?\s+(?:[\w-]+\s+){1,4}from\s+|\bi\s+am\s+an?\s+(?:[\w-]+\s+){1,4}from\s+"
    r"|\bhere\s+in\s+|\b(?:town|city|village|suburb|outskirts)\s+(?:of|called|named)\s+|\b(?:city|location|town)\s*:\s*"
)
_VISITS = (  # after these, a known city, region or country is one
    r"\b(?:resident|located|am|are|is|was|hospitals?|doctors?|home|house|family|clinic|travel\w*|go|going|went|"
    r"works?|working|back|transferred|treated|transplanted|surgery|transplant|listed)\s+"
    rf"{_WAY}(?:in|near|at|outside|around|from|to|by|of)\s+(?:the\s+)?{_DIRECTIONS}"
)
_PRESENTS = frozenset({"i'm", "im", "am", "is", "it's"})
_NEXT = re.compile(r"(?:['’]s)?[\s-]+([^\W\d_]+)(?:\s+([^\W\d_]+))?")


def find_places(words: Words) -> list[Found]:
    """Where somebody lives, comes from or was."""
    found = [
        Found(*match.span("it"), "place")
        for sure, pattern in _patterns()
        for match in pattern.finditer(words.text)
        if (sure or match["it"][0].isupper()) and not _thing(words, *match.span("it"))
    ]
    starts = {word.start: place for place, word in enumerate(words.words)}
    for match in _lives().finditer(words.text):
        first = starts.get(match.end())
        if first is None or not words.person(first):
            continue
        last = first
        while last - first < 3 and words.beside(last, r"\.?[ \t]+|,[ \t]*") and _goes_on(words, last):
            last += 1
        found.append(Found(words[first].start, words[last].end, "place"))
    return [*found, *(Found(words[n].start, words[n].end, "place") for n in range(len(words)) if _introduced(words, n))]


def _introduced(words: Words, place: int) -> bool:
    """Whether a word, capitalised or not, is where somebody comes from who gives a name: `I'm Tom from ...`."""
    if place < 3 or words[place - 1].low != "from" or words.ordinary(place):
        return False
    name = words.known(place - 2) or words.person(place - 2)
    verb = place - 4 if words.known(place - 3) or words[place - 3].capital else place - 3
    return name and verb >= 0 and (words[place - 3].low in _PRESENTS or words[verb].low in _PRESENTS)


def _goes_on(words: Words, place: int) -> bool:
    """Whether the next word belongs to the same place."""
    word = words[place + 1]
    joined = words.beside(place, r"\.?[ \t]+")
    if joined and (word.low in PARTICLES or word.low == "of") and words.beside(place + 1, r"[ \t]+"):
        return words[place + 2].capital
    known = word.low in _all_places() or word.text in listed("places", "abbreviations")
    return known or (word.capital and joined and not words.ordinary(place + 1))


def _thing(words: Words, start: int, end: int) -> bool:
    """Whether a place is part of the name of a thing: `Milan criteria`, `New York Heart Association`."""
    if words.innocent(start):
        return True
    following = _NEXT.match(words.text, end)
    if following is None:
        return words.text.startswith(("-", "'-", "’-"), end)
    heads = listed("places", "heads")
    return following[1].lower() in heads or (following[1][0].isupper() and (following[2] or "").lower() in heads)


def find_institutions(words: Words) -> list[Found]:
    """Hospitals, clinics and universities: by their short names, or as capitalised words around such a noun."""
    found = [
        Found(*match.span(), "hospital")
        for match in _known_institutions().finditer(words.text)
        if not _thing(words, *match.span())
    ]
    for place in range(len(words)):
        ends = _noun(words, place)
        if ends < 0:
            continue
        first, last = _around(words, place, ends)
        proper = [step for step in range(first, last + 1) if not place <= step <= ends and _proper(words, step)]
        if proper:
            found.append(Found(words[first].start, words[last].end, "hospital"))
    return found


def _proper(words: Words, place: int) -> bool:
    """Whether a word makes an institution one of its kind: no filler, no ordinary word."""
    return words[place].capital and words[place].low not in _fillers() and not words.ordinary(place)


def _part(words: Words, place: int) -> bool:
    """Whether a capitalised word may be part of an institution's name."""
    return words[place].capital and (words[place].low in _fillers() or not words.ordinary(place))


def _noun(words: Words, place: int) -> int:
    """Where the noun of an institution that begins here ends, or -1."""
    pairs = listed("places", "institution_pairs")
    if words.beside(place, r"[ \t]+") and f"{words[place].low} {words[place + 1].low}" in pairs:
        return place + 1
    short = words.bare(place) in {"memorial", "regional"} and words[place].capital
    short = short and words.followed(place, r"\s+[a-z]|\s*(?:[.,;!?)]|\Z)")
    return place if short or words.bare(place) in listed("places", "institutions") else -1


def _around(words: Words, first: int, last: int) -> tuple[int, int]:
    """The run of capitalised words around a noun: `St. Mary's` before it, `of Leeds` after it."""
    low, high = first, last
    while low and first - low < 6 and words.beside(low - 1, r"\.?[ \t]+(?:&[ \t]+)?"):
        before = words[low - 1]
        bridge = before.low in {"of", "for", "and", "the"} and low > 1 and words[low - 2].capital
        if not (_part(words, low - 1) or before.low == "st" or bridge):
            break
        low -= 1
    while high + 1 < len(words) and high - last < 5:
        if words[high + 1].low in {"of", "for", "at", "in"} and words.beside(high, r",?[ \t]+"):
            if not words.beside(high + 1, r"[ \t]+") or not words[high + 2].capital:
                break
            high += 2
        elif high > last and words.beside(high, r"[ \t]+") and _part(words, high + 1):
            high += 1
        else:
            break
    return low, high


@cache
def _fillers() -> frozenset[str]:
    pairs = {part for pair in words_of("places", "institution_pairs") for part in pair.split()}
    return listed("places", "institution_fillers") | listed("places", "institutions") | pairs


@cache
def _all_places() -> frozenset[str]:
    return listed("places", "cities") | listed("places", "regions") | listed("places", "countries")


def _one_of(*lists: str, without: frozenset[str] = frozenset()) -> str:
    names = {name for each in lists for name in words_of("places", each)} - without
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return "(?:" + "|".join(re.escape(name).replace("'", "['’]").replace(r"\ ", r"\s+") for name in ordered) + ")"


@cache
def _lives() -> re.Pattern[str]:
    return re.compile(f"(?:{_LIVES})", re.IGNORECASE)


@cache
def _known_institutions() -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){_one_of('known_institutions')}(?:\s+(?:clinic|hospitals?))?(?!\w)", re.IGNORECASE)


@cache
def _patterns() -> tuple[tuple[bool, re.Pattern[str]], ...]:
    """Patterns of places, each with whether it is sure: else the place must be capitalised."""
    doubtful = listed("places", "doubtful")
    states = "(?:" + "|".join(words_of("places", "abbreviations")) + ")"
    capital, code = r"[A-Z][\w.'’-]+", r"\d{5}(?:-\d{4})?"
    ours = r"(?!(?:My|The|Our|This|In)\b)"
    unit = "(?:County|Township|Parish|Borough|Heights|Village|Shire)"
    smaller, larger = _one_of("cities", "regions"), _one_of("regions", "countries")
    known, cities = _one_of("cities", "regions", "countries"), _one_of("cities", without=doubtful)
    sure = _one_of("cities", "regions", without=doubtful)
    return (
        (False, re.compile(rf"(?<![\w-])(?P<it>{sure})(?!\w)", re.IGNORECASE)),
        (True, re.compile(rf"(?i:{_VISITS}|{_LIVES})(?P<it>(?i:{known})(?!\w)(?:,?\s+{states}\b)?)")),
        (True, re.compile(rf"(?<!\w)(?P<it>{capital}(?: {capital}){{0,2}}, ?{states}\b\.?(?: +{code})?)")),
        (True, re.compile(rf"(?<!\w)(?P<it>{states} +{code})(?!\w)")),
        (True, re.compile(rf"(?<!\w)(?P<it>(?:{ours}{capital} ){{1,2}}{unit})\b")),
        (True, re.compile(rf"(?<!\w)(?P<it>{smaller}, ?{larger})(?!\w)", re.IGNORECASE)),
        (False, re.compile(rf"\b(?:in|from|near)\s+(?P<it>{_one_of('doubtful')})(?!\w)", re.IGNORECASE)),
        (True, re.compile(rf"\b(?:in|from|near|around)\s+(?P<it>{cities})(?!\w)", re.IGNORECASE)),
    )
