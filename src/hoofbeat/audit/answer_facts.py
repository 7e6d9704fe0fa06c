"""What an answer claims, as far as words show it: its numbers with units and bounds, its denials, its content words.

Two answers whose facts clash are never taken for the same claim, however alike they sound: "6 weeks" and "8 weeks",
"allowed" and "not allowed" lie close together for an encoder. The reading is plain and errs on the side of a clash,
which costs a call and no error.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from fractions import Fraction
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.retrieval.index.analysis import ENGLISH

_REFERENCE = re.compile(
    r"\[[^\[\]]{1,160}\]|\((?:see |page |pp?\.|section |§)[^()]{0,80}\)|^\s*\d{1,2}[.)]\s+", re.I | re.M
)
_PARTS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_RAISED, _LOWERED = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉"
_KEPT = frozenset(f"{_PARTS}{_RAISED}{_LOWERED}⁻⁺")
_LETTER = rf"(?:(?![{_PARTS}{_RAISED}{_LOWERED}])[^\W\d_])"
_TOKEN = re.compile(
    rf"\d{{1,9}}[⁻⁺]?[{_RAISED}]{{1,2}}(?![{_RAISED}])|\d+(?:[.,:]\d+)*[{_PARTS}]?|[{_PARTS}]|[{_RAISED}]+|[{_LOWERED}]+"
    rf"|°\s?[cf]\b|{_LETTER}+(?:['’]{_LETTER}+)?|[%€$£<>≤≥/.;:!?,()–—-]",
    re.I,
)
_POWER = re.compile(rf"(\d+)([⁻⁺]?)([{_RAISED}]+)")
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_JOINING = {"to", "or", "and", "-", "–", "—", "through", "till", "/"}
_ENDS = {".", ";", ":", "!", "?", "—"}
_BEHIND = 4


class Quantity(NamedTuple):
    """A number in the smallest unit of its kind, and whether it is a bound (`>=`, `>`, `<=`, `<`) or stands alone."""

    value: str
    unit: str
    bound: str


class AnswerFacts(Struct, frozen=True, kw_only=True):
    """What one answer claims: quantities, content words in order, the words it denies and affirms, and sides taken.

    `sides` are the numbers of pairs of opposites of which the answer has one side only, negative for the second side.
    """

    quantities: frozenset[Quantity]
    words: tuple[str, ...]
    denied: frozenset[str]
    affirmed: frozenset[str]
    denies: bool
    sides: frozenset[int]


class _Units(Struct, frozen=True):
    one: frozenset[str]
    adverbs: dict[str, str]
    of: dict[str, tuple[str, str]]
    spelled: dict[str, str]


class _Bounds(Struct, frozen=True):
    more: frozenset[str]
    less: frozenset[str]
    least: tuple[str, ...]
    most: tuple[str, ...]
    above: tuple[str, ...]
    below: tuple[str, ...]


class _Denial(Struct, frozen=True):
    words: frozenset[str]
    phrases: tuple[str, ...]
    breaks: frozenset[str]


class _Opposites(Struct, frozen=True):
    pairs: tuple[tuple[frozenset[str], frozenset[str]], ...]


class _Words(Struct, frozen=True):
    light: frozenset[str]
    numbers: dict[str, str]
    units: _Units
    bounds: _Bounds
    denial: _Denial
    opposites: _Opposites


@cache
def _words() -> _Words:
    text = (resources.files("hoofbeat.audit") / "economy_words.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Words)


def facts_of(text: str) -> AnswerFacts:
    """Read the facts of an answer; references to sections and pages are no part of it."""
    tokens = _tokens(text)
    denied: set[str] = set()
    affirmed: set[str] = set()
    denies = False
    for clause in _clauses(tokens):
        no = _denies(clause)
        denies |= no
        (denied if no else affirmed).update(_content(clause))
    said = set(tokens)
    return AnswerFacts(
        quantities=frozenset(_quantities(tokens)),
        words=tuple(_content(tokens)),
        denied=frozenset(denied),
        affirmed=frozenset(affirmed),
        denies=denies,
        sides=frozenset(_sides(said)),
    )


def facts_conflict(a: AnswerFacts, b: AnswerFacts) -> str:
    """Why two answers can't be taken for the same claim without judging them, or nothing where words do not show it.

    They clash where their numbers, times or thresholds differ, where one denies and the other does not, where a word is
    denied by one and affirmed by the other, and where they take opposite sides (before and after, raise and lower).
    """
    if _amounts(a) != _amounts(b):
        return "numbers differ"
    if any(one and two and not one & two for one, two in _bounds(a, b)):
        return "thresholds differ"
    if a.denies != b.denies:
        return "one denies and the other does not"
    if (a.denied - a.affirmed) & (b.affirmed - b.denied) or (b.denied - b.affirmed) & (a.affirmed - a.denied):
        return "what is denied differs"
    if any(-side in b.sides for side in a.sides):
        return "they take opposite sides"
    return ""


def shared_words(a: AnswerFacts, b: AnswerFacts) -> float:
    """How much of the longer answer's content words the two share: 1 where neither says a word more."""
    one, two = set(a.words), set(b.words)
    return len(one & two) / max(len(one), len(two)) if one and two else 0.0


def _amounts(facts: AnswerFacts) -> set[tuple[str, str]]:
    return {(each.value, each.unit) for each in facts.quantities}


def _bounds(a: AnswerFacts, b: AnswerFacts) -> list[tuple[set[str], set[str]]]:
    return [
        tuple({each.bound for each in side.quantities if each[:2] == amount and each.bound} for side in (a, b))  # type: ignore[misc]
        for amount in _amounts(a)
    ]


def _tokens(text: str) -> list[str]:
    plain = unicodedata.normalize("NFC", _REFERENCE.sub(" ", text))
    folded = re.sub(r"[^\x00-\x7f]", _compatible, plain).casefold().replace("’", "'")
    folded = folded.replace("per cent", "percent").replace("μ", "µ")
    return [re.sub(r"\s", "", token) for token in _TOKEN.findall(folded)]


def _compatible(match: re.Match[str]) -> str:
    """A sign in its plain form; fractions and raised or lowered digits stay, since 10³ is not 103 nor 2½ 21/2."""
    return match[0] if match[0] in _KEPT else unicodedata.normalize("NFKC", match[0])


def _clauses(tokens: list[str]) -> list[list[str]]:
    clauses: list[list[str]] = [[]]
    for token in tokens:
        if token in _ENDS or token in _words().denial.breaks:
            clauses.append([])
        else:
            clauses[-1].append(token)
    return [clause for clause in clauses if clause]


def _denies(clause: list[str]) -> bool:
    """Whether a clause says no; a no that only makes a bound ("no more than 2 g") does not."""
    bounds = _words().bounds
    text = " ".join(clause)
    for word in (*bounds.more, *bounds.less):
        text = text.replace(f"no {word} than", "bound").replace(f"not {word} than", "bound")
    return not _words().denial.words.isdisjoint(text.split()) or any(
        f" {phrase} " in f" {text} " for phrase in _words().denial.phrases
    )


def _content(tokens: list[str]) -> list[str]:
    """The stems of the words that say something: no numbers, units, denials and little words."""
    known = _words()
    kept = [
        token
        for token in tokens
        if token[0].isalpha()
        and token not in known.light
        and token not in known.numbers
        and token not in known.denial.words
        and token not in known.units.adverbs
        and not _unit(token)
    ]
    return [term for term in ENGLISH.terms_of(kept) if term is not None and len(term) > 1]


def _sides(said: set[str]) -> list[int]:
    found = []
    for number, (first, second) in enumerate(_words().opposites.pairs, start=1):
        one, two = bool(said & first), bool(said & second)
        if one != two:
            found.append(number if one else -number)
    return found


def _unit(token: str) -> str:
    """The plain name of a unit, or nothing."""
    units = _words().units
    for form in (token, token.removesuffix("s")):
        name = units.spelled.get(form, form)
        if name in units.of:
            return name
    return ""


def _number(tokens: list[str], at: int) -> Fraction | None:
    token = tokens[at]
    if token[0].isdigit() or token in _PARTS:
        return _value(token)
    word = _words().numbers.get(token)
    if word is None or (at and token in _words().units.of and tokens[at - 1][0].isdigit()):
        return None
    return Fraction(word.split()[0])


def _value(token: str) -> Fraction:
    if power := _POWER.fullmatch(token):
        base, exponent = Fraction(power[1]), int(unicodedata.normalize("NFKC", power[3]))
        return base ** (-exponent if power[2] == "⁻" else exponent) if base else base
    if token[-1] in _PARTS:
        part = Fraction(unicodedata.numeric(token[-1])).limit_denominator(10)
        return (_value(token[:-1]) if token[:-1] else 0) + part
    token = unicodedata.normalize("NFKC", token)  # raised or lowered digits that stand alone
    if ":" in token:
        parts = token.split(":")
        return Fraction(int(re.sub(r"\D", "", parts[0])) * 60 + int(re.sub(r"\D", "", parts[1])))
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", token):
        token = token.replace(",", "")
    whole, *rest = re.split(r"[.,]", token)
    return Fraction(f"{whole}.{''.join(rest)}" if rest else whole)


def _quantities(tokens: list[str]) -> list[Quantity]:
    """Every number with its unit and bound; both ends of a range have the unit that stands behind it."""
    known = _words()
    found: list[tuple[Fraction, str, int, int]] = []
    at = 0
    while at < len(tokens):
        value, end = _read_number(tokens, at)
        if value is None:
            unit = _one_unit(tokens, at)
            if unit:
                found.append((Fraction(1), unit, at, at + 1))
            elif tokens[at] in known.units.adverbs:
                found.append((Fraction(1), known.units.adverbs[tokens[at]], at, at))
            at += 1
            continue
        unit, end = _unit_behind(tokens, at, end)
        found.append((value, unit, at, end))
        at = end
    filled = list(found)
    for index, (left, right) in reversed(list(enumerate(pairwise(found)))):
        joined = tokens[left[3] : right[2]]
        if not left[1] and filled[index + 1][1] and joined and set(joined) <= _JOINING:
            filled[index] = (left[0], filled[index + 1][1], left[2], left[3])
    return [Quantity(*_in_base(value, unit), _bound(tokens, start, end)) for value, unit, start, end in filled]


def _read_number(tokens: list[str], at: int) -> tuple[Fraction | None, int]:
    """The number that begins here, "twenty-one" and "two hundred" as one, and where it ends."""
    value = _number(tokens, at)
    if value is None:
        return None, at
    end = at + 1
    if not tokens[at][0].isdigit():
        if value in range(20, 100, 10) and end + 1 < len(tokens) and tokens[end] == "-":
            ones = Fraction(1) if tokens[end + 1] == "one" else _number(tokens, end + 1)
            if ones is not None and 0 < ones < 10 and not tokens[end + 1][0].isdigit():
                return value + ones, end + 2
        if end < len(tokens) and tokens[end] in ("hundred", "thousand"):
            return value * Fraction(_words().numbers[tokens[end]]), end + 1
    return value, end


def _unit_behind(tokens: list[str], at: int, end: int) -> tuple[str, int]:
    """The unit behind a number (or a sign of money before it), and where it ends."""
    if tokens[at] == "fortnight":
        return "day", end
    if at and tokens[at - 1] in "€$£":
        return _unit(tokens[at - 1]), end
    if _CLOCK.fullmatch(tokens[at]):
        return "minute", end
    place = end + 1 if end + 1 < len(tokens) and tokens[end] == "-" else end
    if place < len(tokens) and _unit(tokens[place]):
        return _unit(tokens[place]), place + 1
    return "", end


def _one_unit(tokens: list[str], at: int) -> str:
    """The unit of "a day", "every week", "one month": one of it."""
    times = {"second", "minute", "hour", "day", "week", "month", "year"}
    if tokens[at] in _words().units.one and at + 1 < len(tokens) and tokens[at + 1] in times - {"second"}:
        return tokens[at + 1]
    return ""


def _in_base(value: Fraction, unit: str) -> tuple[str, str]:
    if not unit:
        return str(value), ""
    base, factor = _words().units.of[unit]
    return str(value * Fraction(factor)), base


def _bound(tokens: list[str], start: int, end: int) -> str:
    """Whether the number is a bound, by the words before it ("no more than") or behind it ("or higher")."""
    known = _words().bounds
    before = " ".join(tokens[max(0, start - _BEHIND) : start])
    if match := re.search(r"(?:\b(no|not|nothing) )?(\w+) than(?: about| the)?$", before):
        no, word = match[1] in ("no", "not"), match[2]
        if word in known.more:
            return "<=" if no else ">"
        if word in known.less:
            return ">=" if no else "<"
    for bound, phrases in ((">=", known.least), ("<=", known.most), (">", known.above), ("<", known.below)):
        if any(re.search(rf"(?:^|\s){re.escape(phrase)}(?: about| the)?$", before) for phrase in phrases):
            return bound
    behind = tokens[end : end + 2]
    if len(behind) == 2 and behind[0] in ("or", "and"):
        return ">=" if behind[1] in known.more else "<=" if behind[1] in known.less else ""
    return ""
