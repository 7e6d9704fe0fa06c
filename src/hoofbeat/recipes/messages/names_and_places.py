"""People's names, places and institutions in a message.

A name needs a reason: it is a common given name, a title or a relation stands before it, the writer gives it as a
name, or it is signed under the message. Once a name is found, it is found everywhere in the same text. The words are
data (`names.toml`).

Regions and cities that are nothing else go wherever they stand; others where somebody is said to live, to come from
or to be treated there. Countries go only then: they say little of a person, and a traveller's question needs them.
Places that are part of the name of a thing stay (Milan criteria, Brussels sprouts). The words are data
(`places.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

from hoofbeat.recipes.messages.identifiers import PARTICLES, Identifier, MessageWords, listed, words_of

_MAX_NAMES = 3
_OWNERS = frozenset({"my", "our", "his", "her", "their"})
_PLURAL = frozenset({"kids", "children", "sons", "daughters", "twins", "parents", "brothers", "sisters", "friends"})
_LABELS = frozenset({"contact", "patient", "attn", "attention", "signed", "sender", "caller", "from"})
_INFORMAL_TITLES = frozenset({"nurse", "doctor", "sir", "madam", "miss", "doc", "captain"})


def find_people(words: MessageWords, taken: Collection[int]) -> list[Identifier]:
    """All names of people that do not begin at a place which is taken already."""
    runs: list[tuple[int, int]] = []
    for place in range(len(words)):
        if words[place].start in taken:
            continue
        rules = (_titled, _introduced_person, _related, _common, _family)
        start = next((found for rule in rules if (found := rule(words, place)) >= 0), -1)
        if start >= 0 and words[start].start not in taken:
            runs.append((start, _end_of_name(words, start, taken)))
    runs += _signed(words)
    people = [Identifier(words[first].start, words[last].end, "name") for first, last in runs]
    return [*people, *_again(words, people)]


def _end_of_name(words: MessageWords, place: int, taken: Collection[int]) -> int:
    """The last word of a name that begins here: initials, particles and capitalised words that are no others."""
    last = place
    if words[place].low.endswith(("'s", "s'")):
        return last
    for _ in range(_MAX_NAMES):
        if not words.beside(last, r"\.?[ \t]+"):
            break
        following = words[last + 1]
        initial = len(following.text) == 1 and following.text.isupper() and following.text != "I"
        low = words.family(last + 1) and not following.capital
        inside = following.low in PARTICLES and words.beside(last + 1, r"[ \t]+") and words[last + 2].capital
        ends = words.text[words[last].end] == "." and len(words[last].text) > 2
        if ends or following.start in taken or not (initial or inside or low or words.person(last + 1)):
            break
        last += 1
    return last


def _titled(words: MessageWords, place: int) -> int:
    """The word after `Dr` or `Mrs`."""
    if words.bare(place) not in listed("names", "titles") or not words.beside(place, r"\.?[ \t]*"):
        return -1
    after = place + 1
    word = words[after]
    if words.innocent(word.start) or words.ordinary(after):
        return -1
    if word.low in PARTICLES and words.beside(after, r"[ \t]+") and words.person(after + 1):
        return after
    if (len(word.text) == 1 and word.text.isupper()) or words.known(after) or words.family(after):
        return after
    formal = words.bare(place) not in _INFORMAL_TITLES
    return after if word.capital and (formal or not words.eponym(after)) else -1


def _introduced_person(words: MessageWords, place: int) -> int:
    """The word after `my name is`, `I'm`, `a friend named`."""
    after = place + 1
    if after >= len(words) or words.ordinary(after):
        return -1
    lows = words.lows(place - 3, after)
    people = listed("names", "relations")
    owned = any(low in _OWNERS or low in {"patient", "name"} or low.removesuffix("'s") in people for low in lows[:-1])
    said = lows[-2:] in (["name", "is"], ["name", "was"], ["names", "are"]) or lows[-1] in {"name's", "names", "name"}
    if said and owned and words.beside(place, r"[\s:]*[\"“'‘]?"):
        return after
    if lows[-1] == "name" and words.beside(place, r"\s*:\s*") and words[after].capital:
        return after
    is_name = words.person(after) or (words.known(after) and not words.eponym(after))
    if lows[-2:] in (["call", "me"], ["am", "called"], ["i'm", "called"]) and is_name:
        return after
    known_of = bool(people & set(lows[:-1])) and is_name
    if known_of and (lows[-1] in {"named", "names"} or (lows[-1] == "called" and {"a", "an", "one"} & set(lows[:-1]))):
        return after
    if lows[-1] in _LABELS and words.beside(place, r"\s*:\s*") and is_name and words[after].capital:
        return after
    weak = lows[-1] in {"i'm", "im"} or lows[-2:] in (["i", "am"], ["this", "is"], ["it's", "me"])
    return after if weak and _presented(words, after) else -1


def _presented(words: MessageWords, place: int) -> bool:
    """Whether the word after `I'm` or `this is` is a name: many other words stand there, too."""
    if words.known(place):
        return not words.eponym(place)
    doubtful = words.bare(place) in listed("names", "doubtful") and words[place].capital
    followed = words.beside(place, r"[ \t]+") and words.person(place + 1)
    if doubtful and (words.closed(place) or followed):
        return True
    opening = place < 7 and words.person(place)
    return opening and (followed or words.followed(place, r"\s*(?:[.,!]|and\b|from\b)"))


def _related(words: MessageWords, place: int) -> int:
    """The name after `my husband`, also in a list of several: `my kids Ann and Lou`."""
    in_law = words.lows(place - 1, place + 1) == ["in", "law"]
    relation = place - 2 if in_law and place > 1 else place
    if words[relation].low.removesuffix("-in-law") not in listed("names", "relations"):
        return _one_of_several(words, place)
    owned = _OWNERS & set(words.lows(relation - 5, relation)) or words.opens(relation)
    if not owned or not words.beside(place, r"(?:\s*,\s*|\s*\(\s*|[ \t]+)[\"“']?"):
        return -1
    after = place + 1
    if words.known(after) and not words.eponym(after):
        return after
    plain = words.beside(place, r"[ \t]+")
    dosed = words.followed(after, r"\s*\d")  # a drug, not a person
    ended = plain or words.closed(_end_of_name(words, after, ()))
    return after if words.person(after) and ended and not dosed else -1


def _one_of_several(words: MessageWords, place: int) -> int:
    """A second name of a list whose first follows a plural relation."""
    before = next((step for step in range(place - 1, max(-1, place - 6), -1) if words[step].low in _PLURAL), -1)
    if before < 0:
        return -1
    joined = words.beside(place - 1, r"\s*,\s*") or words[place - 1].low == "and"
    between = all(words[step].capital or words[step].low == "and" for step in range(before + 1, place))
    doubtful = words.bare(place) in listed("names", "doubtful") and not words.closed(place)
    return place if joined and between and words.person(place) and not doubtful else -1


def _common(words: MessageWords, place: int) -> int:
    """A common given name, wherever it stands with a capital letter; a doubtful one before a family name."""
    if not (words[place].capital or words.shouting) or words.eponym(place):
        return -1
    if words.known(place) or _speaking(words, place):
        return place
    if words.bare(place) not in listed("names", "doubtful") or not words.beside(place, r"[ \t]+(?:[A-Z]\.?[ \t]+)?"):
        return -1
    after = place + 1
    return place if words.family(after) and words[after].capital and not words.eponym(after) else -1


def _speaking(words: MessageWords, place: int) -> bool:
    """Whether what stands around a word makes it a name: `Tom here,`, `I, Tom Smith, have`, `Tom (my ex)`."""
    if not words.person(place):
        return False
    here = place < 7 and words.beside(place, r"[ \t]+") and words[place + 1].low == "here"
    if here and words.followed(place + 1, r"\s*[,.!;–-]"):
        return True
    whose = words.followed(place, r"\s*[(,]\s*(?:my|our|his|her)\s")
    if whose and listed("names", "relations") & set(words.lows(place + 2, place + 5)):
        return True
    named = place > 0 and words[place - 1].text == "I" and words.beside(place - 1, r"\s*,\s*")
    return named and words.followed(_end_of_name(words, place, ()), r"\s*,")


def _family(words: MessageWords, place: int) -> int:
    """A family name after an initial, or after a capitalised word within a sentence."""
    if place == 0 or not words[place].capital or not words.family(place) or words.eponym(place):
        return -1
    before = words[place - 1]
    single = len(before.text) == 1 and before.text.isupper() and before.text not in "IA"
    if single and words.beside(place - 1, r"\.?[ \t]+"):
        return place - 1
    unknown = words.person(place - 1) and words.beside(place - 1, r"[ \t]+") and not words.opens(place - 1)
    return place - 1 if unknown and before.low not in listed("places", "cities") else -1


def _signed(words: MessageWords) -> list[tuple[int, int]]:
    """The name under the message: after a farewell or a dash, or alone in the last line."""
    for place in range(max(1, len(words) - 12), len(words)):
        count = _signature(words, place)
        gap = words.text[words[place - 1].end : words[place].start]
        if not count or not re.search(r"[\s,.!;~–—-]", gap):
            continue
        before = words.lows(place - 8, place)
        while before and before[-1] in listed("names", "farewell") - listed("names", "signoffs"):
            before.pop()
        farewell = bool(before) and before[-1] in listed("names", "signoffs") and bool(gap.strip(" \t"))
        dashed = re.search(r"\s[-–—~*]+\s*\Z", gap) is not None
        alone = "\n" in gap and place > 2
        thanked = bool(listed("names", "signoffs") & set(words.lows(place - 12, place)))
        last = thanked and re.search(r"[.!?]\s+\Z", gap) is not None
        if (farewell or dashed or alone or last) and (words.known(place) or words[place].text[0].isupper()):
            return [(place, place + count - 1)]
    return []


def _signature(words: MessageWords, place: int) -> int:
    """How many words a signature has that begins here and ends the text; none where other words follow."""
    for count, step in enumerate(range(place, min(len(words), place + _MAX_NAMES + 1)), start=1):
        word = words[step]
        initials = word.text.isupper() and len(word.text) <= 3
        name = word.capital or initials or words.known(step) or word.low in PARTICLES
        if not name or words.ordinary(step) or words.eponym(step):
            return 0
        if words.followed(step, r"[\s.!,)]*(?:\Z|\n|[\d(+@\[])"):
            return count
        if not words.beside(step, r"\.?[ \t]+"):
            return 0
    return 0


def _again(words: MessageWords, people: Sequence[Identifier]) -> list[Identifier]:
    """Every other place where a part of a name that was found stands, however it is written."""
    ambiguous = listed("names", "ordinary") | listed("names", "doubtful") | PARTICLES
    covered = {place for each in people for place in range(each.start, each.end)}
    inside = {words.bare(place) for place in range(len(words)) if words[place].start in covered}
    parts = {low for low in inside if len(low) > 2 and low not in ambiguous}
    return [
        Identifier(words[place].start, words[place].end, "name")
        for place in range(len(words))
        if words.bare(place) in parts and not words.eponym(place)
    ]


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


def find_places(words: MessageWords) -> list[Identifier]:
    """Where somebody lives, comes from or was."""
    found = [
        Identifier(*match.span("it"), "place")
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
        found.append(Identifier(words[first].start, words[last].end, "place"))
    return [
        *found,
        *(Identifier(words[n].start, words[n].end, "place") for n in range(len(words)) if _introduced_place(words, n)),
    ]


def _introduced_place(words: MessageWords, place: int) -> bool:
    """Whether a word, capitalised or not, is where somebody comes from who gives a name: `I'm Tom from ...`."""
    if place < 3 or words[place - 1].low != "from" or words.ordinary(place):
        return False
    name = words.known(place - 2) or words.person(place - 2)
    verb = place - 4 if words.known(place - 3) or words[place - 3].capital else place - 3
    return name and verb >= 0 and (words[place - 3].low in _PRESENTS or words[verb].low in _PRESENTS)


def _goes_on(words: MessageWords, place: int) -> bool:
    """Whether the next word belongs to the same place."""
    word = words[place + 1]
    joined = words.beside(place, r"\.?[ \t]+")
    if joined and (word.low in PARTICLES or word.low == "of") and words.beside(place + 1, r"[ \t]+"):
        return words[place + 2].capital
    known = word.low in _all_places() or word.text in listed("places", "abbreviations")
    return known or (word.capital and joined and not words.ordinary(place + 1))


def _thing(words: MessageWords, start: int, end: int) -> bool:
    """Whether a place is part of the name of a thing: `Milan criteria`, `New York Heart Association`."""
    if words.innocent(start):
        return True
    following = _NEXT.match(words.text, end)
    if following is None:
        return words.text.startswith(("-", "'-", "’-"), end)
    heads = listed("places", "heads")
    return following[1].lower() in heads or (following[1][0].isupper() and (following[2] or "").lower() in heads)


def find_institutions(words: MessageWords) -> list[Identifier]:
    """Hospitals, clinics and universities: by their short names, or as capitalised words around such a noun."""
    found = [
        Identifier(*match.span(), "hospital")
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
            found.append(Identifier(words[first].start, words[last].end, "hospital"))
    return found


def _proper(words: MessageWords, place: int) -> bool:
    """Whether a word makes an institution one of its kind: no filler, no ordinary word."""
    return words[place].capital and words[place].low not in _fillers() and not words.ordinary(place)


def _part(words: MessageWords, place: int) -> bool:
    """Whether a capitalised word may be part of an institution's name."""
    return words[place].capital and (words[place].low in _fillers() or not words.ordinary(place))


def _noun(words: MessageWords, place: int) -> int:
    """Where the noun of an institution that begins here ends, or -1."""
    pairs = listed("places", "institution_pairs")
    if words.beside(place, r"[ \t]+") and f"{words[place].low} {words[place + 1].low}" in pairs:
        return place + 1
    short = words.bare(place) in {"memorial", "regional"} and words[place].capital
    short = short and words.followed(place, r"\s+[a-z]|\s*(?:[.,;!?)]|\Z)")
    return place if short or words.bare(place) in listed("places", "institutions") else -1


def _around(words: MessageWords, first: int, last: int) -> tuple[int, int]:
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
