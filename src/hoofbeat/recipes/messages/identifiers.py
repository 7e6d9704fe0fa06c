"""Identifiers known by their form: e-mail and web addresses, user names, telephone and record numbers, dates, ages.

Each rule is a pattern of one kind; where a number alone says nothing, the words before it must say that it belongs to
somebody. Numbers of medicine (doses, blood pressures, laboratory values, drug codes, trial numbers) stay. The words
are data (`identifiers.toml`).

A message is also read as words. A capital letter says little in what patients write, so a word counts as a possible
name only where it is capitalised and neither an ordinary word nor part of what a disease, a sign or a test is called
(Parkinson, St John's wort).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from hoofbeat.recipes.wordlists import word_data

_FORMAL = re.IGNORECASE


class Identifier(Struct, frozen=True, order=True):
    """Something that tells who somebody is: where it stands, and of which kind it is. Never its text."""

    start: int
    end: int
    kind: str


@cache
def words_of(file: str, *path: str) -> tuple[str, ...]:
    """A list of words or phrases from a data file, as it stands there; each once."""
    value: object = word_data(file)
    for part in path:
        assert isinstance(value, dict)
        value = value[part]
    listed = value.split() if isinstance(value, str) else value
    assert isinstance(listed, list)
    return tuple(dict.fromkeys(map(str, listed)))


@cache
def kinds() -> dict[str, str]:
    """The kinds of identifiers, each with plain words that can stand in its place."""
    table = word_data("identifiers")["kinds"]
    assert isinstance(table, dict)
    return {str(kind): str(words) for kind, words in table.items()}


def find_formal(text: str) -> list[Identifier]:
    """All identifiers that are known by their form; they may overlap."""
    return [found for kind, pattern in _rules() for found in _matches(kind, pattern, text)]


def _matches(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Identifier]:
    for match in pattern.finditer(text):
        start, end = match.span("it") if "it" in pattern.groupindex else match.span()
        if end > start:
            yield Identifier(start, end, kind)


def _any(*path: str) -> str:
    """One of the words of a list, the longest first, as a pattern."""
    words = sorted(words_of("identifiers", "words", *path), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in words) + ")"


@cache
def _rules() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rules = [*_web(), *_numbers(), *_dates(), *_ages()]
    return tuple((kind, re.compile(pattern, flags)) for kind, pattern, flags in rules)


def _web() -> list[tuple[str, str, int]]:
    ending, spoken = _any("domains"), _any("spoken_domains")
    at, dot = r"(?:\s*@\s*|\s*[\[({]\s*at\s*[\])}]\s*|\s+at\s+)", r"(?:\.|\s*[\[({]\s*dot\s*[\])}]\s*|\s+dot\s+)"
    network = _any("networks")
    return [
        ("email", r"(?<![\w.+%'-])[\w.+%'-]++@[\w-]+(?:\.[\w-]+)+", _FORMAL),
        ("email", rf"(?<![\w.+-])[\w.+-]++{at}[\w-]+{dot}(?:[\w-]+{dot})?{ending}\b", _FORMAL),
        ("url", r"\b(?:https?|ftp)://\S+|\bwww\d?\.[\w-]+\.\S+", _FORMAL),
        ("url", rf"(?<![@\w.-])(?:[\w-]+\.)+{ending}\b(?:/[^\s)\]]*)?", _FORMAL),
        ("url", rf"(?<![@\w.-])(?:[\w-]+\.)+{spoken}/[^\s)\]]+", _FORMAL),
        ("username", r"(?<![\w/])/?u/[\w-]+(?:\.\w+)*", _FORMAL),
        ("username", r"(?<![\w@.])@[A-Za-z_][\w.]{1,40}\w", _FORMAL),
        ("username", r"\b[\w.]{2,32}#\d{4}\b", _FORMAL),
        ("username", r"(?<!\w)[A-Za-z]+(?:_[A-Za-z0-9]+)+(?!\w)", 0),
        ("username", r"(?<![\w-])[A-Za-z]?[a-z]{5,}\d{2,}(?![\w.]|\s*(?:mg|mcg|ml|g|units?)\b)", 0),
        (
            "username",
            rf"\b{network}\b(?:\s+(?:name|handle|id|account|user))?\s*(?:is|are|:|=|-|–|at|as|me)\s*@?"
            r"(?P<it>(?=\w*[\d_.]|[a-z]+[A-Z])[\w.]{3,40}\w)",
            0,
        ),
        (
            "username",
            rf"(?i:\b{network}\b)(?:\s+(?i:name|handle|id|account))?\s*(?:(?i:is)|:|=)\s*(?P<it>@?\w[\w.]{{2,40}})",
            0,
        ),
        (  # a name of letters and digits under a farewell or a dash at the very end
            "username",
            r"(?:(?:thanks|thank you|thx|regards|cheers|love|best)[^\n]{0,30}?[,.!\n]\s{0,9}|\n[ \t]{0,9}|\s[-–—~]\s?)"
            r"(?P<it>(?=[A-Za-z_.]*\d|[A-Za-z]+_)[A-Za-z][\w.]{4,30}\w)\s{0,9}[.!]?\s{0,9}\Z",
            _FORMAL,
        ),
    ]


def _numbers() -> list[tuple[str, str, int]]:
    cue = r"\b(?:call|phone|tel|telephone|cell|mobile|text|whatsapp|fax|ring|reach|number|contact|dial)\b[^\d\n]{0,25}"
    plus = r"(?<![\w.-])\+\d{1,3}[\s.-]?(?:\(0\)\s?)?(?:\(\d{1,5}\)|\d{1,5})(?:[\s./-]?\d{2,5}){1,5}(?![\w-])"
    american = r"(?:1[\s.-]?)?\(?\d{3}\)?[\s.-]?\s?\d{3}[\s.-]\d{4}(?:\s?(?:x|ext\.?)\s?\d{1,6})?(?![\w/-])"
    cued = r"\(?\d{2,5}\)?[\s.-]?\d{3,4}[\s.-]?\d{2,4}(?:[\s.-]?\d{2,4})?"
    joined = r"(?:\s*(?:number|numbers|num|no\.?|nr\.?|id|card|code|policy|is|was|are|it's|its|[.:#=(–-]))*\s*"
    three = r"(?=[\w/-]*\d[\w/-]*\d[\w/-]*\d)"
    record = rf"(?P<it>(?:[A-Z]{{1,4}}[ -])?{three}[A-Z0-9][A-Z0-9/-]*(?:\s\d{{2,6}}){{0,4}})"
    return [
        ("phone", plus, 0),
        ("phone", rf"(?<![\w./-]){american}", _FORMAL),
        ("phone", r"(?<![\w./-])\(0?\d{2,5}\)\s?\d{3,4}[\s.-]?\d{3,5}(?![\w-])", 0),
        ("phone", r"(?<![\w./-])0\d{2,4}[\s-]\d{3,4}[\s-]?\d{3,5}(?![\w-])", 0),
        ("phone", rf"{cue}(?P<it>{cued})(?![\w-])", _FORMAL),
        ("phone", rf"{cue}(?P<it>\d{{3}}[\s.-]\d{{4}})(?![\w-])", _FORMAL),
        ("record", r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", 0),
        ("record", r"(?<![\w-])(?:\d{4}[ -]){3}\d{4}(?![\w-])", 0),
        ("record", rf"(?<!\w){_any('records')}(?!\w){joined}{record}", _FORMAL),
        ("record", rf"\b(?:ID|I\.D\.)\s*(?:number|no\.?|is|:|#)+\s*(?P<it>{three}[\w-]+)", _FORMAL),
        ("record", r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])", 0),
        *_addresses(),
    ]


def _addresses() -> list[tuple[str, str, int]]:
    code = r"(?P<it>[A-Z0-9]{2,5}(?:[ -]\d[A-Z0-9]{2,3})?)\b"
    named = r"(?:(?:[A-Z]|\d{1,3}(?:st|nd|rd|th)\b)[\w.'-]*\s+){1,3}"
    flat = r"(?:,?\s+(?i:apt|unit|suite|flat|#)\.?\s*\w+)?"
    town = r"(?:,\s+[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)?)?"
    street = rf"\d{{1,5}}[A-Za-z]?\s+(?:[NSEW]\.?\s+)?{named}(?i:{_any('streets')})\b\.?{flat}{town}"
    return [
        ("place", rf"\b(?:zip|zipcode|postcode|postal)(?:\s+code)?\s*(?:is|:)?\s*{code}", _FORMAL),
        ("place", r"\b[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}\b", 0),
        ("place", rf"(?<![\w.]){street}", 0),
        ("place", r"\b[A-Z][a-z]+ (?:Street|Avenue|Road|Lane|Boulevard)\b", 0),
        ("place", r"\b(?:p\.?\s?o\.?\s+box|apt\.?|apartment|flat|suite)\s+#?\d+\w?\b", _FORMAL),
    ]


def _dates() -> list[tuple[str, str, int]]:
    named = rf"(?:{_any('months')}\b|{_any('short_months')}\b\.?)"
    weekday = rf"(?:{_any('days')},?\s+)?"
    year = r"(?:19|20)\d\d"
    day, month = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
    ordinal = rf"{day}(?:st|nd|rd|th)?"
    part = r"(?:(?:early|late|mid|mid-|the\s+(?:end|middle|beginning)\s+of)\s+)?"
    when = r"(?:in|on|since|until|till|by|last|next|this|during|around|before|after|from|through|of|late|early|mid)"
    cue = r"(?i:\b(?:on|since|dated|until|dob|born|date))\s*:?\s*"
    birth = r"(?i:\b(?:d\.?o\.?b\.?|date\s+of\s+birth|born\s+(?:on|in)?))\s*:?\s*"
    no_dose = r"(?!\s*(?:mg|ml|mcg|%))"
    return [
        ("date", rf"\b{weekday}{named}\s+(?:the\s+)?{ordinal}{no_dose}(?:\s*,?\s*{year}|,?\s*'\d\d)?\b", _FORMAL),
        ("date", rf"\b{weekday}(?:the\s+)?(?<!\d,){ordinal}\s+(?:of\s+)?{named}(?:,?\s*{year})?(?!\w)", _FORMAL),
        ("date", rf"\b{part}{named},?\s+(?:of\s+)?{year}\b", _FORMAL),
        ("date", rf"(?<![\d/.-]){day}[/.-]{day}[/.-](?:{year}|\d\d)(?![\d/-])", 0),
        ("date", rf"(?<![\d/.-]){year}[/.-]{month}[/.-]{day}(?![\d/-])", 0),
        ("date", rf"(?<![\d/.-]){month}/{year}(?![\d/])", 0),
        ("date", rf"{cue}(?P<it>{month}/{day})(?![\d/]|\s*(?:mg|pain|scale))", 0),
        ("date", rf"(?i:\b{when})\s+(?P<it>{_capitalised('months')})\b(?!\s+(?i:be|have|not|cause|help)\b)", 0),
        ("date", rf"(?i:\b(?:in|since|until|last|next|this))\s+(?P<it>{_capitalised('short_months')})\b\.?", 0),
        ("date", rf"\b(?:spring|summer|autumn|fall|winter)\s+(?:of\s+)?{year}\b", _FORMAL),
        ("date", rf"{birth}(?P<it>\d[\d/.-]{{3,}})", 0),
    ]


def _capitalised(name: str) -> str:
    return "(?:" + "|".join(word.capitalize() for word in words_of("identifiers", "words", name)) + ")"


def _ages() -> list[tuple[str, str, int]]:
    old = r"(?:9\d|1[01]\d)"
    digits = "(?:one|two|three|four|five|six|seven|eight|nine)"
    spelled = rf"(?:ninety(?:[\s-]{digits})?|(?:one|a)\s+hundred(?:\s+and\s+\w+)?)"
    age = rf"(?P<it>{old}|{spelled})"
    years = r"(?:[\s-]*(?:years?|yrs?|y)[\s-]*(?:old|of[\s-]age|o\b)|[\s-]*(?:y\.?/?o\.?\b|yo\b|yrs?\b))"
    person = rf"\b{_any('elders')}"
    no_range, no_measure = r"(?![\d.%-]|\s*(?:-|to|–)\s*\d)", r"(?!\s*(?:\d|%|mg|kg|lb|degrees|pounds|over|/))"
    ended = r"(?=\s*(?:[.,;!?)]|and\b|with\b|now\b|\Z))"
    return [
        ("age", rf"(?<![\w.])(?:{old}|{spelled}){years}", _FORMAL),
        ("age", rf"\b(?:aged?|at\s+the\s+age\s+of)\s*:?\s*(?:of\s+|is\s+)?{age}{no_range}", _FORMAL),
        ("age", rf"\b(?:turned|turning|turns|will\s+be)\s+{age}{no_measure}\b", _FORMAL),
        ("age", rf"{person}\s*\(\s*(?P<it>{old}\s?[mf]?)\s*\)", _FORMAL),
        ("age", rf"{person}\s+(?:is|was|'s|am)\s+(?:(?:now|almost|already|nearly)\s+)?(?P<it>{old}){ended}", _FORMAL),
    ]


PARTICLES = frozenset(
    {"van", "von", "de", "der", "den", "da", "di", "del", "della", "la", "le", "el", "bin", "al", "dos", "ter", "st"}
)

_TOKEN = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*['’]?")
_SHOUTING = 0.6
_ALWAYS_EPONYM = frozenset({"syndrome", "palsy", "sarcoma", "lymphoma", "ataxia", "chorea"})


class MessageWord(Struct, frozen=True):
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


class MessageWords:
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

    def __getitem__(self, place: int) -> MessageWord:
        return self.words[place]

    def _word(self, match: re.Match[str]) -> MessageWord:
        text = match.group()
        low = text.lower().replace("’", "'")
        short = text.isupper() and 1 < len(text) < 7 and low not in given_names()  # more likely an abbreviation
        return MessageWord(match.start(), match.end(), text, low, text[0].isupper() and not self.shouting and not short)

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
