"""What identifies people in a message: addresses, numbers, dates, ages, names, places and institutions.

By form: e-mail and web addresses, user names, telephone and record numbers, dates, ages. Each rule is a pattern of one
kind; where a number alone says nothing, the words before it must say that it belongs to somebody. Numbers of medicine
(doses, blood pressures, laboratory values, drug codes, trial numbers) stay (`identifiers.toml`).

By words: a capital letter says little in what patients write, so a word counts as a possible name only where it is
capitalised and neither an ordinary word nor part of what a disease, a sign or a test is called (Parkinson, St John's
wort). A name needs a reason: it is a common given name, a title or a relation precedes it, the writer gives it as a
name, or it is signed under the message. Once a name is found, it is found everywhere in the same text (`names.toml`).

Regions and cities that are nothing else go everywhere; others where somebody is said to live, to come from or to be
treated there. Countries go only then: they say little of a person, and a traveller's question needs them. Places that
are part of the name of a thing stay (Milan criteria, Brussels sprouts; `places.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from msgspec import Struct

from hoofbeat.recipes.wordlists import word_data

_FORMAL = re.IGNORECASE
_GREETED = r"^(?:(?:hi|hello|hey)\b[\s,!]*)?"
_SPEAKS = r"(?:again\b|\d|[-–(]|i\b|my\b|with\b|on\b|\w+\s+(?:weeks?|months?|years?)\b)"


class Identifier(Struct, frozen=True, order=True):
    """Something that tells who somebody is: where it is, and of which kind. Never its text."""

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
        (
            "name",
            rf"{_GREETED}(?P<it>[^\W\d_]{{2,20}})\s+(?:from\s+[\w' -]{{2,40}}\s+)?here\b(?=[\s,.!]+{_SPEAKS})",
            _FORMAL,
        ),
        ("place", rf"{_GREETED}[^\W\d_]{{2,20}}\s+from\s+(?P<it>[\w' -]{{2,40}}?)\s+here\b", _FORMAL),
        ("username", r"(?<!\w)[A-Za-z]+(?:_[A-Za-z0-9]+)+(?!\w)", 0),
        ("username", r"(?<![\w-])[A-Za-z]?[a-z]{5,}\d{2,}(?!\w|\.\w|\s*(?:mg|mcg|ml|g|units?)\b)", 0),
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
        ("place", r"\b(?:the\s+)?(?:Isle|Island|Vale|Forest|Mull|Bay|Lake|Mount)\s+of\s+(?:the\s+)?[A-Z][\w'-]+", 0),
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
_HEADLINE = 0.5  # of the longer words: with more capitals than this, a capital says nothing
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
def drug_names() -> frozenset[str]:
    """Words of the names of medicines, brands included (`drugs.toml`)."""
    table = word_data("drugs")["drugs"]
    assert isinstance(table, dict)
    every = (name for generic, brands in table.items() for name in (str(generic), *map(str, brands)))
    return frozenset(word for name in every for word in name.lower().split())


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
        later = [word for word in self.words[1:] if len(word.text) > 3]
        self.headline = sum(word.text[0].isupper() for word in later) > _HEADLINE * len(later)
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
        """Whether a word is not a name, capitalised or not."""
        return bool({self.bare(place), self.words[place].low} & listed("names", "ordinary"))

    def family(self, place: int) -> bool:
        """Whether a word is a common family name and nothing else."""
        return self.bare(place) in listed("names", "family") - risky_families()

    def eponym(self, place: int) -> bool:
        """Whether a word means a disease, sign or measure, by itself or with the words after it."""
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


_MAX_NAMES = 3
_OWNERS = frozenset({"my", "our", "his", "her", "their"})
_PLURAL = frozenset({"kids", "children", "sons", "daughters", "twins", "parents", "brothers", "sisters", "friends"})
_CALLED = (
    ["call", "me"], ["calls", "me"], ["called", "me"], ["call", "him"], ["call", "her"], ["calls", "him"],
    ["calls", "her"], ["am", "called"], ["i'm", "called"], ["known", "as"], ["goes", "by"], ["go", "by"],
)  # fmt: skip
_NICKNAMES = frozenset({"aka", "a.k.a", "nickname", "nicknamed"})
_KIN = frozenset(
    {"aunt", "auntie", "uncle", "grandma", "grandpa", "granny", "gran", "nana", "nan", "nanny", "grandad", "granddad"}
)
_KIN_CAPITAL = frozenset({"sister", "brother", "father", "mother", "big", "wee", "sr", "br", "fr"})
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
    """The word after `Dr`, `Mrs`, `Auntie` or `Sister`."""
    if _kin_title(words, place):
        return place + 1
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


def _kin_title(words: MessageWords, place: int) -> bool:
    """Whether a word such as `Auntie` stands before a name as a title does."""
    low, capital = words[place].low.rstrip("."), words[place].capital
    if not (low in _KIN or (low in _KIN_CAPITAL and capital)) or not words.beside(place, r"\.?[ \t]+"):
        return False
    name = words[place + 1]
    return name.text[0].isupper() and not words.shouting and not words.ordinary(place + 1)


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
    if (lows[-2:] in _CALLED or lows[-1] in _NICKNAMES) and is_name:
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
_SHORT_NOUNS = frozenset(
    {
        "memorial", "regional", "primary", "high", "grammar", "elementary", "nursery", "infants", "juniors", "uni",
        "kindergarten", "preschool", "lido", "infirmary", "presbyterian", "rovers", "united", "academy", "surgery",
    }
)  # fmt: skip
_NO_HOSPITALS = frozenset(
    {
        "school", "academy", "college", "primary", "high", "grammar", "elementary", "nursery", "infants", "juniors",
        "uni", "kindergarten", "preschool", "lido", "rovers", "united",
    }
)  # fmt: skip
_SPOTS = frozenset({"in", "at", "near", "from", "outside", "around", "by"})
_BRIDGES = frozenset({"of", "on", "upon", "le", "the", "under", "next", "in", "and"})
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
        *_unknown_spots(words),
    ]


def _unknown_spots(words: MessageWords) -> Iterator[Identifier]:
    """Capitalised words after `at`, `in` or `near` that nothing explains: small places, hospitals by short names."""
    for place in range(1, len(words)) if not words.headline else ():
        first = place - 1
        if words[first].low == "the" and words.beside(first, r"[ \t]+") and first:
            first -= 1
        if words[first].low not in _SPOTS or not words.beside(first, r"[ \t]+") or not unexplained(words, place):
            continue
        last = place
        while last - place < 4 and words.beside(last, r"[ \t-]+"):
            bridged = words[last + 1].low in _BRIDGES and words.beside(last + 1, r"[ \t-]+") and last + 2 < len(words)
            step = 2 if bridged and words[last + 2].capital and unexplained(words, last + 2) else 1
            if step == 1 and not (words[last + 1].capital and not words.ordinary(last + 1)):
                break
            last += step
        at = words[first].low in ("at", "by")
        yield Identifier(words[place].start, words[last].end, "hospital" if at else "place")


def unexplained(words: MessageWords, place: int) -> bool:
    """Whether a capitalised word is neither an ordinary word nor a drug, a feast, a people or part of a disease."""
    innocent = listed("names", "capitalised") | listed("places", "countries") | drug_names()
    known = {words.bare(place), words[place].low} & innocent
    return words.person(place) and not known and not words.opens(place) and len(words.bare(place)) > 2


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
            kind = "institution" if words.bare(place) in _NO_HOSPITALS else "hospital"
            found.append(Identifier(words[first].start, words[last].end, kind))
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
    short = words.bare(place) in _SHORT_NOUNS and words[place].capital
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
