"""People's names in a message.

A name needs a reason: it is a common given name, a title or a relation stands before it, the writer gives it as a
name, or it is signed under the message. Once a name is found, it is found everywhere in the same text. The words are
data (`names.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hoofbeat.recipes.messages.identifiers import Found
from hoofbeat.recipes.messages.wordwise import PARTICLES, Words, listed

__all__ = ["find_people"]

_MOST_NAMES = 3
_OWNERS = frozenset({"my", "our", "his", "her", "their"})
_PLURAL = frozenset({"kids", "children", "sons", "daughters", "twins", "parents", "brothers", "sisters", "friends"})
_LABELS = frozenset({"contact", "patient", "attn", "attention", "signed", "sender", "caller", "from"})
_INFORMAL_TITLES = frozenset({"nurse", "doctor", "sir", "madam", "miss", "doc", "captain"})


def find_people(words: Words, taken: Collection[int]) -> list[Found]:
    """All names of people that do not begin at a place which is taken already."""
    runs: list[tuple[int, int]] = []
    for place in range(len(words)):
        if words[place].start in taken:
            continue
        rules = (_titled, _introduced, _related, _common, _family)
        start = next((found for rule in rules if (found := rule(words, place)) >= 0), -1)
        if start >= 0 and words[start].start not in taken:
            runs.append((start, _end_of_name(words, start, taken)))
    runs += _signed(words)
    people = [Found(words[first].start, words[last].end, "name") for first, last in runs]
    return [*people, *_again(words, people)]


def _end_of_name(words: Words, place: int, taken: Collection[int]) -> int:
    """The last word of a name that begins here: initials, particles and capitalised words that are no others."""
    last = place
    if words[place].low.endswith(("'s", "s'")):
        return last
    for _ in range(_MOST_NAMES):
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


def _titled(words: Words, place: int) -> int:
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


def _introduced(words: Words, place: int) -> int:
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


def _presented(words: Words, place: int) -> bool:
    """Whether the word after `I'm` or `this is` is a name: many other words stand there, too."""
    if words.known(place):
        return not words.eponym(place)
    doubtful = words.bare(place) in listed("names", "doubtful") and words[place].capital
    followed = words.beside(place, r"[ \t]+") and words.person(place + 1)
    if doubtful and (words.closed(place) or followed):
        return True
    opening = place < 7 and words.person(place)
    return opening and (followed or words.followed(place, r"\s*(?:[.,!]|and\b|from\b)"))


def _related(words: Words, place: int) -> int:
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


def _one_of_several(words: Words, place: int) -> int:
    """A second name of a list whose first follows a plural relation."""
    before = next((step for step in range(place - 1, max(-1, place - 6), -1) if words[step].low in _PLURAL), -1)
    if before < 0:
        return -1
    joined = words.beside(place - 1, r"\s*,\s*") or words[place - 1].low == "and"
    between = all(words[step].capital or words[step].low == "and" for step in range(before + 1, place))
    doubtful = words.bare(place) in listed("names", "doubtful") and not words.closed(place)
    return place if joined and between and words.person(place) and not doubtful else -1


def _common(words: Words, place: int) -> int:
    """A common given name, wherever it stands with a capital letter; a doubtful one before a family name."""
    if not (words[place].capital or words.shouting) or words.eponym(place):
        return -1
    if words.known(place) or _speaking(words, place):
        return place
    if words.bare(place) not in listed("names", "doubtful") or not words.beside(place, r"[ \t]+(?:[A-Z]\.?[ \t]+)?"):
        return -1
    after = place + 1
    return place if words.family(after) and words[after].capital and not words.eponym(after) else -1


def _speaking(words: Words, place: int) -> bool:
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


def _family(words: Words, place: int) -> int:
    """A family name after an initial, or after a capitalised word within a sentence."""
    if place == 0 or not words[place].capital or not words.family(place) or words.eponym(place):
        return -1
    before = words[place - 1]
    single = len(before.text) == 1 and before.text.isupper() and before.text not in "IA"
    if single and words.beside(place - 1, r"\.?[ \t]+"):
        return place - 1
    unknown = words.person(place - 1) and words.beside(place - 1, r"[ \t]+") and not words.opens(place - 1)
    return place - 1 if unknown and before.low not in listed("places", "cities") else -1


def _signed(words: Words) -> list[tuple[int, int]]:
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


def _signature(words: Words, place: int) -> int:
    """How many words a signature has that begins here and ends the text; none where other words follow."""
    for count, step in enumerate(range(place, min(len(words), place + _MOST_NAMES + 1)), start=1):
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


def _again(words: Words, people: Sequence[Found]) -> list[Found]:
    """Every other place where a part of a name that was found stands, however it is written."""
    ambiguous = listed("names", "ordinary") | listed("names", "doubtful") | PARTICLES
    covered = {place for each in people for place in range(each.start, each.end)}
    inside = {words.bare(place) for place in range(len(words)) if words[place].start in covered}
    parts = {low for low in inside if len(low) > 2 and low not in ambiguous}
    return [
        Found(words[place].start, words[place].end, "name")
        for place in range(len(words))
        if words.bare(place) in parts and not words.eponym(place)
    ]
