"""What turns a statement round: its numbers with unit and comparator, its denials, and which of two opposites it names.

The reading is by words alone and calls no model. A text becomes sentences, and each sentence clauses: the stretch that
one denial turns. "no more than 4 g" is a comparator and denies nothing; "protects against" denies nothing either. A
sentence may be broken over lines, and an item of a list has the denial of its lead-in ("Do not give aspirin to:").
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import resources
from typing import Literal, NamedTuple

import msgspec
import Stemmer
from msgspec import Struct
from msgspec.structs import replace

PREFIXES = 1000
"""The number of the first pair of opposites that are beginnings of words; those of whole words count from 0."""

Strict = Literal["no", "yes", "open"]


class Bound(NamedTuple):
    """A comparator: whether the number is a lower bound, and whether the number itself is out."""

    up: bool
    strict: Strict


class StatedQuantity(NamedTuple):
    """A number in its smallest unit and as written, the other parts of its unit ("/kg"), and its comparator."""

    value: float
    written: float
    unit: str
    per: tuple[str, ...]
    bound: Bound | None
    words: str
    counts: bool


class Direction(NamedTuple):
    """One of two opposites in a text: the pair, the side, the words next to it, and those of the clause around it.

    `names`: it ends the name of something ("risk reduction", "risk-reducing drugs") and says nothing of what happens.
    """

    pair: int
    side: int
    before: str
    behind: str
    word: str
    left: frozenset[str]
    right: frozenset[str]
    names: bool = False


class StatedClause(Struct, frozen=True, kw_only=True):
    """A stretch of a sentence that one denial turns: a main clause, or one that qualifies it ("who ...", "if ...").

    `own` are the words that it has itself, `terms` also those of the clauses that qualify it, or of its subject.
    `denied` are the words next behind its denials.
    `unclear`: a list may deny it or not ("avoid soap, cut the nails"). `silent`: it says what a text does not say.
    """

    main: bool
    own: frozenset[str]
    terms: frozenset[str]
    denials: int
    denied: tuple[str, ...]
    refers: bool
    advises: bool
    only: bool
    opener: str
    exception: frozenset[str]
    conditional: bool
    unclear: bool
    silent: bool
    quantities: tuple[StatedQuantity, ...]
    directions: tuple[Direction, ...]


class Sentence(Struct, frozen=True, kw_only=True):
    """A sentence as it is written, its clauses, and whether it states something: headings and questions do not."""

    text: str
    states: bool
    clauses: tuple[StatedClause, ...]


class _Comparator(Struct, frozen=True):
    up: bool
    strict: Strict
    phrases: tuple[str, ...]


class _Bounds(Struct, frozen=True):
    before: tuple[_Comparator, ...]
    behind: tuple[_Comparator, ...]


class _Denial(Struct, frozen=True):
    words: frozenset[str]
    listed: frozenset[str]
    inside: dict[str, str]
    against: str
    none: tuple[str, ...]
    exact: tuple[str, ...]
    beginnings: tuple[str, ...]
    ordered: str


class _Directions(Struct, frozen=True):
    pairs: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    prefixes: tuple[tuple[str, str], ...]


class _Clauses(Struct, frozen=True):
    breaks: frozenset[str]
    concessions: frozenset[str]
    forbids: frozenset[str]
    conditions: frozenset[str]
    relatives: frozenset[str]
    finite: frozenset[str]
    verbs: frozenset[str]
    same: dict[str, str]
    light: frozenset[str]


class _Words(Struct, frozen=True):
    bounds: _Bounds
    numbers: dict[str, float]
    units: dict[str, tuple[str, float]]
    spelled: dict[str, str]
    often: dict[str, str]
    denial: _Denial
    directions: _Directions
    clauses: _Clauses


@cache
def _words() -> _Words:
    text = (resources.files("hoofbeat.benchmarks") / "statement_words.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Words)


@cache
def turning_words() -> re.Pattern[str]:
    """Words that a quote has exactly as often as its source: they limit or deny. Paraphrases are free in them."""
    denial = _words().denial
    return re.compile(rf"\b(?:{'|'.join(denial.exact)})\b|\b(?:{'|'.join(denial.beginnings)})")


# One form of writing

_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_EXPONENT = re.compile(r"(?<=\d)[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"&ge;|[≥⩾≧]|> =|=>", " >= "),
        (r"&le;|[≤⩽≦]|< =|=<", " <= "),
        (r"&gt;", ">"),
        (r"&lt;", "<"),
        (r"(?<![<>=])([<>])(?!=)", r" \1 "),
        (r"[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]", "-"),
        (r"[\u2018\u2019\u02bc\u2032`]", "'"),
        (r"[×∙·]", "x"),
        (r"μ", "u"),
        (r"\bper cent\b", "%"),
        (r"\bmm hg\b", "mmhg"),
        (r"\bcm h ?2 ?o\b", "cmh2o"),
        (r"(?<=/)(\s?)m ?\^? ?2\b", "m2"),
        (r"/\s?1\.73 ?m ?\^? ?2\b", "/bsa"),
        (r"(?:°|º|degrees?) ?c(?:elsius)?\b", " degc"),
        (r"(?:°|º|degrees?) ?f(?:ahrenheit)?\b", " degf"),
        (r"(?<=\d),(?=\d{3}\b)", ""),
        (r"\b(\d{1,3}) (?=\d{3}\b(?! ?(?:x|-|to)))", r"\1"),
        (r"(\d+(?:\.\d+)?) ?x ?10 ?\^ ?(\d+)", r"\1e\2"),
        (r"\b(\d+)(?:st|nd|rd|th)\b", r"\1"),
        (r"\b(e\.g|i\.e|vs|approx|etc|al|no|dr|resp)\.", r"\1"),
        (r"\b(first|second|third|last)[ -](line|choice|resort)\b", r"\1\2"),
        (r"\bhalf an? (?=\w)", "0.5 "),
        (r"\bwith no\b|\bin the absence of\b|\bfree of\b", "without"),
        (r"\bnot enough\b", "insufficient"),
        (r"\benough\b", "sufficient"),
        (r"\band so (?:is|are|do|does)\b", "and"),
        (r"\b(?:leave|leaving) (?:\w+ ){0,3}(?:alone|out)\b", "avoid"),
        (r"\b(?:off[ -]limits|off the menu|out of the question)\b", "forbidden"),
        (r"\b(?:stay away from|keep away from|steer clear of|refrain from)\b", "avoid"),
        (r"\bfail(?:s|ed|ing)? to\b", "not"),
        (r"\brul(?:e|es|ed|ing) out\b", "excludes"),
        (r"\b(?:rather than|instead of|as opposed to)\b", ", not"),
        (r"\bin spite of\b", "despite"),
        (r"(?:(?<=\band )|(?<=\bor )|(?<=\bwho )|(?<=[,;:] ))\((?:\d|[a-h]|i{1,3}|iv|vi?)\) ", ""),  # "who (1) are"
        (r"n't\b", " not"),
        (r"\bcan ?not\b", "can not"),
    )
)
_ANSWERS = re.compile(r"\A(?:yes|no)[,:;] ?")  # "No, ..." answers the question and denies nothing of its sentence
_SENTENCE = re.compile(r"(?<=[.;!?:])\s+(?=\S)")
_ADVICE = re.compile(
    r"\b(?:recommend|advi[sc]|suggest|should|must|(?:contra)?indicat|avoid|prefer|offer|consider|do not|need|requir|"
    r"safe|unsafe)"
)
_REASONS = ("because", "since")
_EXCEPTION = re.compile(r"\b(?:unless|except)\b([^,]*)")
_SUBJECT = re.compile(r"[ ,]*(?:(?:because|since|as|but|and) )?(it|they|which)\b")
_ELLIPTICAL = re.compile(r"[ ,]*(?:but|and) not (?:in|for|on|among|during)\b")
_FRONTED = re.compile(r"[ ,]*(?:after|before|in|for|at|with|on|during|from|by|under|among)\b")
_REFERS = re.compile(r"[ ,]*(?:this|these|those|it|they) (?:is|are|means?|includes?)\b")
_STOPS = ("stop", "discontinu", "withdraw", "withh", "suspend", "ceas")
_GRADED_AGAINST = re.compile(r"\([^()]*\bagainst[^\w()]*\)")  # "is not needed (recommendation against)" denies once
_EARLIER = frozenset(("before", "after", "until"))
_MEANT = re.compile(r"\b(?:it|them|they|its|their|one)\b|^[ ,]*which\b")
_REFERRED = re.compile(r"\b(?:that|this) (?:age|value|level|limit|threshold|dose|size)\b(?! (?:range|group))")
_COUNTED = re.compile(r"(?<![\w.^])\d+(?:\.\d+)?(?:e\d+)?(?: ?[a-z%]+(?:/[a-z0-9]+)*)?")
_PRONOUN = re.compile(r"(?:it|they|this|these|those)\b")
_SAYING = "say|state|mention|address|name|speak|specify|discuss|describe|comment"
_GIVING = f"{_SAYING}|recommend|advise|suggest|give|offer|make|provide|report|have|cover|define|tell|contain"
_SILENT = re.compile(  # a guideline that "does not recommend" says something, passages that recommend nothing do not
    "|".join(
        rf"\b(?:{who})(?: \w+)? (?:(?:do|does) not(?: \w+)? (?:{verbs})\b|(?:{verbs})s? (?:no|nothing|neither)\b)"
        for who, verbs in (
            ("passages?|texts?|excerpts?|extracts?", _GIVING),
            ("sections?|sources?|guidelines?|guidance|documents?|it|they", _SAYING),
        )
    )
    + r"|\b(?:is|are) (?:not|nowhere)(?: \w+)? (?:named|mentioned|addressed|specified|stated|discussed|described)\b"
)


def _plain(text: str) -> str:
    """A sentence in small letters with one way of writing signs, powers and units."""
    text = _EXPONENT.sub(lambda match: "^" + match[0].translate(_RAISED), text)
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    text = _ANSWERS.sub("", text)
    for pattern, to in _FORMS:
        text = pattern.sub(to, text)
    return " ".join(text.split())


@lru_cache(maxsize=200_000)
def _stem(word: str) -> str:
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english")


# Lines and lists

_TERMINAL = ".;:!?"
_BULLET = re.compile(r"(?:[-–—•*◦▪●]|\(?(?:\d{1,2}|[a-z]|[ivx]+)[.)])\s+", re.IGNORECASE)
_UNFINISHED = re.compile(
    r"(?:\b(?:in|for|to|of|with|or|and|the|an?|that|by|on|at|from|as|who|are|is|be|if|than|not|including)|[,(])$",
    re.IGNORECASE,
)
_RAISED_LINE = re.compile(r"\b\w{1,3}\n[-+−]?\d{1,2}[+-]?\Z")  # "kg/m", and its power on the next line
_NAMES = re.compile(
    r"#|[\d.]*\s*[^\W\d_]+(?:tion|ment|sis|ance|ence|ing|logy|py)s? (?:of|for|in|and|with|after|before)\b"
)
_HEADING_WORDS = 14


class _Piece(NamedTuple):
    """A sentence as it is written; whether items follow it, whether it is one, and whether it states something."""

    text: str
    leads: bool
    item: bool
    states: bool


def _lines(text: str) -> list[str]:
    """The lines of a text; a sentence that is broken over several of them is one. Behind a colon each is an item."""
    found: list[str] = []
    listed = raised = False
    for line in filter(None, map(str.strip, text.split("\n"))):
        goes_on = bool(found) and found[-1][-1] not in _TERMINAL and not _BULLET.match(line)
        last = _SENTENCE.split(found[-1])[-1] if goes_on else ""
        raised, after = goes_on and bool(_RAISED_LINE.search(f"{last}\n{line}")), raised and not line[0].isupper()
        broken = line[0].islower() and not listed and (_is_fragment(last) or _is_fragment(line))
        if goes_on and (broken or raised or after or _UNFINISHED.search(last)):
            found[-1] += f" {line}"
        else:
            found.append(line)
        listed = line[-1] == ":" or (listed and line[-1] not in ".!?")
    return found


def _pieces(text: str) -> Iterator[_Piece]:
    """The sentences of a text. Items of a list follow a lead-in that advises: "Avoid:", "The panel recommends"."""
    lines = _lines(text)
    listed = marked = False
    for at, line in enumerate(lines):
        bullet, following = _BULLET.match(line), lines[at + 1 : at + 2]
        if at and listed and lines[at - 1][-1] == ":":
            marked = bool(bullet)
        listed = listed and (bool(bullet) or line[0].islower() or (not marked and lines[at - 1][-1] != "."))
        item = listed and _is_fragment(line)
        listed = listed and (item or marked)
        heading = bool(following) and not item and _is_heading(line)
        parts = [each for each in _SENTENCE.split(line[bullet.end() :] if item and bullet else line) if each.strip()]
        opens = bool(following) and (
            line[-1] == ":" or (line[-1] not in _TERMINAL and bool(_BULLET.match(following[0])))
        )
        leads = opens and not item and bool(_ADVICE.search(_plain(parts[-1])))
        for place, part in enumerate(parts):
            inherits = item and (place == 0 or parts[place - 1][-1] == ";")
            yield _Piece(part, leads and place == len(parts) - 1, inherits, not heading and part[-1] != "?")
        listed = listed or leads
        marked = leads and bool(_BULLET.match(following[0])) if leads else marked


def _is_fragment(line: str) -> bool:
    """Whether a line is no sentence by itself: it has no verb outside the clauses that qualify it."""
    known = _words().clauses
    words = re.findall(r"[a-z]+", line.casefold())
    own = itertools.takewhile(lambda word: word not in known.relatives | known.conditions | {"that"}, words)
    return known.finite.isdisjoint(own)


def _is_heading(line: str) -> bool:
    words = re.findall(r"[^\W\d_]+", line)
    if line[-1] in _TERMINAL or not 0 < len(words) <= _HEADING_WORDS or not _is_fragment(line):
        return False
    long = [word for word in words if len(word) > 3]
    return bool(_NAMES.match(line)) or (bool(long) and all(word[0].isupper() for word in long) and len(words) > 1)


@lru_cache(maxsize=4096)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text, each with its clauses."""
    found: list[Sentence] = []
    subject: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    last, lead = "", ""
    told: StatedClause | None = None
    for piece, leads, item, states in _pieces(text):
        plain = _REFERRED.sub(last, _plain(piece)) if last else _plain(piece)
        last = next((match[0] for match in reversed(list(_COUNTED.finditer(plain)))), last)
        clauses = list(_clauses(plain))
        if _PRONOUN.match(plain):  # "It is not licensed": what is meant stands in the sentence before
            clauses[0] = replace(clauses[0], own=clauses[0].own | subject, terms=clauses[0].terms | subject)
        elif clauses and _MEANT.search(plain):
            clauses[0] = replace(clauses[0], terms=clauses[0].terms | before)
        if not _PRONOUN.match(plain):
            subject = frozenset(list(dict.fromkeys(map(_stem, filter(_bears, re.findall(r"[a-z]+", plain)))))[:2])
        main = next((each for each in reversed(clauses) if each.main), None)
        before = main.terms if main else before
        written = " ".join(piece.split())
        if leads:
            told, lead = main, written
        elif item and told:
            clauses, written = _as_item(clauses, told), f"{lead} {written}"
        found.append(Sentence(text=written, states=states, clauses=tuple(clauses)))
    return tuple(found)


def _as_item(clauses: list[StatedClause], told: StatedClause) -> list[StatedClause]:
    """The clauses of an item of a list, the first main one with what the lead-in tells."""
    at = next((at for at, each in enumerate(clauses) if each.main and each.own), None)
    if at is None:
        return clauses
    told = replace(
        clauses[at],
        terms=clauses[at].terms | told.terms,
        denials=clauses[at].denials + told.denials,
        advises=clauses[at].advises or told.advises,
        only=clauses[at].only or told.only,
        exception=clauses[at].exception | told.exception,
        conditional=clauses[at].conditional or told.conditional,
    )
    return [*clauses[:at], told, *clauses[at + 1 :]]


# Numbers


class _Number(NamedTuple):
    start: int
    end: int
    quantity: StatedQuantity


@cache
def _bound_patterns() -> tuple[list[tuple[re.Pattern[str], Bound]], list[tuple[re.Pattern[str], Bound]]]:
    bounds = _words().bounds
    filler = r"(?: (?:an?|the|about|approximately|age|of|aged|years?|to|grade|stage|week|day|age of|the age of))*"
    before = [
        (re.compile(rf"(?:^|(?<=[\s(])){'(?:' + '|'.join(each.phrases) + ')'}{filler} ?$"), Bound(each.up, each.strict))
        for each in bounds.before
    ]
    behind = [
        (
            re.compile(rf"^,? ?(?:old |of age )?(?:{'|'.join(each.phrases)})(?![\w-])(?! (?:than|\d))"),
            Bound(each.up, each.strict),
        )
        for each in bounds.behind
    ]
    return before, behind


_JOINT = re.compile(r" ?(?:-|/|to|or|and) ?")
_NUMBER = re.compile(r"(?<![\w.^])\d+(?:\.\d+)?(?:e\d+)?")
_UNIT = re.compile(r" ?-? ?([^\W\d_]+[0-9]?o?|%)")
_PER = re.compile(r" ?/ ?([^\W_]+)| (?:per|a|an|each) ([^\W\d_]+)")
_GRADE = re.compile(r"(?:grade|stage|type|class|phase|level|category) $")
_WEEK = re.compile(r"(week|day|month|year) $")
_REFERENCE = re.compile(r"\[[\d,\s-]+\]")
_OFTEN = re.compile(r"\b(?:an?|per|each|every|once an?|one|1|/) ?(hour|day|week|month|year)\b(?! of age)")


def _unit_name(word: str) -> str:
    known = _words()
    for form in (word, word.removesuffix("s")):
        name = known.spelled.get(form, form)
        if name in known.units:
            return name
    return ""


def _numbers(text: str) -> Iterator[_Number]:
    """Every number of a plain text with its unit and comparator, and the characters that they take."""
    known = _words()
    places = [(match.start(), match.end(), float(match[0]), True) for match in _NUMBER.finditer(text)]
    for match in re.finditer(r"[a-z]+", text):
        if match[0] in known.numbers:
            places.append((match.start(), match.end(), known.numbers[match[0]], False))
        elif match[0] == "one" and _unit_name((_UNIT.match(text, match.end()) or [""] * 2)[1]):
            places.append((match.start(), match.end(), 1.0, False))
    places.sort()
    read = [(*place, *_unit_behind(text, place[1])) for place in places]
    for at in range(len(read) - 2, -1, -1):  # both ends of a range have the unit behind it
        if not read[at][4] and read[at + 1][4] and _JOINT.fullmatch(text, read[at][1], read[at + 1][0]):
            read[at] = (*read[at][:4], read[at + 1][4], read[at + 1][5], read[at][1])
    shared: Bound | None = None
    for at, (start, _, value, digits, unit, per, last) in enumerate(read):
        bound, first, end = _bound(text, start, last)
        if at and bound is None and text[read[at - 1][1] : start].strip() == "/":
            bound = shared
        shared = bound
        name, factor = _counted_in(unit, text[max(0, start - 12) : start])
        quantity = StatedQuantity(
            value * factor, value, name, per, bound, text[first:end].strip(), digits or bool(unit)
        )
        yield _Number(first, end, quantity)


def _counted_in(unit: str, before: str) -> tuple[str, float]:
    """What a number is counted in: its unit, or the word before it in "week 12" and "grade 3"."""
    if not unit and (counted := _WEEK.search(before)):
        unit = counted[1]
    if unit:
        return _words().units.get(unit, ("", 1.0))
    grade = _GRADE.search(before)
    return (grade[0].strip() if grade else ""), 1.0


def _unit_behind(text: str, end: int) -> tuple[str, tuple[str, ...], int]:
    found = _UNIT.match(text, end)
    unit = _unit_name(found[1]) if found else ""
    if not found or not unit:
        return "", (), end
    end, per = found.end(), []
    while more := _PER.match(text, end):
        name = _unit_name(more[1] or more[2])
        if not name:
            break
        per.append(name)
        end = more.end()
    return unit, tuple(name for name in per if name not in ("day", "hour", "minute", "week", "second")), end


def _bound(text: str, start: int, end: int) -> tuple[Bound | None, int, int]:
    before, behind = _bound_patterns()
    for pattern, bound in behind:
        if found := pattern.search(text[end : end + 40]):
            return bound, start, end + found.end()
    near = text[max(0, start - 60) : start]
    for pattern, bound in before:
        if found := pattern.search(near):
            return bound, start - len(near) + found.start(), end
    return None, start, end


def _how_often(text: str) -> Iterator[StatedQuantity]:
    """ "Daily", "a day" and "/day": one of the unit."""
    known = _words()
    for match in re.finditer(r"[a-z]+", text):
        if match[0] in known.often:
            name, factor = known.units[known.often[match[0]]]
            yield StatedQuantity(factor, 1.0, name, (), None, match[0], False)
    for match in _OFTEN.finditer(text):
        name, factor = known.units[match[1]]
        yield StatedQuantity(factor, 1.0, name, (), None, match[0], False)


# Clauses


def _clauses(text: str) -> list[StatedClause]:
    text = _REFERENCE.sub(" ", text)
    masked = _without_false_denials(text)
    except_for = _EXCEPTION.search(masked)
    exception = _terms(except_for[1]) if except_for else frozenset[str]()
    conditional = bool(re.search(r"\b(?:if|when|whenever)\b", masked))
    numbers = list(_numbers(masked))
    stretches = _stretches(masked)
    for number in numbers:  # "no more than 4 g" denies nothing, "older than 65" is no direction
        head = masked[number.start : number.end]
        masked = masked[: number.start] + re.sub(r"[a-z]", "_", head) + masked[number.end :]
    found: list[StatedClause] = []
    known = _words().clauses
    main, plain_before = 0, ""
    for place, (is_main, places, unclear) in enumerate(stretches):
        words = " ".join(masked[start:end] for start, end in places)
        denials, denied, inside = _denials(words)
        mine = [each.quantity for each in numbers if any(start <= each.start < end for start, end in places)]
        often = [each for start, end in places for each in _how_often(text[start:end])]
        terms = own = _terms(words) | _stems(inside) | {f"{each.written:g}" for each in mine}
        if is_main and found and (spoken := _SUBJECT.match(words)):
            named = [word for word in re.findall(r"[a-z]+", plain_before) if _bears(word)]
            own = terms = own | _stems(named[-1:] if spoken[1] == "which" else named[:1])
        if is_main and found and _ELLIPTICAL.match(words) and known.finite.isdisjoint(re.findall(r"[a-z]+", words)):
            own = terms = own | found[main].own  # "but not in the elderly": the verb stands before
        if is_main and found and (_starts_with_verb(words) or _MEANT.search(words)):
            terms |= found[main].terms  # "and used with caution", "raises it": what is meant stands before
        elif not is_main and found:
            found[main] = replace(found[main], terms=found[main].terms | terms)
        main = place if is_main else main
        plain_before = words if is_main else plain_before
        found.append(
            StatedClause(
                main=is_main,
                own=own,
                terms=terms,
                denials=denials,
                denied=denied,
                refers=bool(_REFERS.match(words)) and not denials and not _ADVICE.search(words),
                advises=bool(_ADVICE.search(words)),
                only=bool(re.search(r"\bonly\b", text)),
                opener=next(iter(re.findall(r"[a-z]+", words)), ""),
                exception=exception,
                conditional=conditional,
                unclear=unclear,
                silent=bool(_SILENT.search(words)),
                quantities=(*mine, *often),
                directions=tuple(_directions(words)),
            )
        )
    return found


def _starts_with_verb(words: str) -> bool:
    known = _words()
    joined, *rest = [*re.findall(r"[a-z]+", words)[:2], "", ""][:2]
    if words.startswith(",") and joined in known.clauses.forbids:
        return True
    first = [rest[0]] if joined in ("and", "or", "but", "then") else []
    return bool(first) and (first[0] in known.clauses.verbs | known.clauses.finite | known.denial.words | {"that"})


def _terms(text: str) -> frozenset[str]:
    """The words that tell one clause from another; of a direction, the pair that it belongs to."""
    words = re.findall(r"[^\W\d_][\w']*", text)
    return _stems([word for word in words if _bears(word)]) | {
        f"pair {found[0]}" for found in map(_pair_of, words) if found
    }


def _stems(words: Iterable[str]) -> frozenset[str]:
    same = _words().clauses.same
    return frozenset(same.get(word) or _stem(word) for word in words)


def _without_false_denials(text: str) -> str:
    """The text with "not only", "with or without" and "to avoid" taken out, characters kept."""
    denial = _words().denial
    for pattern in denial.none:
        for match in list(re.finditer(rf"\b{pattern}\b", text)):
            ordered = re.search(rf"\b{denial.ordered}(?: \w+)? $", text[: match.start()])
            if not ("avoid" in pattern and ordered):
                text = text[: match.start()] + "_" * len(match[0]) + text[match.end() :]
    return text


class _Stretch(NamedTuple):
    """Whether it is a main clause, the characters it is made of, and whether a list may deny it or not."""

    main: bool
    places: list[tuple[int, int]]
    unclear: bool = False


def _stretches(text: str) -> list[_Stretch]:
    """The clauses of a sentence. A main clause goes on behind one that qualifies it."""
    known = _words().clauses
    found = [_Stretch(True, [])]
    main, start, own, kind = 0, 0, 0, ""
    concedes = forbids = False
    tokens = list(re.finditer(r"[^\W\d_][\w']*|[,()]", text))

    def turn(at: int, *, qualifies: bool, new: bool = False, unclear: bool = False) -> None:
        nonlocal main, start
        found[-1 if kind else main].places.append((start, at))
        start = at
        if qualifies or new:
            found.append(_Stretch(not qualifies, [], unclear))
            main = main if qualifies else len(found) - 1

    for at, token in enumerate(tokens):
        word, behind = token[0], [each[0] for each in tokens[at + 1 : at + 9]]
        apart = at > 0 and tokens[at - 1][0] == ","
        if word == "," and concedes:  # "Although A is not known, B": the denial ends here
            turn(token.start(), qualifies=False, new=True)
            kind, concedes = "", False
        elif word == "," and forbids and text.count("(", start, token.start()) == text.count(")", start, token.start()):
            turn(token.start(), qualifies=False, new=True, unclear=behind[:1] != [] and behind[0] not in known.verbs)
            kind, forbids = "", behind[:1] != [] and behind[0] not in known.verbs
        elif (_qualifies(word, behind) or (at == 0 and word in _REASONS)) and not (
            word in ("while", "which") and apart
        ):
            turn(token.start(), qualifies=True)
            kind, own = word, at
        elif (
            word in known.breaks
            or (word in ("those", "while", "which") and apart)
            or (word == "as" and behind[:1] and behind[0] in ("it", "they", "this", "these", "there"))
        ):
            concedes = word in known.concessions and not any(
                _bears(each[0]) for each in tokens[:at] if each[0].isalpha()
            )
            turn(token.start(), qualifies=False, new=True)
            kind = ""
        elif kind and (word in ",()" or (word in known.finite and at > _own_verb(kind, own))):
            turn(token.start(), qualifies=False)
            kind = ""
        elif word in ("and", "or") and _opens(text[start : token.start()], behind):
            goes_on = kind in known.conditions and behind[0] not in known.verbs
            inside = goes_on or (bool(kind) and kind != "without" and behind[0] in known.finite | {"no"})
            turn(token.start(), qualifies=inside, new=not inside)
            kind, own = (kind, at) if inside else ("", 0)
        elif word == "," and _denied_next(behind) and not _fronted(text[start : token.start()], behind[0]):
            forbids = behind[0] in known.forbids
            turn(token.start(), qualifies=False, new=True)
    turn(len(text), qualifies=False)
    return [each for each in found if each.places]


def _fronted(text: str, word: str) -> bool:
    """Whether the clause behind a comma goes on from the phrase before it: "In children, avoid", "too late, skip"."""
    known = _words().clauses
    if _FRONTED.match(text):
        return "," not in text.strip(" ,")
    return word in known.forbids and (known.finite | known.verbs | {"to"}).isdisjoint(re.findall(r"[a-z]+", text))


def _denied_next(behind: list[str]) -> bool:
    """Whether a denial follows a comma: ", not with iodine", ", avoid soap", ", mild anaemia does not"."""
    finite = _words().clauses.finite
    if behind[:2] == ["not", "be"]:  # "recommends that radiography, …, not be used"
        return False
    return (behind[:1] and behind[0] in _words().clauses.forbids | {"not", "never"}) or any(
        one in finite and two == "not" for one, two in itertools.pairwise(behind[1:5])
    )


def _own_verb(kind: str, at: int) -> float:
    """How far the verb of a clause that qualifies another can be: "who are", "whose test is", "without" has none."""
    if kind in _words().clauses.conditions or kind in _REASONS:
        return math.inf
    return at if kind == "without" else at + 2


def _qualifies(word: str, behind: list[str]) -> bool:
    """Whether a word begins a clause that qualifies another."""
    known = _words().clauses
    if word == "that":
        return bool(behind) and behind[0] in known.finite
    return word in known.conditions or word in known.relatives


def _opens(left: str, behind: list[str]) -> bool:
    """Whether a new clause begins behind "and": with a verb or a denial, or with a predicate where the left has one."""
    known = _words()
    behind = behind[1:] if behind[:1] == ["that"] else behind
    if behind and behind[0] in known.denial.words | known.clauses.verbs | known.clauses.finite:
        return True
    if known.clauses.finite.isdisjoint(re.findall(r"[a-z]+", left)):
        return False
    for word in behind:
        if word in known.clauses.finite:
            return True
        if word in (",", "(", ")", "and", "or", "who", "which", "that"):
            return False
    return False


def _denials(text: str) -> tuple[int, tuple[str, ...], list[str]]:
    """How often a clause denies, the words next behind what denies, and those inside it ("unsafe": safe).

    "No bath and no swimming" denies once, and so does "not allowed, neither raw nor cooked". "Before stopping" denies
    nothing: it is what comes first that is told.
    """
    denial = _words().denial
    words = re.findall(r"[a-z]+", text)
    found = [
        word
        for at, word in enumerate(words)
        if word in denial.words and not (word.startswith(_STOPS) and _EARLIER & set(words[max(0, at - 3) : at]))
    ]
    listed = [word for word in found if word in denial.listed]
    others = [word for word in found if word not in denial.listed]
    against = len(re.findall(rf"\b{denial.against}\b", text))
    graded = bool(found) and against > 0 and bool(_GRADED_AGAINST.search(text))
    count = len(others) + against - graded
    before = set(found[: found.index(listed[0])]) if listed else set()
    count += bool(listed) and before.isdisjoint(("not", "never"))
    denied = [_next_borne(words[at + 1 :]) for at, word in enumerate(words) if word in denial.words]
    return count, tuple(denied), [denial.inside[word] for word in found if word in denial.inside]


def _next_borne(words: list[str]) -> str:
    return next((_stem(word) for word in words if _bears(word)), "")


def _bears(word: str) -> bool:
    known = _words()
    return not (
        word in known.clauses.light
        or word in known.denial.words
        or word in known.numbers
        or word in known.often
        or word.strip("_") == ""
        or _unit_name(word)
        or _pair_of(word) is not None
    )


@lru_cache(maxsize=50_000)
def _pair_of(word: str) -> tuple[int, int] | None:
    for number, pair in enumerate(_words().directions.pairs):
        for side, forms in enumerate(pair):
            for form in forms:
                if word == form[1:] if form[0] == "=" else word.startswith(form):
                    return number, side
    return None


def _directions(text: str) -> Iterator[Direction]:
    tokens = re.findall(r"[^\W\d_][\w']*|\d+(?:\.\d+)?(?:e\d+)?|[,;()]|_+", text)
    for at, word in enumerate(tokens):
        before, behind = tokens[:at], tokens[at + 1 :]
        earlier = word == "prior" and behind[:1] != ["to"]  # "a prior ulcer" is one that the patient had
        if (
            (found := _pair_of(word)) is not None
            and not earlier
            and not (word == "following" and before[-1:] == ["the"])
        ):
            if "," in behind and not any(map(_bears, before)):  # "After A, B" is "B after A"
                comma = behind.index(",")
                before, behind = behind[comma + 1 :], behind[:comma]
            sides = _nearby(before[::-1]), _nearby(behind)
            names = word.endswith(("tion", "ing")) and before[-1:] != [] and before[-1].isalpha() and _bears(before[-1])
            yield Direction(*found, _next(before[::-1]), _next(behind), word, *sides, names)
        for number, pair in enumerate(_words().directions.prefixes, start=PREFIXES):
            for side, prefix in enumerate(pair):
                if word.startswith(prefix) and len(word) > len(prefix) + 3:
                    rest = word.removeprefix(prefix).strip("-")
                    yield Direction(number, side, "", rest, word, frozenset(), frozenset())


def _nearby(tokens: list[str]) -> frozenset[str]:
    return _stems([token for token in tokens if token[0].isalpha() and _bears(token)][:3])


def _next(tokens: list[str]) -> str:
    """The nearest word that bears a claim, or number: at most two light words away, in the same part of the clause."""
    for word in [each for each in tokens if each[0] != "_"][:3]:
        if word in ",;()" or word in ("and", "or", "but", "than") or _pair_of(word):
            return ""
        if word[0].isdigit() or _bears(word):
            return _stem(word)
    return ""
